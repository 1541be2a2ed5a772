// One document that is edited by the form and as text. The form changes places in it, the text changes it whole; comments
// and the order of fields stay. What is not saved outlives leaving the page.
import { useCallback, useEffect, useMemo, useReducer } from 'react'
import { type Document, isScalar, isMap as isYamlMap, isSeq, parseDocument } from 'yaml'
import type { Fields, Json } from '../api/types'
import { keep, kept } from './kept'
import { type Path, isMap, isSame } from './path'

export type Format = 'yaml' | 'json'

export interface TextError {
  message: string
  from: number
  to: number
}

export interface Draft {
  text: string
  format: Format
  /** What the text says; while it is broken, what it said before. */
  value: Fields
  error: TextError | null
}

const PLAIN = { flowCollectionPadding: false, lineWidth: 110 } as const

/** The value as block YAML, fields in their order. */
export function toYaml(value: Json): string {
  const document = parseDocument('{}')
  document.contents = document.createNode(value) as typeof document.contents
  return document.toString(PLAIN)
}

const format = (value: Json, as: Format): string => (as === 'json' ? `${JSON.stringify(value, null, 2)}\n` : toYaml(value))

export function read(text: string, as: Format): { value: Fields } | { error: TextError } {
  const whole = (message: string): { error: TextError } => ({ error: { message, from: 0, to: Math.min(1, text.length) } })
  if (as === 'json') {
    try {
      const value = JSON.parse(text) as Json
      return isMap(value) ? { value } : whole('Expected an object.')
    } catch {
      // YAML holds JSON and says the place.
    }
  }
  const document = parseDocument(text, { uniqueKeys: true })
  const [error] = document.errors
  if (error !== undefined) {
    return { error: { message: error.message.split('\n')[0] ?? 'This cannot be read.', from: error.pos[0], to: error.pos[1] } }
  }
  if (as === 'json') return whole('This is YAML, not JSON.')
  let value: Json
  try {
    value = document.toJS({ maxAliasCount: 50 }) as Json
  } catch (wrong) {
    return whole((wrong as Error).message)
  }
  return isMap(value) ? { value } : whole('Expected a map of fields.')
}

/** Changes a YAML text so that it says something else, and leaves everything else as it stands. */
export function rewrite(text: string, before: Json, after: Json): string {
  const document = parseDocument(text)
  if (document.errors.length > 0) return toYaml(after)
  change(document, [], before, after)
  return document.toString(PLAIN)
}

function change(document: Document, path: Path, before: Json | undefined, after: Json | undefined) {
  if (isSame(before, after)) return
  const node = path.length === 0 ? document.contents : document.getIn(path, true)
  if (isMap(before) && isMap(after) && isYamlMap(node)) {
    for (const name of Object.keys(before)) if (!(name in after)) document.deleteIn([...path, name])
    for (const [name, value] of Object.entries(after)) {
      if (name in before) change(document, [...path, name], before[name], value)
      else document.setIn([...path, name], document.createNode(value))
    }
    return
  }
  if (Array.isArray(before) && Array.isArray(after) && isSeq(node) && before.length <= after.length) {
    after.forEach((value, index) => {
      if (index < before.length) change(document, [...path, index], before[index], value)
      else document.addIn(path, document.createNode(value))
    })
    return
  }
  if (isScalar(node) && (typeof after !== 'object' || after === null) && after !== undefined) {
    // A comment behind it stays.
    node.value = after
    return
  }
  if (path.length === 0) document.contents = document.createNode(after) as typeof document.contents
  else document.setIn(path, document.createNode(after))
}

type Action =
  | { kind: 'form'; value: Fields }
  | { kind: 'text'; text: string }
  | { kind: 'format'; format: Format }
  | { kind: 'reset'; value: Fields }

function reduce(draft: Draft, action: Action): Draft {
  switch (action.kind) {
    case 'form': {
      const text = draft.format === 'json' ? format(action.value, 'json') : rewrite(draft.text, draft.value, action.value)
      return { ...draft, text, value: action.value, error: null }
    }
    case 'text': {
      const found = read(action.text, draft.format)
      return 'value' in found
        ? { ...draft, text: action.text, value: found.value, error: null }
        : { ...draft, text: action.text, error: found.error }
    }
    case 'format':
      return draft.error === null ? { ...draft, format: action.format, text: format(draft.value, action.format) } : draft
    case 'reset':
      return fresh(action.value, draft.format)
  }
}

export const fresh = (value: Fields, as: Format = 'yaml'): Draft => ({ text: format(value, as), format: as, value, error: null })

/** What an edit began with: a document and its version. */
export interface Begun {
  data: Fields
  tag: string | null
}

/**
 * What is stored, as far as it is known. What was read before a save is out of date from then on: until it is read again,
 * `origin` is what is stored, not a base that was just replaced.
 */
export const storedNow = (base: Begun, origin: Begun, replaced: readonly Begun[]): Begun =>
  replaced.some((it) => it.tag === base.tag && isSame(it.data, base.data)) ? origin : base

/** A draft as it is kept in the tab. */
interface Kept {
  draft: Draft
  begun: Begun
}

function keptUnder(name: string): Kept | null {
  const { draft, begun } = (kept(name) ?? {}) as Partial<Kept>
  return draft !== undefined && begun !== undefined && typeof draft.text === 'string' && isMap(draft.value) && isMap(begun.data) ? { draft, begun } : null
}

/**
 * What the draft that is kept under a name began with. Who goes on with it saves against that version: what somebody
 * else has stored since then is a conflict, and is not overwritten.
 */
export const begunWith = (name: string): Begun | null => keptUnder(name)?.begun ?? null

/** A draft under a name: it is kept in the tab until it is saved or discarded. */
export function useDraft(name: string, begun: Begun) {
  const [draft, dispatch] = useReducer(reduce, null, (): Draft => keptUnder(name)?.draft ?? fresh(begun.data))
  const isChanged = draft.error !== null || !isSame(draft.value, begun.data)
  useEffect(() => keep(name, isChanged ? ({ draft, begun } satisfies Kept) : null), [draft, begun, isChanged, name])
  const setValue = useCallback((value: Json | undefined) => dispatch({ kind: 'form', value: isMap(value) ? value : {} }), [])
  const setText = useCallback((text: string) => dispatch({ kind: 'text', text }), [])
  const setFormat = useCallback((to: Format) => dispatch({ kind: 'format', format: to }), [])
  const reset = useCallback((value: Fields) => dispatch({ kind: 'reset', value }), [])
  return useMemo(
    () => ({ draft, isChanged, setValue, setText, setFormat, reset }),
    [draft, isChanged, setValue, setText, setFormat, reset],
  )
}
