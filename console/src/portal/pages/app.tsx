// An application: its subscriptions with their keys, its usage, its calls, and its settings.
import { Link } from 'wouter'
import { type AppDetail, useVersioned } from '../data'
import { Loading, NotHere, Page, SignedIn } from '../frame'
import { CallsShown, UsageShown } from './app-usage'
import { Settings } from './app-settings'
import { Subscriptions } from './app-keys'

const TABS = [
  ['', 'Subscriptions'],
  ['usage', 'Usage'],
  ['calls', 'Calls'],
  ['settings', 'Settings'],
] as const

export default function AppPage({ name, tab }: { name: string; tab: string }) {
  const path = `/apps/${encodeURIComponent(name)}`
  const app = useVersioned<AppDetail>(path)
  if (app.error) return <SignedIn error={app.error} onRetry={() => void app.refetch()} />
  if (app.data === undefined) return <Loading />
  if (TABS.every(([part]) => part !== tab)) return <NotHere />
  const { data: detail, tag } = app.data
  const { title, description, team, team_name } = detail.app
  return (
    <Page
      title={title}
      about={description || undefined}
      actions={
        <>
          <span className="badge">{team ? `Team ${team_name}` : 'Mine'}</span>
          <Link href="/apis" className="button primary">
            Subscribe to an API
          </Link>
        </>
      }
    >
      <nav className="tabs" aria-label="Application">
        {TABS.map(([part, text]) => (
          <Link key={part} href={part === '' ? path : `${path}/${part}`} className="tab" aria-current={tab === part ? 'page' : undefined}>
            {text}
          </Link>
        ))}
      </nav>
      {tab === '' && <Subscriptions app={detail.app} all={detail.subscriptions} />}
      {tab === 'usage' && <UsageShown key={name} app={name} isSubscribed={detail.subscriptions.length > 0} />}
      {tab === 'calls' && <CallsShown key={name} app={name} />}
      {tab === 'settings' && <Settings detail={detail} tag={tag} />}
    </Page>
  )
}
