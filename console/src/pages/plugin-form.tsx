// The form of one plugin, to try: the document that it makes stands beside it, checked by the server as a route's.
import { useEffect, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiError, call } from '../api/client'
import { documentPath, useView } from '../api/hooks'
import { useRight } from '../api/rights'
import type { Fields, Json, Schema } from '../api/types'
import { type Begun, type Draft, fresh } from '../form/draft'
import { Form, ObjectFields } from '../form/fields'
import { keep, kept } from '../form/kept'
import { isMap, parsePath, pathText } from '../form/path'
import { blank } from '../form/schema'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { TextField } from '../ui/field'
import { Prose } from '../ui/prose'
import { copy } from '../ui/files'
import { Failure } from '../shell/page'
import { stringify } from '../yaml'
import { ownDocument } from './list'

const PAUSE_MS = 400
/** The name under which the configuration is checked; nothing is stored. */
const TRIAL = 'plugin-form-check'

export function PluginForm({ name, schema }: { name: string; schema: Schema }) {
  const [, go] = useLocation()
  const definition = useMemo((): Schema => ({ $ref: `#/$defs/${name}` }), [name])
  const [value, setValue] = useState<Json>(() => blank(definition, schema))
  const [said, setSaid] = useState<ApiError | 'good' | null>(null)
  useEffect(() => {
    const abort = new AbortController()
    const timer = setTimeout(() => {
      call('PUT', `/api/v1/resources/plugins/${TRIAL}`, {
        body: { id: TRIAL, [name]: value },
        headers: { 'weir-dry-run': 'true' },
        signal: abort.signal,
      })
        .then(() => setSaid('good'))
        .catch((error: unknown) => error instanceof ApiError && setSaid(error))
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [name, value])
  const findings = useMemo(() => {
    const found = new Map<string, string[]>()
    if (!(said instanceof ApiError)) return found
    for (const it of said.findings) {
      const path = parsePath(it.path)
      const from = path.findIndex((step) => step === name || step === 'config')
      const key = pathText(from === -1 ? [] : path.slice(from + 1))
      found.set(key, [...(found.get(key) ?? []), it.message])
    }
    if (said.findings.length === 0) found.set('', [said.message])
    return found
  }, [said, name])
  const text = stringify([{ [name]: value }])
  const close = () => go('/plugins')
  return (
    <Dialog
      title={name}
      isOpen
      wide
      onClose={close}
      actions={
        <>
          <Button onPress={() => void copy(text)}>Copy as YAML</Button>
          <Button look="primary" onPress={close}>
            Done
          </Button>
        </>
      }
    >
      <AddTo name={name} value={value} isGood={said === 'good'} />
      <p className="muted"><Prose text={schema.$defs?.[name]?.description ?? ''} /></p>
      {/* What is typed into a form is not thrown away by a stray click beside the dialog. */}
      <form className="halves" onSubmit={(event) => event.preventDefault()}>
        <section className="stack" aria-label={`Form of ${name}`}>
          <Form.Provider value={{ root: schema, findings, isReadOnly: false }}>
            <ObjectFields schema={definition} value={value} path={[]} onChange={(next) => setValue(isMap(next) ? next : {})} />
          </Form.Provider>
        </section>
        <section className="stack" aria-label="As text">
          <pre className="code" tabIndex={0}>{text}</pre>
          <div role="status" className={said === 'good' ? 'note' : said === null ? '' : 'note bad'}>
            {said === 'good' && 'Weir accepts this configuration.'}
            {said instanceof ApiError && [...findings].map(([path, texts]) => <span key={path}>{`${path === '' ? '' : `${path}: `}${texts.join(' ')}`}</span>)}
          </div>
        </section>
      </form>
    </Dialog>
  )
}

/** Puts the plugin into the draft of a route, where it is looked at and saved. */
function AddTo({ name, value, isGood }: { name: string; value: Json; isGood: boolean }) {
  const routes = useView('routes', '', '')
  const own = (routes.data?.pages[0]?.items ?? []).flatMap((it) => {
    const document = ownDocument(it)
    return document?.kind === 'routes' ? [document.name] : []
  })
  const [route, setRoute] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [, go] = useLocation()
  const right = useRight('configuration:write')
  const refused = right ?? (isGood ? (own.includes(route) ? null : 'Choose a route.') : 'Weir does not accept this configuration yet.')
  if (own.length === 0) return null
  const add = async () => {
    try {
      const key = `routes/${route}`
      // An edit that is not saved yet goes on.
      const edit = kept(key) as { draft: Draft; begun: Begun } | null
      const { data, tag } = await call<Fields>('GET', documentPath('routes', route))
      const before = edit !== null && edit.draft.error === null ? edit.draft.value : data
      const plugins = Array.isArray(before['plugins']) ? before['plugins'] : []
      keep(key, { draft: fresh({ ...before, plugins: [...plugins, { [name]: value }] }), begun: edit?.begun ?? { data, tag } })
      go(`/routes/${encodeURIComponent(route)}?view=both`)
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <>
      <div className="row end">
        <TextField label="Add it to the route" value={route} onChange={setRoute} offered={own} placeholder={own[0] ?? ''} />
        <Button refused={refused} onPress={() => void add()}>
          Add and review
        </Button>
      </div>
      {error !== null && <Failure error={error} />}
    </>
  )
}
