// What is wrong with the server right now, as far as calls show it: it does not answer, it answers with errors, or it is
// slow. The frame says it above every page. Refusals of single calls are not trouble; their pages show them.

/** A call that waits for longer than this is named. */
const SLOW_MS = 5_000

export type Trouble =
  | { kind: 'away' }
  | { kind: 'failing'; method: string; path: string; status: number; requestId: string | null }
  | { kind: 'slow'; method: string; path: string }

const known = new Map<string, Trouble>()
const listeners = new Set<() => void>()
let worst: Trouble | null = null
const RANK = { away: 0, failing: 1, slow: 2 }

function changed() {
  const next = [...known.values()].sort((a, b) => RANK[a.kind] - RANK[b.kind])[0] ?? null
  if (next === worst) return
  worst = next
  listeners.forEach((listener) => listener())
}

export const trouble = {
  subscribe: (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
  /** The worst. */
  get: (): Trouble | null => worst,
  /** Another page is opened: what the calls of the last one met is not its trouble. */
  leavePage: () => {
    for (const [key, it] of known) if (it.kind === 'failing') known.delete(key)
    changed()
  },
}

export interface Watched {
  /** No answer came. */
  lost: () => void
  /** An answer came. */
  answered: (status: number, requestId: string | null) => void
  /** The page does not wait for it any more. */
  ended: () => void
}

/** Watches one call. */
export function watch(method: string, path: string): Watched {
  const key = `${method} ${path}`
  const slow = `slow ${key}`
  const timer = setTimeout(() => {
    known.set(slow, { kind: 'slow', method, path })
    changed()
  }, SLOW_MS)
  const ended = () => {
    clearTimeout(timer)
    known.delete(slow)
    changed()
  }
  return {
    ended,
    lost: () => {
      known.set('away', { kind: 'away' })
      ended()
    },
    answered: (status, requestId) => {
      known.delete('away')
      // A write that failed says so where it was made.
      if (status >= 500 && method === 'GET') known.set(key, { kind: 'failing', method, path, status, requestId })
      else known.delete(key)
      ended()
    },
  }
}
