// What somebody should look at: requests that wait, alerts, certificates that end, targets that are unhealthy.
import { Link } from 'wouter'
import { useAlerts } from '../api/analytics'
import { useApprovals, useReviewsAsked, useSubscriptions } from '../api/apis'
import { useHealth, useView } from '../api/hooks'
import { useMe } from '../api/session'
import { Icon } from '../ui/icons'
import { countText } from '../ui/time'

/** How long before its end a certificate is named, in seconds. */
const SOON = 30 * 86_400

interface Item {
  key: string
  tone: 'bad' | 'warn' | 'accent'
  to: string
  text: string
  about: string
}

export default function Attention() {
  const [approvals, subscriptions, alerts, health] = [useApprovals(), useSubscriptions(), useAlerts(), useHealth()]
  const [reviews, me] = [useReviewsAsked(), useMe()]
  const certificates = useView('certificates', '', 'not-after')
  const now = Date.now() / 1000
  const open = (approvals.data ?? []).filter((it) => it.state === 'open').length
  const reviewable = (reviews.data ?? []).filter((it) => it.draft.review?.requested_by !== me.data?.name)
  const waiting = (subscriptions.data ?? []).filter((it) => it.state === 'pending')
  const firing = (alerts.data ?? []).filter((it) => it.enabled && it.alerts.some((alert) => alert.state === 'ongoing'))
  const sick = (health.data ?? []).flatMap((it) => it.targets.filter((target) => target.status === 'unhealthy').map((target) => `${target.host}:${target.port} of ${it.name}`))
  const ending = (certificates.data?.pages[0]?.items ?? []).filter((it) => it.not_after && it.not_after < now + SOON)
  const items: Item[] = []
  if (firing.length > 0) items.push({ key: 'alerts', tone: 'bad', to: '/alerts', text: countText(firing.length, 'alert is ongoing', 'alerts are ongoing'), about: firing.map((it) => it.name).join(', ') })
  if (sick.length > 0) items.push({ key: 'targets', tone: 'bad', to: '/upstreams', text: countText(sick.length, 'target is unhealthy', 'targets are unhealthy'), about: sick.slice(0, 5).join(', ') })
  if (ending.length > 0)
    items.push({
      key: 'certificates',
      tone: ending.some((it) => (it.not_after ?? 0) < now + 7 * 86_400) ? 'bad' : 'warn',
      to: '/certificates?sort=ends',
      text: countText(ending.length, 'certificate ends within 30 days', 'certificates end within 30 days'),
      about: ending.map((it) => it.name).join(', '),
    })
  if (open > 0) items.push({ key: 'approvals', tone: 'accent', to: '/approvals', text: countText(open, 'approval is asked for', 'approvals are asked for'), about: '' })
  if (reviewable.length > 0) items.push({ key: 'reviews', tone: 'accent', to: '/approvals', text: countText(reviewable.length, 'draft waits for a review', 'drafts wait for a review'), about: reviewable.map((it) => `${it.api} ${it.version}`).slice(0, 5).join(', ') })
  if (waiting.length > 0) items.push({ key: 'subscriptions', tone: 'accent', to: '/subscriptions?q=state%3Apending', text: countText(waiting.length, 'subscription waits', 'subscriptions wait'), about: [...new Set(waiting.map((it) => it.application))].slice(0, 5).join(', ') })
  if ([approvals, reviews, subscriptions, alerts, health].some((it) => it.isLoading)) return <div className="skeleton notice" />
  if (items.length === 0) {
    return (
      <section className="card" aria-label="To look at">
        <p className="row nowrap muted">
          <span className="dot good" />
          <span>No alert, no unhealthy target, no certificate that ends soon, and no request that waits.</span>
        </p>
      </section>
    )
  }
  return (
    <section className="card" aria-label="To look at">
      <h2>To look at</h2>
      <ul className="notices">
        {items.map((it) => (
          <li key={it.key}>
            <Link href={it.to}>
              <span className={`dot ${it.tone}`} />
              <strong>{it.text}</strong>
              <span className="muted clip grow">{it.about}</span>
              <Icon name="chevron" />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
