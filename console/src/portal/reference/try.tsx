// Trying a call: the portal's server sends it to the publication that is shown, so that no API needs CORS. What is typed
// as a key stays in this tab's memory.
import { useState } from 'react'
import { call } from '../../api/client'
import { Failure } from '../../shell/page'
import { Button } from '../../ui/button'
import { BASE, type OperationDetail } from '../data'
import { type Parameter, type Typed, isForm, keyOf, partsOf } from './request'
import type { Schemas } from './schema'
import { TrialKeyOffer } from './trial-key'

interface Answer {
  status: number
  ms: number
  request_id: string | null
  headers: [string, string][]
  body: string
  is_text: boolean
  is_cut: boolean
}

interface Props {
  publication: string
  operation: OperationDetail
  parameters: Parameter[]
  typed: Typed
  schemas: Schemas
  form: { name: string; isFile: boolean }[]
  needsKey: boolean
  /** Where the plans are. */
  plans: string
}

/** The portal sets this header itself. */
const OWN = 'x-request-id'

let key = ''

export default function Try({ publication, operation, parameters, typed, schemas, form, needsKey, plans }: Props) {
  const [typedKey, typeKey] = useState(key)
  const [answer, show] = useState<Answer | null>(null)
  const [error, fail] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const keep = (wanted: string) => {
    key = wanted
    typeKey(wanted)
  }
  const missing = parameters.filter((it) => it.isRequired && it.name.toLowerCase() !== OWN && (typed.parameters[keyOf(it)] ?? '') === '').map((it) => it.name)
  const send = async () => {
    setBusy(true)
    fail(null)
    try {
      const parts = partsOf(operation.path, parameters, typed, schemas)
      const fields = isForm(typed.media) ? form.filter((it) => typed.form[it.name]).map((it) => ({ name: it.name, value: typed.form[it.name], file: it.isFile })) : undefined
      const sent = {
        path: parts.path,
        query: parts.query,
        headers: parts.headers.filter(([name]) => name.toLowerCase() !== OWN),
        media: typed.media || null,
        body: fields === undefined && typed.media ? typed.body : null,
        form: fields ?? null,
        key: typedKey || null,
      }
      const { data } = await call<Answer>('POST', `${BASE}/try/${publication.split('/').map(encodeURIComponent).join('/')}/${encodeURIComponent(operation.id)}`, { body: sent })
      show(data)
    } catch (it) {
      fail(it)
      show(null)
    }
    setBusy(false)
  }
  return (
    <section aria-label="Try it">
      <h3>Try it</h3>
      {needsKey && (
        <>
        <label className="field">
          <span className="label">API key</span>
          <input
            className="input mono"
            type="password"
            autoComplete="off"
            value={typedKey}
            onChange={(event) => keep(event.target.value)}
          />
          <span className="about">Sent as X-API-Key. It stays in this tab.</span>
        </label>
        <TrialKeyOffer key={publication} publication={publication} plans={plans} onKey={keep} />
        </>
      )}
      <div>
        <Button look="primary" onPress={() => void send()} isBusy={isBusy} refused={missing.length > 0 ? `Fill in ${missing.join(', ')}` : null}>
          Send
        </Button>
      </div>
      <div role="status" aria-live="polite" className="stack tight">
        {error !== null && <Failure error={error} />}
        {answer && (
          <>
            <div className="row">
              <span className={`badge ${answer.status < 400 ? 'good' : 'bad'}`}>{answer.status}</span>
              <span className="muted small">{answer.ms} ms</span>
              {answer.request_id && (
                <span className="muted small">
                  Request <code>{answer.request_id}</code>
                </span>
              )}
            </div>
            <details>
              <summary>Headers</summary>
              <pre className="code small" tabIndex={0}>{answer.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
            </details>
            <pre className="code small answer" tabIndex={0} aria-label="Answer">{answer.is_text ? readable(answer.body) : '(bytes that are no text)'}</pre>
            {answer.is_cut && <p className="muted small">The answer is longer than what is shown.</p>}
          </>
        )}
      </div>
    </section>
  )
}

function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
