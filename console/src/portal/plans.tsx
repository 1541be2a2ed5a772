// The plans of a version side by side.
import { ButtonLink } from '../ui/button'
import { countText } from '../ui/time'
import { securityText } from './cards'
import type { Plan, VersionDetail } from './data'
import { Text } from './text'

export const limitText = (limit: { count: number; per: string }) => `${countText(limit.count, 'call', 'calls')} each ${limit.per}`

export function Plans({ version }: { version: VersionDetail }) {
  return (
    <ul className="cards plans" aria-label="Plans">
      {version.plans.map((plan) => (
        <li key={plan.name} className="card">
          <PlanFacts plan={plan} />
          {plan.refused === null && (
            <div className="act">
              <ButtonLink look="primary" to={`/apis/${encodeURIComponent(version.api)}/${encodeURIComponent(version.version)}/subscribe?plan=${encodeURIComponent(plan.name)}`}>
                Subscribe to {plan.title}
              </ButtonLink>
            </div>
          )}
        </li>
      ))}
    </ul>
  )
}

export function PlanFacts({ plan }: { plan: Plan }) {
  return (
    <>
      <div>
        <h2>{plan.title}</h2>
        {plan.price && <p className="price">{plan.price}</p>}
      </div>
      {plan.description.length > 0 && <Text nodes={plan.description} />}
      <ul className="stack tight facts">
        <li>{securityText(plan.security)}</li>
        {plan.limits.map((it) => (
          <li key={it.per}>{limitText(it)}</li>
        ))}
        {plan.limits.length === 0 && <li>No limit on calls</li>}
        <li>{plan.operations.length === 0 ? 'All operations' : countText(plan.operations.length, 'operation', 'operations')}</li>
        <li>{plan.needs_approval ? 'Each subscription is approved by a person' : 'Good at once'}</li>
        {plan.conditions.length > 0 && <li>With conditions to agree to</li>}
      </ul>
      {plan.refused && <p className="muted small">{plan.refused}</p>}
    </>
  )
}
