// A panel: one query, drawn over time or as the largest groups; its query can be seen, opened and downloaded.
import { type ReactNode, Suspense, lazy, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { type Query, type Result, groupName, shown, useNumbers } from '../api/analytics'
import { asCurl, call } from '../api/client'
import type { Commit } from '../api/types'
import { Failure } from '../shell/page'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'

const Chart = lazy(() => import('../ui/chart'))

export const RANGES: [string, string][] = [
  ['-15m', '15 minutes'],
  ['-1h', '1 hour'],
  ['-6h', '6 hours'],
  ['-24h', '24 hours'],
  ['-7d', '7 days'],
  ['-30d', '30 days'],
]

export function explorerLink(query: Query): string {
  const parameters = new URLSearchParams()
  parameters.set('metrics', query.metrics.join(','))
  parameters.set('range', query.from)
  if (query.group_by?.length) parameters.set('by', query.group_by.join(','))
  const filter = Object.entries(query.filter ?? {}).map(([name, values]) => `${name}:${values.join('|')}`)
  if (filter.length > 0) parameters.set('filter', filter.join(' '))
  if (query.step === undefined) parameters.set('as', 'table')
  return `/analytics/explore?${parameters.toString()}`
}

interface Props {
  title: string
  query: Query
  commits?: Commit[]
}

export function Panel({ title, query, commits = [] }: Props) {
  const numbers = useNumbers(query)
  const [isShown, setShown] = useState(false)
  return (
    <section className="card" aria-label={title}>
      <div className="head2">
        <h2>{title}</h2>
        <span className="row small">
          <Link href={explorerLink(query)}>Explore</Link>
          <Button small look="quiet" onPress={() => setShown(true)}>
            Query
          </Button>
        </span>
      </div>
      {numbers.error ? <Failure error={numbers.error} onRetry={() => void numbers.refetch()} /> : numbers.data ? <Drawn title={title} query={query} result={numbers.data} commits={commits} /> : <div className="skeleton" />}
      <Dialog title={`Query of ${title}`} isOpen={isShown} onClose={() => setShown(false)} actions={<Button onPress={() => void save(query)}>Download CSV</Button>}>
        <pre className="code" tabIndex={0}>
          {asCurl('POST', '/api/v1/analytics/query', query)}
        </pre>
      </Dialog>
    </section>
  )
}

export async function save(query: Query) {
  const { data } = await call<string>('POST', '/api/v1/analytics/query', { body: query, headers: { accept: 'text/csv' } })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([data], { type: 'text/csv' }))
  link.download = 'analytics.csv'
  link.click()
  URL.revokeObjectURL(link.href)
}

/** Times and lines of an answer: a line for each metric, or for each group of the first metric. */
export function Drawn({ title, query, result, commits }: { title: string; query: Query; result: Result; commits: Commit[] }) {
  const isSeries = query.step !== undefined
  const lines = useMemo(
    () =>
      (query.group_by ?? []).length > 0
        ? result.frames.map((frame) => ({ name: groupName(frame.group), values: frame.values?.[query.metrics[0] ?? ''] ?? [] }))
        : query.metrics.map((metric) => ({ name: metric.replaceAll('_', ' '), values: result.frames[0]?.values?.[metric] ?? [] })),
    [query, result],
  )
  const marks = useMemo(
    () => commits.filter((it) => it.time >= result.from && it.time <= result.to).map((it) => ({ at: it.time, text: `r${it.revision}` })),
    [commits, result.from, result.to],
  )
  const times = result.times ?? []
  if (result.frames.length === 0) return <Said>No calls in this time.</Said>
  return (
    <>
      {isSeries ? (
        <Suspense fallback={<div className="skeleton" style={{ height: 190 }} />}>
          <Chart label={title} times={times} lines={lines} unit={result.units[query.metrics[0] ?? '']} marks={marks} />
        </Suspense>
      ) : (
        <Top query={query} result={result} />
      )}
      {marks.length > 0 && isSeries && (
        <p className="small muted">
          Marks:{' '}
          {marks.slice(0, 8).map((mark) => (
            <Link key={mark.text} href={`/history/${mark.text.slice(1)}`}>
              {mark.text}{' '}
            </Link>
          ))}
        </p>
      )}
      {result.partial && <Said>Something is missing here: {result.gaps.map((gap) => `${gap.gateway}, ${gap.reason}`).join('; ')}.</Said>}
      {result.notes.map((note) => (
        <Said key={note}>{note}</Said>
      ))}
    </>
  )
}

function Said({ children }: { children: ReactNode }) {
  return <p className="muted small">{children}</p>
}

/** The largest groups. */
export function Top({ query, result }: { query: Query; result: Result }) {
  return (
    <div className="wide">
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">{(query.group_by ?? []).join(', ') || 'all'}</th>
            {query.metrics.map((metric) => (
              <th scope="col" key={metric} style={{ textAlign: 'end' }}>
                {metric.replaceAll('_', ' ')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {result.frames.map((frame) => (
            <tr key={groupName(frame.group)}>
              <th scope="row">{groupName(frame.group)}</th>
              {query.metrics.map((metric) => (
                <td key={metric} style={{ textAlign: 'end' }}>
                  {shown(frame.total[metric], result.units[metric])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
