// The catalogue: all APIs that the visitor may see, filtered by what stands in the address.
import { useLocation, useSearchParams } from 'wouter'
import { Button, ButtonLink } from '../../ui/button'
import { useSettled } from '../../ui/settled'
import { countText } from '../../ui/time'
import { Cards, securityText } from '../cards'
import { type Cards as AllCards, useMe, useSought } from '../data'
import { Empty } from '../empty'
import { Page, SignedIn, useSignIn } from '../frame'

const FILTERS = ['q', 'category', 'label', 'security', 'mine', 'sort'] as const

export default function Catalogue() {
  const [chosen, choose] = useSearchParams()
  const [, go] = useLocation()
  const me = useMe()
  const toSignIn = useSignIn()
  // What is not chosen is not sent.
  const query = Object.fromEntries(FILTERS.map((it) => [it, chosen.get(it) ?? '']).filter(([, value]) => value !== ''))
  const words = useSettled(query['q'] ?? '')
  const { q: _, ...others } = query
  const all = useSought<AllCards>('/apis', words === '' ? others : { ...others, q: words })
  if (all.error) return <SignedIn error={all.error} onRetry={() => void all.refetch()} />
  const set = (name: string, value: string) =>
    choose(
      (known) => {
        const next = new URLSearchParams(known)
        if (value === '') next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  const isFiltered = ['q', 'category', 'label', 'security', 'mine'].some((it) => query[it] !== undefined)
  return (
    <Page title="APIs" about={all.data && `${countText(all.data.items.length, 'API', 'APIs')}${isFiltered ? ' found' : ''}`}>
      <div className="tools filters" role="search" aria-label="Filter the catalogue">
        <input className="input search" type="search" aria-label="Filter" placeholder="Filter by name or description" value={query['q'] ?? ''} onChange={(event) => set('q', event.target.value)} />
        <Choice label="Category" value={query['category'] ?? ''} all={all.data?.categories} onChange={(value) => set('category', value)} />
        <Choice label="Label" value={query['label'] ?? ''} all={all.data?.labels} onChange={(value) => set('label', value)} />
        <Choice label="Security" value={query['security'] ?? ''} all={all.data?.security} text={securityText} onChange={(value) => set('security', value)} />
        <select className="select narrow" aria-label="Order" value={query['sort'] ?? ''} onChange={(event) => set('sort', event.target.value)}>
          <option value="">By name</option>
          <option value="newest">Newest first</option>
        </select>
        {me.data?.id && (
          <label className="choice">
            <input type="checkbox" checked={query['mine'] === 'true'} onChange={(event) => set('mine', event.target.checked ? 'true' : '')} /> Mine only
          </label>
        )}
      </div>
      {all.data === undefined ? (
        <div className="loading" aria-busy="true" />
      ) : all.data.items.length > 0 ? (
        <Cards items={all.data.items} />
      ) : isFiltered ? (
        <Empty
          title="Nothing fits"
          icon="apis"
          actions={
            <>
              <Button onPress={() => go('/apis')}>Clear the filter</Button>
              <Button look="primary" onPress={() => go(`/search?q=${encodeURIComponent(query['q'] ?? '')}`)}>
                Search everywhere
              </Button>
            </>
          }
        >
          <p>{query['mine'] ? 'None of those that your applications are subscribed to.' : 'No API has all of these.'} The search also looks into operations and forgives typing errors.</p>
        </Empty>
      ) : (
        <Empty title="No APIs yet" icon="apis" actions={me.data && !me.data.id && <ButtonLink to={toSignIn}>Sign in to see more</ButtonLink>}>
          <p>An API appears here once a version of it is published.{me.data && !me.data.id && ' Some are shown only to those who are signed in.'}</p>
        </Empty>
      )}
    </Page>
  )
}

function Choice({ label, value, all, onChange, text = (it) => it }: { label: string; value: string; all: string[] | undefined; onChange: (value: string) => void; text?: (value: string) => string }) {
  if ((all ?? []).length === 0 && value === '') return null
  return (
    <select className="select narrow" aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{label}: all</option>
      {(all ?? [value]).map((it) => (
        <option key={it} value={it}>
          {text(it)}
        </option>
      ))}
    </select>
  )
}
