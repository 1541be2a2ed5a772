// Boards: what is called, how fast it is, and what is refused. Commits are marked on every chart.
import { useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { type Query, shown, useNumbers } from '../api/analytics'
import { ApiError } from '../api/client'
import { useHistory } from '../api/hooks'
import { Empty, Failure, Page } from '../shell/page'
import { ButtonLink } from '../ui/button'
import { Panel, RANGES } from './panel'

interface Board {
  id: string
  title: string
  panels: (from: string) => [string, Query][]
}

const series = (from: string, metrics: string[], more: Partial<Query> = {}): Query => ({ metrics, from, step: 'auto', ...more })
const top = (from: string, by: string[], metrics: string[], more: Partial<Query> = {}): Query => ({ metrics, from, group_by: by, limit: 10, ...more })

const boards: Board[] = [
  {
    id: 'overview',
    title: 'Overview',
    panels: (from) => [
      ['Calls', series(from, ['calls'], { group_by: ['class'] })],
      ['Latency', series(from, ['latency_p50', 'latency_p95', 'latency_p99'])],
      ['Routes', top(from, ['route'], ['calls', 'share_5xx', 'latency_p95'])],
      ['Consumers', top(from, ['consumer'], ['calls', 'share_4xx'])],
    ],
  },
  {
    id: 'refusals',
    title: 'Refusals',
    panels: (from) => [
      ['Refused calls by reason', series(from, ['calls'], { group_by: ['refusal'] })],
      ['Reasons', top(from, ['refusal', 'service'], ['calls'])],
      ['Plugins that refuse', top(from, ['plugin'], ['calls'])],
    ],
  },
  {
    id: 'upstreams',
    title: 'Upstreams',
    panels: (from) => [
      ['Calls by upstream', series(from, ['calls'], { group_by: ['upstream'] })],
      ['Targets', top(from, ['upstream', 'target'], ['calls', 'share_5xx'])],
    ],
  },
  {
    id: 'gateways',
    title: 'Gateways',
    panels: (from) => [
      ['Calls by gateway', series(from, ['calls'], { group_by: ['gateway'] })],
      ['Gateways', top(from, ['gateway'], ['calls', 'share_5xx', 'latency_p95'])],
    ],
  },
]

const isOff = (error: unknown): boolean => error instanceof ApiError && error.status === 404

export default function Analytics() {
  const [parameters, setParameters] = useSearchParams()
  const from = parameters.get('range') ?? '-1h'
  const board = boards.find((it) => it.id === parameters.get('board')) ?? (boards[0] as Board)
  const totals = useMemo((): Query => ({ metrics: ['calls', 'share_5xx', 'share_4xx', 'latency_p95'], from }), [from])
  const numbers = useNumbers(totals)
  const commits = useHistory({ limit: 100 }).data ?? []
  const set = (name: string, value: string) => setParameters((old) => (old.set(name, value), new URLSearchParams(old)), { replace: true })
  const panels = useMemo(() => board.panels(from), [board, from])
  const total = numbers.data?.frames[0]?.total ?? {}
  return (
    <Page
      title="Analytics"
      calls={[{ about: 'The numbers above', method: 'POST', path: '/api/v1/analytics/query', body: totals }]}
      actions={
        <>
          <label className="row">
            <span className="sr">Time</span>
            <select className="select" style={{ width: 'auto' }} value={from} onChange={(event) => set('range', event.target.value)}>
              {RANGES.map(([value, text]) => (
                <option key={value} value={value}>
                  last {text}
                </option>
              ))}
            </select>
          </label>
          <ButtonLink to="/analytics/explore">Explorer</ButtonLink>
        </>
      }
    >
      {isOff(numbers.error) ? (
        <div className="table">
          <Empty title="Analytics are off" example="weir run --data /var/lib/weir">
            <p>Weir counts calls if it has a place for the counts. Give it a folder:</p>
          </Empty>
        </div>
      ) : numbers.error ? (
        <Failure error={numbers.error} onRetry={() => void numbers.refetch()} />
      ) : (
        <>
          <dl className="grid">
            {[
              ['Calls', 'calls'],
              ['Errors of servers', 'share_5xx'],
              ['Errors of clients', 'share_4xx'],
              ['95 of 100 calls within', 'latency_p95'],
            ].map(([title, metric = '']) => (
              <div className="card figure" key={metric}>
                <dt>{title}</dt>
                <dd>{shown(total[metric], numbers.data?.units[metric])}</dd>
              </div>
            ))}
          </dl>
          <div className="tabs" role="group" aria-label="Boards">
            {boards.map((it) => (
              <button key={it.id} aria-pressed={it.id === board.id} onClick={() => set('board', it.id)}>
                {it.title}
              </button>
            ))}
          </div>
          <div className="halves">
            {panels.map(([title, query]) => (
              <Panel key={title} title={title} query={query} commits={commits} />
            ))}
          </div>
        </>
      )}
    </Page>
  )
}
