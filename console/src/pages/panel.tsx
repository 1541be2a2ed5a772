// A panel: one query, drawn as its kind asks; its query can be seen, opened and downloaded.
import { Fragment, type ReactNode, Suspense, lazy, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { type Frame, type Mark, type Query, type Result, groupName, metricTitle, shown, useNumbers } from '../api/analytics'
import type { PanelKind } from '../api/boards'
import { ApiError, asCurl, call } from '../api/client'
import { partsText, useParts, within } from '../api/parts'
import { Failure } from '../shell/page'
import { Button } from '../ui/button'
import type { Line } from '../ui/chart'
import { Dialog } from '../ui/dialog'
import { saveFile } from '../ui/files'
import { Time, countText } from '../ui/time'
import { toast } from '../ui/toast'

const Chart = lazy(() => import('../ui/chart'))

/** Of the last so much: an hour is no "last 1 hour". */
export const lastText = (length: string): string => `last ${length.replace(/^1 /, '')}`

export const RANGES: [string, string][] = [
  ['-15m', '15 minutes'],
  ['-1h', '1 hour'],
  ['-6h', '6 hours'],
  ['-24h', '24 hours'],
  ['-7d', '7 days'],
  ['-30d', '30 days'],
  ['-90d', '90 days'],
  ['-365d', '12 months'],
]

const listOf = (values: string | string[]): string[] => (Array.isArray(values) ? values : [values])

export function explorerLink(query: Query): string {
  const parameters = new URLSearchParams()
  parameters.set('metrics', query.metrics.join(','))
  parameters.set('range', String(query.from))
  if (query.group_by?.length) parameters.set('by', query.group_by.join(','))
  const filter = Object.entries(query.filter ?? {}).map(([name, values]) => `${name}:${listOf(values).join('|')}`)
  if (filter.length > 0) parameters.set('filter', filter.join(' '))
  if (query.compare !== undefined && query.compare !== null) parameters.set('compare', query.compare)
  if (query.step === undefined) parameters.set('as', 'table')
  return `/analytics/explore?${parameters.toString()}`
}

interface Props {
  title: string
  query: Query
  kind?: PanelKind
  /** Columns of 12. */
  width?: number
}

export function Panel({ title, query: whole, kind, width = 6 }: Props) {
  const numbers = useNumbers(whole)
  // What is shown and saved as the query is what was asked.
  const { current } = useParts()
  const query = useMemo(() => within(whole, current), [whole, current])
  const [isShown, setShown] = useState(false)
  return (
    <section className="card" aria-label={title} style={{ '--width': width } as React.CSSProperties}>
      <div className="head2">
        <h2>{title}</h2>
        <span className="row small">
          <Link href={explorerLink(query)} aria-label={`Explore: ${title}`}>
            Explore
          </Link>
          <Button small look="quiet" onPress={() => setShown(true)}>
            Query<span className="sr"> of {title}</span>
          </Button>
        </span>
      </div>
      {current !== null && numbers.error instanceof ApiError && numbers.error.status === 422 ? (
        <Said>Numbers of this kind are not kept for {partsText(current)} alone.</Said>
      ) : numbers.error ? (
        <Failure error={numbers.error} onRetry={() => void numbers.refetch()} />
      ) : numbers.data ? (
        <Drawn title={title} query={query} result={numbers.data} {...(kind ? { kind } : {})} />
      ) : (
        <div className="skeleton chart" aria-busy="true" />
      )}
      <Dialog title={`Query of ${title}`} isOpen={isShown} onClose={() => setShown(false)} actions={<Button onPress={() => void save(query)}>Download CSV</Button>}>
        <pre className="code" tabIndex={0}>
          {asCurl('POST', '/api/v1/analytics/query', query)}
        </pre>
      </Dialog>
    </section>
  )
}

/** The answer as a file for spreadsheets. */
export async function save(query: Query) {
  try {
    const { data } = await call<string>('POST', '/api/v1/analytics/query', { body: query, headers: { accept: 'text/csv' }, asText: true })
    saveFile('analytics.csv', 'text/csv', [data])
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { isBad: true })
  }
}

/** An answer: a line for each metric, or for each group of the first metric; bars, a table or numbers. */
export function Drawn({ title, query, result, kind = query.step === undefined ? 'table' : 'line' }: { title: string; query: Query; result: Result; kind?: PanelKind }) {
  const isSeries = (kind === 'line' || kind === 'area') && query.step !== undefined
  const lines = useMemo(() => linesOf(query, result), [query, result])
  const marks = result.marks ?? NO_MARKS
  if (result.frames.length === 0 || (isSeries && lines.every((line) => line.values.every((it) => it === null || it === 0)))) return <Said>No calls in this time.</Said>
  return (
    <>
      {isSeries ? (
        <Suspense fallback={<div className="skeleton chart" />}>
          <Chart label={title} times={result.times ?? []} lines={lines} unit={result.units[query.metrics[0] ?? '']} marks={marks} isArea={kind === 'area'} />
        </Suspense>
      ) : kind === 'stat' ? (
        <Stats query={query} result={result} />
      ) : kind === 'bar' ? (
        <Bars query={query} result={result} />
      ) : (
        <Top query={query} result={result} />
      )}
      {isSeries && marks.length > 0 && <Marks marks={marks} />}
      {result.partial && <Said>Something is missing here: {result.gaps.map((gap) => `${gap.gateway}, ${gap.reason}`).join('; ')}.</Said>}
      {result.notes.map((note) => (
        <Said key={note}>{note}</Said>
      ))}
    </>
  )
}

/** A line for each metric, or for each group of the first metric; behind them those of the time before. */
function linesOf(query: Query, result: Result): Line[] {
  const isGrouped = (query.group_by ?? []).length > 0
  const all = isGrouped ? result.frames.map((frame) => ({ name: groupName(frame.group), frame, metric: query.metrics[0] ?? '' })) : query.metrics.map((metric) => ({ name: metricTitle(metric), frame: result.frames[0], metric }))
  const now = all.map(({ name, frame, metric }): Line => ({ name, values: frame?.values?.[metric] ?? [] }))
  const before = all.flatMap(({ name, frame, metric }, of): Line[] => (frame?.compare ? [{ name: `${name}, before`, values: frame.compare.values?.[metric] ?? [], of }] : []))
  return [...now, ...before]
}

const NO_MARKS: Mark[] = []
const SHOWN_MARKS = 12

/** What happened in the time of a chart: each commit leads to what it changed. */
function Marks({ marks }: { marks: Mark[] }) {
  const latest = [...marks].sort((a, b) => b.at - a.at)
  return (
    <details className="small">
      <summary>{countText(marks.length, 'change in this time', 'changes in this time')}</summary>
      <ul className="changes">
        {latest.slice(0, SHOWN_MARKS).map((it) => (
          <li key={it.revision} className="row">
            <Link href={`/history/${it.revision}`}>r{it.revision}</Link>
            {it.kind === 'publication' && <span className="badge accent">publication</span>}
            <span className="grow">
              {(it.publications ?? []).join(', ') || it.note || 'no note'} <span className="muted">by {it.author}</span>
            </span>
            <span className="muted">
              <Time at={it.at} />
            </span>
          </li>
        ))}
        {latest.length > SHOWN_MARKS && <li className="muted">and {latest.length - SHOWN_MARKS} more</li>}
      </ul>
    </details>
  )
}

function Said({ children }: { children: ReactNode }) {
  return <p className="muted small">{children}</p>
}

/** One number for each metric, beside that of the time it is compared with. */
export function Stats({ query, result }: { query: Query; result: Result }) {
  const [frame] = result.frames
  return (
    <dl className="figures">
      {query.metrics.map((metric) => (
        <div className="figure" key={metric}>
          <dt>{metricTitle(metric)}</dt>
          <dd>{shown(frame?.total[metric], result.units[metric])}</dd>
          {frame?.compare && (
            <dd className="beside">
              <small>before: {shown(frame.compare.total[metric], result.units[metric])}</small>
            </dd>
          )}
        </div>
      ))}
    </dl>
  )
}

/** A group leads to its own numbers over time. What is summed up, or has no name, leads nowhere. */
function GroupLink({ query, frame }: { query: Query; frame: Frame }) {
  const values = Object.values(frame.group)
  const name = groupName(frame.group)
  if (values.length === 0 || values.some((it) => it === '' || it === '_other' || /[\s|:]/.test(it))) return name
  const { limit: _, order: __, group_by: ___, ...rest } = query
  return <Link href={explorerLink({ ...rest, step: 'auto', filter: { ...query.filter, ...frame.group } })}>{name}</Link>
}

/** A bar for each group, by the first metric. */
function Bars({ query, result }: { query: Query; result: Result }) {
  const [metric = 'calls'] = query.metrics
  const most = Math.max(...result.frames.map((frame) => frame.total[metric] ?? 0), 0)
  return (
    <ul className="bars">
      {result.frames.map((frame) => {
        const value = frame.total[metric] ?? 0
        return (
          <li key={groupName(frame.group)}>
            <span className="clip" title={groupName(frame.group)}>
              <GroupLink query={query} frame={frame} />
            </span>
            <span className="number">{shown(frame.total[metric], result.units[metric])}</span>
            <span className="meter" aria-hidden="true">
              <span style={{ width: `${most > 0 ? (value / most) * 100 : 0}%` }} />
            </span>
          </li>
        )
      })}
    </ul>
  )
}

/** How much more or less it is than before. */
function changeText(now: number | null | undefined, before: number | null | undefined): string {
  if (now == null || before == null) return '–'
  if (now === before) return 'none'
  if (before === 0) return 'new'
  const share = ((now - before) / before) * 100
  return `${share > 0 ? '+' : '−'}${Math.abs(share).toFixed(Math.abs(share) < 10 ? 1 : 0)} %`
}

/** The largest groups. */
export function Top({ query, result }: { query: Query; result: Result }) {
  const isCompared = result.frames.some((it) => it.compare)
  return (
    <div className="wide">
      <table className="plain ranks">
        <thead>
          <tr>
            <th scope="col">{(query.group_by ?? []).map(metricTitle).join(', ') || 'All'}</th>
            {query.metrics.map((metric) => (
              <Fragment key={metric}>
                <th scope="col" className="number">
                  {metricTitle(metric)}
                </th>
                {isCompared && (
                  <>
                    <th scope="col" className="number">
                      Before
                    </th>
                    <th scope="col" className="number">
                      Change
                    </th>
                  </>
                )}
              </Fragment>
            ))}
          </tr>
        </thead>
        <tbody>
          {result.frames.map((frame) => (
            <tr key={groupName(frame.group)}>
              <th scope="row" title={groupName(frame.group)}>
                <GroupLink query={query} frame={frame} />
              </th>
              {query.metrics.map((metric) => (
                <Fragment key={metric}>
                  <td className="number">{shown(frame.total[metric], result.units[metric])}</td>
                  {isCompared && (
                    <>
                      <td className="number">{shown(frame.compare?.total[metric], result.units[metric])}</td>
                      <td className="number">{changeText(frame.total[metric], frame.compare?.total[metric])}</td>
                    </>
                  )}
                </Fragment>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
