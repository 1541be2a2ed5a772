// Every page of the console: where it is, what it is called, and the keys that lead to it.
import type { ComponentType } from 'react'

export interface PageEntry {
  path: string
  title: string
  group: 'Gateway' | 'APIs' | 'Watch' | 'Operate' | 'Access' | null
  /** Typed after `g`. */
  key?: string
  load: () => Promise<{ default: ComponentType }>
}

export const pages: PageEntry[] = [
  { path: '/', title: 'Overview', group: null, key: 'o', load: () => import('../pages/overview') },
  { path: '/explain', title: 'Explain', group: null, key: 'x', load: () => import('../pages/explain') },
  { path: '/apis', title: 'APIs', group: 'APIs', key: 'd', load: () => import('../pages/apis/list') },
  { path: '/subscriptions', title: 'Subscriptions', group: 'APIs', key: 'b', load: () => import('../pages/apis/subscriptions') },
  { path: '/applications', title: 'Applications', group: 'APIs', load: () => import('../pages/apis/applications') },
  { path: '/developers', title: 'Developers', group: 'APIs', load: () => import('../pages/developers/list') },
  { path: '/approvals', title: 'Approvals', group: 'APIs', load: () => import('../pages/apis/approvals') },
  { path: '/environments', title: 'Environments', group: 'APIs', key: 'e', load: () => import('../pages/apis/environments') },
  { path: '/routes', title: 'Routes', group: 'Gateway', key: 'r', load: () => import('../pages/routes') },
  { path: '/services', title: 'Services', group: 'Gateway', key: 's', load: () => import('../pages/services') },
  { path: '/upstreams', title: 'Upstreams', group: 'Gateway', key: 'u', load: () => import('../pages/upstreams') },
  { path: '/consumers', title: 'Consumers', group: 'Gateway', key: 'c', load: () => import('../pages/consumers') },
  { path: '/plugins', title: 'Plugins', group: 'Gateway', key: 'p', load: () => import('../pages/plugins') },
  { path: '/stream_routes', title: 'Streams', group: 'Gateway', load: () => import('../pages/streams') },
  { path: '/certificates', title: 'Certificates', group: 'Gateway', load: () => import('../pages/certificates') },
  { path: '/analytics', title: 'Analytics', group: 'Watch', key: 'y', load: () => import('../pages/analytics') },
  { path: '/live', title: 'Live calls', group: 'Watch', key: 'l', load: () => import('../pages/live') },
  { path: '/alerts', title: 'Alerts', group: 'Watch', load: () => import('../pages/alerts') },
  { path: '/history', title: 'History', group: 'Operate', key: 'h', load: () => import('../pages/history') },
  { path: '/gateways', title: 'Gateways', group: 'Operate', key: 'g', load: () => import('../pages/gateways') },
  { path: '/import', title: 'Import', group: 'Operate', key: 'i', load: () => import('../pages/import') },
  { path: '/users', title: 'Users and rights', group: 'Access', load: () => import('../pages/users') },
  { path: '/audit', title: 'Audit', group: 'Access', key: 'a', load: () => import('../pages/audit') },
  { path: '/settings', title: 'Settings', group: 'Access', load: () => import('../pages/settings') },
]

export const groups = ['APIs', 'Gateway', 'Watch', 'Operate', 'Access'] as const
