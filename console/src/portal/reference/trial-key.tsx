// A trial key for the call that is tried: one click, of one of the visitor's subscriptions. It ends by itself.
import { useState } from 'react'
import { Link } from 'wouter'
import { Button } from '../../ui/button'
import { End } from '../../ui/time'
import { type TrialKey, type TrialSubscriptions, useMe, useRead, useWrite } from '../data'
import { Said } from '../pages/entry'

const part = encodeURIComponent

export function TrialKeyOffer({ publication, plans, onKey }: { publication: string; plans: string; onKey: (key: string) => void }) {
  const me = useMe()
  const found = useRead<TrialSubscriptions>(me.data?.id ? '/trial-subscriptions' : null, { publication })
  const [chosen, choose] = useState(0)
  const make = useWrite<TrialKey, string>('POST', (path) => path, true)
  const all = found.data?.items
  const it = all?.[chosen] ?? all?.[0]
  if (all === undefined) return null
  if (it === undefined) {
    return (
      <p className="small muted">
        You have no key for this yet. <Link href={plans}>Get access</Link>
      </p>
    )
  }
  const ask = () => make.mutate(`/apps/${part(it.app)}/subscriptions/${part(it.subscription)}/trial-keys`, { onSuccess: (made) => onKey(made.key) })
  return (
    <div className="stack tight" role="group" aria-label="Trial key">
      {all.length > 1 && (
        <select className="select" aria-label="Subscription" value={chosen} onChange={(event) => choose(Number(event.target.value))}>
          {all.map((it, index) => (
            <option key={it.subscription} value={index}>
              {it.app_title}, {it.plan_title}
            </option>
          ))}
        </select>
      )}
      <div className="row">
        <Button small isBusy={make.isPending} onPress={ask}>
          Use a trial key
        </Button>
        <span className="small muted" aria-live="polite">
          {make.data ? (
            <>
              Good until <End at={make.data.expires} />.
            </>
          ) : (
            `For 15 minutes, of ${it.app_title}.`
          )}
        </span>
      </div>
      <Said error={make.error} />
    </div>
  )
}
