// Deleting a document, and taking back a deletion or a change.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiError, call } from '../api/client'
import { type Document, documentPath } from '../api/hooks'
import type { Fields } from '../api/types'
import type { Kind } from '../kinds'
import { Failure } from '../shell/page'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
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

export function Delete({ kind, name, document, onClose }: { kind: Kind; name: string; document: Document; onClose: () => void }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  /** Why it would be refused, as a deletion that is only tried says; `null`: it would not; `undefined`: that is being asked. */
  const [needed, setNeeded] = useState<unknown>(undefined)
  useEffect(() => {
    const abort = new AbortController()
    const say = (refused: unknown) => !abort.signal.aborted && setNeeded(refused)
    call('DELETE', documentPath(kind.path, name), { headers: { 'weir-dry-run': 'true' }, signal: abort.signal }).then(() => say(null), say)
    return () => abort.abort()
  }, [kind, name])
  const [, go] = useLocation()
  const client = useQueryClient()
  const remove = async () => {
    setBusy(true)
    setError(null)
    try {
      await call('DELETE', documentPath(kind.path, name), { headers: { 'if-match': document.tag ?? undefined } })
      toast(`${name} is deleted`, { action: { text: 'Undo', run: () => void restore(kind, name, document.data) } })
      await client.invalidateQueries({ queryKey: ['configuration'] })
      go(`/${kind.path}`)
    } catch (refused) {
      setError(refused)
    }
    setBusy(false)
  }
  return (
    <Dialog
      title={`Delete ${name}?`}
      isOpen
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Keep</Button>
          <Button look="danger" isBusy={isBusy} onPress={() => void remove()}>
            Delete
          </Button>
        </>
      }
    >
      <p>{needed === null && 'Nothing needs it. '}History keeps it: any revision can be brought back.</p>
      {needed !== null && needed !== undefined && error === null && <p className="muted">It is refused as long as something needs it:</p>}
      {(error ?? needed ?? null) !== null && <Failure error={error ?? needed} />}
    </Dialog>
  )
}

async function restore(kind: Kind, name: string, before: Fields) {
  try {
    await call('PUT', documentPath(kind.path, name), { body: before })
    toast(`${name} is back`, { link: { to: `/${kind.path}/${encodeURIComponent(name)}`, text: 'Open' } })
  } catch (error) {
    toast((error as Error).message, { isBad: true })
  }
}
