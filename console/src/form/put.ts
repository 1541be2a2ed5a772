// An entity that a dialog changes whole: what somebody else has stored since it was opened is not overwritten unseen.
import { useCallback, useRef } from 'react'
import type { Fields, Json } from '../api/types'
import { merge } from './merge'
import { isMap, isSame, pathText } from './path'

/** What was changed on both sides, in words. */
export function overlapText(places: { path: string; theirs: Json | undefined }[]): string {
  const told = places.map((it) => `${it.path} (now ${it.theirs === undefined ? 'left out' : JSON.stringify(it.theirs)})`)
  return `Somebody else has changed ${told.join(', ')} meanwhile. Press again to store yours in its place. What else they have changed stays.`
}

/**
 * Gives what to store. What both sides have changed is refused once, with their values; what only they have changed is
 * taken over.
 */
export function useMerged(opened: object | null, read: () => Promise<object>): (mine: object) => Promise<Fields> {
  const base = useRef(opened as Fields | null)
  const seen = useRef<Fields | null>(null)
  const reading = useRef(read)
  reading.current = read
  return useCallback(async (mine: object) => {
    if (base.current === null) return mine as Fields
    const now = (await reading.current()) as Fields
    const merged = merge(base.current, now, mine as Fields)
    if (merged.conflicts.length > 0 && !isSame(now, seen.current ?? undefined)) {
      seen.current = now
      throw new Error(overlapText(merged.conflicts.map((it) => ({ path: pathText(it.path), theirs: it.theirs }))))
    }
    return isMap(merged.value) ? merged.value : (mine as Fields)
  }, [])
}
