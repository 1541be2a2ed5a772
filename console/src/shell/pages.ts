// Every page of the console: where it is, what it is called, and the keys that lead to it.
import type { ComponentType } from 'react'

export interface PageEntry {
  path: string
  title: string
  group: 'Gateway' | 'APIs' | 'Watch' | 'Operate' | 'Access' | null
  /** Typed after `g`. */
  key?: string
  /** What the caller has to be allowed to do to see it. */
  needs?: string
  load: () => Promise<{ default: ComponentType }>
}

export const pages: PageEntry[] = [
  { path: '/', title: 'Overview', group: null, key: 'o', load: () => import('../pages/overview') },
  { path: '/explain', needs: 'configuration:read', title: 'Explain', group: null, key: 'x', load: () => import('../pages/explain') },
  { path: '/apis', needs: 'apis:read', title: 'APIs', group: 'APIs', key: 'd', load: () => import('../pages/apis/list') },
  { path: '/products', needs: 'apis:read', title: 'Products', group: 'APIs', load: () => import('../pages/products/list') },
  { path: '/subscriptions', needs: 'subscriptions:read', title: 'Subscriptions', group: 'APIs', key: 'b', load: () => import('../pages/apis/subscriptions') },
  { path: '/applications', needs: 'subscriptions:read', title: 'Applications', group: 'APIs', load: () => import('../pages/apis/applications') },
  { path: '/developers', needs: 'portals:read', title: 'Developers', group: 'APIs', load: () => import('../pages/developers/list') },
  { path: '/approvals', needs: 'approvals:read', title: 'Approvals', group: 'APIs', load: () => import('../pages/apis/approvals') },
  { path: '/environments', needs: 'environments:read', title: 'Environments', group: 'APIs', key: 'e', load: () => import('../pages/apis/environments') },
  { path: '/routes', needs: 'configuration:read', title: 'Routes', group: 'Gateway', key: 'r', load: () => import('../pages/routes') },
  { path: '/services', needs: 'configuration:read', title: 'Services', group: 'Gateway', key: 's', load: () => import('../pages/services') },
  { path: '/upstreams', needs: 'configuration:read', title: 'Upstreams', group: 'Gateway', key: 'u', load: () => import('../pages/upstreams') },
  { path: '/consumers', needs: 'configuration:read', title: 'Consumers', group: 'Gateway', key: 'c', load: () => import('../pages/consumers') },
  { path: '/plugins', title: 'Plugins', group: 'Gateway', key: 'p', load: () => import('../pages/plugins') },
  { path: '/stream_routes', needs: 'configuration:read', title: 'Streams', group: 'Gateway', load: () => import('../pages/streams') },
  { path: '/certificates', needs: 'configuration:read', title: 'Certificates', group: 'Gateway', load: () => import('../pages/certificates') },
  { path: '/analytics', needs: 'analytics:read', title: 'Analytics', group: 'Watch', key: 'y', load: () => import('../pages/analytics') },
  { path: '/live', needs: 'analytics:read', title: 'Live calls', group: 'Watch', key: 'l', load: () => import('../pages/live') },
  { path: '/alerts', needs: 'analytics:read', title: 'Alerts', group: 'Watch', load: () => import('../pages/alerts') },
  { path: '/reports', needs: 'analytics:read', title: 'Reports', group: 'Watch', load: () => import('../pages/reports/list') },
  { path: '/deliveries', needs: 'deliveries:read', title: 'Deliveries', group: 'Operate', load: () => import('../pages/deliveries') },
  { path: '/history', needs: 'history:read', title: 'History', group: 'Operate', key: 'h', load: () => import('../pages/history') },
  { path: '/gateways', needs: 'gateways:read', title: 'Gateways', group: 'Operate', key: 'g', load: () => import('../pages/gateways') },
  { path: '/import', title: 'Import', group: 'Operate', key: 'i', load: () => import('../pages/import') },
  { path: '/users', needs: 'users:manage', title: 'Users and rights', group: 'Access', load: () => import('../pages/users') },
  { path: '/identity-providers', needs: 'users:manage', title: 'Identity providers', group: 'Access', load: () => import('../pages/identity-providers') },
  { path: '/account', title: 'Your account', group: 'Access', load: () => import('../pages/account') },
  { path: '/audit', needs: 'audit:read', title: 'Audit', group: 'Access', key: 'a', load: () => import('../pages/audit') },
  { path: '/settings', title: 'Settings', group: 'Access', load: () => import('../pages/settings') },
]

export const groups = ['APIs', 'Gateway', 'Watch', 'Operate', 'Access'] as const
