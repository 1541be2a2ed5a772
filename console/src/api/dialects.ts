// Documents of Kong and APISIX through their own Admin APIs, which are below the console's address. What is read is what
// they hold, with their defaults; what is saved is the whole document.
import { useQuery } from '@tanstack/react-query'
import { call, get } from './client'
import type { ViewList } from './hooks'
import type { Fields, Schema, ViewRow } from './types'
import { KONG_OWN, kongSchema } from '../form/kong-schema'
import { isMap } from '../form/path'

export interface Foreign {
  dialect: 'kong' | 'apisix'
  kind: string
  /** Its call. */
  path: string
  /** Its key in the store; of a collection, what the keys of its documents begin with. */
  document: string
  /** Fields that the original fills in itself. */
  own: string[]
}

const part = encodeURIComponent

/** Where a row's document is; `null`: it is not one that is changed here. */
export function foreignOf(row: Pick<ViewRow, 'document' | 'file' | 'pointer'>): Foreign | null {
  if (!row.document || row.file || (row.pointer ?? '') !== '') return null
  const [dialect = '', ...rest] = row.document.split('/')
  if (dialect === 'kong' && rest.length === 3) {
    const [workspace = '', kind = '', id = ''] = rest
    return { dialect, kind, document: row.document, path: `/api/v1/dialects/kong/${part(workspace)}/${part(kind)}/${part(id)}`, own: KONG_OWN }
  }
  // A vault's id has two parts: `secrets/vault/1`.
  if (dialect === 'apisix' && (rest.length === 2 || (rest.length === 3 && rest[0] === 'secrets'))) {
    const [kind = '', ...id] = rest
    return { dialect, kind, document: row.document, path: `/api/v1/dialects/apisix/apisix/admin/${part(kind)}/${id.map(part).join('/')}`, own: ['id', 'create_time', 'update_time'] }
  }
  return null
}

/** The document in an answer: APISIX puts it in an envelope. */
export function documentIn(foreign: Foreign, answer: unknown): Fields {
  const fields = answer as Fields
  return foreign.dialect === 'apisix' && isMap(fields['value']) ? fields['value'] : fields
}

export interface ForeignDocument {
  data: Fields
  tag: string | null
}

export async function readForeign(foreign: Foreign, signal?: AbortSignal): Promise<ForeignDocument> {
  const answer = await call<unknown>('GET', foreign.path, signal ? { signal } : {})
  return { data: documentIn(foreign, answer.data), tag: answer.tag }
}

export async function writeForeign(foreign: Foreign, value: Fields, tag: string | null, isDry: boolean, note = '', signal?: AbortSignal): Promise<ForeignDocument> {
  const headers = { 'if-match': tag ?? undefined, 'weir-dry-run': isDry ? 'true' : undefined, 'weir-note': note === '' ? undefined : part(note) }
  // What the original fills in is its own; APISIX takes no id that differs from the path.
  const body = foreign.dialect === 'apisix' ? Object.fromEntries(Object.entries(value).filter(([name]) => !['create_time', 'update_time'].includes(name))) : value
  const answer = await call<unknown>('PUT', foreign.path, { body, headers, ...(signal ? { signal } : {}) })
  return { data: documentIn(foreign, answer.data ?? value), tag: answer.tag }
}

const KINDS: Record<string, ViewList> = { routes: 'routes', services: 'services', upstreams: 'upstreams', consumers: 'consumers', certificates: 'certificates', ssls: 'certificates', plugins: 'plugins' }

/** The list that shows documents of a kind. */
export const listOf = (kind: string): ViewList | null => KINDS[kind] ?? null

/** What a dialect calls the documents of a list; `null`: it has none. */
export function kindIn(dialect: 'kong' | 'apisix', list: ViewList): string | null {
  if (list === 'certificates' && dialect === 'apisix') return 'ssls'
  return list === 'plugins' && dialect === 'apisix' ? null : list
}

/** All documents of a kind, to make one more. */
export const collectionOf = (dialect: 'kong' | 'apisix', kind: string): Foreign =>
  dialect === 'kong' ? { dialect, kind, document: `kong/default/${kind}/`, path: `${KONG}/${part(kind)}`, own: KONG_OWN } : { dialect, kind, document: `apisix/${kind}/`, path: `${APISIX}/${part(kind)}`, own: ['id', 'create_time', 'update_time'] }

/** Makes a document, or tries it. APISIX's consumers are put by their name; what has an id is put under it. */
export async function createForeign(collection: Foreign, value: Fields, isDry: boolean, note = '', signal?: AbortSignal): Promise<Fields> {
  const headers = { 'weir-dry-run': isDry ? 'true' : undefined, 'weir-note': note === '' ? undefined : part(note) }
  const { id } = value
  const hasId = collection.dialect === 'apisix' && (typeof id === 'string' || typeof id === 'number') && id !== ''
  const isPut = hasId || (collection.dialect === 'apisix' && collection.kind === 'consumers')
  const path = hasId ? `${collection.path}/${part(String(id))}` : collection.path
  const answer = await call<unknown>(isPut ? 'PUT' : 'POST', path, { body: value, headers, ...(signal ? { signal } : {}) })
  return documentIn(collection, answer.data ?? value)
}

export function useForeign(foreign: Foreign) {
  return useQuery({ queryKey: ['configuration', 'foreign', foreign.path], queryFn: ({ signal }) => readForeign(foreign, signal), staleTime: 0 })
}

const APISIX = '/api/v1/dialects/apisix/apisix/admin'
const KONG = '/api/v1/dialects/kong'

async function apisixSchema(kind: string, plugins: string[]): Promise<Schema> {
  const whole = await get<Schema>(`${APISIX}/schema/${part(kind.replace(/s$/, ''))}`)
  const [names, ...known] = await Promise.all([
    get<string[]>(`${APISIX}/plugins/list`).catch(() => []),
    ...plugins.map((name) => get<Schema>(`${APISIX}/schema/plugins/${part(name)}${kind === 'consumers' ? '?schema_type=consumer' : ''}`).catch((): Schema => ({}))),
  ])
  const properties: Record<string, Schema> = Object.fromEntries(names.map((name) => [name, { type: 'object' }]))
  plugins.forEach((name, index) => (properties[name] = known[index] ?? {}))
  const inside: Record<string, Schema> = whole.properties?.['plugins'] === undefined ? {} : { plugins: { type: 'object', description: 'Plugins by their names.', properties, required: [] } }
  return { ...whole, properties: { ...whole.properties, ...inside } }
}

/** The schema of a document, with those of the plugins that it names. */
export function useForeignSchema(foreign: Foreign, value: Fields | undefined) {
  const named = foreign.dialect === 'kong' ? (foreign.kind === 'plugins' ? [String(value?.['name'] ?? '')] : []) : Object.keys(isMap(value?.['plugins']) ? value['plugins'] : {})
  return useQuery({
    queryKey: ['foreign-schema', foreign.dialect, foreign.kind, named],
    queryFn: async (): Promise<Schema> => {
      if (foreign.dialect === 'apisix') return apisixSchema(foreign.kind, named)
      const schema = kongSchema(await get<Fields>(`${KONG}/schemas/${part(foreign.kind)}`))
      if (foreign.kind !== 'plugins') return schema
      const plugin = kongSchema(await get<Fields>(`${KONG}/schemas/plugins/${part(named[0] ?? '')}`))
      return { ...schema, properties: { ...schema.properties, ...plugin.properties } }
    },
    enabled: value !== undefined,
    staleTime: Infinity,
    placeholderData: (before) => before,
  })
}
