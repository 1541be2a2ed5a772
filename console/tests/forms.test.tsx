// The forms of all plugins, native and in the spellings of Kong and APISIX, made of the schemas that a running Weir
// serves: each field has a control with a name, what is required is marked, defaults are shown and not written, and a
// document that is not edited stays as it is.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Fields, Json, Schema } from '../src/api/types'
import { fresh, read, rewrite } from '../src/form/draft'
import { Form, ObjectFields } from '../src/form/fields'
import { kongSchema } from '../src/form/kong-schema'
import { isMap, isSame } from '../src/form/path'
import { blank, fits, label, resolved, shapeOf } from '../src/form/schema'

const PROGRAM = process.env['WEIR'] ?? '../target/debug/weir'
const START_MS = 60_000
const MOST_DEPTH = 4

let program: ChildProcess | null = null
let folder = ''
let api = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-forms-'))
  const child = spawn(PROGRAM, ['run', '--data', folder, '--listen', '127.0.0.1:0', '--status', '127.0.0.1:0', '--console', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] })
  program = child
  api = await new Promise<string>((resolve, reject) => {
    let said = ''
    const take = (data: Buffer) => {
      said += data.toString()
      const found = /the console on (http:\/\/[^/\s]+)/.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.on('error', reject)
    child.on('exit', () => reject(new Error(`weir ended: ${said}`)))
  })
}, START_MS)

afterAll(() => {
  program?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

async function get<T>(path: string): Promise<T> {
  const answer = await fetch(`${api}${path}`)
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}

interface Case {
  name: string
  root: Schema
  schema: Schema
}

const native = async (names: string[]): Promise<Case[]> => {
  const root = await get<Schema>('/api/v1/schema')
  return names.map((name) => ({ name: `native ${name}`, root, schema: { $ref: `#/$defs/${name}` } }))
}

const kong = (names: string[]): Promise<Case[]> =>
  Promise.all(
    names.map(async (name) => {
      const schema = kongSchema(await get<Fields>(`/api/v1/dialects/kong/schemas/plugins/${name}`))
      return { name: `Kong ${name}`, root: schema, schema: schema.properties?.['config'] ?? {} }
    }),
  )

const apisix = (names: string[]): Promise<Case[]> =>
  Promise.all(
    names.map(async (name) => {
      const schema = await get<Schema>(`/api/v1/dialects/apisix/apisix/admin/schema/plugins/${name}`)
      return { name: `APISIX ${name}`, root: schema, schema }
    }),
  )

async function cases(): Promise<Case[]> {
  const { items } = await get<{ items: { name: string; names: Record<string, string[]> }[] }>('/api/v1/plugins')
  const of = (dialect: string) => [...new Set(items.flatMap((it) => it.names[dialect] ?? []))]
  return (await Promise.all([native(items.map((it) => it.name)), kong(of('kong')), apisix(of('apisix'))])).flat()
}

/** A value with every field that the form may show. */
function full(schema: Schema, root: Schema, depth = 0): Json {
  const shape = shapeOf(schema, root)
  if (depth > MOST_DEPTH) return blank(schema, root, depth)
  switch (shape.kind) {
    case 'object':
      return Object.fromEntries(Object.entries(shape.properties).map(([name, inner]) => [name, full(inner, root, depth + 1)]))
    case 'list':
      return [full(shape.item, root, depth + 1)]
    case 'map':
      return { entry: full(shape.value, root, depth + 1) }
    case 'variants':
      return shape.variants[0] ? full(shape.variants[0].schema, root, depth + 1) : null
    case 'any':
      return 'text'
    default:
      return blank(schema, root, depth)
  }
}

/** Fields of the objects that a value shows, each with the schema of its object. */
function fieldsOf(schema: Schema, root: Schema, value: Json | undefined, depth = 0): { name: string; field: Schema; isRequired: boolean }[] {
  const shape = shapeOf(schema, root)
  if (depth > MOST_DEPTH) return []
  switch (shape.kind) {
    case 'object': {
      const entries: Fields = isMap(value) ? value : {}
      return Object.entries(shape.properties).flatMap(([name, field]) => [{ name, field, isRequired: shape.required.includes(name) }, ...fieldsOf(field, root, entries[name], depth + 1)])
    }
    case 'list':
      return Array.isArray(value) ? value.flatMap((it) => fieldsOf(shape.item, root, it, depth + 1)) : []
    case 'map':
      return isMap(value) ? Object.values(value).flatMap((it) => fieldsOf(shape.value, root, it, depth + 1)) : []
    case 'variants': {
      const chosen = shape.variants.find((it) => fits(it.schema, value, root)) ?? shape.variants[0]
      return chosen ? fieldsOf(chosen.schema, root, value, depth + 1) : []
    }
    default:
      return []
  }
}

function render(it: Case, value: Json, first?: string[]): string {
  return renderToStaticMarkup(
    <Form.Provider value={{ root: it.root, findings: new Map(), isReadOnly: false }}>
      <ObjectFields schema={it.schema} value={value} path={[]} onChange={() => undefined} {...(first ? { first } : {})} />
    </Form.Provider>,
  )
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#x27;')

/** Controls that say no name: neither of their own, nor of a label that points to them or is around them. */
function nameless(markup: string): string[] {
  const labelled = new Set([...markup.matchAll(/<label for="([^"]*)"/g)].map(([, id]) => id))
  const inside = markup.replaceAll(/<label class="(?:choice|pick)"[\s\S]*?<\/label>/g, '')
  return [...inside.matchAll(/<(?:input|select|textarea)\b[^>]*>/g)].map(([tag]) => tag).filter((tag) => !/aria-label="[^"]+"/.test(tag) && !labelled.has(/ id="([^"]*)"/.exec(tag)?.[1] ?? ''))
}

/** How the default of a field is to be shown; `null`: it is a tab or a value of any form. */
function defaultText(it: Case, name: string): string | null {
  const schema = resolved(it.schema, it.root).properties?.[name] ?? {}
  const shape = shapeOf(schema, it.root)
  const value = resolved(schema, it.root).default
  switch (shape.kind) {
    case 'boolean':
      return `default: ${value === true ? 'yes' : 'no'}`
    case 'number':
      return typeof value === 'number' ? 'default: ' : null
    case 'text':
      return `default: ${String(value)}`
    case 'choice':
      return shape.options.length > 4 ? `default: ${String(value)}` : 'default'
    default:
      return null
  }
}

/** What is wrong with the form of a plugin. */
function faults(it: Case): string[] {
  const found: string[] = []
  const value = full(it.schema, it.root)
  const markup = render(it, value)
  const shown = fieldsOf(it.schema, it.root, value)
  for (const { name, isRequired } of shown) {
    const title = escaped(label(name))
    if (!markup.includes(`>${title}<`)) found.push(`${name} is not shown`)
    else if (isRequired && !markup.includes(`>${title}</label><span class="badge">required`) && !markup.includes(`>${title}</span><span class="badge">required`)) found.push(`${name} is not marked as required`)
  }
  for (const tag of nameless(markup)) found.push(`a control without a name: ${tag.slice(0, 120)}`)
  const top = resolved(it.schema, it.root)
  const names = Object.keys(top.properties ?? {})
  const start = blank(it.schema, it.root)
  const empty = render(it, start, names)
  for (const name of names) {
    const field = resolved(top.properties?.[name] ?? {}, it.root)
    const isWritten = isMap(start) && name in start
    if (isWritten !== (top.required ?? []).includes(name)) found.push(`${name} is ${isWritten ? '' : 'not '}written without being asked for`)
    if (isWritten || field.default === undefined || field.default === null || typeof field.default === 'object') continue
    const wanted = defaultText(it, name)
    if (wanted !== null && !empty.includes(escaped(wanted))) found.push(`the default of ${name} is not shown: ${wanted}`)
  }
  if (isMap(value)) {
    for (const format of ['yaml', 'json'] as const) {
      const again = read(fresh(value, format).text, format)
      if (!('value' in again) || !isSame(again.value, value)) found.push(`as ${format} it is not what it was`)
    }
    const { text } = fresh(value)
    if (rewrite(text, value, value) !== text) found.push('without a change its text is another')
  }
  return found
}

test('46: every plugin has a form of its schema, native and in the spellings of Kong and APISIX', async () => {
  const all = await cases()
  expect(all.length).toBeGreaterThan(150)
  const wrong = all.flatMap((it) => faults(it).map((fault) => `${it.name}: ${fault}`))
  expect(wrong).toEqual([])
}, 120_000)
