// Whether Weir accepts what is edited, before it is saved: asked while somebody types, and told field by field.
import { useEffect, useState } from 'react'
import { ApiError, call } from '../api/client'
import { documentPath } from '../api/hooks'
import type { Fields } from '../api/types'
import { parsePath, pathText } from '../form/path'
import type { Kind } from '../kinds'

/** After the last key, until the draft is checked. */
const PAUSE_MS = 400

/** What the server would say, asked a moment after the last change. */
export function useCheck(kind: Kind, name: string, value: Fields, isWanted: boolean, tag: string | null): ApiError | null {
  const [said, setSaid] = useState<ApiError | null>(null)
  useEffect(() => {
    if (!isWanted) {
      setSaid(null)
      return
    }
    const abort = new AbortController()
    const timer = setTimeout(() => {
      call('PUT', documentPath(kind.path, name), { body: value, headers: { 'weir-dry-run': 'true' }, signal: abort.signal })
        .then(() => !abort.signal.aborted && setSaid(null))
        .catch((error: unknown) => {
          if (!abort.signal.aborted) setSaid(error instanceof ApiError && error.status === 422 ? error : null)
        })
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [kind, name, value, isWanted, tag])
  return said
}

/** What is wrong where. */
export function findingsOf(error: ApiError | null): Map<string, string[]> {
  const found = new Map<string, string[]>()
  if (error === null || (error.status !== 422 && error.status !== 400)) return found
  const all = error.findings.length > 0 ? error.findings : [{ path: '', message: error.message }]
  for (const it of all) {
    // `services.NAME.url` and `services[0].url` both mean the field of the document that is edited.
    const path = parsePath(it.path)
    const place = ['services', 'routes', 'upstreams', 'consumers', 'plugins', 'certificates', 'acme', 'stream_routes'].includes(String(path[0])) && path.length > 2 ? path.slice(2) : path
    const key = pathText(place)
    found.set(key, [...(found.get(key) ?? []), it.message])
  }
  return found
}
