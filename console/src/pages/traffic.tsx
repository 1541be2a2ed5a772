// What the overview says of calls: how many in the last hour, how many failed, how fast, and the same hour a week ago.
import { useMemo } from 'react'
import { Link } from 'wouter'
import { type Query, shown, useNumbers } from '../api/analytics'
import { Top } from './panel'

const TOTALS: Query = { metrics: ['calls', 'share_5xx', 'share_4xx', 'latency_p95'], from: '-1h', compare: '1w' }
const TITLES: Record<string, string> = { calls: 'Calls in the last hour', share_5xx: 'Errors of servers', share_4xx: 'Errors of clients', latency_p95: '95 of 100 within' }

export default function Traffic() {
  const totals = useNumbers(TOTALS)
  const routes = useMemo((): Query => ({ metrics: ['calls', 'share_5xx', 'latency_p95'], from: '-1h', group_by: ['route'], limit: 5 }), [])
  const top = useNumbers(routes, totals.data !== undefined)
  // Analytics that are off are no failure of this page; their own page says how to switch them on.
  if (totals.data === undefined) return null
  const [frame] = totals.data.frames
  const units = totals.data.units
  return (
    <>
      <dl className="figures">
        {TOTALS.metrics.map((metric) => (
          <div className="card figure" key={metric}>
            <dt>
              <Link href="/analytics">{TITLES[metric]}</Link>
            </dt>
            <dd>{shown(frame?.total[metric], units[metric])}</dd>
            <dd className="beside">
              <small>a week ago: {shown(frame?.compare?.total[metric], units[metric])}</small>
            </dd>
          </div>
        ))}
      </dl>
      {top.data && top.data.frames.length > 0 && (
        <section className="card" aria-label="Busiest routes">
          <div className="head2">
            <h2>Busiest routes</h2>
            <Link href="/analytics">Analytics</Link>
          </div>
          <Top query={routes} result={top.data} />
        </section>
      )}
    </>
  )
}
