// A document of Kong or APISIX: its form, made from the original's own schema, and its text. It is saved through the
// original's Admin API, whole: what the form does not know stays as it is.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiError, call } from '../api/client'
import { type Foreign, type ForeignDocument, readForeign, useForeign, useForeignSchema, writeForeign } from '../api/dialects'
import { useRight } from '../api/rights'
import type { Fields } from '../api/types'
import { ConflictDialog } from '../form/conflict'
import { begunWith, useDraft } from '../form/draft'
import { SaveDialog } from '../form/save'
import { Failure, PageActions } from '../shell/page'
import { Act } from '../ui/act'
import { Button } from '../ui/button'
import { toast } from '../ui/toast'
import { DIALECTS } from './dialects'
import { Effects, movesCalls } from './effects'
import { ForeignFields, type View, ViewTabs } from './foreign-fields'

const PAUSE_MS = 400

export default function ForeignEditor({ foreign, name, list }: { foreign: Foreign; name: string; list: string }) {
  const document = useForeign(foreign)
  if (document.error && document.data === undefined) return <Failure error={document.error} onRetry={() => void document.refetch()} />
  if (document.data === undefined) return <div className="skeleton tall" aria-busy="true" />
  return <Edit key={foreign.path} foreign={foreign} name={name} list={list} latest={document.data} />
}

type Above = { kind: 'save'; after: Fields } | { kind: 'conflict'; theirs: ForeignDocument } | { kind: 'delete' } | null

interface EditProps {
  foreign: Foreign
  name: string
  list: string
  latest: ForeignDocument
}

function Edit({ foreign, name, list, latest }: EditProps) {
  const [base, setBase] = useState(() => begunWith(foreign.path) ?? latest)
  const { draft, isChanged, setValue, setText, setFormat, reset } = useDraft(foreign.path, base)
  const schema = useForeignSchema(foreign, draft.value)
  const [above, setAbove] = useState<Above>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [view, setView] = useState<View>('form')
  const [, go] = useLocation()
  const client = useQueryClient()
  const refused = useRight('configuration:write')
  const checked = useCheck(foreign, draft.value, draft.error === null && isChanged)
  const findings = useMemo(() => findingsOf(error instanceof ApiError ? error : checked), [error, checked])
  useEffect(() => {
    if (latest.tag === base.tag || isChanged) return
    setBase(latest)
    reset(latest.data)
  }, [latest, base.tag, isChanged, reset])

  const refuse = async (wrong: unknown) => {
    if (!(wrong instanceof ApiError && wrong.status === 412)) return setError(wrong)
    try {
      setAbove({ kind: 'conflict', theirs: await readForeign(foreign) })
    } catch (gone) {
      // It was deleted meanwhile, or the server is away: the edit stays.
      setAbove(null)
      setError(gone)
    }
  }
  const attempt = async (work: () => Promise<void>) => {
    setBusy(true)
    setError(null)
    try {
      await work()
    } catch (wrong) {
      await refuse(wrong)
    }
    setBusy(false)
  }
  const review = (value: Fields = draft.value, tag = base.tag) =>
    attempt(async () => setAbove({ kind: 'save', after: (await writeForeign(foreign, value, tag, true)).data }))
  const commit = (note: string) =>
    attempt(async () => {
      const stored = await writeForeign(foreign, draft.value, base.tag, false, note)
      const before = base.data
      setAbove(null)
      setBase(stored)
      reset(stored.data)
      client.setQueryData(['configuration', 'foreign', foreign.path], stored)
      await client.invalidateQueries({ queryKey: ['configuration'] })
      toast(`${name} is saved`, {
        action: {
          text: 'Undo',
          run: () =>
            void writeForeign(foreign, before, stored.tag, false, `Undo: ${name}`)
              .then(async () => {
                await client.invalidateQueries({ queryKey: ['configuration'] })
                toast(`${name} is what it was`)
              })
              .catch((wrong: unknown) => toast(wrong instanceof Error ? wrong.message : String(wrong), { isBad: true })),
        },
      })
    })

  const cannotSave = refused ?? (draft.error ? 'The text cannot be read.' : !isChanged ? 'Nothing is changed.' : null)
  const unplaced = findings.get('') ?? []
  return (
    <>
      <PageActions>
        <Button look="quiet" icon="trash" refused={refused} onPress={() => setAbove({ kind: 'delete' })}>
          Delete
        </Button>
        {isChanged && <Button onPress={() => (setBase(latest), reset(latest.data), setError(null))}>Discard</Button>}
        <Button look="primary" refused={cannotSave} isBusy={isBusy} onPress={() => void review()}>
          Review and save
        </Button>
      </PageActions>
      <ViewTabs view={view} onChange={setView} />
      {latest.tag !== base.tag && isChanged && (
        <div className="note warn" role="status">
          <strong>A newer revision exists</strong>
          <span>Somebody changed this since you began. Saving shows both side by side.</span>
        </div>
      )}
      {error !== null && findings.size === 0 && <Failure error={error} onRetry={() => void review()} />}
      {unplaced.length > 0 && (
        <div className="note bad" role="alert">
          {unplaced.map((text) => (
            <span key={text}>{text}</span>
          ))}
        </div>
      )}
      {schema.error && <Failure error={schema.error} onRetry={() => void schema.refetch()} />}
      <ForeignFields dialect={foreign.dialect} name={name} without={foreign.own} view={view} draft={draft} schema={schema.data} findings={findings} isReadOnly={refused !== null} setValue={setValue} setText={setText} setFormat={setFormat} />
      {above?.kind === 'save' && (
        <SaveDialog title={`Save ${name}?`} before={base.data} after={above.after} warning={null} error={error} isBusy={isBusy} onClose={() => setAbove(null)} onCommit={(note) => void commit(note)}>
          {movesCalls(foreign.kind) && <Effects documents={{ [foreign.document]: above.after }} />}
        </SaveDialog>
      )}
      {above?.kind === 'conflict' && (
        <ConflictDialog
          base={base.data}
          theirs={above.theirs.data}
          mine={draft.value}
          by={null}
          onClose={() => setAbove(null)}
          onMerged={(value) => {
            const { theirs } = above
            setBase(theirs)
            setValue(value)
            setAbove(null)
            void review(value, theirs.tag)
          }}
        />
      )}
      {above?.kind === 'delete' && (
        <Act
          title={`Delete ${name}?`}
          action="Delete"
          look="danger"
          wide={movesCalls(foreign.kind)}
          onClose={() => setAbove(null)}
          run={async () => {
            await call('DELETE', foreign.path, { headers: { 'if-match': base.tag ?? undefined } })
            await client.invalidateQueries({ queryKey: ['configuration'] })
            toast(`${name} is deleted`)
            go(`/${list}`)
          }}
        >
          <p>{DIALECTS[foreign.dialect]} refuses if something still needs it. The history keeps it: any revision can be brought back.</p>
          {movesCalls(foreign.kind) && <Effects documents={{ [foreign.document]: null }} />}
        </Act>
      )}
    </>
  )
}

/** What the original would say, asked a moment after the last change. */
function useCheck(foreign: Foreign, value: Fields, isWanted: boolean): ApiError | null {
  const [said, setSaid] = useState<ApiError | null>(null)
  useEffect(() => {
    if (!isWanted) {
      setSaid(null)
      return
    }
    const abort = new AbortController()
    const timer = setTimeout(() => {
      writeForeign(foreign, value, null, true, '', abort.signal)
        .then(() => !abort.signal.aborted && setSaid(null))
        .catch((error: unknown) => {
          if (!abort.signal.aborted) setSaid(error instanceof ApiError && error.status === 400 ? error : null)
        })
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [foreign, value, isWanted])
  return said
}

/** What is wrong where: Kong names the fields. */
export function findingsOf(error: ApiError | null): Map<string, string[]> {
  const found = new Map<string, string[]>()
  if (error === null || error.status !== 400) return found
  const all = error.findings.length > 0 ? error.findings : [{ path: '', message: error.message }]
  for (const it of all) found.set(it.path, [...(found.get(it.path) ?? []), it.message])
  return found
}
