// A call as it is typed into the form of an operation, and as it goes over the wire: how parameters become paths,
// queries and headers, and how bodies are written. The samples and the call that is tried are made of the same.
import { type Fields, type Schemas, example, isFields, merged } from './schema'

export type Place = 'path' | 'query' | 'header' | 'cookie'

export interface Parameter {
  name: string
  place: Place
  isRequired: boolean
  isDeprecated: boolean
  description: string
  schema: unknown
  style: string
  explode: boolean
  /** A value to begin with. */
  example: string
}

export interface Content {
  media: string
  schema: unknown
  /** Examples by their names, and one that is made if there is none. */
  examples: { title: string; text: string }[]
}

export interface Wire {
  method: string
  url: string
  headers: [string, string][]
  /** A body as text, or the fields of a form. */
  body: { media: string; text: string } | { media: string; form: [string, string, boolean][] } | null
}

const text = (value: unknown) => (typeof value === 'string' ? value : '')
const written = (value: unknown): string => (typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value))

function firstExample(from: Fields): unknown {
  if ('example' in from) return from['example']
  const named = isFields(from['examples']) ? Object.values(from['examples'])[0] : undefined
  return isFields(named) ? named['value'] : undefined
}

/** The parameters of an operation. */
export function parametersOf(operation: Fields, schemas: Schemas): Parameter[] {
  const all = Array.isArray(operation['parameters']) ? operation['parameters'].filter(isFields) : []
  return all.flatMap((it): Parameter[] => {
    const place = text(it['in'])
    if (place !== 'path' && place !== 'query' && place !== 'header' && place !== 'cookie') return []
    const content = isFields(it['content']) ? Object.values(it['content']).find(isFields) : undefined
    const schema = it['schema'] ?? content?.['schema'] ?? {}
    const style = text(it['style']) || (place === 'query' || place === 'cookie' ? 'form' : 'simple')
    const isRequired = it['required'] === true || place === 'path'
    const given = firstExample(it)
    return [
      {
        name: text(it['name']),
        place,
        isRequired,
        isDeprecated: it['deprecated'] === true,
        description: text(it['description']),
        schema,
        style,
        explode: typeof it['explode'] === 'boolean' ? it['explode'] : style === 'form',
        example: given !== undefined ? written(given) : isRequired ? written(example(schema, schemas, 'request')) : '',
      },
    ]
  })
}

/** The contents that a body or an answer may have. */
export function contentsOf(value: unknown, schemas: Schemas, side: 'request' | 'response'): Content[] {
  const contents = isFields(value) && isFields(value['content']) ? value['content'] : {}
  return Object.entries(contents).map(([media, content]) => {
    const fields = isFields(content) ? content : {}
    const named = isFields(fields['examples']) ? Object.entries(fields['examples']) : []
    const examples = named.flatMap(([title, it]) => (isFields(it) && 'value' in it ? [{ title: text(it['summary']) || title, text: pretty(it['value']) }] : []))
    if ('example' in fields) examples.unshift({ title: 'Example', text: pretty(fields['example']) })
    const schema = fields['schema'] ?? {}
    if (examples.length === 0) examples.push({ title: 'Example', text: pretty(example(schema, schemas, side)) })
    return { media, schema, examples }
  })
}

export const pretty = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

export const isForm = (media: string) => media.startsWith('multipart/form-data') || media === 'application/x-www-form-urlencoded'

/** The fields of a form: name, and whether a file goes there. */
export function formFields(schema: unknown, schemas: Schemas): { name: string; isFile: boolean; isRequired: boolean; example: string }[] {
  const { schema: whole } = merged(schema, schemas)
  const properties = isFields(whole['properties']) ? whole['properties'] : {}
  const required = Array.isArray(whole['required']) ? whole['required'] : []
  return Object.entries(properties).map(([name, below]) => {
    const { schema: field } = merged(below, schemas)
    const items = isFields(field['items']) ? field['items'] : field
    const isFile = [field, items].some((it) => it['format'] === 'binary' || (typeof it['contentMediaType'] === 'string' && it['contentEncoding'] === undefined))
    return { name, isFile, isRequired: required.includes(name), example: isFile ? 'file.bin' : written(example(below, schemas, 'request')) }
  })
}

/** A typed value as the value that it stands for: lists and objects are typed as JSON, lists also with commas. */
function valueOf(typed: string, parameter: Parameter, schemas: Schemas): unknown {
  const { schema } = merged(parameter.schema, schemas)
  const types = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  const isList = types.includes('array') || schema['items'] !== undefined
  const isObject = types.includes('object') || isFields(schema['properties'])
  if (!isList && !isObject) return typed
  try {
    const value: unknown = JSON.parse(typed)
    if (Array.isArray(value) || isFields(value)) return value
  } catch {
    // Not JSON.
  }
  return isList ? typed.split(',').map((it) => it.trim()) : typed
}

/** The parts of a query that a parameter stands for. */
export function queryParts(parameter: Parameter, typed: string, schemas: Schemas): [string, string][] {
  const value = valueOf(typed, parameter, schemas)
  const separator = { spaceDelimited: ' ', pipeDelimited: '|' }[parameter.style] ?? ','
  if (Array.isArray(value)) {
    if (parameter.explode) return value.map((it) => [parameter.name, written(it)])
    return [[parameter.name, value.map(written).join(separator)]]
  }
  if (isFields(value)) {
    if (parameter.style === 'deepObject') return deep(parameter.name, value)
    if (parameter.explode) return Object.entries(value).map(([key, it]) => [key, written(it)])
    return [[parameter.name, Object.entries(value).flatMap(([key, it]) => [key, written(it)]).join(',')]]
  }
  return [[parameter.name, written(value)]]
}

function deep(name: string, value: Fields): [string, string][] {
  return Object.entries(value).flatMap(([key, it]): [string, string][] => (isFields(it) ? deep(`${name}[${key}]`, it) : [[`${name}[${key}]`, written(it)]]))
}

/** What stands for a parameter in a path or a header. */
function simple(parameter: Parameter, typed: string, schemas: Schemas): string {
  const value = valueOf(typed, parameter, schemas)
  const one = (it: unknown) => (parameter.place === 'path' ? encodeURIComponent(written(it)) : written(it))
  const prefix = { label: '.', matrix: `;${parameter.name}=` }[parameter.style] ?? ''
  if (Array.isArray(value)) return prefix + value.map(one).join(',')
  if (isFields(value)) {
    return prefix + Object.entries(value).map(([key, it]) => (parameter.explode ? `${one(key)}=${one(it)}` : `${one(key)},${one(it)}`)).join(',')
  }
  return prefix + one(value)
}

export interface Typed {
  /** By `place:name`. */
  parameters: Record<string, string>
  body: string
  media: string
  form: Record<string, string>
}

export const keyOf = (parameter: Parameter) => `${parameter.place}:${parameter.name}`

interface Parts {
  path: string
  query: [string, string][]
  headers: [string, string][]
}

/** Path, query and headers of what was typed. Parameters that are empty and not needed are left out. */
export function partsOf(path: string, parameters: Parameter[], typed: Typed, schemas: Schemas): Parts {
  let target = path
  const query: [string, string][] = []
  const headers: [string, string][] = []
  const cookies: string[] = []
  for (const parameter of parameters) {
    const value = typed.parameters[keyOf(parameter)] ?? ''
    if (value === '' && parameter.place !== 'path') continue
    if (parameter.place === 'path') target = target.replaceAll(`{${parameter.name}}`, value === '' ? `{${parameter.name}}` : simple(parameter, value, schemas))
    else if (parameter.place === 'query') query.push(...queryParts(parameter, value, schemas))
    else if (parameter.place === 'header') headers.push([parameter.name, simple(parameter, value, schemas)])
    else cookies.push(`${parameter.name}=${encodeURIComponent(value)}`)
  }
  if (cookies.length > 0) headers.push(['Cookie', cookies.join('; ')])
  return { path: target, query, headers }
}

/** The whole call, for samples. */
export function wireOf(
  { method, path, base, key }: { method: string; path: string; base: string; key: string | null },
  parameters: Parameter[],
  typed: Typed,
  schemas: Schemas,
  form: { name: string; isFile: boolean }[],
): Wire {
  const parts = partsOf(path, parameters, typed, schemas)
  const query = parts.query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')
  const headers = [...parts.headers]
  if (key !== null) headers.push(['X-API-Key', key])
  let body: Wire['body'] = null
  if (typed.media !== '' && isForm(typed.media)) {
    body = { media: typed.media, form: form.flatMap(({ name, isFile }): [string, string, boolean][] => (typed.form[name] ? [[name, typed.form[name] ?? '', isFile]] : [])) }
  } else if (typed.media !== '') {
    body = { media: typed.media, text: typed.body }
    headers.push(['Content-Type', typed.media])
  }
  return { method, url: `${base.replace(/\/$/, '')}${parts.path}${query === '' ? '' : `?${query}`}`, headers, body }
}
