// JSON Schema as people read it: references followed, parts of `allOf` put together, an example made. Schemas may refer
// to themselves, so nothing here goes deeper than it is asked to.

export type Fields = Record<string, unknown>
export type Schemas = Record<string, unknown>

const REFERENCE = '#/components/schemas/'
/** How often a reference to a reference is followed, and how many parts of `allOf` are put together. */
const MAX_HOPS = 20
const MAX_PARTS = 60

export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

export function nameOf(schema: unknown): string | null {
  const target = isFields(schema) ? text(schema['$ref']) : ''
  return target.startsWith(REFERENCE) ? target.slice(REFERENCE.length).replaceAll('~1', '/').replaceAll('~0', '~') : null
}

export interface Resolved {
  schema: Fields
  /** The name that it was found under. */
  name: string | null
  /** The name that is not here yet, and has to be asked for. */
  missing: string | null
}

/** Follows references. */
export function resolve(schema: unknown, schemas: Schemas): Resolved {
  let current = schema
  let name: string | null = null
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const next = nameOf(current)
    if (next === null) break
    if (!(next in schemas)) return { schema: {}, name: next, missing: next }
    name = next
    // What stands beside a reference counts, too.
    const beside = isFields(current) ? Object.fromEntries(Object.entries(current).filter(([key]) => key !== '$ref')) : {}
    const target = schemas[next]
    current = isFields(target) ? { ...target, ...beside } : target
  }
  if (current === true) return { schema: {}, name, missing: null }
  if (current === false) return { schema: { not: {} }, name, missing: null }
  return { schema: isFields(current) ? current : {}, name, missing: null }
}

/** A schema with the parts of its `allOf` put together. What two parts say differently stays in `allOf`. */
export function merged(schema: unknown, schemas: Schemas, room = { parts: MAX_PARTS }, seen: string[] = []): Resolved {
  const resolved = resolve(schema, schemas)
  const parts = list(resolved.schema['allOf'])
  if (parts.length === 0 || resolved.missing !== null) return resolved
  const path = resolved.name === null ? seen : [...seen, resolved.name]
  const rest: Fields = { ...resolved.schema }
  delete rest['allOf']
  let whole: Fields = {}
  const apart: unknown[] = []
  let missing: string | null = null
  for (const part of parts) {
    const name = nameOf(part)
    if (room.parts <= 0 || (name !== null && path.includes(name))) {
      apart.push(part)
      continue
    }
    room.parts -= 1
    const below = merged(part, schemas, room, path)
    missing ??= below.missing
    whole = join(whole, below.schema, apart)
  }
  whole = join(whole, rest, apart)
  if (apart.length > 0) whole['allOf'] = apart
  return { schema: whole, name: resolved.name, missing }
}

function join(one: Fields, other: Fields, apart: unknown[]): Fields {
  const whole: Fields = { ...one }
  const left: Fields = {}
  for (const [key, value] of Object.entries(other)) {
    const known = whole[key]
    if (known === undefined || JSON.stringify(known) === JSON.stringify(value)) whole[key] = value
    else if (key === 'properties' && isFields(known) && isFields(value)) whole[key] = { ...known, ...value }
    else if (key === 'required') whole[key] = [...new Set([...list(known), ...list(value)])]
    else if (['title', 'description', 'example', 'examples', 'discriminator', 'xml', 'externalDocs'].includes(key)) whole[key] = value
    else left[key] = value
  }
  if (Object.keys(left).length > 0) apart.push(left)
  return whole
}

/** The types that a schema allows, in words. */
export function typeOf(schema: Fields): string {
  const types = Array.isArray(schema['type']) ? schema['type'].map(text) : [text(schema['type'])].filter(Boolean)
  if (types.length === 0) {
    if (isFields(schema['properties'])) types.push('object')
    else if (schema['items'] !== undefined) types.push('array')
    else if ('const' in schema) types.push('constant')
    else if (Array.isArray(schema['enum'])) types.push('one of')
    else if (schema['oneOf'] || schema['anyOf']) types.push('choice')
    else types.push('any')
  }
  const format = text(schema['format'])
  return types.join(' or ') + (format ? ` (${format})` : '')
}

const NUMBERS: [string, string][] = [
  ['minimum', '≥'],
  ['exclusiveMinimum', '>'],
  ['maximum', '≤'],
  ['exclusiveMaximum', '<'],
  ['multipleOf', 'multiple of'],
  ['minLength', 'at least this many characters:'],
  ['maxLength', 'at most this many characters:'],
  ['minItems', 'at least this many items:'],
  ['maxItems', 'at most this many items:'],
  ['minProperties', 'at least this many fields:'],
  ['maxProperties', 'at most this many fields:'],
]

/** What a value has to keep to, in words. */
export function rules(schema: Fields): string[] {
  const found = NUMBERS.filter(([key]) => typeof schema[key] === 'number').map(([key, words]) => `${words} ${String(schema[key])}`)
  if (schema['uniqueItems'] === true) found.push('no item twice')
  if (typeof schema['pattern'] === 'string') found.push(`matches ${schema['pattern']}`)
  if ('const' in schema) found.push(`always ${JSON.stringify(schema['const'])}`)
  if ('default' in schema) found.push(`default ${JSON.stringify(schema['default'])}`)
  if (typeof schema['contentMediaType'] === 'string') found.push(`contains ${schema['contentMediaType']}`)
  return found
}

/** Keywords that are shown in their own way. All others are shown as they are written. */
const UNDERSTOOD = new Set([
  ...NUMBERS.map(([key]) => key),
  ...['type', 'format', 'title', 'description', 'properties', 'required', 'items', 'enum', 'const', 'default', 'pattern', 'oneOf', 'anyOf'],
  ...['allOf', 'discriminator', 'additionalProperties', 'example', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'uniqueItems'],
  ...['$ref', 'contentMediaType', 'nullable', 'prefixItems', 'not'],
])

/** What is not understood. */
export function others(schema: Fields): Fields {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !UNDERSTOOD.has(key)))
}

export interface Variant {
  title: string
  schema: unknown
}

/** What a value may be one of. */
export function variants(schema: Fields, schemas: Schemas): Variant[] {
  const choices = [...list(schema['oneOf']), ...list(schema['anyOf'])]
  const discriminator = isFields(schema['discriminator']) ? schema['discriminator'] : {}
  const mapping = isFields(discriminator['mapping']) ? discriminator['mapping'] : {}
  return choices.map((choice, index) => {
    const name = nameOf(choice)
    const mapped = Object.entries(mapping).find(([, target]) => name !== null && (target === name || text(target).endsWith(`/${name}`)))
    const resolved = resolve(choice, schemas).schema
    const title = mapped?.[0] ?? (text(resolved['title']) || name || typeOf(resolved))
    return { title: choices.findIndex((it) => it === choice) === index ? title : `${title} ${index + 1}`, schema: choice }
  })
}

const FORMATS: Record<string, string> = {
  'date-time': '2026-01-31T12:00:00Z',
  date: '2026-01-31',
  time: '12:00:00Z',
  duration: 'PT1H',
  uuid: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
  email: 'ann@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  'uri-reference': '/path',
  byte: 'aGVsbG8=',
  binary: '(bytes)',
  password: 'secret',
}

/** A value that the schema describes. Requests leave out what only answers have, and the other way round. */
export function example(schema: unknown, schemas: Schemas, side: 'request' | 'response', depth = 0, seen: string[] = []): unknown {
  const { schema: whole, name } = merged(schema, schemas)
  if ('example' in whole) return whole['example']
  if (list(whole['examples']).length > 0) return list(whole['examples'])[0]
  if ('const' in whole) return whole['const']
  if ('default' in whole) return whole['default']
  if (list(whole['enum']).length > 0) return list(whole['enum'])[0]
  const path = name === null ? seen : [...seen, name]
  const isDeep = depth > 6 || (name !== null && seen.filter((it) => it === name).length > 1)
  const choice = list(whole['oneOf'])[0] ?? list(whole['anyOf'])[0]
  if (choice !== undefined && !isDeep) {
    const chosen = example(choice, schemas, side, depth + 1, path)
    const beside = isFields(whole['properties']) ? fields(whole, schemas, side, depth, path) : {}
    return isFields(chosen) ? { ...beside, ...chosen } : chosen
  }
  const type = Array.isArray(whole['type']) ? whole['type'].find((it) => it !== 'null') : whole['type']
  if (type === 'object' || isFields(whole['properties'])) return isDeep ? {} : fields(whole, schemas, side, depth, path)
  if (type === 'array' || whole['items'] !== undefined) {
    return isDeep || whole['items'] === undefined ? [] : [example(whole['items'], schemas, side, depth + 1, path)]
  }
  if (type === 'integer' || type === 'number') return typeof whole['minimum'] === 'number' ? whole['minimum'] : 1
  if (type === 'boolean') return true
  if (type === 'null') return null
  if (type === 'string' || whole['format'] !== undefined) return FORMATS[text(whole['format'])] ?? 'text'
  return type === undefined ? {} : 'text'
}

function fields(whole: Fields, schemas: Schemas, side: 'request' | 'response', depth: number, path: string[]): Fields {
  const properties = isFields(whole['properties']) ? whole['properties'] : {}
  const required = list(whole['required'])
  const made: Fields = {}
  for (const [name, below] of Object.entries(properties)) {
    const { schema } = resolve(below, schemas)
    if (schema[side === 'request' ? 'readOnly' : 'writeOnly'] === true) continue
    const belowName = nameOf(below)
    // A field that leads back and may be left out is left out.
    if (belowName !== null && path.includes(belowName) && !required.includes(name)) continue
    made[name] = example(below, schemas, side, depth + 1, path)
  }
  return made
}
