// Import of an OpenAPI document: what would be created, changed and removed is shown before anything is stored.
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { call } from '../api/client'
import { useRight } from '../api/rights'
import { Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'

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
    setError(null)
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
      about="An OpenAPI document becomes a service with a route for each operation. Imported again, it changes what has changed; plugins that you added stay."
      calls={[
        {
          about: 'Import an OpenAPI document',
          method: 'POST',
          path: '/api/v1/import/openapi',
          headers: { 'Weir-Dry-Run': 'true' },
          command: 'weir import openapi.yaml',
        },
      ]}
      actions={
        <>
          <Button refused={text.trim() === '' ? 'There is no document yet.' : null} isBusy={isBusy} onPress={() => void send(true)}>
            Preview
          </Button>
          <Button look="primary" refused={refused ?? (report === null ? 'Look at the preview first.' : null)} isBusy={isBusy} onPress={() => void send(false)}>
            Import
          </Button>
        </>
      }
    >
      {error !== null && <Failure error={error} />}
      {report !== null && <ReportCard report={report} />}
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
            placeholder="Paste an OpenAPI document here: 3.x or 2.0, YAML or JSON"
            spellCheck={false}
            value={text}
            onChange={(event) => edit(() => setText(event.target.value))}
          />
        </section>
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
