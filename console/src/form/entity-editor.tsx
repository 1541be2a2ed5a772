// An entity that is edited by a form and as text: checked while it is edited, saved after a look at what changes. The form
// is the page's own; the text holds all of it, and what the form does not know stays.
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { ApiError } from '../api/client'
import type { Fields } from '../api/types'
import { Failure } from '../shell/page'
import { Button, ButtonLink } from '../ui/button'
import { ConflictDialog } from './conflict'
import { type Draft, begunWith, useDraft } from './draft'
import { isMap, isSame } from './path'
import { SaveDialog } from './save'
import { TextEditor } from '../ui/text-editor'

/** After the last key, until the draft is checked. */
const PAUSE_MS = 400

type View = 'form' | 'both' | 'text'
const VIEWS: Record<View, string> = { form: 'Form', both: 'Form and text', text: 'Text' }

export interface SendOptions {
  isDry: boolean
  note?: string
  signal?: AbortSignal
}

interface Props {
  /** The name under which the draft is kept. */
  kept: string
  /** What it is called in the dialog and for screen readers. */
  title: string
  /** What is stored; for a new one, what it begins with. */
  base: Fields
  isNew: boolean
  refused: string | null
  /** Why it cannot be saved yet. */
  missing: (value: Fields) => string | null
  form: (value: Fields, onChange: (value: Fields) => void) => ReactNode
  /** Stores it, or tries to; gives what is stored then. */
  send: (value: Fields, options: SendOptions) => Promise<Fields>
  onSaved: (stored: Fields) => void | Promise<void>
  /** Reads what is stored now: what somebody else has stored meanwhile is not overwritten unseen. */
  read?: () => Promise<Fields>
  /** Where one goes without saving. */
  back: string
  /** Whether the server keeps a note. */
  hasNote?: boolean
}

export function EntityEditor(props: Props) {
  const { kept, title, base, isNew, refused, missing, form, send, onSaved, read, back, hasNote = true } = props
  const [origin, setOrigin] = useState<Fields>(() => begunWith(kept)?.data ?? base)
  const begun = useMemo(() => ({ data: origin, tag: null }), [origin])
  const { draft, isChanged, setValue, setText, setFormat, reset } = useDraft(kept, begun)
  const [view, setView] = useState<View>('form')
  const [after, setAfter] = useState<Fields | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [theirs, setTheirs] = useState<Fields | null>(null)
  const isOutdated = !isSame(base, origin)
  // Where nothing is edited, what somebody else has stored is shown. An edit goes on with what it began with.
  useEffect(() => {
    if (isChanged || !isOutdated) return
    setOrigin(base)
    reset(base)
  }, [base, isChanged, isOutdated, reset])
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
  /** Whether what is stored is still what the edit began with; if not, both are shown side by side. */
  const isCurrent = async (): Promise<boolean> => {
    const stored = isNew ? origin : read === undefined ? base : await read()
    if (isSame(stored, origin)) return true
    setAfter(null)
    setTheirs(stored)
    return false
  }
  const review = () => attempt(async () => ((await isCurrent()) ? setAfter(await send(draft.value, { isDry: true })) : undefined))
  const commit = (note: string) =>
    attempt(async () => {
      if (!(await isCurrent())) return
      const stored = await send(draft.value, { isDry: false, note })
      setAfter(null)
      setOrigin(stored)
      reset(stored)
      await onSaved(stored)
    })
  return (
    <>
      <div className="row between">
        <div className="tabs plain" role="group" aria-label="View">
          {(Object.keys(VIEWS) as View[]).map((it) => (
            <button key={it} type="button" aria-pressed={view === it} onClick={() => setView(it)}>
              {VIEWS[it]}
            </button>
          ))}
        </div>
        <div className="row">
          {isChanged ? (
            <Button onPress={() => (setOrigin(base), reset(base), setError(null))}>Discard</Button>
          ) : (
            <ButtonLink to={back} look="quiet">
              Back
            </ButtonLink>
          )}
          <Button look="primary" refused={cannot} isBusy={isBusy} onPress={() => void review()}>
            Review and save
          </Button>
        </div>
      </div>
      {isOutdated && isChanged && (
        <div className="note warn" role="status">
          <strong>A newer version exists</strong>
          <span>Somebody changed it since you began. Saving shows both side by side.</span>
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
          before={isNew ? undefined : origin}
          after={isMap(after) ? after : draft.value}
          warning={null}
          error={error}
          isBusy={isBusy}
          onClose={() => (setAfter(null), setError(null))}
          onCommit={(note) => void commit(note)}
          hasNote={hasNote}
        />
      )}
      {theirs !== null && (
        <ConflictDialog
          base={origin}
          theirs={theirs}
          mine={draft.value}
          by={null}
          onClose={() => setTheirs(null)}
          onMerged={(value) => {
            setOrigin(theirs)
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
      <div className="row" role="group" aria-label="Format of the text">
        {(['yaml', 'json'] as const).map((it) => (
          <button key={it} type="button" className="button small" aria-pressed={draft.format === it} disabled={draft.error !== null} onClick={() => onFormat(it)}>
            {it.toUpperCase()}
          </button>
        ))}
      </div>
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
