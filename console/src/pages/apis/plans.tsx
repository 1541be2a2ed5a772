// The plans of a version: how callers are recognised, how many calls they may make, and who accepts them.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { type Plan, type PlanState, partsOf, planPath, usePlans, useSubscriptions, useVersion, versionPath } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Empty, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { ChoiceField, SelectField } from '../../ui/field'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { DeletePlan } from './delete-plan'
import { EditPlan } from './plan-form'
import { PlanCards } from './plan-cards'
import { Waiting, limitText } from './shared'
import { VersionTabs, crumbsOf } from './version-tabs'

type Above = { kind: 'edit'; plan: Plan | null } | { kind: 'delete'; plan: Plan } | { kind: 'move'; plan: Plan; to: PlanState; text: string } | null

export default function Plans() {
  const [, api = '', name = ''] = useSegments()
  const [version, plans, subscriptions] = [useVersion(api, name), usePlans(api, name), useSubscriptions()]
  const [above, setAbove] = useState<Above>(null)
  const refused = useRight('apis:write')
  if (version.data === undefined || plans.data === undefined) return <Waiting title={`Plans of ${api} ${name}`} crumbs={crumbsOf(api)} queries={[version, plans]} />
  const all = [...plans.data].sort((a, b) => a.order - b.order || a.name.localeCompare(b.name))
  const subscribers = (plan: Plan) =>
    (subscriptions.data ?? []).filter((it) => {
      const [ofApi, ofVersion] = partsOf(it.publication)
      return ofApi === api && ofVersion === name && it.plan === plan.name && it.state !== 'closed' && it.state !== 'rejected'
    })
  const add = (
    <Button look="primary" refused={refused} onPress={() => setAbove({ kind: 'edit', plan: null })}>
      New plan
    </Button>
  )
  return (
    <Page
      title={`${api} ${name}`}
      about="A plan says how callers are recognised and how many calls they may make. Without one, everybody who knows the address may call."
      crumbs={crumbsOf(api)}
      calls={[
        { about: 'List the plans', method: 'GET', path: `${versionPath(api, name)}/plans` },
        { about: 'Make one', method: 'PUT', path: planPath(api, name, 'gold'), body: { state: 'published', limits: [{ count: 1000, per: 'day' }] } },
      ]}
      actions={add}
    >
      <VersionTabs api={api} version={name} at="plans" />
      {all.length === 0 ? (
        <div className="table">
          <Empty title="No plans yet" example={`curl -X PUT ${location.origin}${planPath(api, name, 'gold')} -d '{"state": "published", "limits": [{"count": 1000, "per": "day"}]}'`}>
            <p>Offer a free plan with few calls, and one with more that somebody accepts. Each subscription gets a key of its own.</p>
          </Empty>
        </div>
      ) : (
        <PlanCards
          plans={all}
          refused={refused}
          subscribers={(it) => <Link href={`/subscriptions?q=${encodeURIComponent(`api:${api} plan:${it.name}`)}`}>{subscribers(it).length}</Link>}
          onEdit={(it) => setAbove({ kind: 'edit', plan: it })}
          onDelete={(it) => setAbove({ kind: 'delete', plan: it })}
          onMove={(it, to, text) => setAbove({ kind: 'move', plan: it, to, text })}
        />
      )}
      {above?.kind === 'edit' && <EditPlan pathOf={(plan) => planPath(api, name, plan)} operations={version.data.operations} securities={['key', 'basic', 'hmac', 'jwt', 'oauth2', 'mtls', 'keyless']} plan={above.plan} known={all} onClose={() => setAbove(null)} />}
      {above?.kind === 'delete' && <DeletePlan plan={above.plan} path={planPath(api, name, above.plan.name)} plans={all} count={subscribers(above.plan).length} onClose={() => setAbove(null)} />}
      {above?.kind === 'move' && <MovePlan api={api} version={name} {...above} plans={all} count={subscribers(above.plan).length} onClose={() => setAbove(null)} />}
    </Page>
  )
}

interface MoveProps {
  api: string
  version: string
  plan: Plan
  to: PlanState
  text: string
  plans: Plan[]
  count: number
  onClose: () => void
}

/** A new state. Closing asks what becomes of the subscriptions, and does it in the same commit. */
function MovePlan({ api, version, plan, to, text, plans, count, onClose }: MoveProps) {
  const others = plans.filter((it) => it.name !== plan.name && it.state === 'published')
  const [fate, setFate] = useState<'close' | 'move'>(others.length > 0 ? 'move' : 'close')
  const [target, setTarget] = useState(others[0]?.name ?? '')
  const client = useQueryClient()
  return (
    <Act
      title={`${text} ${plan.name}?`}
      action={text}
      look={to === 'closed' ? 'danger' : 'primary'}
      onClose={onClose}
      run={async () => {
        const moves = to === 'closed' && count > 0 && fate === 'move' ? { move_to: target } : {}
        await call('POST', `${planPath(api, version, plan.name)}/state`, { body: { state: to, ...moves } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${plan.name} is ${to}`)
        onClose()
      }}
    >
      {to === 'published' && <p>It is offered from now on.</p>}
      {to === 'deprecated' && <p>It takes no new subscriptions. Those that it has go on.</p>}
      {to === 'closed' && count === 0 && <p>It has no subscribers.</p>}
      {to === 'closed' && count > 0 && (
        <>
          <ChoiceField
            label={`What becomes of its ${countText(count, 'subscription', 'subscriptions')}?`}
            value={fate}
            onChange={setFate}
            options={[
              { value: 'move', text: 'Move to another plan', about: 'In the same commit: no call is refused meanwhile.', refused: others.length === 0 ? 'No other plan is published.' : null },
              { value: 'close', text: 'Close them', about: 'Their keys stop working at once.' },
            ]}
          />
          {fate === 'move' && <SelectField label="Plan" value={target} onChange={setTarget} options={others.map((it) => [it.name, `${it.display_name || it.name}, ${limitText(it)}`] as const)} />}
        </>
      )}
    </Act>
  )
}
