// What a consumer may call: every route, whether a plain call with the consumer's credentials passes its plugins, and why not.
import { useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { components } from '../../generated/api'
import { get } from '../api/client'
import { Failure } from '../shell/page'
import { chipText } from '../ui/search'
import { Button } from '../ui/button'
import { Choices } from '../ui/choices'
import { type Column, Table } from '../ui/table'
import { DIALECTS } from './dialects'

type ReachResponse = components['schemas']['ReachResponse']
type RouteReach = components['schemas']['RouteReach']
type Verdict = RouteReach['verdict']

const PAGE = 1000

const WORDS: Record<Verdict, { text: string; tone: string }> = {
  may: { text: 'may call', tone: 'good' },
  'may-not': { text: 'may not', tone: 'bad' },
  depends: { text: 'depends', tone: 'warn' },
}

/** Why, in a sentence. */
function reasonOf(it: RouteReach): string {
  const by = it.plugin ? `${it.plugin}${it.status ? ` (${it.status})` : ''}: ` : ''
  if (it.verdict !== 'may') return `${by}${it.reason ?? 'a plain call is answered otherwise'}`
  return it.is_open ? 'open to all' : 'accepted'
}

const explainLink = (it: RouteReach): string => {
  const at = it.call.indexOf(' ')
  return `/explain?${new URLSearchParams({ method: it.call.slice(0, at), url: it.call.slice(at + 1) })}`
}

const columns: Column<RouteReach>[] = [
  {
    id: 'route',
    title: 'Route',
    text: (it) => it.route,
    render: (it) => (
      <>
        <Link href={`/routes?q=${encodeURIComponent(chipText('name', it.route))}`}>{it.route}</Link>
        {it.dialect !== 'native' && <span className="badge">{DIALECTS[it.dialect] ?? it.dialect}</span>}
      </>
    ),
    width: 'minmax(7rem, 1fr)',
  },
  { id: 'verdict', title: 'Verdict', text: (it) => WORDS[it.verdict].text, render: (it) => <span className={`badge ${WORDS[it.verdict].tone}`}>{WORDS[it.verdict].text}</span>, width: '5.5rem' },
  { id: 'why', title: 'Why', text: reasonOf, width: 'minmax(7rem, 1.6fr)' },
  { id: 'publication', title: 'Publication', text: (it) => it.publication ?? '', from: 3, width: 'minmax(7rem, 0.8fr)' },
  { id: 'call', title: 'Call', text: (it) => it.call, render: (it) => <Link href={explainLink(it)}>{it.call}</Link>, from: 2, width: 'minmax(8rem, 1.2fr)' },
]

const key = (it: RouteReach) => `${it.dialect}/${it.route}`

export default function ConsumerReach({ name }: { name: string }) {
  const [parameters, setParameters] = useSearchParams()
  const wanted = parameters.get('verdict') ?? ''
  const path = `/api/v1/consumers/${encodeURIComponent(name)}/routes`
  const found = useInfiniteQuery({
    queryKey: ['configuration', 'reach', name, wanted],
    queryFn: ({ pageParam, signal }) => get<ReachResponse>(path, { verdict: wanted, limit: PAGE, offset: pageParam }, signal),
    initialPageParam: 0,
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: 0,
  })
  const rows = useMemo(() => found.data?.pages.flatMap((page) => page.items) ?? [], [found.data])
  const first = found.data?.pages[0]
  const set = (verdict: string) => setParameters((old) => (verdict === '' ? old.delete('verdict') : old.set('verdict', verdict), new URLSearchParams(old)), { replace: true })
  const all = first === undefined ? 0 : first.may + first.may_not + first.depends
  return (
    <section className="card" aria-label="What it may call">
      <h2>What it may call</h2>
      <p className="muted">
        For each route, Weir evaluates a plain call with the credentials of {name}{first?.group ? `, a member of the group ${first.group}` : ''}. It sends nothing, and it does not look at what is left of limits.
      </p>
      {found.error && found.data === undefined ? (
        <Failure error={found.error} onRetry={() => void found.refetch()} />
      ) : first === undefined ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : all === 0 ? (
        <p className="muted">There is no route yet, so there is nothing to call.</p>
      ) : (
        <>
          <Choices
            label="Verdict"
            look="tabs"
            chosen={wanted}
            options={[
              { value: '', text: `All ${all.toLocaleString()}` },
              { value: 'may', text: `May ${first.may.toLocaleString()}` },
              { value: 'may-not', text: `May not ${first.may_not.toLocaleString()}` },
              { value: 'depends', text: `Depends ${first.depends.toLocaleString()}` },
            ]}
            onChoose={set}
          />
          <Table label="Routes" place="reach" rows={rows} columns={columns} rowKey={key} noun={['route', 'routes']} empty={<p className="muted">None.</p>} />
          {found.hasNextPage && (
            <div>
              <Button isBusy={found.isFetchingNextPage} onPress={() => void found.fetchNextPage()}>
                More routes
              </Button>
            </div>
          )}
        </>
      )}
    </section>
  )
}
