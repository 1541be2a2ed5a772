// Every page of the console and of the portal, for tests that visit all of them. list.test.ts holds it to the routers.
import type { Weir } from './weir'

/** Pages that need nothing, or what `fill` puts there. */
export const PAGES = [
  '/',
  '/routes',
  '/routes/orders?view=both',
  '/routes/@new',
  '/services',
  '/upstreams',
  '/consumers',
  '/consumers/alice',
  '/plugins',
  '/plugins?plugin=rate-limit',
  '/stream_routes',
  '/new/kong/services',
  '/new/apisix/routes',
  '/certificates',
  '/secrets',
  '/vaults/kong%2Fdefault%2Fvaults%2Fnone',
  '/history',
  '/history/3',
  '/history/compare/1/5',
  '/gateways',
  '/deliveries',
  '/hooks',
  '/hooks/@new',
  '/portals',
  '/portals/@new',
  '/import',
  '/users',
  '/roles',
  '/workspaces',
  '/identity-providers',
  '/account',
  '/audit',
  '/settings',
  '/explain',
  '/apis',
  '/subscriptions',
  '/applications',
  '/environments',
  '/approvals',
  '/developers',
  '/analytics',
  '/analytics/explore',
  '/reports',
  '/reports/@new',
  '/analytics/boards/@new',
  '/products',
  '/live',
  '/alerts',
  '/alerts/@new',
  '/nowhere',
]

/** Pages of API management, in a Weir that has some. */
export const API_PAGES = [
  '/apis',
  '/apis/@new',
  '/apis/pets',
  '/apis/pets/1.0.0',
  '/apis/pets/1.0.0/review',
  '/apis/pets/1.0.0/plans',
  '/apis/pets/1.0.0/tests',
  '/apis/pets/1.0.0/revisions',
  '/apis/pets/1.0.0/publish?to=test',
  '/apis/pets/1.0.0/publish?to=prod&from=test',
  '/apis/pets/1.0.0/in/test',
  '/apis/@new/adopt',
  '/products',
  '/products/@new',
  '/products/bundle',
  '/products/bundle/edit',
  '/subscriptions',
  '/applications',
  '/applications/shop',
  '/environments',
  '/approvals',
  '/portals',
  '/portals/main',
  '/portals/main/pages/terms',
  '/hooks',
  '/hooks/ci',
  '/explain?url=http://localhost/v1/pets',
]

export const subscriptionPage = (id: string) => `/subscriptions/${encodeURIComponent(id)}`
export const rowPage = (list: string, id: string) => `/view/${list}/${encodeURIComponent(id)}`

/** Pages whose addresses hold ids that Weir makes up: of a subscription, and of a service of Kong, which this makes. */
export async function pagesWithIds(weir: Weir): Promise<string[]> {
  await weir.good('PUT', '/api/v1/dialects/kong/services/billing', { url: 'http://127.0.0.1:9', tags: ['finance'] })
  const { items } = await weir.good<{ items: { id: string }[] }>('GET', '/api/v1/subscriptions')
  const services = await weir.good<{ items: { id: string }[] }>('GET', '/api/v1/view/services?q=billing')
  return [subscriptionPage(items[0]?.id ?? 'none'), rowPage('services', services.items[0]?.id ?? 'none')]
}

/** Pages of the portal that need no account, in a portal that shows the shop's API. */
export const PORTAL_PAGES = [
  '/',
  '/apis',
  '/apis?q=zzz',
  '/search?q=order',
  '/apis/shop',
  '/apis/shop/1.0.0',
  '/apis/shop/1.0.0/operations/addOrder',
  '/apis/shop/1.0.0/plans',
  '/apis/none',
  '/pages/none',
  '/login',
  '/sign-up',
  '/confirm',
  '/reset',
  '/invitation',
  '/apps',
]

/** Pages of the portal for somebody who is signed in and has an application with a key. */
export const ownPages = (app: string) => [
  '/apps',
  `/apps/${app}`,
  ...['usage', 'calls', 'settings'].map((tab) => `/apps/${app}/${tab}`),
  '/apis/shop/1.0.0/subscribe?plan=gold',
  '/teams',
  '/account',
  '/notices',
]
