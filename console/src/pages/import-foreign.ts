// A `kong.yml` or an `apisix.yaml` as a whole configuration of its dialect, for the page that imports. The dialect's own
// Admin API reads it, tells what is wrong with it, and stores it in one commit; here is what would change.
import { LineCounter, isNode, parse, parseDocument } from 'yaml'
import { ApiError, type Finding, call } from '../api/client'
import type { Difference, Fields, Json } from '../api/types'
import { isMap, isSame, parsePath } from '../form/path'

export type ForeignForm = 'kong' | 'apisix'

/** What storing the file would do. */
export interface Preview {
  items: Difference[]
  /** The version that was looked at: another one is not replaced. */
  tag: string | null
  warning: string | null
}

/** Something that is wrong, with its place in the text. */
export interface Placed extends Finding {
  /** `null`: the place is not known. */
  line: number | null
}

type Entities = Map<string, Fields>

const KONG = '/api/v1/dialects/kong/config'
const APISIX = '/api/v1/dialects/apisix/apisix/admin/configs'
const YAML = 'application/yaml'
/** What Kong sets itself. */
const TIMES = new Set(['created_at', 'updated_at'])
const LISTS = ['routes', 'services', 'upstreams', 'consumers', 'consumer_groups', 'plugin_configs', 'global_rules', 'ssls', 'stream_routes', 'protos', 'plugin_metadata', 'secrets', 'plugins']

export const pathOf = (form: ForeignForm): string => (form === 'kong' ? KONG : APISIX)

/** A word that tells one import from another. */
const digest = (): string => `import-${Date.now().toString(36)}`

/** Sends the file; a dry run stores nothing. */
async function send(form: ForeignForm, text: string, tag: string | null, isDry: boolean) {
  const headers = { 'if-match': tag ?? undefined, 'weir-dry-run': isDry ? 'true' : undefined, 'weir-note': isDry ? undefined : encodeURIComponent(`Import of ${form === 'kong' ? 'a kong.yml' : 'an apisix.yaml'}`) }
  if (form === 'kong') return call<unknown>('POST', KONG, { body: { config: text }, headers })
  return call<unknown>('PUT', APISIX, { text: { content: text, mediaType: YAML }, headers: { ...headers, 'x-digest': digest() } })
}

export async function preview(form: ForeignForm, text: string): Promise<Preview> {
  if (form === 'kong') {
    const known = await call<{ config: string }>('GET', KONG)
    const answer = await send(form, text, null, true)
    const before = kongEntities(parse(known.data.config) as Fields)
    const after = kongEntities(answer.data as Fields)
    return { items: differences(form, before, after), tag: known.tag, warning: answer.warning }
  }
  const known = await call<Fields>('GET', APISIX)
  // A refused write names the first fault; this names all.
  await call('POST', `${APISIX}/validate`, { text: { content: text, mediaType: YAML } })
  const answer = await send(form, text, null, true)
  const before = apisixEntities(known.data)
  const after = apisixEntities(parse(text) as Fields)
  return { items: differences(form, before, after), tag: known.tag, warning: answer.warning }
}

export const store = (form: ForeignForm, text: string, tag: string | null) => send(form, text, tag, false)

/** What is wrong, each with its line. */
export function placed(text: string, error: ApiError): Placed[] {
  const findings = error.findings.length > 0 ? error.findings : [{ path: '', message: error.message }]
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  const [broken] = document.errors
  if (broken !== undefined) return [{ path: '', message: broken.message.split('\n')[0] ?? error.message, line: lines.linePos(broken.pos[0]).line }]
  return findings.map((it) => {
    // The nearest place around it that stands in the text.
    for (let path = parsePath(it.path); path.length > 0; path = path.slice(0, -1)) {
      const node = document.getIn(path, true)
      if (isNode(node) && node.range) return { ...it, line: lines.linePos(node.range[0]).line }
    }
    return { ...it, line: null }
  })
}

const isReference = (value: Json): value is { id: string } => isMap(value) && Object.keys(value).length === 1 && typeof value['id'] === 'string'

/** Fields as both answers have them: without what is empty, and with references as ids. */
function plain(fields: Fields): Fields {
  const entries = Object.entries(fields).filter(([name, value]) => value !== null && !TIMES.has(name))
  return Object.fromEntries(entries.map(([name, value]) => [name, isReference(value) ? value.id : value]))
}

/** Entities of Kong by family and id: lists of a file, or maps of an answer. */
export function kongEntities(whole: Fields): Entities {
  const found: Entities = new Map()
  for (const [family, members] of Object.entries(whole)) {
    if (family.startsWith('_') || typeof members !== 'object' || members === null) continue
    for (const member of Object.values(members)) {
      if (isMap(member)) found.set(`${family}/${String(member['id'])}`, plain(member))
    }
  }
  return found
}

/** Resources of APISIX by list and id, as its standalone mode names them. */
export function apisixEntities(whole: Fields): Entities {
  const found: Entities = new Map()
  for (const list of LISTS) {
    const items = whole[list]
    if (!Array.isArray(items)) continue
    items.forEach((item, index) => {
      if (!isMap(item)) return
      const id = item['id'] ?? item['username'] ?? (list === 'plugins' ? item['name'] : undefined) ?? `arr_${index + 1}`
      found.set(`${list}/${String(id)}`, item)
    })
  }
  return found
}

/** What people call an entity. */
function nameOf(key: string, fields: Fields): string {
  const names = [fields['name'], fields['username'], fields['prefix'], fields['target'], fields['uri']]
  const name = names.find((it): it is string => typeof it === 'string' && it !== '' && !it.includes('/'))
  return name ?? key.slice(key.indexOf('/') + 1).replaceAll('/', ' ')
}

/** What is created, changed and removed, in that order. */
export function differences(form: ForeignForm, before: Entities, after: Entities): Difference[] {
  const keys = [...new Set([...after.keys(), ...before.keys()])]
  const found = keys.flatMap((key) => {
    const [old, fresh] = [before.get(key), after.get(key)]
    if (old !== undefined && fresh !== undefined && isSame(old, fresh)) return []
    const family = key.slice(0, key.indexOf('/'))
    return [{ document: `${form}/${family}/${nameOf(key, fresh ?? old ?? {})}`, before: old ?? null, after: fresh ?? null, order: old === undefined ? 0 : fresh === undefined ? 2 : 1 }]
  })
  return found.sort((one, other) => one.order - other.order).map(({ order: _, ...it }) => it)
}
