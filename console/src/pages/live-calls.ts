// The calls that the page of live calls shows: those of the request log, new ones as they end, and what was missed while
// the stream of new ones was broken.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { type Call, follow } from '../api/analytics'
import { ApiError, get, login } from '../api/client'

const LOG = '/api/v1/analytics/calls'
const MOST = 2_000
const PAGE = 500
/** As many pages of the log are read for what was missed. */
const MOST_PAGES = MOST / PAGE
/** After a stream has ended. */
const AGAIN_MS = 2_000
const DRAW_MS = 300

type Filter = Record<string, string>

/** A part of the log, the latest first. */
export interface LogPage {
  calls: Call[]
  complete: boolean
  next?: string | null
}

/** A time in which calls may have ended that are not shown, in milliseconds. */
export interface Gap {
  from: number
  to: number
}

export const keyOf = (it: Call) => `${it.request_id} ${it.time} ${it.path}`

/** The calls of all lists, the latest first, each of them once. */
export function merged(lists: readonly (readonly Call[])[]): Call[] {
  const found = new Map<string, Call>()
  for (const it of lists.flat()) if (!found.has(keyOf(it))) found.set(keyOf(it), it)
  return [...found.values()].sort((a, b) => b.time - a.time).slice(0, MOST)
}

/**
 * Reads the log back to a call that is shown already; if there is none, the latest calls. What cannot be read back so far is a gap: too much has ended
 * meanwhile, or the log was lost.
 */
export async function readMissed(shown: readonly Call[], now: number, read: (after: string | undefined) => Promise<LogPage>): Promise<{ calls: Call[]; gap: Gap | null }> {
  const known = new Set(shown.map(keyOf))
  const newest = shown[0]?.time
  const calls: Call[] = []
  let after: string | undefined
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await read(after)
    calls.push(...answer.calls)
    if (newest === undefined || answer.calls.some((it) => known.has(keyOf(it)))) return { calls, gap: null }
    if (answer.complete || !answer.next) break
    after = answer.next
  }
  const oldest = calls.at(-1)?.time ?? now
  return { calls, gap: newest === undefined || oldest <= newest ? null : { from: newest, to: oldest } }
}

export interface LiveCalls {
  rows: Call[]
  isLoading: boolean
  /** Why they cannot be shown. */
  error: unknown
  retry: () => void
  /** Since when there is no stream, in milliseconds. */
  lostSince: number | null
  gap: Gap | null
  /** How many ended at once, above what is sent. */
  skipped: number
}

export function useLiveCalls(filter: Filter, isFollowing: boolean): LiveCalls {
  const [fresh, setFresh] = useState<Call[]>([])
  const [error, setError] = useState<unknown>(null)
  const [lostSince, setLostSince] = useState<number | null>(null)
  const [gap, setGap] = useState<Gap | null>(null)
  const [skipped, setSkipped] = useState(0)
  const [turn, setTurn] = useState(0)
  const known = useQuery({
    queryKey: ['calls', filter],
    queryFn: async ({ signal }) => (await get<LogPage>(LOG, { ...filter, limit: PAGE }, signal)).calls,
    staleTime: 0,
  })
  const rows = useMemo(() => merged([fresh, known.data ?? []]), [fresh, known.data])
  const shown = useRef(rows)
  shown.current = rows
  const waiting = useRef<Call[]>([])
  // Calls of another question are not answers to this one. A pause leaves what is shown.
  useEffect(() => {
    waiting.current = []
    setFresh([])
    setError(null)
    setLostSince(null)
    setGap(null)
    setSkipped(0)
  }, [filter])
  const refusal = known.error
  useEffect(() => {
    if (!isFollowing || refusal) return
    const abort = new AbortController()
    let again: ReturnType<typeof setTimeout> | undefined
    let isLost = false
    const later = () => {
      if (!isLost) setLostSince(Date.now())
      isLost = true
      again = setTimeout(open, AGAIN_MS)
    }
    // Of several, all the time that they are in is named.
    const addGap = (gap: Gap) => setGap((old) => ({ from: old?.from ?? gap.from, to: gap.to }))
    /** What ended before the stream was there, and after the log was read. */
    const catchUp = async () => {
      const before = shown.current
      isLost = false
      try {
        const missed = await readMissed(before, Date.now(), (after) => get<LogPage>(LOG, { ...filter, limit: PAGE, after }, abort.signal))
        waiting.current.push(...missed.calls)
        if (missed.gap !== null) addGap(missed.gap)
      } catch {
        if (!abort.signal.aborted && before[0] !== undefined) addGap({ from: before[0].time, to: Date.now() })
      }
    }
    const listener = {
      onOpen: () => {
        setError(null)
        setLostSince(null)
        void catchUp()
      },
      onCall: (call: Call) => void waiting.current.push(call),
      onSkipped: (calls: number) => setSkipped((old) => old + calls),
    }
    const open = () => {
      // Calls without a login would be refused again and again.
      if (login.isNeeded()) return later()
      return (
        follow(filter, abort.signal, listener)
          // The server has ended it, as it does when it restarts.
          .then(() => !abort.signal.aborted && later())
          .catch((wrong: unknown) => {
            if (abort.signal.aborted) return
            // A server that is away, or that fails, comes back. What it refuses stays refused.
            if (wrong instanceof ApiError && wrong.status !== 401) setError(wrong)
            if (!(wrong instanceof ApiError) || wrong.status === 401 || wrong.status >= 500) later()
          })
      )
    }
    void open()
    const timer = setInterval(() => {
      const arrived = waiting.current
      if (arrived.length === 0) return
      waiting.current = []
      setFresh((old) => merged([arrived, old]))
    }, DRAW_MS)
    return () => {
      abort.abort()
      clearTimeout(again)
      clearInterval(timer)
    }
  }, [filter, isFollowing, refusal, turn])
  const retry = () => {
    setError(null)
    setTurn((old) => old + 1)
    if (refusal) void known.refetch()
  }
  return { rows, isLoading: known.isLoading, error: refusal ?? error, retry, lostSince: isFollowing ? lostSince : null, gap, skipped }
}
