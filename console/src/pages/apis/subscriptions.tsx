// All subscriptions: which application may call what under which plan. Several are accepted, paused or closed at once.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { type Subscription, type SubscriptionState, partsOf, subscriptionPath, useSubscriptions } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { Act } from '../../ui/act'
import { ButtonLink } from '../../ui/button'
import { TextField } from '../../ui/field'
import { type Column, Table } from '../../ui/table'
import { Time, countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { State, TargetLink, targetText } from './shared'

export const toSubscription = (id: string) => `/subscriptions/${encodeURIComponent(id)}`

const columns: Column<Subscription>[] = [
  {
    id: 'application',
    title: 'Application',
    text: (it) => it.application,
    render: (it) => (
      <Link href={toSubscription(it.id)} aria-label={`${it.application}, ${it.plan} of ${targetText(it)}`}>
        {it.application}
      </Link>
    ),
  },
  { id: 'publication', title: 'To', text: targetText, render: (it) => <TargetLink of={it} />, width: 'minmax(8rem, 1.6fr)' },
  { id: 'api', title: 'API or product', text: (it) => it.product || partsOf(it.publication)[0], from: 3, width: 'minmax(5rem, 0.7fr)' },
  { id: 'plan', title: 'Plan', text: (it) => it.plan, from: 2, width: 'minmax(5rem, 0.7fr)' },
  { id: 'state', title: 'State', text: (it) => it.state, render: (it) => <State state={it.state} />, width: '6.5rem' },
  { id: 'since', title: 'Since', text: (it) => new Date(it.created * 1000).toISOString(), order: (it) => it.created, render: (it) => <Time at={it.created} />, from: 2, width: 'minmax(6rem, 0.7fr)' },
]

const key = (it: Subscription) => it.id
const version = (it: Subscription) => it.state

/** The steps that somebody may take, and from which states. */
export const STEPS: { to: SubscriptionState; text: string; done: string; from: SubscriptionState[]; asksWhy?: boolean; look?: 'danger' }[] = [
  { to: 'accepted', text: 'Accept', done: 'accepted', from: ['pending'] },
  { to: 'rejected', text: 'Reject', done: 'rejected', from: ['pending'], asksWhy: true, look: 'danger' },
  { to: 'paused', text: 'Pause', done: 'paused', from: ['accepted', 'stopped'], asksWhy: true },
  { to: 'accepted', text: 'Resume', done: 'resumed', from: ['paused', 'expired'] },
  { to: 'closed', text: 'Close', done: 'closed', from: ['pending', 'accepted', 'paused', 'stopped', 'expired'], asksWhy: true, look: 'danger' },
]

type Step = (typeof STEPS)[number]

export default function Subscriptions() {
  const subscriptions = useSubscriptions()
  const [above, setAbove] = useState<{ step: Step; chosen: Subscription[] } | null>(null)
  const refused = useRight('subscriptions:write')
  const subscribing = useRight('subscriptions:write', 'subscribe')
  const [parameters, setParameters] = useSearchParams()
  // The newest first: those are asked about.
  const rows = useMemo(() => [...(subscriptions.data ?? [])].sort((a, b) => b.created - a.created), [subscriptions.data])
  const waiting = rows.filter((it) => it.state === 'pending')
  return (
    <Page
      title="Subscriptions"
      about="Which application may call which API, under which plan. A paused one is answered with 403, a closed one with 401."
      calls={[
        { about: 'List subscriptions', method: 'GET', path: '/api/v1/subscriptions' },
        { about: 'Accept one', method: 'POST', path: `${subscriptionPath('ID')}/state`, body: { state: 'accepted' } },
      ]}
      actions={
        <ButtonLink to="/applications" refused={subscribing}>
          Subscribe an application
        </ButtonLink>
      }
    >
      {waiting.length > 0 && parameters.get('q') !== 'state:pending' && (
        <div className="note" role="status">
          <div className="row between">
            <strong>{countText(waiting.length, 'request waits', 'requests wait')} for a decision</strong>
            <button className="button small" onClick={() => setParameters({ q: 'state:pending' })}>
              Show them
            </button>
          </div>
        </div>
      )}
      {subscriptions.error && subscriptions.data === undefined ? (
        <Failure error={subscriptions.error} onRetry={() => void subscriptions.refetch()} />
      ) : (
        <Table
          key={parameters.get('q') === 'state:pending' ? 'pending' : 'all'}
          label="Subscriptions"
          rows={rows}
          columns={columns}
          rowKey={key}
          version={version}
          isLoading={subscriptions.isLoading}
          noun={['subscription', 'subscriptions']}
          bulk={STEPS.map((step) => ({ text: step.text, ...(step.look ? { look: step.look } : {}), refused, run: (chosen: Subscription[]) => setAbove({ step, chosen }) }))}
          empty={
            <Empty title="No subscriptions yet" example={`curl -X POST ${location.origin}/api/v1/subscriptions -d '{"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"}'`}>
              <p>A subscription gives an application a key for one API, within the limits of a plan. Subscribe one here, or on the command line:</p>
            </Empty>
          }
        />
      )}
      {above && <Move step={above.step} chosen={above.chosen} onClose={() => setAbove(null)} />}
    </Page>
  )
}

/** Takes a step with several subscriptions. Those that cannot take it are named and left. */
export function Move({ step, chosen, onClose }: { step: Step; chosen: Subscription[]; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const client = useQueryClient()
  const able = chosen.filter((it) => step.from.includes(it.state))
  const left = chosen.length - able.length
  const [only] = able
  const what = able.length === 1 && only ? `${only.application}, ${only.plan} of ${targetText(only)}` : countText(able.length, 'subscription', 'subscriptions')
  const run = async () => {
    let done = 0
    try {
      for (const it of able) {
        await call('POST', `${subscriptionPath(it.id)}/state`, { body: { state: step.to, ...(reason === '' ? {} : { reason }) } })
        done += 1
      }
      toast(`${countText(done, 'subscription', 'subscriptions')} ${step.done}`)
      onClose()
    } finally {
      if (done > 0) await client.invalidateQueries({ queryKey: ['configuration'] })
    }
  }
  return (
    <Act
      title={`${step.text} ${what}?`}
      action={step.text}
      {...(step.look ? { look: step.look } : {})}
      refused={able.length === 0 ? `None of them is ${step.from.join(' or ')}.` : step.to === 'rejected' && reason.trim() === '' ? 'Say why first: the applicant reads it.' : null}
      onClose={onClose}
      run={run}
    >
      {able.length > 1 && (
        <ul className="stack tight">
          {able.slice(0, 8).map((it) => (
            <li key={it.id}>
              {it.application} <span className="muted">{it.plan} of</span> {targetText(it)}
            </li>
          ))}
          {able.length > 8 && <li className="muted">and {able.length - 8} more</li>}
        </ul>
      )}
      {left > 0 && <p className="muted">{countText(left, 'selected one is', 'selected ones are')} not {step.from.join(' or ')} and stays as it is.</p>}
      {step.to === 'closed' && <p>Their keys stop working at once, for good.</p>}
      {step.to === 'paused' && <p>Calls are answered with 403 until somebody resumes.</p>}
      {step.asksWhy && <TextField label="Reason" value={reason} onChange={setReason} isRequired={step.to === 'rejected'} about="The applicant reads it." autoFocus />}
    </Act>
  )
}
