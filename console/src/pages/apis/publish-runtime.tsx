// The addresses that a publish stores: what they begin with, what is typed, and what others have stored meanwhile.
import { type ReactNode, useState } from 'react'
import { type Publication, type Runtime, publicationPath } from '../../api/apis'
import { ApiError, type LastChange, call } from '../../api/client'
import type { Fields } from '../../api/types'
import { ConflictDialog } from '../../form/conflict'
import { isSame } from '../../form/path'

interface Edit {
  /** What was stored when it began; `null`: nothing. */
  base: Runtime | null
  value: Runtime
}

interface Options {
  api: string
  version: string
  environment: string
  /** What is stored there, as far as the page knows. */
  stored: Runtime | null
  /** What it begins with. */
  begin: Runtime
}

interface EditedRuntime {
  runtime: Runtime
  set: (runtime: Runtime) => void
  /** Whether others have stored something else since the edit began. */
  isOutdated: boolean
  /**
   * Does something with the headers by which no addresses are overwritten that were not seen here. If others have
   * stored other addresses, it is not done: both are put together first.
   */
  guarded: (act: (headers: Record<string, string>) => Promise<void>) => Promise<void>
  /** The choice, while there is one. */
  choice: ReactNode
}

const fields = (runtime: Runtime | null): Fields => (runtime ?? {}) as unknown as Fields
const same = (a: Runtime | null, b: Runtime | null): boolean => isSame(fields(a), fields(b))

/** The publication that is stored now, with its version. */
async function read(path: string): Promise<{ runtime: Runtime | null; tag: string | null }> {
  try {
    const { data, tag } = await call<Publication>('GET', path)
    return { runtime: data.runtime, tag }
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { runtime: null, tag: null }
    throw error
  }
}

export function useRuntime({ api, version, environment, stored, begin }: Options): EditedRuntime {
  const [edits, setEdits] = useState<Record<string, Edit>>({})
  const [met, setMet] = useState<{ base: Runtime | null; theirs: Runtime | null; by: LastChange | null } | null>(null)
  const edit = edits[environment]
  const base = edit ? edit.base : stored
  const runtime = edit?.value ?? begin
  const keep = (it: Edit) => setEdits((old) => ({ ...old, [environment]: it }))
  const guarded = async (act: (headers: Record<string, string>) => Promise<void>) => {
    const path = publicationPath(api, version, environment)
    const now = await read(path)
    if (!same(now.runtime, base)) {
      setMet({ base, theirs: now.runtime, by: null })
      return
    }
    try {
      await act(now.tag === null ? { 'if-none-match': '*' } : { 'if-match': now.tag })
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 412)) throw error
      const { changed } = error
      const { runtime: theirs } = await read(path)
      // Something else of the publication was changed, such as its revision: the check shows what it means.
      if (same(theirs, base)) throw error
      setMet({ base, theirs, by: changed })
    }
  }
  const choice = met && (
    <ConflictDialog
      base={fields(met.base)}
      theirs={fields(met.theirs)}
      mine={fields(runtime)}
      by={met.by}
      onClose={() => setMet(null)}
      onMerged={(value) => {
        keep({ base: met.theirs, value: value as unknown as Runtime })
        setMet(null)
      }}
    />
  )
  return { runtime, set: (value) => keep({ base, value }), isOutdated: edit !== undefined && !same(edit.base, stored), guarded, choice }
}
