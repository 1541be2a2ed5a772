// A document that a dialog changes whole. What others have stored since it was opened stays; what both have changed is
// chosen side by side, as in the editors that have pages of their own.
import { type ReactNode, useCallback, useRef, useState } from 'react'
import { type LastChange, get } from '../api/client'
import type { Commit, Fields } from '../api/types'
import { ConflictDialog } from './conflict'
import type { Begun } from './draft'
import { merge } from './merge'
import { isMap } from './path'
import { send } from './send'

const CHOOSE = 'It was changed meanwhile. Choose what stays, and save again.'

interface Options {
  /** What the dialog began with; `null`: a document that is made. */
  opened: object | null
  /** Reads what is stored now, as the dialog edits it. */
  read: () => Promise<Begun>
  /** Takes what was chosen into the dialog. */
  onChosen: (value: Fields) => void
}

interface Versioned {
  /** Stores it with what others have changed meanwhile; throws if something has to be chosen first. */
  put: (path: string, mine: object) => Promise<void>
  /** The choice, while there is one; it belongs into the dialog. */
  choice: ReactNode
}

export function useVersioned(options: Options): Versioned {
  const base = useRef(options.opened as Fields | null)
  const latest = useRef(options)
  latest.current = options
  const [met, setMet] = useState<{ base: Fields; theirs: Fields; mine: Fields; by: LastChange | null } | null>(null)
  const put = useCallback(async (path: string, mine: object) => {
    if (base.current === null) return void (await send('PUT', path, mine, { isDry: false, tag: null }))
    const now = await latest.current.read()
    const merged = merge(base.current, now.data, mine as Fields)
    if (merged.conflicts.length > 0) {
      setMet({ base: base.current, theirs: now.data, mine: mine as Fields, by: await authorOf(now.tag) })
      throw new Error(CHOOSE)
    }
    await send('PUT', path, isMap(merged.value) ? merged.value : mine, { isDry: false, ...(now.tag === null ? {} : { tag: now.tag }) })
  }, [])
  const choice = met && (
    <ConflictDialog
      {...met}
      onClose={() => setMet(null)}
      onMerged={(value) => {
        base.current = met.theirs
        latest.current.onChosen(value)
        setMet(null)
      }}
    />
  )
  return { put, choice }
}

/** Who stored a version; `null`: the caller may not read the history, or it does not go back so far. */
async function authorOf(tag: string | null): Promise<LastChange | null> {
  const revision = Number(tag?.replaceAll('"', ''))
  if (!Number.isSafeInteger(revision) || revision <= 0) return null
  const { items } = await get<{ items: Commit[] }>('/api/v1/history', { before: revision + 1, limit: 1 }).catch(() => ({ items: [] }))
  return items[0]?.revision === revision ? items[0] : null
}
