// One subscription: its state, and its keys. A key is shown once; rotated, the old one stays good for a while.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { type Credential, type PlanSecurity, type Subscription, partsOf, subscriptionPath, toProduct, toVersion, useCredentials, usePlans, useProductPlans, useSubscription } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Failure, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { isOfApplication, wordsOf } from '../../ui/credentials'
import { SelectField } from '../../ui/field'
import { AddPublicKey } from '../../ui/public-key'
import { answerLines } from '../../ui/questions'
import { End, Time, dayText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { ChangeEnd, Ends } from './subscription-end'
import { CredentialShown } from './credential-shown'
import { Pairs, State, TargetLink, Waiting, limitText, targetText } from './shared'
import { Move, STEPS } from './subscriptions'

const CRUMBS = [{ to: '/subscriptions', text: 'Subscriptions' }]
const HOUR = 3600

type Above = { kind: 'move'; step: (typeof STEPS)[number] } | { kind: 'rotate'; old: Credential } | { kind: 'revoke'; old: Credential } | { kind: 'shown'; made: Credential } | { kind: 'public-key' } | { kind: 'ends' } | null

export default function SubscriptionPage() {
  const [, id = ''] = useSegments()
  const subscription = useSubscription(id)
  const [api, version] = partsOf(subscription.data?.publication ?? '')
  const product = subscription.data?.product ?? ''
  const [ofVersion, ofProduct] = [usePlans(api, version), useProductPlans(product)]
  const plans = product === '' ? ofVersion : ofProduct
  const [above, setAbove] = useState<Above>(null)
  const refused = useRight('subscriptions:write')
  if (subscription.data === undefined) return <Waiting title="Subscription" crumbs={CRUMBS} queries={[subscription]} />
  const it = subscription.data
  const plan = plans.data?.find((known) => known.name === it.plan)
  return (
    <Page
      title={`${it.application}: ${it.plan} of ${product === '' ? `${api} ${version}` : targetText(it)}`}
      crumbs={CRUMBS}
      calls={[
        { about: 'Read the subscription', method: 'GET', path: subscriptionPath(id) },
        { about: 'Its keys, by how they begin', method: 'GET', path: `${subscriptionPath(id)}/credentials` },
        { about: 'Make a further key', method: 'POST', path: `${subscriptionPath(id)}/credentials`, body: {} },
      ]}
      actions={STEPS.filter((step) => step.from.includes(it.state)).map((step) => (
        <Button key={step.text} look={step.text === 'Accept' ? 'primary' : 'plain'} refused={refused} onPress={() => setAbove({ kind: 'move', step })}>
          {step.text}
        </Button>
      ))}
    >
      <div className="halves">
        <section className="card" aria-label="About it">
          <h2>About it</h2>
          <Pairs
            pairs={[
              ['State', <State key="state" state={it.state} />],
              ['Application', <Link key="app" href={`/applications/${encodeURIComponent(it.application)}`}>{it.application}</Link>],
              [product === '' ? 'API' : 'Product', <TargetLink key="to" of={it} />],
              ['Plan', <Link key="plan" href={product === '' ? `${toVersion(api, version)}/plans` : toProduct(product)}>{it.plan}</Link>],
              ['Limits', plan && limitText(plan)],
              ['Since', <Time key="since" at={it.created} />],
              ['Starts', it.starts && <Time at={it.starts} />],
              ['Ends', <Ends key="ends" subscription={it} refused={refused} onChange={() => setAbove({ kind: 'ends' })} />],
              ['They say', it.request],
              ...answerLines(plan?.form, it.answers ?? {}),
              ['Reason', it.reason],
              ['Decided by', it.processed_by],
              ['Conditions', it.conditions_revision ? `agreed to revision ${it.conditions_revision}` : ''],
            ]}
          />
        </section>
        <Keys subscription={it} security={plan?.security} refused={refused} onAbove={setAbove} />
      </div>
      {above?.kind === 'move' && <Move step={above.step} chosen={[it]} onClose={() => setAbove(null)} />}
      {above?.kind === 'rotate' && <Rotate id={id} old={above.old} overlap={plan?.overlap ?? null} onClose={() => setAbove(null)} onMade={(made) => setAbove({ kind: 'shown', made })} />}
      {above?.kind === 'revoke' && <Revoke id={id} old={above.old} onClose={() => setAbove(null)} />}
      {above?.kind === 'ends' && <ChangeEnd subscription={it} onClose={() => setAbove(null)} />}
      {above?.kind === 'public-key' && <NewPublicKey id={id} onClose={() => setAbove(null)} />}
      {above?.kind === 'shown' && <CredentialShown title={above.made.name ? `The new ${wordsOf(above.made.kind).secret.toLowerCase()}` : 'The new key'} made={above.made} onClose={() => setAbove(null)} />}
    </Page>
  )
}

function NewPublicKey({ id, onClose }: { id: string; onClose: () => void }) {
  const client = useQueryClient()
  return (
    <AddPublicKey
      onClose={onClose}
      onAdd={async (jwt) => {
        const made = await call<Credential>('POST', `${subscriptionPath(id)}/credentials`, { body: { jwt } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`Tokens of ${made.data.jwt?.issuer} are good`)
        onClose()
      }}
    />
  )
}

/** What a credential is called: a user name, who issues the tokens that it checks, or how it begins. */
const nameOf = (it: Credential): string => it.jwt?.issuer ?? (it.name || `${it.prefix}…`)

const isOver = (it: Credential): boolean => it.revoked !== undefined || (it.expires ?? Infinity) < Date.now() / 1000

function stateOf(it: Credential) {
  if (it.revoked !== undefined) return <span className="badge bad">revoked</span>
  if (isOver(it)) return <span className="badge">expired</span>
  return it.expires ? <span className="badge warn">until the end</span> : <span className="badge good">good</span>
}

function Keys({ subscription, security, refused, onAbove }: { subscription: Subscription; security: PlanSecurity | undefined; refused: string | null; onAbove: (above: Above) => void }) {
  const credentials = useCredentials(subscription.id)
  const client = useQueryClient()
  const [error, setError] = useState<unknown>(null)
  const isOpen = ['accepted', 'paused', 'stopped', 'expired'].includes(subscription.state)
  const words = wordsOf(security ?? 'key')
  const cannot = refused ?? (isOpen ? null : 'There are keys for a subscription that is accepted only.')
  const add = async () => {
    setError(null)
    try {
      const made = await call<Credential>('POST', `${subscriptionPath(subscription.id)}/credentials`, { body: {} })
      await client.invalidateQueries({ queryKey: ['configuration'] })
      onAbove({ kind: 'shown', made: made.data })
    } catch (wrong) {
      setError(wrong)
    }
  }
  const items = [...(credentials.data ?? [])].sort((a, b) => b.created - a.created)
  return (
    <section className="card" aria-label={words.title}>
      <div className="head2">
        <h2>{words.title}</h2>
        {security !== undefined && words.add !== null && (
          <Button small refused={cannot} onPress={() => (security === 'jwt' ? onAbove({ kind: 'public-key' }) : void add())}>
            {words.add}
          </Button>
        )}
        {words.add === null && (
          <ButtonLink small to={`/applications/${encodeURIComponent(subscription.application)}`}>
            Open the application
          </ButtonLink>
        )}
      </div>
      {(error ?? credentials.error) != null && <Failure error={error ?? credentials.error} />}
      {credentials.data && items.length === 0 ? <p className="muted">{words.none}</p> : <p className="muted small">{words.carried}</p>}
      <ul className="lines-list">
        {items.map((it) => (
          <CredentialLine key={it.id} credential={it} refused={refused} cannot={cannot} onAbove={onAbove} />
        ))}
      </ul>
    </section>
  )
}

function CredentialLine({ credential: it, refused, cannot, onAbove }: { credential: Credential; refused: string | null; cannot: string | null; onAbove: (above: Above) => void }) {
  // What the application brings has no life of its own.
  if (isOfApplication(it.kind)) {
    return (
      <li className="row">
        <code className="wrapped">{it.name}</code>
      </li>
    )
  }
  return (
    <li className="row between">
      <span className="row">
        {it.jwt ? (
          <span>
            <code>{it.jwt.issuer}</code> <span className="muted">{it.jwt.algorithm}</span>
          </span>
        ) : it.name ? (
          <span>
            <code>{it.name}</code>{' '}
            <span className="muted">
              {wordsOf(it.kind).secret.toLowerCase()} {it.prefix}…
            </span>
          </span>
        ) : (
          <code>{it.prefix}…</code>
        )}{' '}
        {stateOf(it)}
        {it.trial && <span className="badge">trial</span>}
        <span className="muted small">
          made <Time at={it.created} />, {it.last_used == null ? 'not used yet' : `last used on ${dayText(it.last_used)}`}
          {it.expires != null && !it.revoked && (
            <>
              , good until <End at={it.expires} />
            </>
          )}
          {it.revoked != null && (
            <>
              , revoked <Time at={it.revoked} />
            </>
          )}
        </span>
      </span>
      {!isOver(it) && (
        <span className="row">
          {!it.jwt && !it.trial && (
            <Button small refused={cannot} onPress={() => onAbove({ kind: 'rotate', old: it })}>
              Rotate<span className="sr"> {it.name || it.prefix}</span>
            </Button>
          )}
          <Button small look="quiet" refused={refused} onPress={() => onAbove({ kind: 'revoke', old: it })}>
            Revoke<span className="sr"> {nameOf(it)}</span>
          </Button>
        </span>
      )}
    </li>
  )
}

function Rotate({ id, old, overlap, onClose, onMade }: { id: string; old: Credential; overlap: number | null; onClose: () => void; onMade: (made: Credential) => void }) {
  const [chosen, setChosen] = useState('plan')
  const client = useQueryClient()
  return (
    <Act
      title={`Rotate ${nameOf(old)}`}
      action="Make the new key"
      onClose={onClose}
      run={async () => {
        const made = await call<Credential>('POST', `${subscriptionPath(id)}/credentials`, { body: { replaces: old.id, ...(chosen === 'plan' ? {} : { overlap: Number(chosen) }) } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        onMade(made.data)
      }}
    >
      <p>A new key is made. The old one stays good for a while, so that caller and key need not change at the same moment.</p>
      <SelectField
        label="The old key stays good for"
        value={chosen}
        onChange={setChosen}
        options={[
          ['plan', `as the plan says (${overlap === null ? '2 hours' : `${overlap / HOUR} hours`})`],
          ['0', 'not at all'],
          [String(HOUR), '1 hour'],
          [String(24 * HOUR), '1 day'],
          [String(7 * 24 * HOUR), '7 days'],
          [String(30 * 24 * HOUR), '30 days'],
        ]}
      />
    </Act>
  )
}

function Revoke({ id, old, onClose }: { id: string; old: Credential; onClose: () => void }) {
  const client = useQueryClient()
  return (
    <Act
      title={`Revoke ${nameOf(old)}?`}
      action="Revoke"
      look="danger"
      onClose={onClose}
      run={async () => {
        await call('DELETE', `${subscriptionPath(id)}/credentials/${encodeURIComponent(old.id)}`)
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${nameOf(old)} is revoked`)
        onClose()
      }}
    >
      <p>All gateways refuse it from now on. This cannot be taken back.</p>
    </Act>
  )
}
