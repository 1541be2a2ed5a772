// The draft of a version while it is edited: kept in the tab, and checked by the server a moment after the last change.
import { useCallback, useEffect, useMemo, useState } from 'react'
import { type Draft, type LintFinding, type VersionDetail, versionPath } from '../../api/apis'
import { ApiError, call } from '../../api/client'
import type { Json } from '../../api/types'
import { keep, kept } from '../../form/kept'
import { isSame } from '../../form/path'

export interface Edited extends Required<Draft> {
  spec: string
}

const PAUSE_MS = 500

export const editedOf = (version: VersionDetail, spec: string): Edited => ({
  spec,
  components: version.draft.components ?? [],
  operations: version.draft.operations ?? {},
  chain: version.draft.chain ?? [],
})

export const same = (a: Edited, b: Edited): boolean => isSame(a as unknown as Json, b as unknown as Json)

/** What of it is sent: only what differs, so that a document that is not touched is not merged again. */
export function bodyOf(base: Edited, edited: Edited): Partial<Edited> {
  const body: Partial<Edited> = {}
  if (edited.spec !== base.spec) body.spec = edited.spec
  if (!isSame(edited.components as unknown as Json, base.components as unknown as Json)) body.components = edited.components
  if (!isSame(edited.operations as unknown as Json, base.operations as unknown as Json)) body.operations = edited.operations
  if (!isSame(edited.chain, base.chain)) body.chain = edited.chain
  return body
}

interface Kept {
  /** The draft that the edit began with. */
  hash: string
  base: Edited
  edited: Edited
}

/** The edit of a draft; it outlives leaving the page. */
export function useEdited(version: VersionDetail, spec: string) {
  const name = `design/${version.api}/${version.version}`
  const [state, setState] = useState((): Kept => {
    const fresh = { hash: version.hash, base: editedOf(version, spec), edited: editedOf(version, spec) }
    const before = kept(name) as Partial<Kept> | null
    return before?.hash !== undefined && typeof before.base?.spec === 'string' && typeof before.edited?.spec === 'string' ? (before as Kept) : fresh
  })
  const isChanged = !same(state.base, state.edited)
  useEffect(() => keep(name, isChanged ? state : null), [state, isChanged, name])
  // An untouched page follows what is stored.
  useEffect(() => {
    if (!isChanged && version.hash !== state.hash) {
      const base = editedOf(version, spec)
      setState({ hash: version.hash, base, edited: base })
    }
  }, [version, spec, isChanged, state.hash])
  const change = useCallback((more: Partial<Edited>) => setState((old) => ({ ...old, edited: { ...old.edited, ...more } })), [])
  const reset = useCallback((hash: string, base: Edited, edited: Edited = base) => setState({ hash, base, edited }), [])
  return { ...state, isChanged, change, reset }
}

export interface Checked {
  /** What the server would make of it. */
  detail: VersionDetail | null
  refused: ApiError | null
  isChecking: boolean
}

/** What the server would say to the draft. */
export function useCheckedDraft(version: VersionDetail, base: Edited, edited: Edited): Checked {
  const [checked, setChecked] = useState<Checked>({ detail: null, refused: null, isChecking: false })
  const body = useMemo(() => bodyOf(base, edited), [base, edited])
  useEffect(() => {
    if (Object.keys(body).length === 0) {
      setChecked({ detail: null, refused: null, isChecking: false })
      return
    }
    const abort = new AbortController()
    setChecked((old) => ({ ...old, isChecking: true }))
    const timer = setTimeout(() => {
      call<VersionDetail>('PUT', versionPath(version.api, version.version), { body, headers: { 'weir-dry-run': 'true' }, signal: abort.signal })
        .then((answer) => setChecked({ detail: answer.data, refused: null, isChecking: false }))
        .catch((error: unknown) => {
          if (abort.signal.aborted) return
          if (error instanceof ApiError) setChecked((old) => ({ ...old, refused: error, isChecking: false }))
        })
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [version.api, version.version, body])
  return checked
}

/** What a refused document says of its places: `12:3: error: …`. */
export function findingsIn(error: ApiError): LintFinding[] {
  return error.findings.map((it) => {
    const [, line, column, , message] = /^(\d+):(\d+): (\w+): (.*)$/s.exec(it.message) ?? []
    return { rule: '', level: 'error', message: message ?? it.message, path: it.path, line: line ? Number(line) : null, column: column ? Number(column) : null }
  })
}
