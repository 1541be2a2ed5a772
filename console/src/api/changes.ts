// Several native documents in one commit, and the way back: one more commit.
import { call } from './client'
import { documentPath } from './hooks'
import type { Fields, Json, ViewRow } from './types'
import { placeOf } from '../documents'
import { isMap, withAt } from '../form/path'

/** A document that is to change: what it is, its version, and what it is to be; `null`: it is not there, or is to go. */
export interface Planned {
  kind: string
  name: string
  before: Fields | null
  tag: string | null
  after: Fields | null
}

interface Changed {
  revision: number | null
  tag: string | null
  changes: { kind: string; name: string; before: Json; after: Json }[]
}

/** Reads at the same time, at most. */
const READERS = 8

/** `/routes/0` as a path into the document. */
const pathOf = (pointer: string): (string | number)[] =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~')))

/** The rows that can be changed here: those whose documents are native and in the store. */
export const canChange = (row: ViewRow): boolean => row.dialect === 'native' && Boolean(row.document) && !row.file && placeOf(row.document ?? '').to !== null

/** Makes a plan: reads the documents of rows and changes the part of each that its row shows. */
export async function plan(rows: ViewRow[], change: (part: Fields) => Fields | null): Promise<Planned[]> {
  const byDocument = new Map<string, ViewRow[]>()
  for (const row of rows.filter(canChange)) byDocument.set(row.document ?? '', [...(byDocument.get(row.document ?? '') ?? []), row])
  const waiting = [...byDocument]
  const planned: Planned[] = []
  const work = async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [document, parts] = next
      const { kind, name } = placeOf(document)
      const read = await call<Fields>('GET', documentPath(kind, name))
      let after: Fields | null = read.data
      // From the last to the first: what is taken out of a list moves what is behind it.
      for (const row of [...parts].sort((a, b) => (b.pointer ?? '').localeCompare(a.pointer ?? '', undefined, { numeric: true }))) {
        if (after === null) break
        after = changedAt(after, pathOf(row.pointer ?? ''), change)
      }
      planned.push({ kind, name, before: read.data, tag: read.tag, after })
    }
  }
  await Promise.all(Array.from({ length: READERS }, work))
  return planned.sort((a, b) => a.name.localeCompare(b.name))
}

function changedAt(document: Fields, path: (string | number)[], change: (part: Fields) => Fields | null): Fields | null {
  if (path.length === 0) return change(document)
  const part = path.reduce<Json | undefined>((value, step) => (Array.isArray(value) && typeof step === 'number' ? value[step] : isMap(value) ? value[String(step)] : undefined), document)
  if (!isMap(part)) return document
  const next = change(part)
  return withAt(document, path, next ?? undefined) as Fields
}

/** Commits a plan, or tries it. */
export async function commit(planned: Planned[], note: string, isDry = false): Promise<Changed> {
  const changes = planned.map((it) => ({ kind: it.kind, name: it.name, value: it.after, if_match: it.tag }))
  const headers = { 'weir-dry-run': isDry ? 'true' : undefined, 'weir-note': note === '' ? undefined : encodeURIComponent(note) }
  return (await call<Changed>('POST', '/api/v1/changes', { body: { changes }, headers })).data
}

/** Brings back what was there before, unless somebody has changed it since. */
export async function undo(planned: Planned[], done: Changed, note: string): Promise<Changed> {
  const changes = planned.map((it) => ({ kind: it.kind, name: it.name, value: it.before, if_match: it.after === null ? null : done.tag }))
  return (await call<Changed>('POST', '/api/v1/changes', { body: { changes }, headers: { 'weir-note': encodeURIComponent(note) } })).data
}
