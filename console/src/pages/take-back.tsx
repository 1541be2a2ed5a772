// One document of a commit made what it was before: shown first, one commit, and one press takes that back. The others of the
// commit stay as they are.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Planned, commit, undo } from '../api/changes'
import { ApiError, call } from '../api/client'
import { documentPath } from '../api/hooks'
import type { Difference, Fields } from '../api/types'
import { placeOf } from '../documents'
import { DiffTable } from '../form/diff-table'
import { isMap } from '../form/path'
import { Failure } from '../shell/page'
import { Act } from '../ui/act'
import { TextField } from '../ui/field'
import { toast } from '../ui/toast'
import { isRedacted } from './document-history'
import { Effects, movesCalls } from './effects'

/** Whether a document can be taken back here: native ones of the store. */
export const canTakeBack = (it: Difference): boolean => it.document.startsWith('native/') && placeOf(it.document).to !== null

export function TakeBack({ difference, revision, onClose }: { difference: Difference; revision: number; onClose: () => void }) {
  const { kind, name } = placeOf(difference.document)
  const after = isMap(difference.before) ? difference.before : null
  const [note, setNote] = useState('')
  const client = useQueryClient()
  const tried = useQuery({
    queryKey: ['configuration', 'take-back', difference.document, revision],
    queryFn: async (): Promise<Planned> => {
      const now = await call<Fields>('GET', documentPath(kind, name)).catch((wrong: unknown) => {
        if (wrong instanceof ApiError && wrong.status === 404) return null
        throw wrong
      })
      const planned = { kind, name, before: now?.data ?? null, tag: now?.tag ?? null, after }
      if (now !== null || after !== null) await commit([planned], '', true)
      return planned
    },
    staleTime: 0,
    retry: false,
  })
  const planned = tried.data
  const isSame = planned !== undefined && JSON.stringify(planned.before) === JSON.stringify(after)
  const refused = tried.error
    ? 'Weir refuses this.'
    : isRedacted(after)
      ? 'It held secrets, which the history shows to administrators only.'
      : planned === undefined
        ? 'It is being checked.'
        : isSame
          ? 'It is so already.'
          : null
  const run = async () => {
    if (planned === undefined) return
    const said = note === '' ? `Take back ${difference.document} of revision ${revision}` : note
    const made = await commit([planned], said)
    toast(`${name} is what it was before revision ${revision}`, {
      ...(made.revision === null ? {} : { link: { to: `/history/${made.revision}`, text: `r${made.revision}` } }),
      action: {
        text: 'Undo',
        run: () =>
          void undo([planned], made, `Undo: ${said}`)
            .then(() => client.invalidateQueries())
            .catch((wrong: unknown) => toast(wrong instanceof Error ? wrong.message : String(wrong), { isBad: true })),
      },
    })
    await client.invalidateQueries()
    onClose()
  }
  return (
    <Act title={`Take ${name} back?`} action="Take back" wide refused={refused} onClose={onClose} run={run}>
      <p>
        It becomes what it was before revision {revision}{after === null ? ': it was not there, so it goes' : ''}. The other documents of that commit stay as they are.
      </p>
      {tried.error && <Failure error={tried.error} onRetry={() => void tried.refetch()} />}
      {planned && <DiffTable before={planned.before ?? undefined} after={after ?? undefined} />}
      {planned && !isSame && movesCalls(kind) && <Effects documents={{ [difference.document]: after }} />}
      <TextField label="Note" value={note} onChange={setNote} placeholder="Why, for those who read the history" />
    </Act>
  )
}
