// The parts whose numbers a caller sees: one who has the right to analytics in workspaces, APIs or environments only has to
// name some of them in each query. Pages ask with them, so that nothing is refused that can be answered.
import { useSyncExternalStore } from 'react'
import type { Query } from './analytics'
import { useCan } from './rights'

/** Some parts of one kind: all that is in a filter has to hold of a call, so that two kinds would narrow each other. */
export interface Parts {
  kind: string
  names: string[]
}

/** The filters of queries that name parts, in the order in which one is chosen. */
const KINDS = ['api', 'workspace', 'environment']
const WORDS: Record<string, [string, string]> = { api: ['API', 'APIs'], workspace: ['workspace', 'workspaces'], environment: ['environment', 'environments'] }

/** Which parts may be chosen: all of a kind, then each of them. `null`: the caller sees everything. */
export function partsOf(scopes: string[]): Parts[] | null {
  if (scopes.includes('everything')) return null
  const named = scopes.map((it) => [it.slice(0, it.indexOf(':')), it.slice(it.indexOf(':') + 1)] as const)
  return KINDS.flatMap((kind) => {
    const names = [...new Set(named.filter(([of]) => of === kind).map(([, name]) => name))].sort()
    const each = names.map((name) => ({ kind, names: [name] }))
    return names.length > 1 ? [{ kind, names }, ...each] : each
  })
}

/** Parts in words: "the API pets", "the workspaces a and b". */
export function partsText({ kind, names }: Parts): string {
  const [one, many] = WORDS[kind] ?? [kind, kind]
  const last = names.at(-1) ?? ''
  return names.length === 1 ? `the ${one} ${last}` : `the ${many} ${names.slice(0, -1).join(', ')} and ${last}`
}

export const partsKey = ({ kind, names }: Parts): string => `${kind}:${names.join('|')}`

/** A query with the parts in its filter, unless it names parts of any kind itself. */
export function within(query: Query, parts: Parts | null): Query {
  if (parts === null || KINDS.some((kind) => query.filter?.[kind] !== undefined)) return query
  return { ...query, filter: { ...query.filter, [parts.kind]: parts.names } }
}

// What was chosen holds for all pages until this tab is closed.
let chosen = ''
const listeners = new Set<() => void>()
const listen = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function chooseParts(parts: Parts) {
  chosen = partsKey(parts)
  for (const listener of listeners) listener()
}

interface SeenParts {
  /** Whether it is known what the caller sees. */
  isKnown: boolean
  all: Parts[]
  /** `null`: everything, or nothing at all, of which the server says why. */
  current: Parts | null
}

export function useParts(): SeenParts {
  const can = useCan()
  const wanted = useSyncExternalStore(listen, () => chosen)
  const right = can.data?.find((it) => it.operation === 'queryAnalytics')
  const all = right === undefined ? [] : (partsOf(right.scopes) ?? [])
  return { isKnown: can.data !== undefined || can.error !== null, all, current: all.find((it) => partsKey(it) === wanted) ?? all[0] ?? null }
}
