// Every page of the console: where it is, what it is called, and the keys that lead to it.
import type { ComponentType } from 'react'
import type { IconName } from '../ui/icons'

export interface PageEntry {
  path: string
  title: string
  icon: IconName
  group: 'Gateway' | 'APIs' | 'Watch' | 'Operate' | 'Access' | null
  /** Typed after `g`. */
  key?: string
  /** What the caller has to be allowed to do to see it. */
  needs?: string
  load: () => Promise<{ default: ComponentType }>
}

export const pages: PageEntry[] = [
  { path: '/', icon: 'overview', title: 'Overview', group: null, key: 'o', load: () => import('../pages/overview') },
  { path: '/explain', icon: 'explain', needs: 'configuration:read', title: 'Explain', group: null, key: 'x', load: () => import('../pages/explain') },
  { path: '/apis', icon: 'apis', needs: 'apis:read', title: 'APIs', group: 'APIs', key: 'd', load: () => import('../pages/apis/list') },
  { path: '/products', icon: 'box', needs: 'apis:read', title: 'Products', group: 'APIs', load: () => import('../pages/products/list') },
  { path: '/subscriptions', icon: 'ticket', needs: 'subscriptions:read', title: 'Subscriptions', group: 'APIs', key: 'b', load: () => import('../pages/apis/subscriptions') },
  { path: '/applications', icon: 'window', needs: 'subscriptions:read', title: 'Applications', group: 'APIs', load: () => import('../pages/apis/applications') },
  { path: '/developers', icon: 'people', needs: 'portals:read', title: 'Developers', group: 'APIs', load: () => import('../pages/developers/list') },
  { path: '/portals', icon: 'globe', needs: 'portals:read', title: 'Portals', group: 'APIs', load: () => import('../pages/portals/list') },
  { path: '/approvals', icon: 'shield', needs: 'approvals:read', title: 'Approvals', group: 'APIs', load: () => import('../pages/apis/approvals') },
  { path: '/environments', icon: 'layers', needs: 'environments:read', title: 'Environments', group: 'APIs', key: 'e', load: () => import('../pages/apis/environments') },
  { path: '/routes', icon: 'fork', needs: 'configuration:read', title: 'Routes', group: 'Gateway', key: 'r', load: () => import('../pages/routes') },
  { path: '/services', icon: 'server', needs: 'configuration:read', title: 'Services', group: 'Gateway', key: 's', load: () => import('../pages/services') },
  { path: '/upstreams', icon: 'tree', needs: 'configuration:read', title: 'Upstreams', group: 'Gateway', key: 'u', load: () => import('../pages/upstreams') },
  { path: '/consumers', icon: 'key', needs: 'configuration:read', title: 'Consumers', group: 'Gateway', key: 'c', load: () => import('../pages/consumers') },
  { path: '/plugins', icon: 'plug', title: 'Plugins', group: 'Gateway', key: 'p', load: () => import('../pages/plugins') },
  { path: '/stream_routes', icon: 'waves', needs: 'configuration:read', title: 'Streams', group: 'Gateway', load: () => import('../pages/streams') },
  { path: '/certificates', icon: 'seal', needs: 'configuration:read', title: 'Certificates', group: 'Gateway', load: () => import('../pages/certificates') },
  { path: '/secrets', icon: 'lock', needs: 'configuration:read', title: 'Secrets', group: 'Gateway', load: () => import('../pages/secrets') },
  { path: '/analytics', icon: 'bars', needs: 'analytics:read', title: 'Analytics', group: 'Watch', key: 'y', load: () => import('../pages/analytics') },
  { path: '/live', icon: 'pulse', needs: 'analytics:read', title: 'Live calls', group: 'Watch', key: 'l', load: () => import('../pages/live') },
  { path: '/alerts', icon: 'bell', needs: 'analytics:read', title: 'Alerts', group: 'Watch', load: () => import('../pages/alerts/list') },
  { path: '/reports', icon: 'page', needs: 'analytics:read', title: 'Reports', group: 'Watch', load: () => import('../pages/reports/list') },
  { path: '/deliveries', icon: 'mail', needs: 'deliveries:read', title: 'Deliveries', group: 'Operate', load: () => import('../pages/deliveries') },
  { path: '/hooks', icon: 'send', needs: 'deliveries:read', title: 'Webhooks', group: 'Operate', load: () => import('../pages/hooks/list') },
  { path: '/history', icon: 'clock', needs: 'history:read', title: 'History', group: 'Operate', key: 'h', load: () => import('../pages/history') },
  { path: '/gateways', icon: 'gateway', needs: 'gateways:read', title: 'Gateways', group: 'Operate', key: 'g', load: () => import('../pages/gateways') },
  { path: '/import', icon: 'download', title: 'Import', group: 'Operate', key: 'i', load: () => import('../pages/import') },
  { path: '/users', icon: 'person', needs: 'users:manage', title: 'Users and rights', group: 'Access', load: () => import('../pages/users') },
  { path: '/roles', icon: 'columns', title: 'Roles', group: 'Access', load: () => import('../pages/roles') },
  { path: '/workspaces', icon: 'squares', needs: 'configuration:read', title: 'Workspaces', group: 'Access', load: () => import('../pages/workspaces') },
  { path: '/identity-providers', icon: 'badge', needs: 'users:manage', title: 'Identity providers', group: 'Access', load: () => import('../pages/identity-providers') },
  { path: '/account', icon: 'face', title: 'Your account', group: 'Access', load: () => import('../pages/account') },
  { path: '/audit', icon: 'list', needs: 'audit:read', title: 'Audit', group: 'Access', key: 'a', load: () => import('../pages/audit') },
  { path: '/settings', icon: 'sliders', title: 'Settings', group: 'Access', load: () => import('../pages/settings') },
]

export const groups = ['APIs', 'Gateway', 'Watch', 'Operate', 'Access'] as const
