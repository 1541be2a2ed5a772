// Two changes of one document, put together: what only one side changed is taken, the rest is asked.
import type { Fields, Json } from '../api/types'
import { type Path, isMap, isSame, withAt } from './path'

export interface Conflict {
  path: Path
  base: Json | undefined
  theirs: Json | undefined
  mine: Json | undefined
}

export interface Merged {
  value: Json | undefined
  conflicts: Conflict[]
  /** Places that only the others changed. */
  taken: Path[]
}

export function merge(base: Json | undefined, theirs: Json | undefined, mine: Json | undefined, path: Path = []): Merged {
  if (isSame(theirs, mine) || isSame(base, theirs)) return { value: mine, conflicts: [], taken: [] }
  if (isSame(base, mine)) return { value: theirs, conflicts: [], taken: [path] }
  if (isMap(theirs) && isMap(mine) && (isMap(base) || base === undefined)) {
    const value: Fields = {}
    const merged: Merged = { value, conflicts: [], taken: [] }
    for (const name of new Set([...Object.keys(mine), ...Object.keys(theirs)])) {
      const inner = merge(isMap(base) ? base[name] : undefined, theirs[name], mine[name], [...path, name])
      if (inner.value !== undefined) value[name] = inner.value
      merged.conflicts.push(...inner.conflicts)
      merged.taken.push(...inner.taken)
    }
    return merged
  }
  if (Array.isArray(base) && Array.isArray(theirs) && Array.isArray(mine) && base.length === theirs.length && base.length === mine.length) {
    const inner = base.map((it, index) => merge(it, theirs[index], mine[index], [...path, index]))
    return {
      value: inner.map((it) => it.value as Json),
      conflicts: inner.flatMap((it) => it.conflicts),
      taken: inner.flatMap((it) => it.taken),
    }
  }
  return { value: mine, conflicts: [{ path, base, theirs, mine }], taken: [] }
}

/** The merged document once each conflict is decided. */
export function decided(merged: Merged, theirs: ReadonlySet<number>): Json | undefined {
  return merged.conflicts.reduce(
    (value, conflict, index) => (theirs.has(index) ? withAt(value, conflict.path, conflict.theirs) : value),
    merged.value,
  )
}
