// The first page: what there is, what serves it, what changed, and on the first day what to do next.
import { Suspense, lazy, useState } from 'react'
import { Link } from 'wouter'
import { useApis, usePublications } from '../api/apis'
import { servedRevision, useGateways, useHead, useHistory, useTotal, useUsers } from '../api/hooks'
import { useCan, useRight } from '../api/rights'
import type { Gateway } from '../api/types'
import { Failure, Page } from '../shell/page'
import { ButtonLink } from '../ui/button'
import { Count, countText } from '../ui/time'
import { CommitList } from './commit-list'
import { TrafficComing } from './traffic-coming'

const Attention = lazy(() => import('./attention'))
const QuickStart = lazy(() => import('./quick-start'))
const Traffic = lazy(() => import('./traffic'))

const DAY_S = 86_400
const SHOWN_GATEWAYS = 6
/** Commits that are read. If all of them are of the last day, there may be more. */
const MOST = 50

export default function Overview() {
  const [routes, services, upstreams, consumers] = [useTotal('routes'), useTotal('services'), useTotal('upstreams'), useTotal('consumers')]
  const [apis, publications] = [useApis(), usePublications()]
  const published = new Set((publications.data ?? []).map((it) => `${it.api}/${it.version}`)).size
  // What the caller may not see is not asked for: a refusal would stand here as a failure, and in the audit log.
  const can = useCan()
  const isKnown = can.data !== undefined || can.error !== null
  const [seesHistory, seesGateways] = [useRight('history:read') === null, useRight('gateways:read') === null]
  const history = useHistory({ limit: MOST }, isKnown && seesHistory)
  const gateways = useGateways(isKnown && seesGateways)
  const users = useUsers()
  const failed = routes.error ?? services.error ?? history.error
  const isLoaded = routes.data !== undefined && services.data !== undefined && consumers.data !== undefined
  // What stands above is known before what stands below is drawn: nothing moves.
  const hasAll = isLoaded && !users.isLoading
  const recent = (history.data ?? []).filter((it) => it.time > Date.now() / 1000 - DAY_S).length
  return (
    <Page
      title="Overview"
      calls={[
        { about: 'The latest commits', method: 'GET', path: `/api/v1/history?limit=${MOST}`, command: 'weir history' },
        { about: 'The gateways', method: 'GET', path: '/api/v1/gateways' },
      ]}
    >
      {failed && <Failure error={failed} onRetry={() => void Promise.all([routes.refetch(), services.refetch(), history.refetch()])} />}
      {hasAll && <Checklist services={services.data ?? 0} routes={routes.data ?? 0} consumers={consumers.data ?? 0} users={users.data?.length ?? null} />}
      {hasAll ? (
        <Suspense fallback={<Coming />}>
          <Attention />
          <Traffic />
        </Suspense>
      ) : (
        !failed && <Coming />
      )}
      <dl className="figures">
        <Figure title="APIs" to="/apis" value={apis.data?.length ?? 0} about={apis.data ? `${countText(published, 'version', 'versions')} published` : ''} isLoaded={isLoaded} />
        <Figure title="Routes" to="/routes" value={routes.data ?? 0} about="" isLoaded={isLoaded} />
        <Figure title="Services" to="/services" value={services.data ?? 0} about={countText(upstreams.data ?? 0, 'upstream', 'upstreams')} isLoaded={isLoaded} />
        <Figure title="Consumers" to="/consumers" value={consumers.data ?? 0} about="" isLoaded={isLoaded} />
        {seesHistory && <Figure title="Changes in 24 hours" to="/history" value={recent} isLeast={recent === MOST} about={history.data?.[0] ? `newest: r${history.data[0].revision}` : ''} isLoaded={history.data !== undefined} />}
      </dl>
      <div className="halves">
        {seesHistory && (
          <section className="card" aria-label="Latest commits">
            <div className="head2">
              <h2>Latest commits</h2>
              <Link href="/history">All of them</Link>
            </div>
            <CommitList commits={(history.data ?? []).slice(0, 8)} />
          </section>
        )}
        {seesGateways && (
          <section className="card" aria-label="Gateways">
            <div className="head2">
              <h2>Gateways</h2>
              <Link href="/gateways">All of them</Link>
            </div>
            <Gateways gateways={gateways} />
          </section>
        )}
      </div>
    </Page>
  )
}

/** The place of what is loaded last: the rest does not move. */
function Coming() {
  return (
    <>
      <div className="skeleton notice" />
      <TrafficComing />
    </>
  )
}

function Figure({ title, to, value, about, isLoaded, isLeast = false }: { title: string; to: string; value: number; about: string; isLoaded: boolean; isLeast?: boolean }) {
  return (
    <div className="card figure">
      <dt>
        <Link href={to}>{title}</Link>
      </dt>
      <dd>{isLoaded ? <><Count value={value} />{isLeast && '+'}</> : <span className="muted">–</span>}</dd>
      <dd className="beside">
        <small>{about || ' '}</small>
      </dd>
    </div>
  )
}

function Gateways({ gateways }: { gateways: ReturnType<typeof useGateways> }) {
  const head = useHead().data?.revision
  if (gateways.error && gateways.data === undefined) return <Failure error={gateways.error} />
  const items = gateways.data?.items ?? []
  if (items.length === 0) return <p className="muted">This process serves calls by itself; no other gateway follows it.</p>
  const isBehind = (it: Gateway) => Number(it['lag_revisions']) > 0 || it.state !== 'serving'
  const behind = items.filter(isBehind)
  const first = [...behind, ...items.filter((it) => !isBehind(it))].slice(0, SHOWN_GATEWAYS)
  return (
    <>
      <p>
        <span className={behind.length === 0 ? 'badge good' : 'badge warn'}>
          {items.length - behind.length} of {items.length} in step
        </span>
      </p>
      <ul className="lines-list">
        {first.map((it) => (
          <li key={it.name} className="row nowrap">
            <span className={`dot ${isBehind(it) ? 'warn' : 'good'}`} />
            <span className="clip grow">{it.name}</span>
            <span className="muted small">
              {it.state} r{servedRevision(it, head)}
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

/** What a new installation lacks. It goes once everything is done. */
function Checklist({ services, routes, consumers, users }: { services: number; routes: number; consumers: number; users: number | null }) {
  const [writing, managing] = [useRight('configuration:write'), useRight('users:manage')]
  const steps: { done: boolean; title: string; about: string; to: string; action: string; refused?: string | null }[] = [
    { done: services > 0, title: 'Describe an API', about: 'A service says where an API is.', to: '/services/@new', action: 'New service', refused: writing },
    { done: routes > 0, title: 'Lead calls to it', about: 'A route takes calls by path or host.', to: '/routes/@new', action: 'New route', refused: writing },
    { done: consumers > 0, title: 'Say who may call', about: 'A consumer has a key; the plugin key-auth asks for it.', to: '/consumers/@new', action: 'New consumer', refused: writing },
    { done: users === null || users > 0, title: 'Add an administrator', about: 'Until then everybody on this machine may do everything here.', to: '/users', action: 'New user', refused: managing },
  ]
  // What was made here stays until the page is left: it shows the key.
  const [isFresh] = useState(services === 0 && routes === 0)
  if (!isFresh && steps.every((it) => it.done)) return null
  // To who may do none of it, it is no list of things to do.
  if (steps.every((it) => it.done || Boolean(it.refused))) return null
  return (
    <section className="card" aria-label="First steps">
      <div className="head2">
        <h2>First steps</h2>
        <ButtonLink small to="/import" refused={writing}>
          Import an OpenAPI document
        </ButtonLink>
      </div>
      {isFresh && (
        <Suspense fallback={<div className="skeleton notice" />}>
          <QuickStart />
        </Suspense>
      )}
      <ol className="checklist">
        {steps.map((it, index) => (
          <li key={it.title}>
            <span className={it.done ? 'tick done' : 'tick'}>{it.done ? '✓' : index + 1}</span>
            <span>
              <strong>{it.title}</strong>
              {it.done && <span className="sr"> (done)</span>}
              <span className="muted"> {it.about}</span>
            </span>
            {!it.done && (
              <ButtonLink small to={it.to} refused={it.refused} look={steps.findIndex((step) => !step.done) === index ? 'primary' : 'plain'}>
                {it.action}
              </ButtonLink>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}
