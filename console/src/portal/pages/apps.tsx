// Applications: one's own and those of one's teams; one of them with its subscriptions, keys, usage and calls.
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { Failure } from '../../shell/page'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { Time, countText, duration } from '../../ui/time'
import { type App, type AppDetail, type Calls, type ShownKey, type Subscription, type TeamList, type Usage, useRead, useWrite } from '../data'
import { Loading, Page, SignedIn } from '../frame'
import { Field, Form, Said } from './entry'

const part = encodeURIComponent

export default function Apps() {
  const apps = useRead<{ items: App[] }>('/apps')
  const [isNew, setNew] = useState(false)
  if (apps.error) return <SignedIn error={apps.error} onRetry={() => void apps.refetch()} />
  if (apps.data === undefined) return <Loading />
  return (
    <Page title="Applications" about="An application is a program of yours that calls APIs. Each has its own subscriptions and keys." actions={<Button look="primary" icon="plus" onPress={() => setNew(true)}>New application</Button>}>
      {apps.data.items.length === 0 ? (
        <div className="empty">
          <h2>No application yet</h2>
          <p>Make one, subscribe it to a plan of an API, and get a key. It takes a minute.</p>
          <Button look="primary" onPress={() => setNew(true)}>
            Make the first one
          </Button>
        </div>
      ) : (
        <ul className="cards">
          {apps.data.items.map((it) => (
            <li key={it.name} className="card">
              <h2>
                <Link href={`/apps/${part(it.name)}`}>{it.title}</Link>
              </h2>
              {it.description && <p className="muted">{it.description}</p>}
              <div className="row">
                <span className="badge">{it.team ? `Team ${it.team_name}` : 'Mine'}</span>
                <span className="muted small">{countText(it.subscriptions, 'subscription', 'subscriptions')}</span>
              </div>
            </li>
          ))}
        </ul>
      )}
      <Dialog title="New application" isOpen={isNew} onClose={() => setNew(false)}>
        <NewApp onMade={() => setNew(false)} />
      </Dialog>
    </Page>
  )
}

export function NewApp({ onMade }: { onMade: (app: App) => void }) {
  const [title, typeTitle] = useState('')
  const [description, typeDescription] = useState('')
  const [team, choose] = useState('')
  const teams = useRead<TeamList>('/teams')
  const make = useWrite<App, { title: string; description: string; team: string | null }>('POST', () => '/apps')
  return (
    <Form label="New application" onSubmit={() => make.mutate({ title, description, team: team || null }, { onSuccess: onMade })} submit="Make it" isBusy={make.isPending}>
      <Field label="Title" name="title" value={title} onChange={typeTitle} error={make.error} />
      <label className="field">
        <span className="label">What it does</span>
        <textarea className="input" rows={2} value={description} onChange={(event) => typeDescription(event.target.value)} />
      </label>
      {(teams.data?.items.length ?? 0) > 0 && (
        <label className="field">
          <span className="label">Belongs to</span>
          <select className="select" value={team} onChange={(event) => choose(event.target.value)}>
            <option value="">Me</option>
            {teams.data?.items.map((it) => (
              <option key={it.id} value={it.id}>
                Team {it.name}
              </option>
            ))}
          </select>
        </label>
      )}
      <Said error={make.error} fields={['title']} />
    </Form>
  )
}

export function AppPage({ name, tab }: { name: string; tab: string }) {
  const app = useRead<AppDetail>(`/apps/${part(name)}`)
  const [, go] = useLocation()
  const remove = useWrite<null>('DELETE', () => `/apps/${part(name)}`)
  if (app.error) return <SignedIn error={app.error} onRetry={() => void app.refetch()} />
  if (app.data === undefined) return <Loading />
  const base = `/apps/${part(name)}`
  const link = (to: string, text: string, isHere: boolean) => (
    <Link href={to} className="tab" aria-current={isHere ? 'page' : undefined}>
      {text}
    </Link>
  )
  const isOver = app.data.subscriptions.length > 0
  return (
    <Page
      title={app.data.app.title}
      about={app.data.app.description || undefined}
      actions={
        <Button look="danger" refused={isOver ? 'It has subscriptions. They stay for the record.' : null} onPress={() => remove.mutate(undefined, { onSuccess: () => go('/apps') })}>
          Remove
        </Button>
      }
    >
      <nav className="tabs" aria-label="Application">
        {link(base, 'Subscriptions', tab === '')}
        {link(`${base}/usage`, 'Usage', tab === 'usage')}
        {link(`${base}/calls`, 'Calls', tab === 'calls')}
      </nav>
      <Said error={remove.error} />
      {tab === '' && <Subscriptions app={name} all={app.data.subscriptions} />}
      {tab === 'usage' && <UsageShown app={name} />}
      {tab === 'calls' && <CallsShown app={name} />}
    </Page>
  )
}

const LOOKS: Record<string, string> = { accepted: 'good', pending: 'warn', paused: 'warn', stopped: 'warn', rejected: 'bad', closed: 'bad', expired: 'bad' }

function Subscriptions({ app, all }: { app: string; all: Subscription[] }) {
  if (all.length === 0) {
    return (
      <div className="empty">
        <h2>No subscription yet</h2>
        <p>Choose an API and one of its plans.</p>
        <Link href="/apis" className="button primary">
          All APIs
        </Link>
      </div>
    )
  }
  return (
    <ul className="stack">
      {all.map((it) => (
        <SubscriptionCard key={it.id} app={app} subscription={it} />
      ))}
    </ul>
  )
}

/** A key that is shown this once. */
export function KeyShown({ shown, onClose }: { shown: ShownKey; onClose: () => void }) {
  const [copied, tell] = useState(false)
  return (
    <Dialog
      title="Your key"
      isOpen
      onClose={onClose}
      actions={
        <Button look="primary" onPress={onClose}>
          I have kept it
        </Button>
      }
    >
      <p>This is the only time that you see it. Weir keeps no copy that it could show again.</p>
      <pre className="code" tabIndex={0} aria-label="Key">{shown.key}</pre>
      <div className="row">
        <Button onPress={() => void navigator.clipboard.writeText(shown.key).then(() => tell(true))}>{copied ? 'Copied' : 'Copy'}</Button>
      </div>
    </Dialog>
  )
}

function SubscriptionCard({ app, subscription }: { app: string; subscription: Subscription }) {
  const base = `/apps/${part(app)}/subscriptions/${part(subscription.id)}`
  const [shown, show] = useState<ShownKey | null>(null)
  const add = useWrite<ShownKey, { replaces?: string; overlap?: number }>('POST', () => `${base}/keys`)
  const revoke = useWrite<null, string>('DELETE', (key) => `${base}/keys/${part(key)}`)
  const set = useWrite<Subscription, { state: string }>('POST', () => `${base}/state`)
  const [api, version, environment] = subscription.publication.split('/')
  const isOpen = ['accepted', 'paused', 'stopped', 'expired'].includes(subscription.state)
  const now = Date.now() / 1000
  const stateOf = (key: Subscription['keys'][number]) => (key.revoked ? 'revoked' : key.expires && key.expires <= now ? 'expired' : key.expires ? 'ends' : 'good')
  return (
    <li className="card" aria-label={`${api} ${version}, ${subscription.plan_title}`}>
      <div className="row between">
        <h2>
          <Link href={`/apis/${part(api ?? '')}/${part(version ?? '')}`}>
            {api} {version}
          </Link>
        </h2>
        <span className={`badge ${LOOKS[subscription.state] ?? ''}`}>{subscription.state}</span>
      </div>
      <p className="muted">
        {subscription.plan_title} in {environment}, since <Time at={subscription.created} />
        {subscription.reason && `: ${subscription.reason}`}
      </p>
      {subscription.state === 'pending' && <p>The provider has to accept it. You get a key then.</p>}
      {subscription.keys.length > 0 && (
        <div className="wide" tabIndex={0} role="group" aria-label="Keys">
        <table className="plain keys">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Made</th>
              <th scope="col">State</th>
              <th scope="col">
                <span className="sr">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {subscription.keys.map((key) => {
              const state = stateOf(key)
              const isGood = state === 'good' || state === 'ends'
              return (
                <tr key={key.id}>
                  <td>
                    <code>{key.prefix}…</code>
                  </td>
                  <td>
                    <Time at={key.created} />
                  </td>
                  <td>{state === 'ends' && key.expires ? <>good until <Time at={key.expires} /></> : state}</td>
                  <td>
                    {isGood && (
                      <span className="row">
                        {state === 'good' && (
                          <Button small onPress={() => add.mutate({ replaces: key.id }, { onSuccess: show })}>
                            Rotate
                          </Button>
                        )}
                        <Button small look="quiet" onPress={() => revoke.mutate(key.id)}>
                          Revoke
                        </Button>
                      </span>
                    )}
                  </td>
                </tr>
              )
            })}
          </tbody>
        </table>
        </div>
      )}
      {isOpen && (
        <div className="row">
          <Button small onPress={() => add.mutate({}, { onSuccess: show })}>
            New key
          </Button>
          {subscription.state === 'accepted' && (
            <Button small onPress={() => set.mutate({ state: 'stopped' })}>
              Stop
            </Button>
          )}
          {subscription.state === 'stopped' && (
            <Button small onPress={() => set.mutate({ state: 'accepted' })}>
              Start
            </Button>
          )}
          <Button small look="quiet" onPress={() => set.mutate({ state: 'closed' })}>
            Close
          </Button>
        </div>
      )}
      <Said error={add.error ?? revoke.error ?? set.error} />
      {shown && <KeyShown shown={shown} onClose={() => show(null)} />}
    </li>
  )
}

function UsageShown({ app }: { app: string }) {
  const [days, choose] = useState('1')
  const usage = useRead<Usage>(`/apps/${part(app)}/usage`, { days })
  if (usage.error) return <Failure error={usage.error} onRetry={() => void usage.refetch()} />
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
      <section className="stack" aria-label="Quota">
        <h2>What is left</h2>
        {usage.data.quotas.length === 0 && <p className="muted">No plan of this application has a limit.</p>}
        <ul className="stack">
          {usage.data.quotas.map((it) => (
            <li key={`${it.subscription}${it.per}`} className="card">
              <div className="row between">
                <strong>
                  {it.publication.split('/').slice(0, 2).join(' ')}, each {it.per}
                </strong>
                <span>
                  {it.left.toLocaleString()} of {it.limit.toLocaleString()} left
                </span>
              </div>
              <meter className="meter" min={0} max={it.limit} value={it.used} aria-label={`Used of ${it.publication} each ${it.per}`} />
              <span className="muted small">
                New calls <Time at={it.resets} />
              </span>
            </li>
          ))}
        </ul>
      </section>
      {usage.data.apis.length > 0 && (
        <table className="plain card">
          <thead>
            <tr>
              <th scope="col">API</th>
              <th scope="col">Calls</th>
              <th scope="col">Refused</th>
            </tr>
          </thead>
          <tbody>
            {usage.data.apis.map((it) => (
              <tr key={it.api}>
                <td>{it.api}</td>
                <td>{it.calls.toLocaleString()}</td>
                <td>{it.refused.toLocaleString()}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p className="muted small">Counts come in every few seconds. Times are of answered calls.</p>
    </div>
  )
}

function CallsShown({ app }: { app: string }) {
  const [only, choose] = useState('')
  const calls = useRead<Calls>(`/apps/${part(app)}/calls`, { only })
  if (calls.error) return <Failure error={calls.error} onRetry={() => void calls.refetch()} />
  return (
    <div className="stack">
      <div className="row" role="group" aria-label="Which calls">
        {[['', 'All'], ['refused', 'Refused']].map(([value, text]) => (
          <button key={value} type="button" className="chip-choice" aria-pressed={value === only} onClick={() => choose(value ?? '')}>
            {text}
          </button>
        ))}
        <Button small look="quiet" onPress={() => void calls.refetch()}>
          Read again
        </Button>
      </div>
      {calls.data?.items.length === 0 && <p className="muted">No call is kept. Refused calls are kept, of the others a sample.</p>}
      {(calls.data?.items.length ?? 0) > 0 && (
      <div className="wide" tabIndex={0} role="group" aria-label="Calls">
        <table className="plain card">
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
                <td>
                  <code>{it.operation}</code>
                </td>
                <td>
                  <span className={`badge ${it.status < 400 ? 'good' : 'bad'}`}>{it.status}</span>
                </td>
                <td>{duration(it.total_us / 1000)}</td>
                <td>{it.reason}</td>
                <td>
                  <code className="small">{it.request_id}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      )}
    </div>
  )
}

