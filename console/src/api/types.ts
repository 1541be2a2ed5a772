// What /api/v1 answers, as far as the console reads it.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }
export type Fields = { [name: string]: Json }

export interface Page {
  items: Fields[]
  next: string | null
}

export interface Commit {
  revision: number
  time: number
  author: string
  note: string
  changes: { document: string; change: 'created' | 'changed' | 'removed' }[]
}

export interface Difference {
  document: string
  before: Json
  after: Json
}

export interface Gateway {
  name: string
  address: string
  version: string
  state: string
  revision: number
  hash: string
  left_out: number
  [other: string]: Json
}

export interface Right {
  workspace: string
  role: string
  [other: string]: Json
}

export interface User {
  name: string
  rights: Right[]
  created: number
}

export interface AuditEntry {
  time: number
  who: string
  from: string
  dialect: string
  what: string
  status: number
}

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

export type Dialect = 'native' | 'kong' | 'apisix'

/** A resource of any dialect, as lists show it. */
export interface ViewRow {
  id: string
  name: string
  dialect: Dialect
  workspace?: string
  document?: string
  file?: string
  pointer?: string
  is_disabled?: boolean
  is_stream?: boolean
  hosts?: string[]
  paths?: string[]
  methods?: string[]
  service?: string
  upstream?: string
  url?: string
  algorithm?: string
  targets?: string[]
  plugins?: string[]
  applies_to?: string
  groups?: string[]
  custom_id?: string
  credentials?: string[]
  server_names?: string[]
  not_before?: number
  not_after?: number
  labels?: Record<string, string>
}

export interface ViewPage {
  items: ViewRow[]
  next: string | null
  total: number
}

export interface AddressHealth {
  address: string
  status: string
  successes: number
  http_failures: number
  tcp_failures: number
  timeouts: number
}

export interface UpstreamHealth {
  name: string
  status: string
  healthy_percent: number
  targets: { host: string; port: number; weight: number; status: string; addresses: AddressHealth[] }[]
}

export interface CataloguePlugin {
  name: string
  does: string
  kong: string[]
  apisix: string[]
  phases: string[]
  docs: string
}
