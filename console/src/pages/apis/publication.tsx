// A version in an environment: what is served, what happened to it, and what can be done with it.
import { Suspense, lazy, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type Publication, publicationPath, toPublication, toPublish, toVersion, useEnvironments, usePublication, usePublications, useSubscriptions } from '../../api/apis'
import { metricTitle, shown } from '../../api/analytics'
import { useRight } from '../../api/rights'
import { Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Button, ButtonLink, MenuPlace } from '../../ui/button'
import { Time, countText, duration, exactTime } from '../../ui/time'
import type { Step } from './publication-steps'
import { Hash, Pairs, State, Waiting, notesOf } from './shared'
import { crumbsOf } from './version-tabs'

const ActionMenu = lazy(() => import('../../ui/menu'))
const StepDialog = lazy(() => import('./publication-steps'))

export default function PublicationPage() {
  const [, api = '', name = '', , environment = ''] = useSegments()
  const [publication, environments, publications, subscriptions] = [usePublication(api, name, environment), useEnvironments(), usePublications(), useSubscriptions()]
  const [step, setStep] = useState<Step | null>(null)
  const [, go] = useLocation()
  const refused = useRight('apis:publish')
  const title = `${api} ${name} in ${environment}`
  const crumbs = [...crumbsOf(api), { to: toVersion(api, name), text: name }]
  if (publication.data === undefined) return <Waiting title={title} crumbs={crumbs} queries={[publication]} />
  const it = publication.data
  const all = environments.data ?? []
  const next = all[all.findIndex((one) => one.name === environment) + 1]
  const elsewhere = (publications.data ?? []).filter((one) => one.api === api && one.version === name && one.environment !== environment)
  const base = all.find((one) => one.name === environment)?.base_urls?.[0]
  const subscribers = (subscriptions.data ?? []).filter((one) => one.publication === `${api}/${name}/${environment}` && one.state !== 'closed' && one.state !== 'rejected').length
  const over = it.retired ? 'It is retired.' : null
  const path = publicationPath(api, name, environment)
  return (
    <Page
      title={title}
      about={
        <>
          <State state={it.retired ? 'retired' : it.state} />{' '}
          {notesOf(it)
            .filter((note) => note.text !== 'retired' && note.text !== 'disabled')
            .map((note) => (
              <span key={note.text} className={`badge ${note.tone}`}>
                {note.text}
              </span>
            ))}{' '}
          r{it.revision} <Hash value={it.hash} />
          {it.differs_from_draft && !it.retired && <span className="badge accent">differs from the draft</span>}
        </>
      }
      crumbs={crumbs}
      calls={[
        { about: 'Read the publication', method: 'GET', path },
        { about: 'Publish an older revision', method: 'POST', path: `${path}/rollback`, body: { note: 'why' } },
        { about: 'Serve a share by another revision', method: 'PUT', path: `${path}/canary`, body: { revision: it.revision, share: 1000, by: { cookie: 'sid' } } },
        { about: 'Tell callers that it ends', method: 'PUT', path: `${path}/deprecation`, body: { since: Math.floor(Date.now() / 1000) } },
      ]}
      actions={
        <>
          <Suspense fallback={<MenuPlace label="More" />}>
            <ActionMenu
              label="More"
              actions={[
                { text: 'Roll back', about: 'Serve an older revision; addresses stay.', refused: refused ?? over, run: () => setStep('rollback') },
                { text: it.canary ? 'Change the canary' : 'Start a canary', about: 'A share of the callers gets another revision.', refused: refused ?? over, run: () => setStep('canary') },
                { text: it.deprecation ? 'Change the deprecation' : 'Deprecate', about: 'Every answer tells callers that it ends.', refused: refused ?? over, run: () => setStep('deprecate') },
                { text: 'Retire', about: 'All calls get 410.', look: 'danger', refused: refused ?? over ?? (it.deprecation ? null : 'Deprecate it first.'), run: () => setStep('retire') },
                it.state === 'live'
                  ? { text: 'Disable', about: 'Its routes go for the time being.', refused: refused ?? over, run: () => setStep('disable') }
                  : { text: 'Enable', about: 'Its routes come back.', refused: refused ?? over, run: () => setStep('enable') },
                { text: 'Remove', about: 'All its routes go. Subscriptions stay.', look: 'danger', refused, run: () => setStep('remove') },
              ]}
            />
          </Suspense>
          {next && (
            <ButtonLink to={toPublish(api, name, { to: next.name, from: environment })} refused={refused ?? over}>
              {`Promote to ${next.name}`}
            </ButtonLink>
          )}
          <ButtonLink to={toPublish(api, name, { to: environment })} look="primary" refused={refused ?? over}>
            Publish the draft
          </ButtonLink>
        </>
      }
    >
      {it.canary && <CanaryCard publication={it} refused={refused} onStep={setStep} />}
      {it.deprecation && !it.retired && <DeprecationCard publication={it} refused={refused} onStep={setStep} />}
      <div className="halves">
        <section className="card" aria-label="Addresses">
          <div className="head2">
            <h2>Addresses</h2>
            <ButtonLink small to={toPublish(api, name, { to: environment, revision: String(it.revision) })} refused={refused ?? over}>
              Change
            </ButtonLink>
          </div>
          <Pairs
            pairs={[
              ['Callers use', <code key="base">{`${base ?? 'http://GATEWAY'}${it.runtime.base_path || '/'}`}</code>],
              ['Hosts', (it.runtime.hosts ?? []).join(', ') || 'every host'],
              ...Object.entries(it.runtime.backends).map(([backend, one]): [string, React.ReactNode] => [
                `Backend ${backend}`,
                <code key={backend}>{one.url ?? (one.targets ?? []).map((target) => `${target.host}:${target.port}`).join(', ')}</code>,
              ]),
              ['Base path', it.runtime.strip_base_path ? 'is not seen by the backend' : ''],
            ]}
          />
        </section>
        <section className="card" aria-label="Elsewhere">
          <h2>Elsewhere</h2>
          <Pairs
            pairs={[
              ...elsewhere.map((one): [string, React.ReactNode] => [
                one.environment,
                <span key={one.environment}>
                  <Link href={toPublication(api, name, one.environment)}>r{one.revision}</Link> <Hash value={one.hash} /> {one.hash === it.hash ? <span className="badge good">the same</span> : <span className="badge warn">differs</span>}
                </span>,
              ]),
              ['Subscriptions', <Link key="s" href={`/subscriptions?q=${encodeURIComponent(`publication:${api}/${name}/${environment}`)}`}>{countText(subscribers, 'subscription', 'subscriptions')}</Link>],
              ['Calls', <Link key="a" href={`/analytics/explore?metrics=calls&range=-24h&by=application&filter=${encodeURIComponent(`environment:${environment} api:${api} version:${name}`)}`}>in the analytics</Link>],
            ]}
          />
        </section>
      </div>
      <History publication={it} />
      <Suspense fallback={null}>
        {step && (
          <StepDialog
            step={step}
            publication={it}
            onClose={() => setStep(null)}
            onGone={() => {
              setStep(null)
              go(toVersion(api, name))
            }}
          />
        )}
      </Suspense>
    </Page>
  )
}

interface CardProps {
  publication: Publication
  refused: string | null
  onStep: (step: Step) => void
}

const byText = (by: NonNullable<Publication['canary']>['by']): string => (by === 'address' ? 'the address' : 'cookie' in by ? `the cookie ${by.cookie}` : `the header ${by.header}`)

function CanaryCard({ publication: it, refused, onStep }: CardProps) {
  const canary = it.canary as NonNullable<Publication['canary']>
  return (
    <section className="card" aria-label="Canary">
      <div className="head2">
        <h2>Canary</h2>
        <div className="row">
          <Button small refused={refused} onPress={() => onStep('canary')}>
            Change the share
          </Button>
          <Button small refused={refused} onPress={() => onStep('abort')}>
            Abort
          </Button>
        </div>
      </div>
      <div className="meter" role="img" aria-label={`${canary.share / 100} % of the callers get r${canary.revision}`}>
        <span style={{ inlineSize: `${Math.max(canary.share / 100, 1)}%` }} />
      </div>
      <p>
        {canary.share / 100} % of the callers get r{canary.revision}, the others r{it.revision}. Callers are told apart by {byText(canary.by)}; each stays on its side.
      </p>
      {(canary.steps ?? []).length > 0 && (
        <p className="muted">
          It grows by itself: {(canary.steps ?? []).map((it) => `${it.share / 100} % after ${duration(it.after * 1000)}`).join(', ')}.
        </p>
      )}
      {(canary.guards ?? []).map((it) => (
        <p className="muted" key={it.metric}>
          It is taken back if its {metricTitle(it.metric)} is above {it.metric.startsWith('share_') ? shown(it.above, 'share') : it.above} for {duration(it.period * 1000)}.
        </p>
      ))}
    </section>
  )
}

function DeprecationCard({ publication: it, refused, onStep }: CardProps) {
  const { since, sunset, link, successor, enforce } = it.deprecation as NonNullable<Publication['deprecation']>
  return (
    <section className="card" aria-label="Deprecation">
      <div className="head2">
        <h2>Deprecation</h2>
        <Button small refused={refused} onPress={() => onStep('undeprecate')}>
          Take it back
        </Button>
      </div>
      <Pairs
        pairs={[
          ['Since', exactTime(since)],
          ['Ends', sunset && `${exactTime(sunset)}${enforce ? ', callers get 410 from then on' : ''}`],
          ['Page', link],
          ['Successor', successor],
        ]}
      />
    </section>
  )
}

function History({ publication: it }: { publication: Publication }) {
  return (
    <section className="card flush" aria-label="History">
      <div className="head2">
        <h2>History</h2>
      </div>
      <div className="wide">
        <table className="plain stacked">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Revision</th>
              <th scope="col">By</th>
              <th scope="col">When</th>
              <th scope="col">Note</th>
            </tr>
          </thead>
          <tbody>
            {[...it.history].reverse().map((item, index) => (
              <tr key={`${item.at}${index}`}>
                <th scope="row">{item.action}</th>
                <td>
                  r{item.revision} <Hash value={item.hash} />
                </td>
                <td>{item.by}</td>
                <td>
                  <Time at={item.at} />
                </td>
                <td>
                  {item.note}
                  {(item.forced ?? []).length > 0 && (
                    <details>
                      <summary className="small">
                        <span className="badge warn">forced</span>
                      </summary>
                      <ul>
                        {(item.forced ?? []).map((text) => (
                          <li key={text}>{text}</li>
                        ))}
                      </ul>
                    </details>
                  )}
                  {item.approval && <span className="badge good">approved</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
