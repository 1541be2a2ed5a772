// Import of files: an OpenAPI document, a weir.yaml, a kong.yml or an apisix.yaml. What would be created, changed and
// removed is shown before anything is stored.
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiError, call } from '../api/client'
import { useRight } from '../api/rights'
import type { Json } from '../api/types'
import { isSame } from '../form/path'
import { Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'
import { Differences } from './differences'
import type { ForeignForm, Placed, Preview } from './import-foreign'

type Form = 'openapi' | 'weir' | ForeignForm

const field = (names: string): RegExp => new RegExp(`^\\s{0,4}["']?(${names})["']?\\s*:`, 'm')
const FORMS: [Form, RegExp][] = [
  ['kong', field('_format_version')],
  ['weir', field('weir')],
  ['openapi', field('openapi|swagger')],
  ['apisix', field('routes|services|upstreams|consumers|ssls|global_rules|plugin_configs|consumer_groups|stream_routes|protos|plugin_metadata')],
]

/** Told by its fields; the library that reads it is loaded when it is needed. */
const formOf = (text: string): Form => FORMS.find(([, has]) => has.test(text))?.[0] ?? 'openapi'

const SAID: Record<Form, string> = {
  openapi: 'An OpenAPI document: it becomes a service with a route for each operation.',
  weir: 'A weir.yaml: its documents are stored in one commit.',
  kong: "A kong.yml: Kong's Admin API reads it. Its entities take the place of those of Kong that are stored, in the workspace default, in one commit.",
  apisix: "An apisix.yaml: APISIX's Admin API reads it. Its resources take the place of those of APISIX that are stored, in one commit.",
}

/** What a `weir.yaml` would make of the documents. */
interface WeirReport {
  revision: number | null
  changes: { kind: string; name: string; before?: Json; after?: Json }[]
}

interface Report {
  service: string
  is_new: boolean
  routes: { created: string[]; changed: string[]; removed: string[] }
  skipped: string[]
}

const EXAMPLE = `openapi: 3.1.0
info: {title: Pet shop, version: 1.0.0}
servers: [{url: http://127.0.0.1:1980}]
paths:
  /pets:
    get: {operationId: listPets}
  /pets/{id}:
    get: {operationId: getPet}
`

export default function Import() {
  const [text, setText] = useState('')
  const refused = useRight('configuration:write')
  const [name, setName] = useState('')
  const [url, setUrl] = useState('')
  const [report, setReport] = useState<Report | null>(null)
  const [documents, setDocuments] = useState<WeirReport | null>(null)
  const [foreign, setForeign] = useState<Preview | null>(null)
  const [findings, setFindings] = useState<Placed[]>([])
  const form = formOf(text)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [, go] = useLocation()
  const client = useQueryClient()
  // An answer to what stood there before the last edit is not shown.
  const edition = useRef(0)
  const edit = (change: () => void) => {
    edition.current += 1
    change()
    setReport(null)
    setDocuments(null)
    setForeign(null)
    setFindings([])
    setError(null)
  }
  const take = (file: File) => void file.text().then((content) => edit(() => setText(content)), setError)
  const sendForeign = async (dialect: ForeignForm, isDry: boolean) => {
    setBusy(true)
    setError(null)
    setFindings([])
    const asked = edition.current
    const { placed, preview, store } = await import('./import-foreign')
    try {
      if (isDry) {
        const found = await preview(dialect, text)
        if (asked === edition.current) setForeign(found)
      } else if (foreign !== null) {
        await store(dialect, text, foreign.tag)
        toast(`${countText(foreign.items.length, 'document is', 'documents are')} imported`)
        await client.invalidateQueries({ queryKey: ['configuration'] })
        go('/history')
      }
    } catch (wrong) {
      setForeign(null)
      if (asked === edition.current) {
        if (wrong instanceof ApiError && wrong.status === 400) setFindings(placed(text, wrong))
        else setError(wrong)
      }
    }
    setBusy(false)
  }
  const sendWeir = async (isDry: boolean) => {
    setBusy(true)
    setError(null)
    const asked = edition.current
    try {
      const { changesOf } = await import('./import-weir')
      const changes = changesOf(text)
      const answer = await call<WeirReport>('POST', '/api/v1/changes', { body: { changes }, headers: { 'weir-dry-run': isDry ? 'true' : undefined, 'weir-note': isDry ? undefined : encodeURIComponent('Import of a weir.yaml') } })
      if (isDry) {
        if (asked === edition.current) setDocuments(answer.data)
      } else {
        toast(`${countText(changes.length, 'document is', 'documents are')} imported`)
        await client.invalidateQueries({ queryKey: ['configuration'] })
        go(answer.data.revision === null ? '/history' : `/history/${answer.data.revision}`)
      }
    } catch (wrong) {
      setDocuments(null)
      setError(wrong)
    }
    setBusy(false)
  }
  const send = async (isDry: boolean) => {
    setBusy(true)
    setError(null)
    const asked = edition.current
    try {
      const answer = await call<Report>('POST', '/api/v1/import/openapi', {
        query: { name, url },
        text: { content: text, mediaType: 'application/yaml' },
        headers: { 'weir-dry-run': isDry ? 'true' : undefined },
      })
      if (isDry) {
        if (asked === edition.current) setReport(answer.data)
      } else {
        toast(`${answer.data.service} is imported`)
        await client.invalidateQueries({ queryKey: ['configuration'] })
        go(`/services/${encodeURIComponent(answer.data.service)}`)
      }
    } catch (refused) {
      setReport(null)
      setError(refused)
    }
    setBusy(false)
  }
  const begin = (isDry: boolean) => (form === 'openapi' ? send(isDry) : form === 'weir' ? sendWeir(isDry) : sendForeign(form, isDry))
  return (
    <Page
      title="Import"
      about="An OpenAPI document, a weir.yaml, a kong.yml or an apisix.yaml. What it would change is shown first; nothing is stored before you import it."
      calls={[
        {
          about: 'Import an OpenAPI document',
          method: 'POST',
          path: '/api/v1/import/openapi',
          headers: { 'Weir-Dry-Run': 'true' },
          command: 'weir import openapi.yaml',
        },
        { about: 'Try a kong.yml', method: 'POST', path: '/api/v1/dialects/kong/config', headers: { 'Weir-Dry-Run': 'true' }, body: { config: '_format_version: "3.0"' } },
        { about: 'Store several documents in one commit', method: 'POST', path: '/api/v1/changes', headers: { 'Weir-Dry-Run': 'true' }, body: { changes: [{ kind: 'services', name: 'orders', value: { name: 'orders', url: 'http://127.0.0.1:1980' } }] } },
      ]}
      actions={
        <>
          <Button refused={text.trim() === '' ? 'There is no document yet.' : null} isBusy={isBusy} onPress={() => void begin(true)}>
            Preview
          </Button>
          <Button look="primary" refused={refused ?? (report === null && documents === null && foreign === null ? 'Look at the preview first.' : foreign?.items.length === 0 ? 'Nothing would change.' : null)} isBusy={isBusy} onPress={() => void begin(false)}>
            Import
          </Button>
        </>
      }
    >
      {error !== null && <Failure error={error} />}
      {report !== null && <ReportCard report={report} />}
      {documents !== null && <Documents report={documents} />}
      {findings.length > 0 && <Findings findings={findings} />}
      {foreign !== null && <Changes preview={foreign} />}
      <div className="two-columns">
        <section className="card" aria-label="Document">
          <div className="head2">
            <h2>Document</h2>
            <div className="row">
              <label className="button small">
                Choose a file
                <input
                  className="sr"
                  type="file"
                  accept=".yaml,.yml,.json"
                  onChange={(event) => {
                    const [file] = event.target.files ?? []
                    if (file) take(file)
                  }}
                />
              </label>
              <Button small look="quiet" onPress={() => edit(() => setText(EXAMPLE))}>
                Use an example
              </Button>
            </div>
          </div>
          <textarea
            className="input mono"
            rows={22}
            aria-label="OpenAPI document, as YAML or JSON"
            placeholder="Paste or drop an OpenAPI document (3.x or 2.0), a weir.yaml, a kong.yml or an apisix.yaml here, as YAML or JSON"
            spellCheck={false}
            value={text}
            onChange={(event) => edit(() => setText(event.target.value))}
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              const [file] = event.dataTransfer.files
              if (!file) return
              event.preventDefault()
              take(file)
            }}
          />
          {text.trim() !== '' && <p className="small muted">{SAID[form]}</p>}
        </section>
        {form === 'openapi' && (
          <section className="card" aria-label="Options">
          <h2>Where it goes</h2>
          <div className="field">
            <label htmlFor="import-name">Service name</label>
            <input id="import-name" className="input" value={name} placeholder="from the title" onChange={(event) => edit(() => setName(event.target.value))} />
          </div>
          <div className="field">
            <label htmlFor="import-url">Address of the API</label>
            <input id="import-url" className="input" value={url} placeholder="from the first server" onChange={(event) => edit(() => setUrl(event.target.value))} />
          </div>
        </section>
        )}
      </div>
    </Page>
  )
}

function ReportCard({ report }: { report: Report }) {
  const parts: [string, string[], string][] = [
    ['created', report.routes.created, 'good'],
    ['changed', report.routes.changed, 'accent'],
    ['removed', report.routes.removed, 'bad'],
  ]
  return (
    <section className="card" aria-label="Preview" role="status">
      <h2>
        {report.is_new ? 'A new service' : 'The service'} {report.service}
      </h2>
      {parts.map(([change, names, tone]) => (
        <div key={change} className="row">
          <span className={`badge ${tone}`}>{change}</span>
          <span>{countText(names.length, 'route', 'routes')}</span>
          <span className="muted clip">{names.slice(0, 8).join(', ')}</span>
        </div>
      ))}
      {report.skipped.length > 0 && (
        <div className="row">
          <span className="badge">no route</span>
          <span>{countText(report.skipped.length, 'operation', 'operations')}</span>
          <span className="muted clip">{report.skipped.slice(0, 8).join(', ')}: the gateway answers these methods itself</span>
        </div>
      )}
    </section>
  )
}

/** The documents of a file, by what would become of each. */
function Documents({ report }: { report: WeirReport }) {
  const isNone = (it: Json | undefined) => it === undefined || it === null
  const parts: [string, WeirReport['changes'], string][] = [
    ['created', report.changes.filter((it) => isNone(it.before)), 'good'],
    ['changed', report.changes.filter((it) => !isNone(it.before) && !isSame(it.before, it.after)), 'accent'],
    ['as it is', report.changes.filter((it) => !isNone(it.before) && isSame(it.before, it.after)), ''],
  ]
  return (
    <section className="card" aria-label="Preview" role="status">
      <h2>{countText(report.changes.length, 'document', 'documents')} in one commit</h2>
      {parts.map(([change, found, tone]) => (
        <div key={change} className="row">
          <span className={`badge ${tone}`}>{change}</span>
          <span>{countText(found.length, 'document', 'documents')}</span>
          <span className="muted clip">
            {found
              .slice(0, 8)
              .map((it) => `${it.kind}/${it.name}`)
              .join(', ')}
          </span>
        </div>
      ))}
    </section>
  )
}

/** What is wrong with the file, by line. */
function Findings({ findings }: { findings: Placed[] }) {
  return (
    <section className="card" aria-label="Findings" role="alert">
      <h2>{countText(findings.length, 'finding', 'findings')}: nothing is stored</h2>
      <ul className="rows">
        {findings.map((it) => (
          <li key={`${it.path}${it.message}`} className="row">
            <span className="badge bad">{it.line === null ? 'file' : `line ${it.line}`}</span>
            {it.path !== '' && <code>{it.path}</code>}
            <span>{it.message}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** What a whole configuration would change. */
function Changes({ preview }: { preview: Preview }) {
  const { items } = preview
  const parts: [string, number, string][] = [
    ['created', items.filter((it) => it.before === null).length, 'good'],
    ['changed', items.filter((it) => it.before !== null && it.after !== null).length, 'accent'],
    ['removed', items.filter((it) => it.after === null).length, 'bad'],
  ]
  return (
    <section className="stack" aria-label="Preview" role="status">
      <div className="row">
        {parts.map(([change, count, tone]) => (
          <span key={change} className={`badge ${count > 0 ? tone : ''}`}>
            {count} {change}
          </span>
        ))}
      </div>
      {(parts[2]?.[1] ?? 0) > 0 && (
        <div className="note warn">
          <strong>What the file does not name is removed</strong>
          <span>It is a whole configuration of its dialect. The other dialects’ documents stay; history can bring back what goes.</span>
        </div>
      )}
      {preview.warning && <div className="note warn">{preview.warning}</div>}
      <Differences items={items} />
    </section>
  )
}
