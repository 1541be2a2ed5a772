// The kinds of native documents: what each is called, what its form begins with, and what its empty list teaches.
import type { Fields, Json } from './api/types'

export interface Kind {
  /** Its place in `/api/v1/resources` and in paths of the console. */
  path: string
  one: string
  many: string
  about: string
  /** The field that names a document. */
  name: string
  /** Its type in the JSON Schema. */
  type: string
  /** The fields that a form shows before any is added. */
  first: string[]
  /** A document to begin with. */
  example: Fields
}

const kinds: Kind[] = [
  {
    path: 'routes',
    one: 'route',
    many: 'routes',
    about: 'A route takes calls by host, path, method or header, and sends them to a service.',
    name: 'name',
    type: 'Route',
    first: ['name', 'hosts', 'paths', 'methods', 'service', 'plugins'],
    example: { name: 'orders', paths: ['/orders'], service: 'orders' },
  },
  {
    path: 'services',
    one: 'service',
    many: 'services',
    about: 'A service is an API behind the gateway: where it is, and how long to wait for it.',
    name: 'name',
    type: 'Service',
    first: ['name', 'url', 'upstream', 'timeouts', 'retries', 'routes'],
    example: { name: 'orders', url: 'http://127.0.0.1:1980', routes: [{ name: 'orders', paths: ['/orders'] }] },
  },
  {
    path: 'upstreams',
    one: 'upstream',
    many: 'upstreams',
    about: 'An upstream is a group of servers that share the calls of a service, with health checks.',
    name: 'name',
    type: 'Upstream',
    first: ['name', 'targets', 'algorithm', 'checks'],
    example: { name: 'orders', targets: [{ host: '127.0.0.1', port: 1980 }] },
  },
  {
    path: 'consumers',
    one: 'consumer',
    many: 'consumers',
    about: 'A consumer is somebody who calls: a program or a customer, with credentials.',
    name: 'name',
    type: 'Consumer',
    first: ['name', 'credentials', 'custom_id', 'group'],
    example: { name: 'alice', credentials: [{ 'key-auth': { key: 'change-me' } }] },
  },
  {
    path: 'plugins',
    one: 'shared plugin',
    many: 'shared plugins',
    about: 'A shared plugin is configured once and used by several routes, services or consumers by its id.',
    name: 'id',
    type: 'PluginInstance',
    first: ['id', 'name'],
    example: { id: 'public-cors', cors: {} },
  },
  {
    path: 'certificates',
    one: 'certificate',
    many: 'certificates',
    about: 'A certificate is shown to clients that ask for its server names.',
    name: 'name',
    type: 'Certificate',
    first: ['names', 'key_pairs'],
    example: { name: 'example', names: ['example.com'], key_pairs: [{ certificate: '', key: '' }] },
  },
  {
    path: 'acme',
    one: 'certificate order',
    many: 'certificate orders',
    about: 'Certificates that an authority signs on demand and that Weir renews by itself.',
    name: 'name',
    type: 'Acme',
    first: ['name', 'hosts', 'directory', 'terms_accepted', 'contact'],
    example: { name: 'example', hosts: ['example.com'], terms_accepted: true, contact: ['mailto:you@example.com'] },
  },
  {
    path: 'stream_routes',
    one: 'stream route',
    many: 'streams',
    about: 'A stream route passes TCP, TLS or UDP on without reading it.',
    name: 'name',
    type: 'StreamRoute',
    first: ['name', 'protocols', 'snis', 'destinations', 'service'],
    example: { name: 'postgres', protocols: ['tcp'], destinations: [':5432'], service: 'postgres' },
  },
  {
    path: 'consumer_tables',
    one: 'consumer table',
    many: 'consumer tables',
    about: 'A table gives single consumers a plugin configuration of their own.',
    name: 'id',
    type: 'ConsumerTable',
    first: ['id'],
    example: { id: 'limits', instances: {} },
  },
  {
    path: 'route_tables',
    one: 'route table',
    many: 'route tables',
    about: 'How routes of one dialect are searched.',
    name: 'dialect',
    type: 'RouteTable',
    first: ['dialect'],
    example: { dialect: 'native' },
  },
]

export const kindOf = (path: string): Kind | undefined => kinds.find((kind) => kind.path === path)

/** The name of a document. */
export function nameOf(kind: Kind, document: Fields): string {
  const name = document[kind.name] ?? document['name'] ?? document['id']
  return typeof name === 'string' ? name : ''
}

export const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : [])
export const fields = (value: Json | undefined): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
export const words = (value: Json | undefined): string[] =>
  list(value).map((it) => (typeof it === 'string' ? it : JSON.stringify(it)))

/** A value as one line. */
export const textOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)

/** What a document's plugins are called, in their order. */
export function pluginsOf(document: Fields): string[] {
  return list(document['plugins']).map((step) => stepName(step))
}

const STEP_FIELDS = new Set(['use', 'overrides', 'response_only', 'response_order', 'id', 'name', 'config', 'when', 'on_refusal'])

/** The name of a plugin step: `{name, config}`, `{PLUGIN: …}`, `{use: ID}` or an id. */
export function stepName(step: Json): string {
  if (typeof step === 'string') return step
  const entry = fields(step)
  if (typeof entry['name'] === 'string') return entry['name']
  const short = Object.keys(entry).find((name) => !STEP_FIELDS.has(name))
  if (short !== undefined) return short
  return typeof entry['use'] === 'string' ? entry['use'] : 'plugin'
}
