// What an application has called: figures, a chart, what is left of its limits, and its latest calls.
import { Suspense, lazy, useState } from 'react'
import { Button } from '../../ui/button'
import { Choices } from '../../ui/choices'
import { Time, duration } from '../../ui/time'
import { type Calls, type Usage, useSought } from '../data'
import { Empty } from '../empty'
import { PartFailure } from '../frame'

const Chart = lazy(() => import('../../ui/chart'))
const part = encodeURIComponent

export function UsageShown({ app, isSubscribed }: { app: string; isSubscribed: boolean }) {
  const [days, choose] = useState('1')
  const usage = useSought<Usage>(`/apps/${part(app)}/usage`, { days })
  if (usage.error) return <PartFailure error={usage.error} onRetry={() => void usage.refetch()} />
  if (usage.data === undefined) return <div className="loading" aria-busy="true" />
  const figures: [string, string][] = [
    ['Calls', usage.data.calls.toLocaleString()],
    ['Refused', usage.data.refused.toLocaleString()],
    ['Server errors', usage.data.errors.toLocaleString()],
    ['Median', usage.data.p50_us == null ? '–' : duration(usage.data.p50_us / 1000)],
    ['p95', usage.data.p95_us == null ? '–' : duration(usage.data.p95_us / 1000)],
  ]
  return (
    <div className="stack loose">
      <label className="row">
        <span className="muted small">Time</span>
        <select className="select narrow" value={days} onChange={(event) => choose(event.target.value)}>
          {[['1', '24 hours'], ['7', '7 days'], ['30', '30 days'], ['90', '90 days']].map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <dl className="grid figures" aria-label="Usage">
        {figures.map(([title, value]) => (
          <div key={title} className="figure card">
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {usage.data.calls > 0 && (
        <section className="card" aria-label="Calls over time">
          <h2>Calls over time</h2>
          <Suspense fallback={<div className="loading" aria-busy="true" />}>
            <Chart label="Calls over time" times={usage.data.times} lines={[{ name: 'Calls', values: usage.data.series }]} unit={undefined} isArea />
          </Suspense>
        </section>
      )}
      <section className="stack" aria-label="Quota">
        <h2>What is left</h2>
        {usage.data.quotas.length === 0 && usage.data.unknown_quotas === 0 && (
          <p className="muted">{isSubscribed ? 'No plan of this application has a limit.' : 'This application has no subscription. Once it has one, what is left of its plan’s limits stands here, and its calls are counted above.'}</p>
        )}
        {usage.data.unknown_quotas > 0 && <p className="muted">{usage.data.quotas.length === 0 ? 'What is left of the limits is not known yet.' : 'What is left of the other limits is not known yet.'} Gateways report what they count every few seconds.</p>}
        <ul className="stack">
          {usage.data.quotas.map((it) => (
            <li key={`${it.subscription}${it.environment}${it.per}`} className="card">
              <div className="row between">
                <strong>
                  {targetOf(it)}, plan {it.plan}, each {it.per}
                </strong>
                <span>
                  <strong>{it.left.toLocaleString()}</strong> of {it.limit.toLocaleString()} left
                </span>
              </div>
              <meter className="meter" min={0} low={it.limit * 0.8} high={it.limit * 0.95} optimum={0} max={it.limit} value={it.used} aria-label={`Used of ${targetOf(it)}, plan ${it.plan}, each ${it.per}`} />
              <span className="muted small">
                New calls <Time at={it.resets} /> · {it.is_shared ? `In ${it.environment}, all gateways count together.` : `In ${it.environment}, each gateway counts by itself.`} {it.is_exact ? 'The number is that of the limiter.' : 'The number is made of the calls that gateways have reported.'}
              </span>
            </li>
          ))}
        </ul>
      </section>
      {usage.data.apis.length > 0 && (
        <div className="card flush">
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">API</th>
              <th scope="col" className="number">Calls</th>
              <th scope="col" className="number">Refused</th>
            </tr>
          </thead>
          <tbody>
            {usage.data.apis.map((it) => (
              <tr key={it.api}>
                <td>{it.api}</td>
                <td className="number">{it.calls.toLocaleString()}</td>
                <td className="number">{it.refused.toLocaleString()}</td>
              </tr>
            ))}
          </tbody>
        </table>
        </div>
      )}
      <p className="muted small">Counts come in every few seconds. Times are of answered calls.</p>
    </div>
  )
}

/** What a quota is for: an API with its version, or a product. */
function targetOf(quota: Usage['quotas'][number]): string {
  return quota.product || quota.publication.split('/').slice(0, 2).join(' ')
}

const WHICH = [
  { value: '', text: 'All' },
  { value: 'refused', text: 'Refused' },
] as const

export function CallsShown({ app }: { app: string }) {
  const [only, choose] = useState<'' | 'refused'>('')
  const calls = useSought<Calls>(`/apps/${part(app)}/calls`, { only })
  if (calls.error) return <PartFailure error={calls.error} onRetry={() => void calls.refetch()} />
  return (
    <div className="stack">
      <div className="row">
        <Choices label="Which calls" look="row" buttonLook="chip-choice" chosen={only} options={WHICH} onChoose={choose} />
        <Button small look="quiet" onPress={() => void calls.refetch()}>
          Read again
        </Button>
      </div>
      {calls.data?.items.length === 0 && (
        <Empty title={only === '' ? 'No call yet' : 'No call was refused'} icon="pulse">
          <p>Calls appear here some seconds after they were made. A sample is kept of answered calls and of refused ones, these with the reason.</p>
        </Empty>
      )}
      {(calls.data?.items.length ?? 0) > 0 && (
      <div className="card flush wide" tabIndex={0} role="group" aria-label="Calls">
        <table className="plain stacked">
          <thead>
            <tr>
              {['When', 'Operation', 'Status', 'Time', 'Why refused', 'Request'].map((it) => (
                <th key={it} scope="col">
                  {it}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {calls.data?.items.map((it, index) => (
              <tr key={`${it.time}${it.request_id}${index}`}>
                <td>
                  <Time at={it.time / 1000} />
                </td>
                <td className="whole">
                  <code className="path">{it.operation}</code>
                </td>
                <td>
                  <span className={`badge ${it.status < 400 ? 'good' : 'bad'}`}>{it.status}</span>
                </td>
                <td>{duration(it.total_us / 1000)}</td>
                <td className="whole">{it.reason}</td>
                <td>{it.request_id && <code className="small">{it.request_id}</code>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      )}
    </div>
  )
}
