// The subscriptions of an application and their keys. A key is shown once; what cannot be taken back is asked first.
import { useState } from 'react'
import { Link } from 'wouter'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { type CredentialWords, isOfApplication, wordsOf } from '../../ui/credentials'
import { Dialog } from '../../ui/dialog'
import { SelectField } from '../../ui/field'
import { saveFile } from '../../ui/files'
import { AddPublicKey, type TokenKey } from '../../ui/public-key'
import { End, Time, dayText } from '../../ui/time'
import { CopyButton } from '../copy'
import { type App, type ShownKey, type Subscription, useWrite } from '../data'
import { Empty } from '../empty'
import { Said } from './entry'

const part = encodeURIComponent
const HOUR = 3_600
const DAY = 24 * HOUR

type Key = Subscription['keys'][number]
type Above = { kind: 'rotate' | 'revoke'; key: Key } | { kind: 'close' } | { kind: 'public-key' } | { kind: 'shown'; made: ShownKey } | null

const LOOKS: Record<string, string> = { accepted: 'good', pending: 'warn', paused: 'warn', stopped: 'warn', rejected: 'bad', closed: 'bad', expired: 'bad' }
const nameOf = (it: Subscription): string => it.product || it.publication.split('/').slice(0, 2).join(' ')
const pathOf = (app: string, it: Subscription): string => `/apps/${part(app)}/subscriptions/${part(it.id)}`

export function Subscriptions({ app, all }: { app: App; all: Subscription[] }) {
  if (all.length === 0) {
    return (
      <Empty
        title="No subscription yet"
        icon="ticket"
        actions={<ButtonLink to="/apis">All APIs</ButtonLink>}
      >
        <p>A subscription gives this application a key for an API, within the limits of a plan. Choose an API and one of its plans.</p>
      </Empty>
    )
  }
  const refused = app.role === 'viewer' ? `You see this as a viewer of the team ${app.team_name}. Its members change it.` : null
  return (
    <ul className="stack">
      {all.map((it) => (
        <SubscriptionCard key={it.id} app={app.name} subscription={it} refused={refused} />
      ))}
    </ul>
  )
}

/** A key, a password or a secret that is shown this once. */
export function KeyShown({ shown, security, onClose }: { shown: ShownKey; security: string; onClose: () => void }) {
  const { secret, carried } = wordsOf(security)
  return (
    <Dialog
      title={`Your ${secret.toLowerCase()}`}
      isOpen
      loses={`The ${secret.toLowerCase()} is not shown again`}
      onClose={onClose}
      actions={
        <>
          <CopyButton text={shown.key} />
          <Button onPress={() => saveFile('key.txt', 'text/plain', shown.name ? [`User name: ${shown.name}\n${secret}: ${shown.key}\n`] : [shown.key, '\n'])}>Download</Button>
          <Button look="primary" onPress={onClose}>
            I have kept it
          </Button>
        </>
      }
    >
      <p>This is the only time that you see it. Weir shows no copy of it again.</p>
      {shown.name && (
        <p>
          User name: <code>{shown.name}</code>
        </p>
      )}
      <pre className="code" tabIndex={0} aria-label={secret}>
        {shown.key}
      </pre>
      <p className="muted">{carried}</p>
    </Dialog>
  )
}

function SubscriptionCard({ app, subscription, refused }: { app: string; subscription: Subscription; refused: string | null }) {
  const base = pathOf(app, subscription)
  const [above, setAbove] = useState<Above>(null)
  const add = useWrite<ShownKey, { jwt?: TokenKey }>('POST', () => `${base}/keys`)
  const words = wordsOf(subscription.security)
  const set = useWrite<Subscription, { state: string }>('POST', () => `${base}/state`)
  const [api = '', version = '', environment] = subscription.publication.split('/')
  const isOpen = ['accepted', 'paused', 'stopped', 'expired'].includes(subscription.state)
  const close = () => setAbove(null)
  return (
    <li className="card" aria-label={`${nameOf(subscription)}, ${subscription.plan_title}`}>
      <div className="row between">
        <h2>{subscription.product || <Link href={`/apis/${part(api)}/${part(version)}`}>{nameOf(subscription)}</Link>}</h2>
        <span className={`badge ${LOOKS[subscription.state] ?? ''}`}>{subscription.state}</span>
      </div>
      <p className="muted">
        <strong>{subscription.plan_title}</strong>
        {environment && ` in ${environment}`}, since <Time at={subscription.created} />
        {subscription.reason && `: ${subscription.reason}`}
      </p>
      <Told subscription={subscription} />
      {subscription.state === 'pending' && <p>{isOfApplication(subscription.security) ? 'The provider has to accept it.' : 'The provider has to accept it. You get a key then.'}</p>}
      {isOpen && isOfApplication(subscription.security) && <KnownBy app={app} subscription={subscription} />}
      {subscription.keys.length > 0 && <Keys keys={subscription.keys} words={words} refused={refused} onAbove={setAbove} />}
      {isOpen && subscription.security === 'jwt' && subscription.keys.length === 0 && <p className="muted">{words.none}</p>}
      {isOpen && (
        <div className="row">
          {words.add !== null && subscription.security !== '' && (
            <Button small refused={refused} isBusy={add.isPending} onPress={() => (subscription.security === 'jwt' ? setAbove({ kind: 'public-key' }) : add.mutate({}, { onSuccess: (made) => setAbove({ kind: 'shown', made }) }))}>
              {words.add}
            </Button>
          )}
          {(subscription.state === 'accepted' || (subscription.state === 'paused' && !subscription.stopped)) && (
            <Button small refused={refused} onPress={() => set.mutate({ state: 'stopped' })}>
              Stop
            </Button>
          )}
          {subscription.stopped && (
            <Button small refused={refused} onPress={() => set.mutate({ state: 'accepted' })}>
              Start
            </Button>
          )}
          <Button small look="quiet" refused={refused} onPress={() => setAbove({ kind: 'close' })}>
            Close
          </Button>
        </div>
      )}
      <Said error={add.error ?? set.error} />
      {above?.kind === 'rotate' && <Rotate path={base} old={above.key} onClose={close} onMade={(made) => setAbove({ kind: 'shown', made })} />}
      {above?.kind === 'revoke' && <Revoke path={base} old={above.key} onClose={close} />}
      {above?.kind === 'close' && (
        <Act title={`Close the subscription to ${nameOf(subscription)}?`} action="Close it" look="danger" onClose={close} run={() => set.mutateAsync({ state: 'closed' }).then(close)}>
          <p>Its keys stop working at once, for good. To stop calls for a while, stop it instead.</p>
        </Act>
      )}
      {above?.kind === 'public-key' && <AddPublicKey onClose={close} onAdd={(jwt) => add.mutateAsync({ jwt }).then(close)} />}
      {above?.kind === 'shown' && <KeyShown shown={above.made} security={subscription.security} onClose={close} />}
    </li>
  )
}

/** What the subscriber wrote to the provider. */
function Told({ subscription: { request, answers } }: { subscription: Subscription }) {
  if (request === '' && answers.length === 0) return null
  return (
    <dl className="pairs" aria-label="Your answers">
      {request !== '' && [<dt key="request">What it is for</dt>, <dd key="request text">{request}</dd>]}
      {answers.map((it) => [<dt key={it.question}>{it.question}</dt>, <dd key={`${it.question} answer`}>{it.answer}</dd>])}
    </dl>
  )
}

/** How a plan identifies the application; it is in its settings. */
function KnownBy({ app, subscription: { security, known_by } }: { app: string; subscription: Subscription }) {
  const words = wordsOf(security)
  return (
    <div className="stack tight" role="group" aria-label={words.title}>
      {known_by.map((it) => (
        <p key={it}>
          {words.title}: <code className="broken">{it}</code>
        </p>
      ))}
      <p className="muted">
        {known_by.length === 0 ? words.none : words.carried} <Link href={`/apps/${part(app)}/settings`}>Change it in the settings</Link>
      </p>
    </div>
  )
}

/** What a key is called: its user name, the issuer of its tokens, or how it begins. */
const nameOfKey = (key: Key): string => key.name || `${key.prefix}…`

function stateOf(key: Key): 'revoked' | 'expired' | 'ends' | 'good' {
  if (key.revoked) return 'revoked'
  if (!key.expires) return 'good'
  return key.expires <= Date.now() / 1000 ? 'expired' : 'ends'
}

function Keys({ keys, words, refused, onAbove }: { keys: Key[]; words: CredentialWords; refused: string | null; onAbove: (above: Above) => void }) {
  return (
    <div className="wide" tabIndex={0} role="group" aria-label={words.title}>
      <table className="plain keys stacked">
        <thead>
          <tr>
            <th scope="col">{words.title}</th>
            <th scope="col">Made</th>
            <th scope="col">Last used</th>
            <th scope="col">State</th>
            <th scope="col">
              <span className="sr">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => {
            const state = stateOf(key)
            return (
              <tr key={key.id}>
                <td className="whole">
                  <code>{key.name || `${key.prefix}…`}</code> {key.name && key.prefix && <span className="muted small">{words.secret.toLowerCase()} {key.prefix}…</span>} {key.is_trial && <span className="badge">trial</span>}
                </td>
                <td data-head="Made">
                  <Time at={key.created} />
                </td>
                <td data-head="Last used">{key.last_used === null ? 'not yet' : dayText(key.last_used)}</td>
                <td data-head="State">{state === 'ends' && key.expires ? <>good until <End at={key.expires} /></> : state}</td>
                <td className="acts">
                  {(state === 'good' || state === 'ends') && (
                    <span className="row">
                      {state === 'good' && !key.is_trial && key.prefix !== '' && (
                        <Button small refused={refused} onPress={() => onAbove({ kind: 'rotate', key })}>
                          Rotate<span className="sr"> {nameOfKey(key)}</span>
                        </Button>
                      )}
                      <Button small look="quiet" refused={refused} onPress={() => onAbove({ kind: 'revoke', key })}>
                        Revoke<span className="sr"> {nameOfKey(key)}</span>
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
  )
}

/** For how long the old key goes on; the first is what the plan says. */
const OVERLAPS = [
  ['', 'as long as the plan says'],
  ['0', 'not at all'],
  [String(HOUR), '1 hour'],
  [String(DAY), '1 day'],
  [String(7 * DAY), '7 days'],
  [String(30 * DAY), '30 days'],
] as const

function Rotate({ path, old, onClose, onMade }: { path: string; old: Key; onClose: () => void; onMade: (made: ShownKey) => void }) {
  const [overlap, setOverlap] = useState<(typeof OVERLAPS)[number][0]>('')
  const make = useWrite<ShownKey, { replaces: string; overlap?: number }>('POST', () => `${path}/keys`)
  return (
    <Act title={`Rotate ${nameOfKey(old)}`} action="Make the new key" onClose={onClose} run={() => make.mutateAsync({ replaces: old.id, ...(overlap === '' ? {} : { overlap: Number(overlap) }) }).then(onMade)}>
      <p>You get a new key. The old one goes on for a while, so that you can change your program in between.</p>
      <SelectField label="The old key stays good" value={overlap} onChange={setOverlap} options={OVERLAPS} />
    </Act>
  )
}

function Revoke({ path, old, onClose }: { path: string; old: Key; onClose: () => void }) {
  const revoke = useWrite<null>('DELETE', () => `${path}/keys/${part(old.id)}`)
  return (
    <Act title={`Revoke ${nameOfKey(old)}?`} action="Revoke" look="danger" onClose={onClose} run={() => revoke.mutateAsync().then(onClose)}>
      <p>Calls with it are refused from now on. This cannot be taken back. To change keys without a gap, rotate it instead.</p>
    </Act>
  )
}
