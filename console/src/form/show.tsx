// A value in a table of differences.
import type { Json } from '../api/types'
import { stringify } from '../yaml'

export function Shown({ value }: { value: Json | undefined }) {
  if (value === undefined) return <span className="muted">not set</span>
  return <pre>{typeof value === 'string' ? value : stringify(value).trimEnd()}</pre>
}
