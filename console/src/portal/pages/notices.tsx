// The bell's page: what has happened to one's applications. What was shown counts as read.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { Link } from 'wouter'
import { call } from '../../api/client'
import { ButtonLink } from '../../ui/button'
import { Time } from '../../ui/time'
import { BASE, type Notices, useRead } from '../data'
import { Empty } from '../empty'
import { Loading, Page, SignedIn } from '../frame'

export default function NoticesPage() {
  const notices = useRead<Notices>('/notices')
  const client = useQueryClient()
  const unread = notices.data?.unread ?? 0
  // What is new stays marked while the page is open: only the bell learns of it.
  useEffect(() => {
    if (unread === 0) return
    call('POST', `${BASE}/notices/read`).then(
      () => client.invalidateQueries({ queryKey: ['portal', 'bell'] }),
      () => undefined,
    )
  }, [unread, client])
  if (notices.error) return <SignedIn error={notices.error} onRetry={() => void notices.refetch()} />
  if (notices.data === undefined) return <Loading />
  return (
    <Page title="Notifications" about="What has happened to your applications, their subscriptions and keys.">
      {notices.data.items.length === 0 ? (
        <Empty
          title="Nothing yet"
          icon="bell"
          actions={<ButtonLink to="/apps">Your applications</ButtonLink>}
        >
          <p>You read here when a subscription is accepted or ends, when a key is replaced, when a quota is nearly used up, and when an API that you use is to end.</p>
        </Empty>
      ) : (
        <ul className="hits" aria-label="Notifications">
          {notices.data.items.map((it, index) => (
            <li key={`${it.at}${it.app}${index}`} className="card">
              <div className="row between">
                <Link href={`/apps/${encodeURIComponent(it.app)}`}>{it.title}</Link>
                <span className="row">
                  {it.is_new && <span className="badge accent">new</span>}
                  <span className="muted small">
                    <bdi>{it.app_title}</bdi> · <Time at={it.at} />
                  </span>
                </span>
              </div>
              <p className="muted">{it.text}</p>
            </li>
          ))}
        </ul>
      )}
    </Page>
  )
}
