// The bell: how many notices were not read. It asks again each minute while the page is looked at.
import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { get } from '../api/client'
import { Icon } from '../ui/icons'
import { countText } from '../ui/time'
import { BASE, type Notices } from './data'

const PAUSE = 60_000

export function Bell() {
  const found = useQuery({
    queryKey: ['portal', 'bell'],
    queryFn: ({ signal }) => get<Notices>(`${BASE}/notices`, {}, signal),
    refetchInterval: PAUSE,
  })
  const unread = found.data?.unread ?? 0
  return (
    <Link href="/notices" className="button icon quiet bell" aria-label={unread === 0 ? 'Notifications' : `Notifications: ${countText(unread, 'new one', 'new ones')}`}>
      <Icon name="bell" />
      {unread > 0 && (
        <span className="count" aria-hidden="true">
          {unread > 99 ? '99+' : unread}
        </span>
      )}
    </Link>
  )
}
