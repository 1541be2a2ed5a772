// What the overview says of calls: how many in the last hour, how many failed, how fast, each with its way and beside the
// same hour a week ago; what the answers were; and what is called most.
import { useMemo } from 'react'
import { Link } from 'wouter'
import { type Query, type Result, shown, useNumbers } from '../api/analytics'
import { Spark } from '../ui/spark'
import { Panel, Top } from './panel'
import { TrafficComing } from './traffic-coming'

const TOTALS: Query = { metrics: ['calls', 'share_5xx', 'share_4xx', 'latency_p95', 'latency_p50', 'latency_p99'], from: '-1h', step: 'auto', compare: '1w', marks: false }
const FIGURES: { metric: string; title: string; tone?: 'bad' | 'warn'; beside?: [string, string][] }[] = [
  { metric: 'calls', title: 'Calls in the last hour' },
  { metric: 'share_5xx', title: 'Server errors (5xx)', tone: 'bad' },
  { metric: 'share_4xx', title: 'Client errors (4xx)', tone: 'warn' },
  { metric: 'latency_p95', title: 'Latency p95', beside: [['latency_p50', 'p50'], ['latency_p99', 'p99']] },
]
const ANSWERS: Query = { metrics: ['calls'], from: '-1h', step: 'auto', group_by: ['class'] }

export default function Traffic() {
  const totals = useNumbers(TOTALS)
  const routes = useMemo((): Query => ({ metrics: ['calls', 'share_5xx', 'latency_p95'], from: '-1h', group_by: ['route'], limit: 6 }), [])
  const top = useNumbers(routes, totals.data !== undefined)
  // Analytics that are off are no failure of this page; their own page says how to switch them on.
  if (totals.isLoading) return <TrafficComing />
  if (totals.data === undefined) return null
  const hasCalls = (totals.data.frames[0]?.total['calls'] ?? 0) > 0
  return (
    <>
      <dl className="figures">
        {FIGURES.map((it) => (
          <Figure key={it.metric} {...it} result={totals.data} />
        ))}
      </dl>
      {hasCalls && (
        <div className="halves panels">
          <Panel title="Answers in the last hour" query={ANSWERS} kind="area" />
          <section className="card" aria-label="Busiest routes">
            <div className="head2">
              <h2>Busiest routes</h2>
              <Link href="/analytics">Analytics</Link>
            </div>
            {top.data === undefined ? <div className="skeleton chart" aria-busy={top.isLoading} /> : <Top query={routes} result={top.data} />}
          </section>
        </div>
      )}
    </>
  )
}

function Figure({ metric, title, tone, beside = [], result }: (typeof FIGURES)[number] & { result: Result }) {
  const [frame] = result.frames
  const text = (name: string) => shown(frame?.total[name], result.units[name])
  const value = frame?.total[metric] ?? 0
  const before = frame?.compare?.total[metric]
  return (
    <div className="card figure">
      <dt>
        <Link href="/analytics">{title}</Link>
      </dt>
      <dd>{text(metric)}</dd>
      <dd className="beside">
        <small>{beside.length > 0 ? beside.map(([name, word]) => `${word} ${text(name)}`).join(' · ') : `a week ago: ${before === undefined ? '–' : shown(before, result.units[metric])}`}</small>
        <Spark values={frame?.values?.[metric] ?? []} {...(tone && value > 0 ? { tone } : {})} />
      </dd>
    </div>
  )
}
