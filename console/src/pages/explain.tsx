// Explain: what would happen to a call, and why. A line of curl is pasted, or a logged call is picked; it is looked at by
// what is served now, by an earlier revision, or by a draft. Nothing is sent until somebody says so.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { Call } from '../api/analytics'
import { useAllVersions, useEnvironments } from '../api/apis'
import { ApiError, call, get } from '../api/client'
import { useHead } from '../api/hooks'
import { SendCall, TRY } from '../explain/send-call'
import { KeepDialog } from '../explain/keep-dialog'
import { useRight } from '../api/rights'
import { type AskedCall, asCurl, parseCall } from '../explain/curl'
import { Failure, Page } from '../shell/page'
import { AreaField, SelectField, TextField } from '../ui/field'
import { Button } from '../ui/button'
import type { Explained } from './explain-answer'
import { Answer, Logged } from './explain-answer'

type Against = 'now' | 'revision' | 'draft'

/** The headers as people write them. */
const shownHeaders = (headers: [string, string][]): string => headers.map(([name, value]) => `${name}: ${value}`).join('\n')

export default function Explain() {
  const [parameters, setParameters] = useSearchParams()
  const id = parameters.get('request_id')
  const logged = useQuery({
    queryKey: ['calls', 'one', id],
    queryFn: async ({ signal }) => (await get<{ calls: Call[] }>('/api/v1/analytics/calls', { request_id: id, limit: 1 }, signal)).calls[0] ?? null,
    enabled: id !== null,
  })
  const begin = (): string => {
    const url = parameters.get('url')
    return url === null ? '' : asCurl({ method: parameters.get('method') ?? 'GET', url, headers: [], body: '' })
  }
  const [text, setText] = useState(begin)
  const [more, setMore] = useState('')
  // Once: who empties the field wants it empty.
  const filled = useRef<string | null>(null)
  useEffect(() => {
    const it = logged.data
    if (!it || filled.current === id) return
    filled.current = id
    if (text === '') setText(asCurl({ method: it.method, url: `http://${it.host || 'localhost'}${it.path}`, headers: [], body: '' }))
  }, [logged.data, text, id])
  const asked = useMemo((): AskedCall => {
    const it = parseCall(text)
    const added = more
      .split('\n')
      .map((line): [string, string] => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()])
      .filter(([name]) => name !== '')
    return { ...it, headers: [...it.headers, ...added] }
  }, [text, more])
  const [client, setClient] = useState('')
  const [consumer, setConsumer] = useState('')
  const against = (parameters.get('against') ?? 'now') as Against
  const set = (name: string, value: string) => setParameters((old) => (value === '' ? old.delete(name) : old.set(name, value), new URLSearchParams(old)), { replace: true })
  const [environments, versions] = [useEnvironments(), useAllVersions()]
  const environment = parameters.get('environment') ?? (against === 'draft' ? (environments.data?.[0]?.name ?? '') : '')
  const draft = parameters.get('draft') ?? (versions.data?.[0] ? `${versions.data[0].api}/${versions.data[0].version}` : '')
  const revision = parameters.get('revision') ?? ''
  const head = useHead().data?.revision
  const body = useMemo(() => {
    const [api = '', version = ''] = draft.split('/')
    return {
      method: asked.method,
      url: asked.url,
      ...(asked.headers.length > 0 ? { headers: Object.fromEntries(asked.headers) } : {}),
      ...(asked.body === '' ? {} : { body: asked.body }),
      ...(client === '' ? {} : { client }),
      ...(consumer === '' ? {} : { consumer }),
      ...(environment === '' ? {} : { environment }),
      ...(against === 'revision' && /^\d+$/.test(revision) ? { revision: Number(revision) } : {}),
      ...(against === 'draft' && draft !== '' ? { draft: { api, version } } : {}),
    }
  }, [asked, client, consumer, environment, against, revision, draft])
  const key = JSON.stringify(body)
  const [wanted, setWanted] = useState(key)
  useEffect(() => {
    const timer = setTimeout(() => setWanted(key), 400)
    return () => clearTimeout(timer)
  }, [key])
  const explained = useQuery({
    queryKey: ['configuration', 'explain', wanted],
    queryFn: async ({ signal }) => (await call<Explained>('POST', '/api/v1/explain', { body: JSON.parse(wanted), signal })).data,
    enabled: (JSON.parse(wanted) as { url: string }).url !== '',
    staleTime: 0,
  })
  // What the dialog keeps is the explanation that stood there when it was opened, whatever is explained meanwhile.
  const [kept, setKept] = useState<Explained>()
  const writing = useRight('apis:write')
  const isAbsent = explained.error instanceof ApiError && explained.error.status === 404
  return (
    <Page
      title="Explain"
      about="Paste a call, and see which route takes it, why the near misses lose, what each plugin makes of it, and where it goes. Nothing is sent until you send it."
      calls={[{ about: 'The same as a call', method: 'POST', path: '/api/v1/explain', body, command: `weir explain '${asked.method} ${asked.url || 'http://localhost/'}'${asked.headers.map(([name, value]) => ` -H '${name}: ${value}'`).join('')}` }, { about: 'Send it for real', method: 'POST', path: TRY, body: { method: asked.method, url: asked.url, headers: asked.headers, body: asked.body } }]}
    >
      <div className="two-columns explain">
        <section className="card" aria-label="Call">
          <div className="head2">
            <h2>Call</h2>
            <Button small look="quiet" onPress={() => setText("curl 'http://localhost:8000/'")}>
              Use an example
            </Button>
          </div>
          <AreaField label="curl line, or a URL" rows={4} isMono value={text} onChange={setText} placeholder={"curl -X POST 'http://localhost:8000/orders?x=1' -H 'X-API-Key: …'\nGET http://api.example.com/orders"} />
          {asked.url !== '' && (
            <p className="small muted">
              Read as <code>{asked.method}</code> <code>{asked.url}</code>
              {asked.headers.length > 0 && <> with {asked.headers.map(([name]) => name).join(', ')}</>}
            </p>
          )}
          <details>
            <summary>More of the call</summary>
            <div className="stack folded">
              <AreaField label="Further headers" rows={3} isMono value={more} onChange={setMore} placeholder={shownHeaders([['X-API-Key', '…']])} />
              <div className="grid">
                <TextField label="Address of the client" value={client} onChange={setClient} placeholder="127.0.0.1" />
                <TextField label="Taken for the consumer" value={consumer} onChange={setConsumer} about="If the call carries no good credential." />
              </div>
            </div>
          </details>
        </section>
        <section className="card" aria-label="Against">
          <h2>Answered by</h2>
          <SelectField
            label="Configuration"
            value={against}
            onChange={(value) => set('against', value === 'now' ? '' : value)}
            options={[
              ['now', 'what is served now'],
              ['revision', 'an earlier revision'],
              ['draft', 'the draft of an API'],
            ]}
          />
          {against === 'revision' && <TextField label="Revision" type="number" value={revision} onChange={(value) => set('revision', value)} placeholder={String(head ?? '')} about={head === undefined ? '' : `1 to ${head}`} />}
          {against === 'draft' && (
            <SelectField label="Draft" value={draft} onChange={(value) => set('draft', value)} options={(versions.data ?? []).map((it) => [`${it.api}/${it.version}`, `${it.api} ${it.version}`] as const)} />
          )}
          {(environments.data ?? []).length > 0 && (
            <SelectField
              label="Environment"
              value={environment}
              onChange={(value) => set('environment', value)}
              options={[...(against === 'draft' ? [] : [['', 'those that this process serves'] as const]), ...(environments.data ?? []).map((it) => [it.name, it.display_name || it.name] as const)]}
            />
          )}
        </section>
      </div>
      {logged.data && <Logged call={logged.data} />}
      {asked.url !== '' && explained.data?.note === undefined && <SendCall asked={asked} explained={wanted === key ? explained.data : undefined} isNow={against === 'now'} />}
      {explained.error && (isAbsent ? <p className="note warn">This Weir cannot explain calls through its API. The command `weir explain` does.</p> : <Failure error={explained.error} onRetry={() => void explained.refetch()} />)}
      {asked.url !== '' && explained.data === undefined && !explained.error && <div className="skeleton tall" aria-busy="true" />}
      {explained.data && !explained.error && (
        <>
          <Answer explained={explained.data} />
          {(versions.data ?? []).length > 0 && (
            <div className="row">
              <Button refused={writing ?? (wanted === key ? null : 'The call is being explained.')} onPress={() => setKept(explained.data)}>
                Keep as a test
              </Button>
              <span className="muted">Every publish of the API runs it from then on.</span>
            </div>
          )}
        </>
      )}
      {kept && <KeepDialog asked={asked} explained={kept} client={client} consumer={consumer} draft={draft} onClose={() => setKept(undefined)} />}
      {asked.url === '' && !logged.data && <p className="muted">Copy a call as curl from your browser’s or your client’s tools, or open one of the <Link href="/live">live calls</Link>.</p>}
    </Page>
  )
}
