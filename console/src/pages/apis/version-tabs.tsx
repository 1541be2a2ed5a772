// The pages of one version, and what they share at the top.
import { Link } from 'wouter'
import { toApi, toVersion } from '../../api/apis'

export function VersionTabs({ api, version, at }: { api: string; version: string; at: 'design' | 'review' | 'plans' | 'tests' | 'revisions' }) {
  const to = toVersion(api, version)
  const tabs: [typeof at, string, string][] = [
    ['design', to, 'Design'],
    ['review', `${to}/review`, 'Review'],
    ['plans', `${to}/plans`, 'Plans'],
    ['tests', `${to}/tests`, 'Tests'],
    ['revisions', `${to}/revisions`, 'Revisions'],
  ]
  return (
    <nav className="tabs" aria-label="Parts of the version">
      {tabs.map(([id, path, title]) => (
        <Link key={id} href={path} aria-current={id === at ? 'page' : undefined}>
          {title}
        </Link>
      ))}
    </nav>
  )
}

export const crumbsOf = (api: string) => [
  { to: '/apis', text: 'APIs' },
  { to: toApi(api), text: api },
]
