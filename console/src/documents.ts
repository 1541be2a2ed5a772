// Keys of stored documents, such as `native/routes/orders` or `kong/default/services/ID`, as people read them.
import { kindOf } from './kinds'

export interface Place {
  door: string
  kind: string
  name: string
  /** Where the console shows it; `null`: it has no page. */
  to: string | null
}

export function placeOf(key: string): Place {
  const [door = '', ...rest] = key.split('/')
  const name = rest.at(-1) ?? ''
  const kind = rest.at(-2) ?? rest[0] ?? ''
  if (door === 'native' && kindOf(kind) !== undefined) return { door, kind, name, to: `/${kind}/${encodeURIComponent(name)}` }
  return { door: door === 'weir' ? 'weir' : door, kind, name, to: null }
}
