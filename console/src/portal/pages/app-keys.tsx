// The subscriptions of an application and their keys. A key is shown once.
import { useState } from 'react'
import { Link } from 'wouter'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { Time, dayText } from '../../ui/time'
import { type ShownKey, type Subscription, useWrite } from '../data'
import { Said } from './entry'

const part = encodeURIComponent

const LOOKS: Record<string, string> = { accepted: 'good', pending: 'warn', paused: 'warn', stopped: 'warn', rejected: 'bad', closed: 'bad', expired: 'bad' }

export function Subscriptions({ app, all }: { app: string; all: Subscription[] }) {
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
    <li className="card" aria-label={`${subscription.product || `${api} ${version}`}, ${subscription.plan_title}`}>
      <div className="row between">
        <h2>
          {subscription.product || (
            <Link href={`/apis/${part(api ?? '')}/${part(version ?? '')}`}>
              {api} {version}
            </Link>
          )}
        </h2>
        <span className={`badge ${LOOKS[subscription.state] ?? ''}`}>{subscription.state}</span>
      </div>
      <p className="muted">
        <strong>{subscription.plan_title}</strong>
        {environment && ` in ${environment}`}, since <Time at={subscription.created} />
        {subscription.reason && `: ${subscription.reason}`}
      </p>
      {subscription.state === 'pending' && <p>The provider has to accept it. You get a key then.</p>}
      {subscription.keys.length > 0 && (
        <div className="wide" tabIndex={0} role="group" aria-label="Keys">
        <table className="plain keys stacked">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Made</th>
              <th scope="col">Last used</th>
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
                  <td>{key.last_used === null ? 'not yet' : dayText(key.last_used)}</td>
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
