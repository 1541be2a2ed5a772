// Deleting a plan without subscribers, of a version or of a product.
import { useQueryClient } from '@tanstack/react-query'
import type { Plan } from '../../api/apis'
import { call } from '../../api/client'
import { Act } from '../../ui/act'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'

const isActive = (plan: Plan): boolean => plan.state === 'published' || plan.state === 'deprecated'

interface Props {
  plan: Plan
  path: string
  /** All plans beside it. */
  plans: Plan[]
  /** Its subscriptions that are not closed. */
  count: number
  onClose: () => void
}

export function DeletePlan({ plan, path, plans, count, onClose }: Props) {
  const client = useQueryClient()
  const why = count > 0 ? `It has ${countText(count, 'subscription', 'subscriptions')}. Close the plan instead: it can hand them to another one.` : null
  const isLast = isActive(plan) && !plans.some((it) => it.name !== plan.name && isActive(it))
  return (
    <Act
      title={`Delete ${plan.name}?`}
      action="Delete"
      look="danger"
      refused={why}
      onClose={onClose}
      run={async () => {
        await call('DELETE', path)
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${plan.name} is deleted`)
        onClose()
      }}
    >
      <p>{why ?? 'It has no subscriptions. It cannot be brought back.'}</p>
      {why === null && isLast && !plan.product && <p className="note warn">It is the last plan: without one, everybody who knows the address may call what is published.</p>}
    </Act>
  )
}
