// Places in a document, and changes at them. Values are never changed in place.
import type { Fields, Json } from '../api/types'

export type Path = (string | number)[]

/** `routes[0].plugins` */
export function pathText(path: Path): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('')
}

/** Reads what `pathText` writes, and what the server says. */
export function parsePath(text: string): Path {
  return [...text.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name]) => (index !== undefined ? Number(index) : (name ?? '')))
}

export const isMap = (value: Json | undefined): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function at(value: Json | undefined, path: Path): Json | undefined {
  let current: Json | undefined = value
  for (const step of path) {
    if (Array.isArray(current) && typeof step === 'number') current = current[step]
    else if (isMap(current)) current = current[String(step)]
    else return undefined
  }
  return current
}

/** The value with something else at a place; `undefined` takes it away. */
export function withAt(value: Json | undefined, path: Path, next: Json | undefined): Json | undefined {
  const [step, ...rest] = path
  if (step === undefined) return next
  if (typeof step === 'number') {
    const list = Array.isArray(value) ? [...value] : []
    const inner = withAt(list[step], rest, next)
    if (inner === undefined) list.splice(step, 1)
    else list[step] = inner
    return list
  }
  const map: Fields = isMap(value) ? { ...value } : {}
  const inner = withAt(map[step], rest, next)
  if (inner === undefined) delete map[step]
  else map[step] = inner
  return map
}

export function isSame(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((it, index) => isSame(it, b[index]))
  if (isMap(a) && isMap(b)) {
    const names = Object.keys(a)
    return names.length === Object.keys(b).length && names.every((name) => name in b && isSame(a[name], b[name]))
  }
  return false
}

export interface Change {
  path: Path
  before: Json | undefined
  after: Json | undefined
}

/** What differs, field by field. Lists of the same length are compared item by item. */
export function differences(before: Json | undefined, after: Json | undefined, path: Path = []): Change[] {
  if (isSame(before, after)) return []
  if (isMap(before) && isMap(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    return names.flatMap((name) => differences(before[name], after[name], [...path, name]))
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((it, index) => differences(it, after[index], [...path, index]))
  }
  return [{ path, before, after }]
}
