// What /api/v1 answers. The types are generated from docs/schema/api.openapi.json (`npm run types`): a change there that
// breaks the console does not compile.
import type { components } from '../../generated/api'

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
export type Fields = { [name: string]: Json }

type Schemas = components['schemas']

export type Commit = Schemas['Commit']
export type Difference = Omit<Schemas['DocumentChange'], 'before' | 'after'> & { before: Json; after: Json }
export type Gateway = Schemas['GatewayState']
export type Right = Schemas['Right']
export type User = Schemas['User']
export type AuditEntry = Schemas['AuditEntry']
/** A resource of any dialect, as lists show it. */
export type ViewRow = Schemas['ViewRow']
export type ViewPage = Schemas['ViewPage']
export type AddressHealth = Schemas['AddressHealth']
export type UpstreamHealth = Schemas['UpstreamHealth']
export type CataloguePlugin = Schemas['CataloguePlugin']

/** A JSON Schema, as far as forms need it. */
export interface Schema {
  $ref?: string
  $defs?: Record<string, Schema>
  title?: string
  description?: string
  type?: string | string[]
  const?: Json
  enum?: Json[]
  default?: Json
  examples?: Json[]
  format?: string
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  pattern?: string
}
