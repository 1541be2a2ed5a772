// Taking back a change of a document.
import { ApiError, call } from '../api/client'
import { documentPath } from '../api/hooks'
import type { Fields } from '../api/types'
import type { Kind } from '../kinds'
import { toast } from '../ui/toast'

/** Makes a document what it was before a commit, unless it was changed again since. */
export async function undo(kind: Kind, name: string, before: Fields | null, tag: string | null) {
  const headers = { 'if-match': tag ?? undefined }
  try {
    if (before === null) await call('DELETE', documentPath(kind.path, name), { headers })
    else await call('PUT', documentPath(kind.path, name), { body: before, headers })
    toast(`${name} is what it was`)
  } catch (error) {
    toast(error instanceof ApiError && error.status === 412 ? `${name} was changed again since; history can bring it back.` : (error as Error).message, { isBad: true })
  }
}
