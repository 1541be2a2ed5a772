// Import of an OpenAPI document: what would be created, changed and removed is shown before anything is stored.
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { call } from '../api/client'
import { useRight } from '../api/rights'
import type { Json } from '../api/types'
import { isSame } from '../form/path'
import { Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'

/** Told by its first field; the library that reads it is loaded when it is needed. */
const isWeirFile = (text: string): boolean => /^\s*["']?weir["']?\s*:/m.test(text)

/** What a `weir.yaml` would make of the documents. */
interface WeirReport {
  revision: number | null
  changes: { kind: string; name: string; before?: Json; after?: Json }[]
}

interface Report {
  service: string
  is_new: boolean
  routes: { created: string[]; changed: string[]; removed: string[] }
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
  const isWeir = isWeirFile(text)
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
    setError(null)
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
  return (
    <Page
      title="Import"
      about="An OpenAPI document becomes a service with a route for each operation; imported again, it changes what has changed, and plugins that you added stay. The documents of a weir.yaml are stored in one commit."
      calls={[
        {
          about: 'Import an OpenAPI document',
          method: 'POST',
          path: '/api/v1/import/openapi',
          headers: { 'Weir-Dry-Run': 'true' },
          command: 'weir import openapi.yaml',
        },
        { about: 'Store several documents in one commit', method: 'POST', path: '/api/v1/changes', headers: { 'Weir-Dry-Run': 'true' }, body: { changes: [{ kind: 'services', name: 'orders', value: { name: 'orders', url: 'http://127.0.0.1:1980' } }] } },
      ]}
      actions={
        <>
          <Button refused={text.trim() === '' ? 'There is no document yet.' : null} isBusy={isBusy} onPress={() => void (isWeir ? sendWeir(true) : send(true))}>
            Preview
          </Button>
          <Button look="primary" refused={refused ?? (report === null && documents === null ? 'Look at the preview first.' : null)} isBusy={isBusy} onPress={() => void (isWeir ? sendWeir(false) : send(false))}>
            Import
          </Button>
        </>
      }
    >
      {error !== null && <Failure error={error} />}
      {report !== null && <ReportCard report={report} />}
      {documents !== null && <Documents report={documents} />}
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
                    if (file) void file.text().then((content) => edit(() => setText(content)), setError)
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
            placeholder="Paste an OpenAPI document (3.x or 2.0) or a weir.yaml here, as YAML or JSON"
            spellCheck={false}
            value={text}
            onChange={(event) => edit(() => setText(event.target.value))}
          />
        </section>
        {!isWeir && (
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
