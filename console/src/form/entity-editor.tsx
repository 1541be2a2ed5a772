// An entity that is edited by a form and as text: checked while it is edited, saved after a look at what changes. The form
// is the page's own; the text holds all of it, and what the form does not know stays.
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { ApiError, type LastChange } from '../api/client'
import type { Fields } from '../api/types'
import { useSearchParams } from 'wouter'
import { Failure, PageActions } from '../shell/page'
import { Button } from '../ui/button'
import { Choices } from '../ui/choices'
import { ConflictDialog } from './conflict'
import { type Begun, type Draft, begunWith, storedNow, useDraft } from './draft'
import { FormatChoice } from './format-choice'
import { isMap, isSame } from './path'
import { SaveDialog } from './save'
import type { SendOptions } from './send'
import { TextEditor } from '../ui/text-editor'

/** After the last key, until the draft is checked. */
const PAUSE_MS = 400
const NONE: readonly Begun[] = []

type View = 'form' | 'both' | 'text'
const VIEWS: Record<View, string> = { form: 'Form', both: 'Form and text', text: 'Text' }

/** The view that the address names. */
const viewIn = (parameters: URLSearchParams): View => {
  const named = parameters.get('view') as View | null
  return named !== null && named in VIEWS ? named : 'form'
}

interface Props {
  /** The name under which the draft is kept. */
  kept: string
  /** What it is called in the dialog and for screen readers. */
  title: string
  /** What is stored, and its version; for a new one, what it begins with. */
  base: Begun
  isNew: boolean
  refused: string | null
  /** Why it cannot be saved yet. */
  missing: (value: Fields) => string | null
  form: (value: Fields, onChange: (value: Fields) => void) => ReactNode
  /** Stores it, or tries to; gives what is stored then. */
  send: (value: Fields, options: SendOptions) => Promise<Begun>
  onSaved: (stored: Fields) => void | Promise<void>
  /** Reads what is stored now, for a look at what others have stored meanwhile. */
  read: () => Promise<Begun>
  /** What callers or others lose by a change; `null`: nothing. */
  loss?: (before: Fields, after: Fields) => string | null
  /** Whether it is a document of the configuration: those have a note for the history. */
  isDocument?: boolean
}

export function EntityEditor(props: Props) {
  const { kept, title, base, isNew, refused, missing, form, send, onSaved, read, loss, isDocument = true } = props
  const [origin, setOrigin] = useState<Begun>(() => begunWith(kept) ?? base)
  const { draft, isChanged, setValue, setText, setFormat, reset } = useDraft(kept, origin)
  const [parameters, setParameters] = useSearchParams()
  const view = viewIn(parameters)
  const [after, setAfter] = useState<Fields | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [theirs, setTheirs] = useState<(Begun & { by: LastChange | null }) | null>(null)
  const [replaced, setReplaced] = useState(NONE)
  const current = storedNow(base, origin, replaced)
  const isOutdated = !isSame(current.data, origin.data)
  // If nothing is edited, what others have stored is shown. An edit goes on with what it began with.
  useEffect(() => {
    if (current === base) setReplaced(NONE)
    if (isChanged || (!isOutdated && current.tag === origin.tag)) return
    setOrigin(current)
    reset(current.data)
  }, [base, current, origin.tag, isChanged, isOutdated, reset])
  const lacks = missing(draft.value)
  const checked = useDryRun(send, draft.value, isChanged && draft.error === null && lacks === null && refused === null)
  const cannot = refused ?? (draft.error ? 'The text cannot be read.' : (lacks ?? (!isChanged && !isNew ? 'Nothing is changed.' : null)))

  const attempt = async (work: () => Promise<void>) => {
    setBusy(true)
    setError(null)
    try {
      await work()
    } catch (wrong) {
      setError(wrong)
    }
    setBusy(false)
  }
  const meet = (stored: Begun, by: LastChange | null): null => {
    setAfter(null)
    setTheirs({ ...stored, by })
    return null
  }
  /** Sends it if what is stored is still what the edit began with; if not, both are shown side by side. */
  const store = async (options: SendOptions): Promise<Begun | null> => {
    try {
      return await send(draft.value, { ...options, tag: isNew ? null : origin.tag })
    } catch (refused) {
      if (isNew || !(refused instanceof ApiError && refused.status === 412)) throw refused
      return meet(await read(), refused.changed)
    }
  }
  const review = () => attempt(async () => setAfter((await store({ isDry: true }))?.data ?? null))
  const commit = (note: string) =>
    attempt(async () => {
      const stored = await store({ isDry: false, note })
      if (stored === null) return
      setAfter(null)
      setReplaced([base, origin])
      setOrigin(stored)
      reset(stored.data)
      await onSaved(stored.data)
    })
  return (
    <>
      <PageActions>
        {isChanged && <Button onPress={() => (setOrigin(current), reset(current.data), setError(null))}>Discard</Button>}
        <Button look="primary" refused={cannot} isBusy={isBusy} onPress={() => void review()}>
          Review and save
        </Button>
      </PageActions>
      <Choices
        label="View"
        look="tabs"
        chosen={view}
        options={(Object.keys(VIEWS) as View[]).map((it) => ({ value: it, text: VIEWS[it] }))}
        onChoose={(it) => setParameters((old) => (old.set('view', it), new URLSearchParams(old)), { replace: true })}
      />
      {isOutdated && isChanged && (
        <div className="note warn" role="status">
          <strong>A newer version exists</strong>
          <span>It was changed since you began. Saving shows both side by side.</span>
        </div>
      )}
      {after === null && (error ?? checked) !== null && <Failure error={error ?? checked} />}
      <div className={view === 'both' ? 'halves' : 'stack'}>
        {view !== 'text' && (
          <div className="stack">
            {draft.error !== null && (
              <div className="note bad" role="alert">
                <strong>The text cannot be read</strong>
                <span>{draft.error.message} The form is locked until it is mended; what you typed is kept.</span>
              </div>
            )}
            <fieldset disabled={draft.error !== null || refused !== null} className="stack" aria-label={title}>
              {form(draft.value, setValue)}
            </fieldset>
          </div>
        )}
        {view !== 'form' && <TextSide title={title} draft={draft} isReadOnly={refused !== null} onText={setText} onFormat={setFormat} />}
      </div>
      {after !== null && (
        <SaveDialog
          title={isNew ? `Create ${title}?` : `Save ${title}?`}
          before={isNew ? undefined : origin.data}
          after={isMap(after) ? after : draft.value}
          warning={null}
          error={error}
          isBusy={isBusy}
          onClose={() => (setAfter(null), setError(null))}
          onCommit={(note) => void commit(note)}
          hasNote={isDocument}
          loss={isNew ? null : (loss?.(origin.data, draft.value) ?? null)}
        />
      )}
      {theirs !== null && (
        <ConflictDialog
          base={origin.data}
          theirs={theirs.data}
          mine={draft.value}
          by={theirs.by}
          onClose={() => setTheirs(null)}
          onMerged={(value) => {
            setOrigin({ data: theirs.data, tag: theirs.tag })
            setValue(value)
            setTheirs(null)
          }}
        />
      )}
    </>
  )
}

interface TextProps {
  title: string
  draft: Draft
  isReadOnly: boolean
  onText: (text: string) => void
  onFormat: (format: 'yaml' | 'json') => void
}

function TextSide({ title, draft, isReadOnly, onText, onFormat }: TextProps) {
  return (
    <section className="card" aria-label="Text">
      <FormatChoice draft={draft} onFormat={onFormat} />
      <TextEditor label={`${title} as text`} text={draft.text} format={draft.format} onChange={onText} problems={draft.error === null ? [] : [draft.error]} isReadOnly={isReadOnly} />
    </section>
  )
}

/** What the server would say, asked a moment after the last change. An answer to an older question is not shown. */
function useDryRun(send: Props['send'], value: Fields, isWanted: boolean): ApiError | null {
  const [said, setSaid] = useState<ApiError | null>(null)
  const latest = useRef(send)
  latest.current = send
  useEffect(() => {
    setSaid(null)
    if (!isWanted) return
    const abort = new AbortController()
    const timer = setTimeout(() => {
      latest
        .current(value, { isDry: true, signal: abort.signal })
        .then(() => undefined)
        .catch((error: unknown) => {
          // Only what is wrong with the document: a server that is away is told above the page.
          if (!abort.signal.aborted && error instanceof ApiError && !error.isAway) setSaid(error)
        })
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [value, isWanted])
  return said
}
