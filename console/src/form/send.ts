// What every editor of one document does with it: it stores the document, or only tries to, and says what is wrong with
// its name. Native resources and the originals' documents have their own forms (`pages/detail.tsx`, `api/dialects.ts`).
import { call } from '../api/client'
import type { Fields } from '../api/types'
import type { Begun } from './draft'

export interface SendOptions {
  isDry: boolean
  note?: string
  /** The version that is to be changed; `null`: none has to be there; left out: whatever is there. */
  tag?: string | null
  signal?: AbortSignal
}

/** Headers of a write. */
export function writeHeaders({ isDry, note, tag }: SendOptions): Record<string, string | undefined> {
  return {
    'if-match': tag ?? undefined,
    'if-none-match': tag === null ? '*' : undefined,
    'weir-dry-run': isDry ? 'true' : undefined,
    'weir-note': note ? encodeURIComponent(note) : undefined,
  }
}

/** Stores a document, or tries to; what is stored then, and its version. */
export async function send<T = Fields>(method: 'PUT' | 'POST', path: string, body: unknown, options: SendOptions): Promise<{ data: T; tag: string | null }> {
  const { signal } = options
  const { data, tag } = await call<T>(method, path, { body, headers: writeHeaders(options), ...(signal ? { signal } : {}) })
  return { data, tag }
}

/** Reads a document with its version, as it is edited. */
export async function readVersion<T = Fields>(path: string, edited: (data: T) => Fields = (data) => data as Fields): Promise<Begun> {
  const { data, tag } = await call<T>('GET', path)
  return { data: edited(data), tag }
}

/** The name of a document that is made: what it will be called. */
export const nameIn = (value: Fields): string => String(value['name'] ?? '').trim()

/** What is wrong with the name of a new document, such as `A portal`; `null`: nothing. */
export function nameFault(value: Fields, known: readonly { name: string }[] | undefined, what: string): string | null {
  const name = nameIn(value)
  if (name === '') return 'It needs a name.'
  return known?.some((it) => it.name === name) ? `${what} of this name exists.` : null
}
