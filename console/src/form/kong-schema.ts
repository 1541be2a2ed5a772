// Kong describes its entities in its own schema language. Forms know JSON Schema: this turns one into the other, as far as
// a form needs it. What it does not understand becomes a field for any JSON.
import type { Fields, Json, Schema } from '../api/types'
import { isMap } from './path'

/** Fields that Kong fills in itself. */
export const KONG_OWN = ['id', 'created_at', 'updated_at', 'ws_id', 'cache_key']

const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : [])
const text = (value: Json | undefined): string | undefined => (typeof value === 'string' ? value : undefined)

/** The fields of a record: a list of maps with one name each. */
function recordOf(fields: Json[]): Schema {
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  for (const entry of fields) {
    if (!isMap(entry)) continue
    for (const [name, field] of Object.entries(entry)) {
      if (!isMap(field)) continue
      properties[name] = schemaOf(field)
      if (field['required'] === true && field['default'] === undefined && field['type'] !== 'record') required.push(name)
    }
  }
  return { type: 'object', properties, required }
}

function schemaOf(field: Fields): Schema {
  const description = text(field['description'])
  const about: Schema = { ...(description ? { description } : {}), ...(field['default'] !== undefined ? { default: field['default'] } : {}) }
  const choices = list(field['one_of'])
  const [least, most] = list(field['between'])
  switch (field['type']) {
    case 'string':
      return choices.length > 0 ? { ...about, enum: choices } : { ...about, type: 'string' }
    case 'integer':
    case 'number':
      return {
        ...about,
        type: field['type'],
        ...(choices.length > 0 ? { enum: choices } : {}),
        ...(typeof least === 'number' ? { minimum: least } : {}),
        ...(typeof most === 'number' ? { maximum: most } : {}),
      }
    case 'boolean':
      return { ...about, type: 'boolean' }
    case 'array':
    case 'set':
      return { ...about, type: 'array', items: isMap(field['elements']) ? schemaOf(field['elements']) : {} }
    case 'map':
      return { ...about, type: 'object', additionalProperties: isMap(field['values']) ? schemaOf(field['values']) : {} }
    case 'record':
      return { ...about, ...recordOf(list(field['fields'])) }
    case 'foreign':
      return { ...about, type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
    default:
      return about
  }
}

/** The JSON Schema of an entity or of a plugin. */
export function kongSchema(document: Fields): Schema {
  const schema = recordOf(list(document['fields']))
  for (const name of KONG_OWN) delete schema.properties?.[name]
  return schema
}
