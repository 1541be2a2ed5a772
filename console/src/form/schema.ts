// What a JSON Schema asks for, in the few shapes that the form draws.
import type { Json, Schema } from '../api/types'
import { isMap } from './path'

export interface Option {
  value: Json
  about?: string | undefined
}

export interface Variant {
  title: string
  schema: Schema
}

export type Shape =
  | { kind: 'boolean' }
  | { kind: 'number'; isWhole: boolean; minimum?: number | undefined; maximum?: number | undefined }
  | { kind: 'text'; pattern?: string | undefined }
  | { kind: 'choice'; options: Option[] }
  | { kind: 'list'; item: Schema; least: number; most: number | undefined }
  | { kind: 'map'; value: Schema }
  | { kind: 'object'; properties: Record<string, Schema>; required: string[] }
  | { kind: 'variants'; variants: Variant[] }
  | { kind: 'chain' }
  | { kind: 'plugin' }
  | { kind: 'any' }

const PLACE = '#/$defs/'

/** A schema with its references followed; what stands beside a reference counts more. */
export function resolved(schema: Schema, root: Schema): Schema {
  let current = schema
  for (let depth = 0; depth < 20; depth += 1) {
    if (current.$ref !== undefined) {
      const { $ref, ...beside } = current
      const target = $ref.startsWith(PLACE) ? root.$defs?.[$ref.slice(PLACE.length)] : undefined
      if (target === undefined) return beside
      current = { ...target, ...beside }
      continue
    }
    const alternatives = current.properties === undefined ? (current.anyOf ?? current.oneOf) : undefined
    const given = alternatives?.filter((it) => it.type !== 'null')
    if (given?.length === 1 && alternatives !== undefined) {
      const { anyOf: _any, oneOf: _one, ...beside } = current
      current = { ...given[0], ...beside }
      continue
    }
    return current
  }
  return current
}

/** The types of a schema, without `null`. */
const typesOf = (schema: Schema): string[] =>
  (Array.isArray(schema.type) ? schema.type : schema.type === undefined ? [] : [schema.type]).filter((it) => it !== 'null')

const CHAIN = `${PLACE}ChainStep`
const INSTANCE = `${PLACE}PluginInstance`

export function shapeOf(given: Schema, root: Schema): Shape {
  if (given.items?.$ref === CHAIN) return { kind: 'chain' }
  if (given.$ref === CHAIN || given.$ref === INSTANCE) return { kind: 'plugin' }
  const schema = resolved(given, root)
  const alternatives = schema.properties === undefined ? (schema.oneOf ?? schema.anyOf) : undefined
  if (alternatives !== undefined) {
    const all = alternatives.filter((it) => it.type !== 'null').map((it) => resolved(it, root))
    const options = all.flatMap(optionsOf)
    const isChoice = all.every((it) => it.const !== undefined || it.enum !== undefined)
    if (isChoice) return { kind: 'choice', options }
    return { kind: 'variants', variants: all.map((it) => ({ title: titleOf(it), schema: it })) }
  }
  if (schema.enum !== undefined || schema.const !== undefined) return { kind: 'choice', options: optionsOf(schema) }
  const types = typesOf(schema)
  if (types.length > 1) return { kind: 'any' }
  switch (types[0]) {
    case 'boolean':
      return { kind: 'boolean' }
    case 'integer':
    case 'number':
      return { kind: 'number', isWhole: types[0] === 'integer', minimum: schema.minimum, maximum: schema.maximum }
    case 'string':
      return { kind: 'text', pattern: schema.pattern }
    case 'array':
      return schema.items === undefined
        ? { kind: 'any' }
        : { kind: 'list', item: schema.items, least: schema.minItems ?? 0, most: schema.maxItems }
    case 'object':
      if (schema.properties !== undefined) {
        return { kind: 'object', properties: schema.properties, required: schema.required ?? [] }
      }
      return isSchema(schema.additionalProperties) ? { kind: 'map', value: schema.additionalProperties } : { kind: 'any' }
    default:
      return schema.properties === undefined
        ? { kind: 'any' }
        : { kind: 'object', properties: schema.properties, required: schema.required ?? [] }
  }
}

const isSchema = (value: boolean | Schema | undefined): value is Schema => typeof value === 'object'

function optionsOf(schema: Schema): Option[] {
  if (schema.const !== undefined) return [{ value: schema.const, about: schema.description }]
  return (schema.enum ?? []).map((value) => ({ value }))
}

/** What one of several alternatives is called. */
function titleOf(schema: Schema): string {
  if (schema.const !== undefined) return String(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(String).join(', ')
  const properties = Object.entries(schema.properties ?? {})
  const tag = properties.find(([, it]) => it.const !== undefined)
  if (tag !== undefined) return String(tag[1].const)
  const [required] = schema.required ?? []
  if (required !== undefined) return (schema.required ?? []).join(', ')
  if (properties.length > 0 && properties.length <= 2) return properties.map(([name]) => name).join(', ')
  const names: Record<string, string> = { string: 'text', integer: 'number', number: 'number', array: 'list', object: 'fields', boolean: 'yes or no' }
  return names[typesOf(schema)[0] ?? ''] ?? schema.title ?? 'other'
}

/** Whether a value may be meant by a schema: a look at its outside. */
export function fits(schema: Schema, value: Json | undefined, root: Schema): boolean {
  const it = resolved(schema, root)
  if (it.const !== undefined) return it.const === value
  if (it.enum !== undefined) return it.enum.includes(value as Json)
  const types = typesOf(it)
  if (isMap(value)) {
    if (types.length > 0 && !types.includes('object')) return false
    const known = it.properties ?? {}
    if (!(it.required ?? []).every((name) => name in value)) return false
    if (it.additionalProperties === false && !Object.keys(value).every((name) => name in known)) return false
    return Object.entries(known).every(([name, inner]) => inner.const === undefined || !(name in value) || inner.const === value[name])
  }
  if (Array.isArray(value)) return types.length === 0 || types.includes('array')
  if (typeof value === 'number') return types.includes('number') || (types.includes('integer') && Number.isInteger(value))
  return types.includes(typeof value)
}

/** What a field is set to when it is added: the least that is not wrong by its type. */
export function blank(schema: Schema, root: Schema, depth = 0): Json {
  const it = resolved(schema, root)
  const shape = shapeOf(schema, root)
  switch (shape.kind) {
    case 'boolean':
      return it.default !== true
    case 'number':
      return typeof it.default === 'number' ? it.default : (shape.minimum ?? 0)
    case 'text':
      return ''
    case 'choice':
      return it.default ?? shape.options[0]?.value ?? ''
    case 'list':
      return shape.least > 0 && depth < 4 ? [blank(shape.item, root, depth + 1)] : []
    case 'chain':
      return []
    case 'map':
      return {}
    case 'object':
      return depth > 4
        ? {}
        : Object.fromEntries(
            shape.required.flatMap((name) => {
              const inner = shape.properties[name]
              return inner === undefined ? [] : [[name, blank(inner, root, depth + 1)]]
            }),
          )
    case 'variants': {
      const [first] = shape.variants
      return first === undefined ? null : blank(first.schema, root, depth + 1)
    }
    case 'plugin':
      return {}
    case 'any':
      return it.default ?? null
  }
}

const SECRET = /(^|_)(secret|password|passphrase|token|private_key|hmac_key)$|^key$/

/** Whether a field's text is not shown until somebody asks. */
export const isSecret = (name: string, schema: Schema): boolean =>
  SECRET.test(name) && schema.enum === undefined && !/header|name of|field/i.test(schema.description ?? '')

/** `read_timeout_ms` as people say it. */
export const label = (name: string): string => {
  const text = name.replace(/_(ms|bytes|seconds)$/, '').replaceAll(/[_-]/g, ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export type Unit = 'time' | 'size'

/** The units that a number is given in, by the end of its name. */
export function unitOf(name: string): { unit: Unit; base: number } | null {
  if (name.endsWith('_ms')) return { unit: 'time', base: 1 }
  if (name.endsWith('_seconds') || name.endsWith('_s')) return { unit: 'time', base: 1000 }
  return name.endsWith('_bytes') ? { unit: 'size', base: 1 } : null
}
