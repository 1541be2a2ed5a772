// What an explanation says: the end first, then the route, the plugins, the plans, the target, and the near misses.
import { Link } from 'wouter'
import { type Call, shown } from '../api/analytics'
import type { components } from '../../generated/api'
import { chipText } from '../ui/search'
import { Time } from '../ui/time'
import { PublicationLink } from './apis/shared'
import { DIALECTS } from './dialects'
import { HealthBadge } from './upstreams'

export type Explained = components['schemas']['ExplainResponse']
type Step = Explained['plugins'][number]

const VERDICTS: Record<string, [string, string]> = {
  'not-reached': ['not reached', ''],
  continues: ['goes on', 'good'],
  refuses: ['refuses', 'bad'],
  answers: ['answers', 'accent'],
  'does-not-apply': ['does not apply', ''],
  idle: ['nothing to do', ''],
  unknown: ['depends on another server', 'warn'],
}

const toneOf = (status: number | null | undefined): string => (status === null || status === undefined ? '' : status < 400 ? 'good' : status < 500 ? 'warn' : 'bad')

/** Whether no target could take the call. */
const isSick = (explained: Explained): boolean => explained.health?.status === 'unhealthy'

function End({ explained }: { explained: Explained }) {
  const { end, route } = explained
  const step = end.step ? explained.plugins[end.step - 1] : undefined
  if (end.kind === 'answered') {
    return (
      <div className={`note ${toneOf(end.status) === 'good' ? '' : toneOf(end.status)}`} role="status" aria-label="What comes of it">
        <strong>
          The gateway answers {end.status}
          {step?.plugin && <> by {step.plugin.name}</>}
        </strong>
        {end.reason && <span>{end.reason}</span>}
      </div>
    )
  }
  if (end.kind === 'forwarded' && isSick(explained)) {
    return (
      <div className="note bad" role="status" aria-label="What comes of it">
        <strong>It goes to {route?.to}, where no target is healthy</strong>
        <span>The gateway answers 502 or 503 until one is.</span>
      </div>
    )
  }
  return (
    <div className={end.kind === 'unknown' ? 'note warn' : 'note'} role="status" aria-label="What comes of it">
      <strong>{end.kind === 'forwarded' ? <>It goes to {route?.to}</> : "It depends on another server's answer"}</strong>
      {end.reason && <span>{end.reason}</span>}
    </div>
  )
}

function RouteCard({ explained }: { explained: Explained }) {
  const { route, answer } = explained
  return (
    <section className="card" aria-label="Route">
      <h2>Route</h2>
      {route ? (
        <dl className="pairs">
          <dt>Taken by</dt>
          <dd>
            <Link href={`/routes?q=${encodeURIComponent(chipText('name', route.name))}`}>{route.name}</Link> <span className="badge">{DIALECTS[route.dialect] ?? route.dialect}</span>
          </dd>
          <dt>Because of</dt>
          <dd>
            <code>{route.by}</code>
          </dd>
          {explained.publication && (
            <>
              <dt>Belongs to</dt>
              <dd>
                <PublicationLink id={explained.publication} />
              </dd>
            </>
          )}
          <dt>Goes to</dt>
          <dd>
            <code>{route.to}</code>
          </dd>
          {explained.consumer && (
            <>
              <dt>Called by</dt>
              <dd>{explained.consumer}</dd>
            </>
          )}
        </dl>
      ) : (
        <p>
          No route takes it{answer ? <>: the gateway answers {answer.status}</> : ''}. {answer?.reason !== 'no route matches it' && answer?.reason}
        </p>
      )}
      {route?.upstream && (
        <ul className="lines-list" aria-label="Targets">
          {route.upstream.targets.map((target) => {
            const health = explained.health?.targets.find((it) => `${it.host}:${it.port}` === target.address)
            return (
              <li key={target.address} className="row">
                <code>{target.address}</code> <span className="muted">weight {target.weight}</span> {health && <HealthBadge status={health.status} />}
              </li>
            )
          })}
        </ul>
      )}
    </section>
  )
}

function Plugins({ steps }: { steps: Step[] }) {
  return (
    <section className="card" aria-label="Plugins">
      <h2>Plugins, in their order</h2>
      {steps.length === 0 ? (
        <p className="muted">None works on it.</p>
      ) : (
        <ol className="steps">
          {steps.map((step, index) => {
            const [words, tone] = VERDICTS[step.verdict.verdict] ?? [step.verdict.verdict, '']
            return (
              <li key={index}>
                <span className={`tick ${tone === 'accent' ? 'good' : tone}`} aria-hidden="true">
                  {index + 1}
                </span>
                <div>
                  <strong>{step.plugin?.name ?? 'nothing'}</strong> <span className={`badge ${tone}`}>{words}</span> {step.verdict.status && <span className={`badge ${toneOf(step.verdict.status)}`}>{step.verdict.status}</span>}
                  {step.response_only && <span className="badge">works on the response</span>}
                  {step.plugin?.placeholder_for && <p className="muted">{step.plugin.placeholder_for} is written there and is not served, so calls are refused.</p>}
                  {step.verdict.reason && <p className="muted">{step.verdict.reason}</p>}
                  {step.verdict.body && <pre className="code small">{step.verdict.body}</pre>}
                </div>
              </li>
            )
          })}
        </ol>
      )}
    </section>
  )
}

export function Answer({ explained }: { explained: Explained }) {
  const { route } = explained
  // Another host of the route that takes the call is no near miss.
  const others = explained.others.filter((it) => it.name !== route?.name || it.dialect !== route.dialect)
  return (
    <>
      <End explained={explained} />
      {explained.note && <p className="note warn">{explained.note}</p>}
      <div className="halves">
        <RouteCard explained={explained} />
        <Plugins steps={explained.plugins} />
      </div>
      {explained.plans.length > 0 && (
        <section className="card" aria-label="Plans">
          <h2>Plans, in the order in which they are tried</h2>
          <ul className="lines-list">
            {explained.plans.map((it) => (
              <li key={it.plan} className="row">
                <strong>{it.plan}</strong> <span className="badge">{it.verdict.replaceAll('-', ' ')}</span> <span className="muted">{it.reason}</span>
                {it.subscription && <Link href={`/subscriptions/${encodeURIComponent(it.subscription)}`}>{it.application}</Link>}
              </li>
            ))}
          </ul>
        </section>
      )}
      <section className="card" aria-label="Near misses">
        <h2>Near misses</h2>
        {others.length === 0 ? (
          <p className="muted">No other route came near.</p>
        ) : (
          <ul className="lines-list">
            {others.map((it, index) => (
              <li key={`${it.name}${index}`} className="stack tight">
                <div className="row">
                  <Link href={`/routes?q=${encodeURIComponent(chipText('name', it.name))}`}>{it.name}</Link> <span className="badge">{DIALECTS[it.dialect] ?? it.dialect}</span> <code className="muted">{it.by}</code>
                </div>
                <ul className="muted">
                  {it.reason.map((text) => (
                    <li key={text}>{text}</li>
                  ))}
                </ul>
              </li>
            ))}
          </ul>
        )}
      </section>
      {explained.skipped.length > 0 && (
        <section className="card" aria-label="Left out">
          <h2>Documents that are not served</h2>
          <ul className="lines-list">
            {explained.skipped.map((it) => (
              <li key={it.document}>
                <code>{it.document}</code> {it.reason}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

/** What happened to a logged call, in words. */
export function Logged({ call: it }: { call: Call }) {
  return (
    <section className="card" aria-label="What happened">
      <div className="head2">
        <h2>What happened to it</h2>
        <span className={`badge ${toneOf(it.status)}`}>{it.status}</span>
      </div>
      <p>
        {it.method} {it.host}
        {it.path} <Time at={it.time / 1000} />: {it.refusal === '' ? (it.target === '' ? 'the gateway answered it' : `the target ${it.target} answered ${it.status}`) : `refused, ${it.refusal.replaceAll(/[-_]/g, ' ')}${it.plugin === '' ? '' : ` by ${it.plugin}`}`} after {shown(it.total_us, 'microseconds')}.
      </p>
      <p className="muted small">
        {[it.route && `route ${it.route}`, it.consumer && `consumer ${it.consumer}`, it.target && `target ${it.target}`, it.gateway && `gateway ${it.gateway}`, it.request_id && `request ${it.request_id}`].filter(Boolean).join(' · ')}
      </p>
    </section>
  )
}
