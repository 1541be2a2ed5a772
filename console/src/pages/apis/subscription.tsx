// One subscription: its state, and its keys. A key is shown once; rotated, the old one stays good for a while.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { type Credential, type Subscription, partsOf, subscriptionPath, toProduct, toVersion, useCredentials, usePlans, useProductPlans, useSubscription } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Failure, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { SelectField } from '../../ui/field'
import { ShownOnce } from '../../ui/once'
import { Time, dayText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { Pairs, State, TargetLink, Waiting, limitText, targetText } from './shared'
import { AddPublicKey } from './public-key'
import { Move, STEPS } from './subscriptions'

const CRUMBS = [{ to: '/subscriptions', text: 'Subscriptions' }]
const HOUR = 3600

type Above = { kind: 'move'; step: (typeof STEPS)[number] } | { kind: 'rotate'; old: Credential } | { kind: 'revoke'; old: Credential } | { kind: 'shown'; key: string } | { kind: 'public-key' } | null

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
        <Button key={step.text} look={step.look ?? (step.text === 'Accept' ? 'primary' : 'plain')} refused={refused} onPress={() => setAbove({ kind: 'move', step })}>
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
              ['Ends', it.ends && <Time at={it.ends} />],
              ['They say', it.request],
              ['Reason', it.reason],
              ['Decided by', it.processed_by],
              ['Conditions', it.conditions_revision ? `agreed to revision ${it.conditions_revision}` : ''],
            ]}
          />
        </section>
        <Keys subscription={it} hasTokens={plan?.security === 'jwt'} refused={refused} onAbove={setAbove} />
      </div>
      {above?.kind === 'move' && <Move step={above.step} chosen={[it]} onClose={() => setAbove(null)} />}
      {above?.kind === 'rotate' && <Rotate id={id} old={above.old} overlap={plan?.overlap ?? null} onClose={() => setAbove(null)} onMade={(key) => setAbove({ kind: 'shown', key })} />}
      {above?.kind === 'revoke' && <Revoke id={id} old={above.old} onClose={() => setAbove(null)} />}
      {above?.kind === 'public-key' && <AddPublicKey id={id} onClose={() => setAbove(null)} />}
      {above?.kind === 'shown' && <ShownOnce title="The new key" secret={above.key} onClose={() => setAbove(null)} />}
    </Page>
  )
}

/** What a key is called: how it begins, or who issues the tokens that it checks. */
const nameOf = (it: Credential): string => it.jwt?.issuer ?? `${it.prefix}…`

const isOver = (it: Credential): boolean => it.revoked !== undefined || (it.expires ?? Infinity) < Date.now() / 1000

function stateOf(it: Credential) {
  if (it.revoked !== undefined) return <span className="badge bad">revoked</span>
  if (isOver(it)) return <span className="badge">expired</span>
  return it.expires ? <span className="badge warn">until the end</span> : <span className="badge good">good</span>
}

function Keys({ subscription, hasTokens, refused, onAbove }: { subscription: Subscription; hasTokens: boolean; refused: string | null; onAbove: (above: Above) => void }) {
  const credentials = useCredentials(subscription.id)
  const client = useQueryClient()
  const [error, setError] = useState<unknown>(null)
  const isOpen = ['accepted', 'paused', 'stopped', 'expired'].includes(subscription.state)
  const cannot = refused ?? (isOpen ? null : 'There are keys for a subscription that is accepted only.')
  const add = async () => {
    setError(null)
    try {
      const made = await call<Credential>('POST', `${subscriptionPath(subscription.id)}/credentials`, { body: {} })
      await client.invalidateQueries({ queryKey: ['configuration'] })
      onAbove({ kind: 'shown', key: made.data.key ?? '' })
    } catch (wrong) {
      setError(wrong)
    }
  }
  const items = [...(credentials.data ?? [])].sort((a, b) => b.created - a.created)
  return (
    <section className="card" aria-label="Keys">
      <div className="head2">
        <h2>Keys</h2>
        <Button small refused={cannot} onPress={() => (hasTokens ? onAbove({ kind: 'public-key' }) : void add())}>
          {hasTokens ? 'Add a public key' : 'New key'}
        </Button>
      </div>
      {(error ?? credentials.error) != null && <Failure error={error ?? credentials.error} />}
      {items.length === 0 && <p className="muted">{hasTokens ? 'There is no public key yet: calls are refused until there is one. The subscriber signs tokens with the private half.' : 'There is no key yet.'}</p>}
      <ul className="lines-list">
        {items.map((it) => (
          <li key={it.id} className="row between">
            <span className="row">
              {it.jwt ? (
                <span>
                  <code>{it.jwt.issuer}</code> <span className="muted">{it.jwt.algorithm}</span>
                </span>
              ) : (
                <code>{it.prefix}…</code>
              )}{' '}
              {stateOf(it)}
              {it.trial && <span className="badge">trial</span>}
              <span className="muted small">
                made <Time at={it.created} />, {it.last_used === undefined ? 'not used yet' : `last used on ${dayText(it.last_used)}`}
                {it.expires !== undefined && !it.revoked && (
                  <>
                    , good until <Time at={it.expires} />
                  </>
                )}
                {it.revoked !== undefined && (
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
                    Rotate<span className="sr"> {it.prefix}</span>
                  </Button>
                )}
                <Button small look="quiet" refused={refused} onPress={() => onAbove({ kind: 'revoke', old: it })}>
                  Revoke<span className="sr"> {nameOf(it)}</span>
                </Button>
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

function Rotate({ id, old, overlap, onClose, onMade }: { id: string; old: Credential; overlap: number | null; onClose: () => void; onMade: (key: string) => void }) {
  const [chosen, setChosen] = useState('plan')
  const client = useQueryClient()
  return (
    <Act
      title={`Rotate ${old.prefix}…`}
      action="Make the new key"
      onClose={onClose}
      run={async () => {
        const made = await call<Credential>('POST', `${subscriptionPath(id)}/credentials`, { body: { replaces: old.id, ...(chosen === 'plan' ? {} : { overlap: Number(chosen) }) } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        onMade(made.data.key ?? '')
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
