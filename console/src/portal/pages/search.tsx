// Search over APIs, operations and pages.
import { Link, useSearchParams } from 'wouter'
import { useSettled } from '../../ui/settled'
import { type Hit, useSought } from '../data'
import { Broken, Page } from '../frame'

const KINDS = { api: 'API', page: 'Page' } as const

function pathOf(hit: Hit): string {
  if (hit.kind === 'page') return `/pages/${encodeURIComponent(hit.name)}`
  const version = `/apis/${encodeURIComponent(hit.api)}/${encodeURIComponent(hit.version)}`
  return hit.kind === 'api' ? version : `${version}/operations/${encodeURIComponent(hit.name)}`
}

export default function Search() {
  const [chosen, choose] = useSearchParams()
  const words = chosen.get('q') ?? ''
  const asked = useSettled(words)
  const found = useSought<{ items: Hit[] }>('/search', { q: asked })
  const isSearching = words !== asked || found.isFetching
  if (found.error) return <Broken error={found.error} onRetry={() => void found.refetch()} />
  const items = words === '' ? [] : (found.data?.items ?? [])
  return (
    <Page title="Search">
      <input
        className="input"
        type="search"
        aria-label="Search for"
        placeholder="Such as: refund an order"
        autoFocus
        maxLength={200}
        value={words}
        onChange={(event) => choose({ q: event.target.value }, { replace: true })}
      />
      <p role="status" className="muted">
        {words === '' ? 'Search for what you want to do, a path, or a name.' : isSearching && items.length === 0 ? 'Searching…' : items.length === 0 ? `Nothing found for “${words}”.` : `${items.length} found`}
        {words !== '' && !isSearching && items.length === 0 && (
          <>
            {' '}
            Try another word, or look through <Link href="/apis">all APIs</Link>.
          </>
        )}
      </p>
      <ul className="hits" aria-label="Found">
        {items.map((it) => (
          <li key={`${it.kind}${it.api}${it.version}${it.name}`} className="card">
            <div className="row between">
              <Link href={pathOf(it)}>
                {it.kind === 'operation' ? <Operation title={it.title} /> : it.title}
              </Link>
              <span className="muted small">{it.kind === 'operation' ? `${it.api} ${it.version}` : KINDS[it.kind]}</span>
            </div>
            {it.about && <p className="muted">{it.about}</p>}
          </li>
        ))}
      </ul>
    </Page>
  )
}

/** `METHOD path`, the method as it looks everywhere. */
function Operation({ title }: { title: string }) {
  const [method = '', ...path] = title.split(' ')
  return (
    <>
      <span className={`method ${method.toLowerCase()}`}>{method}</span> <code>{path.join(' ')}</code>
    </>
  )
}
