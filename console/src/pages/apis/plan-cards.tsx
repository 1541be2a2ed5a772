// Plans side by side: what each offers, and the steps that it may take.
import type { ReactNode } from 'react'
import type { Plan, PlanSecurity, PlanState } from '../../api/apis'
import { Button } from '../../ui/button'
import { countText } from '../../ui/time'
import { Pairs, State, limitText } from './shared'

/** The next states of a plan. */
const NEXT: Record<PlanState, { to: PlanState; text: string; look?: 'danger' }[]> = {
  staging: [
    { to: 'published', text: 'Publish' },
    { to: 'closed', text: 'Close', look: 'danger' },
  ],
  published: [
    { to: 'deprecated', text: 'Deprecate' },
    { to: 'closed', text: 'Close', look: 'danger' },
  ],
  deprecated: [
    { to: 'published', text: 'Publish again' },
    { to: 'closed', text: 'Close', look: 'danger' },
  ],
  closed: [],
}

const ABOUT: Record<PlanState, string> = {
  staging: 'not offered yet',
  published: 'offered',
  deprecated: 'serves its subscribers, takes no new ones',
  closed: 'over',
}

const SHOWN: Record<PlanSecurity, string> = {
  key: 'an API key',
  jwt: 'a token that they sign',
  keyless: 'nothing',
  basic: 'a user name and a password',
  hmac: 'a signature',
  oauth2: 'a token of an authorization server',
  mtls: 'a client certificate',
}

interface Props {
  plans: Plan[]
  refused: string | null
  /** How many subscribe to a plan, as a link. */
  subscribers: (plan: Plan) => ReactNode
  onEdit: (plan: Plan) => void
  onDelete: (plan: Plan) => void
  onMove: (plan: Plan, to: PlanState, text: string) => void
}

export function PlanCards({ plans, refused, subscribers, onEdit, onDelete, onMove }: Props) {
  return (
    <ul className="grid">
      {plans.map((it) => (
        <li key={it.name} className="card" aria-label={it.name}>
          <div className="head2">
            <h2>{it.display_name || it.name}</h2>
            <State state={it.state} />
          </div>
          {it.description && <p className="muted">{it.description}</p>}
          <p className="figure sub">
            <strong>{limitText(it)}</strong>
          </p>
          <Pairs
            pairs={[
              ['Callers show', SHOWN[it.security]],
              ['Accepted', it.validation === 'auto' ? 'at once' : 'by somebody'],
              ['Opens', it.product ? 'all of the product' : (it.operations ?? []).length === 0 ? 'all operations' : countText((it.operations ?? []).length, 'operation', 'operations')],
              ['Conditions', it.conditions ? `revision ${it.conditions_revision ?? 1}` : ''],
              ['Price', it.price],
              ['State', ABOUT[it.state]],
              ['Subscriptions', subscribers(it)],
            ]}
          />
          <div className="row">
            <Button small refused={refused ?? (it.state === 'closed' ? 'It is closed.' : null)} onPress={() => onEdit(it)}>
              Edit<span className="sr"> {it.name}</span>
            </Button>
            {NEXT[it.state].map((step) => (
              <Button key={step.to} small look={step.look ? 'quiet' : 'plain'} refused={refused} onPress={() => onMove(it, step.to, step.text)}>
                {step.text}
                <span className="sr"> {it.name}</span>
              </Button>
            ))}
            <Button small look="quiet" icon="trash" refused={refused} onPress={() => onDelete(it)}>
              Delete<span className="sr"> {it.name}</span>
            </Button>
          </div>
        </li>
      ))}
    </ul>
  )
}
