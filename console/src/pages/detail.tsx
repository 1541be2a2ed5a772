// One document: its form and its text, checked while it is edited, saved after a look at what changes.
import { tryLink } from '../explain/example'
import { useQueryClient } from '@tanstack/react-query'
import { Suspense, lazy, useEffect, useMemo, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { ApiError, type LastChange, call } from '../api/client'
import { type Document, documentPath, useDocument, useHead, useSchema } from '../api/hooks'
import type { Fields, Json, Schema } from '../api/types'
import { ConflictDialog } from '../form/conflict'
import { begunWith, useDraft } from '../form/draft'
import { FormatChoice } from '../form/format-choice'
import { useRight } from '../api/rights'
import { Form, ObjectFields } from '../form/fields'
import { isMap } from '../form/path'
import { label } from '../form/schema'
import { SaveDialog } from '../form/save'
import { writeHeaders } from '../form/send'
import { type Kind, kindOf, nameOf, words } from '../kinds'
import { Failure, Page } from '../shell/page'
import { useIsNew, useSegments } from '../shell/segments'
import { Button, ButtonLink } from '../ui/button'
import { Choices } from '../ui/choices'
import { toast } from '../ui/toast'
import { DocumentHistory } from './document-history'
import { findingsOf, useCheck } from './detail-check'
import { Delete } from './detail-delete'
import { undo } from './detail-undo'
import { Effects, movesCalls } from './effects'
import NotFound from './not-found'
import { TextEditor } from '../ui/text-editor'
import { UpstreamTargets } from './upstream-targets'

const ConsumerReach = lazy(() => import('./consumer-reach'))

const VIEWS = [
  { value: 'form', text: 'Form' },
  { value: 'both', text: 'Form and text' },
  { value: 'text', text: 'Text' },
  { value: 'calls', text: 'May call' },
  { value: 'history', text: 'History' },
] as const

/** The views of a kind; what is made has no history yet. */
const viewsOf = (kind: Kind, isNew: boolean) => VIEWS.filter((it) => (it.value === 'history' ? !isNew : it.value === 'calls' ? !isNew && kind.path === 'consumers' : true))

export default function Detail() {
  const [path = '', name = ''] = useSegments()
  const isNew = useIsNew()
  const kind = kindOf(path)
  if (kind === undefined) return <NotFound />
  return isNew ? <New kind={kind} /> : <Existing key={`${path}/${name}`} kind={kind} name={name} />
}

function New({ kind }: { kind: Kind }) {
  const schema = useSchema()
  const base = useMemo((): Document => ({ data: {}, tag: null }), [])
  if (schema.error) return <Problem kind={kind} error={schema.error} onRetry={() => void schema.refetch()} />
  if (schema.data === undefined) return <main className="page" aria-busy="true" />
  return <Edit key="new" kind={kind} name={null} base={base} schema={schema.data} start={kind.example} />
}

function Existing({ kind, name }: { kind: Kind; name: string }) {
  const schema = useSchema()
  const document = useDocument(kind.path, name)
  const error = schema.error ?? document.error
  if (error && document.data === undefined) {
    return <Problem kind={kind} error={error} onRetry={() => void document.refetch()} />
  }
  if (schema.data === undefined || document.data === undefined) return <main className="page" aria-busy="true" />
  return <Edit kind={kind} name={name} base={document.data} schema={schema.data} start={document.data.data} />
}

function Problem({ kind, error, onRetry }: { kind: Kind; error: unknown; onRetry: () => void }) {
  return (
    <Page title={kind.one} crumbs={[{ to: `/${kind.path}`, text: label(kind.many) }]} calls={[]}>
      <Failure error={error} onRetry={onRetry} />
    </Page>
  )
}

interface EditProps {
  kind: Kind
  /** `null`: there is none yet. */
  name: string | null
  base: Document
  schema: Schema
  start: Fields
}

type Above = { kind: 'save'; after: unknown; warning: string | null } | { kind: 'conflict'; theirs: Document; by: LastChange | null } | { kind: 'delete' } | null

function Edit({ kind, name, base: latest, schema, start }: EditProps) {
  const kept = `${kind.path}/${name ?? ''}`
  // What this edit began with; the server may have a newer one.
  const [base, setBase] = useState(() => (name === null ? null : begunWith(kept)) ?? latest)
  const begun = useMemo(() => (name === null ? { data: start, tag: null } : base), [name, start, base])
  const { draft, isChanged, setValue, setText, setFormat, reset } = useDraft(kept, begun)
  const [above, setAbove] = useState<Above>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [parameters, setParameters] = useSearchParams()
  const [, go] = useLocation()
  const client = useQueryClient()
  const view = parameters.get('view') ?? 'form'
  const show = (it: string) => setParameters((old) => (old.set('view', it), new URLSearchParams(old)), { replace: true })
  const current = nameOf(kind, draft.value)
  const target = name ?? current
  const checked = useCheck(kind, target, draft.value, draft.error === null && isChanged && target !== '', base.tag)

  // An untouched page follows what is stored.
  useEffect(() => {
    if (latest.tag === base.tag || isChanged) return
    setBase(latest)
    reset(latest.data)
  }, [latest, base.tag, isChanged, reset])
  const isNewer = latest.tag !== base.tag
  useRefreshOnCommit(kind, name)

  const send = (isDry: boolean, value: Fields, tag: string | null, note = '') =>
    call<Fields>('PUT', documentPath(kind.path, target), {
      body: value,
      headers: writeHeaders({ isDry, note, ...(tag === null ? {} : { tag }) }),
    })

  const review = async (value: Fields = draft.value, tag = base.tag) => {
    setBusy(true)
    setError(null)
    try {
      const answer = await send(true, value, tag)
      setAbove({ kind: 'save', after: answer.data ?? value, warning: answer.warning })
    } catch (refused) {
      await refuse(refused)
    }
    setBusy(false)
  }

  const refuse = async (refused: unknown) => {
    if (!(refused instanceof ApiError && refused.status === 412 && name !== null)) return setError(refused)
    try {
      const theirs = await call<Fields>('GET', documentPath(kind.path, name))
      setAbove({ kind: 'conflict', theirs: { data: theirs.data, tag: theirs.tag }, by: refused.changed })
    } catch (wrong) {
      // It was deleted meanwhile, or the server is away: the edit stays.
      setAbove(null)
      setError(wrong)
    }
  }

  const commit = async (note: string) => {
    setBusy(true)
    setError(null)
    const before = base
    try {
      const answer = await send(false, draft.value, base.tag, note)
      const stored: Document = { data: answer.data ?? draft.value, tag: answer.tag }
      setAbove(null)
      setBase(stored)
      reset(stored.data)
      client.setQueryData(['document', kind.path, target], stored)
      await client.invalidateQueries({ queryKey: ['configuration'] })
      const revision = stored.tag?.replaceAll('"', '') ?? ''
      toast(`${target} is saved`, {
        link: { to: `/history/${revision}`, text: `r${revision}` },
        action: { text: 'Undo', run: () => void undo(kind, target, name === null ? null : before.data, stored.tag) },
      })
      if (name === null) {
        // What was made is no draft any more.
        reset(start)
        go(`/${kind.path}/${encodeURIComponent(target)}`)
      }
    } catch (refused) {
      await refuse(refused)
    }
    setBusy(false)
  }

  const findings = useMemo(() => findingsOf(error instanceof ApiError ? error : checked), [error, checked])
  const unplaced = [...findings].filter(([path]) => path === '').flatMap(([, texts]) => texts)
  const definition = schema.$defs?.[kind.type] ?? {}
  const title = name ?? `New ${kind.one}`
  const refused = useRight('configuration:write')
  const cannotSave = refused ?? (draft.error ? 'The text cannot be read.' : !isChanged && name !== null ? 'Nothing is changed.' : target === '' ? 'It needs a name.' : null)

  return (
    <Page
      title={title}
      crumbs={[{ to: `/${kind.path}`, text: label(kind.many) }]}
      calls={[
        { about: 'Read it', method: 'GET', path: documentPath(kind.path, target) },
        {
          about: 'Check it without storing it',
          method: 'PUT',
          path: documentPath(kind.path, target),
          body: draft.value,
          headers: { 'Weir-Dry-Run': 'true' },
        },
        { about: 'Store it', method: 'PUT', path: documentPath(kind.path, target), body: draft.value, ...(base.tag ? { headers: { 'If-Match': base.tag } } : {}) },
      ]}
      actions={
        <>
          {kind.path === 'routes' && name !== null && <ButtonLink to={tryLink(words(base.data['hosts']), words(base.data['paths']), words(base.data['methods']))}>Try</ButtonLink>}
          {name !== null && (
            <Button look="quiet" icon="trash" refused={refused} onPress={() => setAbove({ kind: 'delete' })}>
              Delete
            </Button>
          )}
          {isChanged && (
            <Button
              onPress={() => {
                setBase(latest)
                reset(name === null ? start : latest.data)
                setError(null)
              }}
            >
              Discard
            </Button>
          )}
          <Button look="primary" refused={cannotSave} isBusy={isBusy} onPress={() => void review()}>
            Review and save
          </Button>
        </>
      }
    >
      {isNewer && isChanged && (
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
      {kind.path === 'upstreams' && name !== null && <UpstreamTargets name={name} document={latest} />}
      <Choices
        label="View"
        look="tabs"
        chosen={view}
        options={viewsOf(kind, name === null)}
        onChoose={show}
      />
      <div className={view === 'both' ? 'halves' : 'stack'}>
        {(view === 'form' || view === 'both') && (
          <section className="card" aria-label="Form">
            {draft.error !== null && (
              <div className="note bad" role="alert">
                <strong>The text cannot be read</strong>
                <span>{draft.error.message} The form is locked until it is mended; what you typed is kept.</span>
              </div>
            )}
            <fieldset disabled={draft.error !== null} className="stack loose" aria-label={title}>
              <Form.Provider value={{ root: schema, findings, isReadOnly: draft.error !== null, document: kind.type }}>
                <ObjectFields schema={definition} value={draft.value} path={[]} first={kind.first} onChange={setValue} />
              </Form.Provider>
            </fieldset>
          </section>
        )}
        {(view === 'text' || view === 'both') && (
          <section className="card" aria-label="Text">
            <div className="row between">
              <FormatChoice draft={draft} onFormat={setFormat} />
              {draft.error !== null && <span className="wrong small" role="alert">{draft.error.message}</span>}
            </div>
            <TextEditor
                label={`${title} as text`}
                text={draft.text}
                format={draft.format}
                onChange={setText}
                problems={draft.error === null ? [] : [draft.error]}
              />
          </section>
        )}
        {view === 'calls' && name !== null && kind.path === 'consumers' && (
          <Suspense fallback={<div className="skeleton tall" />}>
            <ConsumerReach name={name} />
          </Suspense>
        )}
        {view === 'history' && name !== null && (
          <DocumentHistory
            kind={kind}
            name={name}
            refused={refused}
            onTake={(value, revision) => {
              setValue(value)
              show('form')
              toast(`The form holds what it was at revision ${revision}. Review and save it.`)
            }}
          />
        )}
      </div>
      {above?.kind === 'save' && (
        <SaveDialog
          title={name === null ? `Create ${target}?` : `Save ${target}?`}
          before={name === null ? undefined : base.data}
          after={isMap(above.after as Fields) ? (above.after as Fields) : draft.value}
          warning={above.warning}
          error={error}
          isBusy={isBusy}
          onClose={() => setAbove(null)}
          onCommit={(note) => void commit(note)}
        >
          {movesCalls(kind.path) && <Effects documents={{ [`native/${kind.path}/${target}`]: above.after as Json }} />}
        </SaveDialog>
      )}
      {above?.kind === 'conflict' && (
        <ConflictDialog
          base={base.data}
          theirs={above.theirs.data}
          mine={draft.value}
          by={above.by}
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
      {above?.kind === 'delete' && name !== null && <Delete kind={kind} name={name} document={base} onClose={() => setAbove(null)} />}
    </Page>
  )
}

/** Reads the document again when somebody commits. */
function useRefreshOnCommit(kind: Kind, name: string | null) {
  const client = useQueryClient()
  const revision = useHead().data?.revision
  useEffect(() => {
    if (name !== null && revision !== undefined) void client.invalidateQueries({ queryKey: ['document', kind.path, name] })
  }, [client, kind, name, revision])
}
