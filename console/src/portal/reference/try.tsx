// Trying a call: the portal's server sends it to the publication that is shown, so that no API needs CORS. What is typed
// as a key stays in this tab's memory.
import { useState } from 'react'
import { Link } from 'wouter'
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
  is_truncated: boolean
}

interface Props {
  publication: string
  operation: OperationDetail
  parameters: Parameter[]
  typed: Typed
  schemas: Schemas
  form: { name: string; isFile: boolean }[]
  needsKey: boolean
  /** How the plans of the version recognise callers. */
  securities: string[]
  /** Whether it is known where to send calls. */
  hasAddress: boolean
  /** Where the plans are. */
  plans: string
}

/** The portal sets this header itself. */
const OWN = 'x-request-id'

let key = ''

export default function Try({ publication, operation, parameters, typed, schemas, form, needsKey, securities, hasAddress, plans }: Props) {
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
          <span className="about">
            Sent as <code>X-API-Key</code>, and kept in this tab only. You get one with a <Link href={plans}>plan</Link>.
          </span>
        </label>
        <TrialKeyOffer key={publication} publication={publication} plans={plans} onKey={keep} />
        </>
      )}
      {!needsKey && securities.length > 0 && !securities.includes('keyless') && (
        <p className="muted small">
          Callers show {[...new Set(securities)].map((it) => SHOWN[it] ?? it).join(' or ')}. This form sends none, so expect 401 here; the <Link href={plans}>plans</Link> say how to get access.
        </p>
      )}
      <div>
        <Button look="primary" onPress={() => void send()} isBusy={isBusy} refused={!hasAddress ? 'The address of the gateway is not given here, so that nothing can be sent.' : missing.length > 0 ? `Fill in ${missing.join(', ')}` : null}>
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
            {hintOf(answer.status, needsKey, typedKey !== '') && <p className="about">{hintOf(answer.status, needsKey, typedKey !== '')}</p>}
            <details>
              <summary>Headers of the answer</summary>
              <pre className="code small" tabIndex={0}>{answer.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
            </details>
            <pre className="code small answer" tabIndex={0} aria-label="Answer">{answer.is_text ? readable(answer.body) : '(bytes that are no text)'}</pre>
            {answer.is_truncated && <p className="muted small">The answer is longer than what is shown.</p>}
          </>
        )}
      </div>
    </section>
  )
}

/** What callers show, where it is no key. */
const SHOWN: Record<string, string> = { jwt: 'a token that they sign', basic: 'a user name and a password', hmac: 'a signature', oauth2: 'a token of an authorization server', mtls: 'a client certificate' }

/** What an answer that is no success may mean, and what to do. */
export function hintOf(status: number, needsKey: boolean, hasKey: boolean): string | null {
  if (status === 401 && needsKey) return hasKey ? 'The gateway does not know this key, or it is for another API. A new key works within a few seconds.' : 'Calls need a key: put yours above.'
  if (status === 403) return 'You are known, and your plan does not open this operation.'
  if (status === 404) return 'Nothing was found under these values, or the gateway does not serve this path yet.'
  if (status === 429) return 'A limit of your plan is used up for now. The headers of the answer may say when to try again.'
  if (status === 502 || status === 503 || status === 504) return 'The gateway took the call, and the server of the API behind it did not answer. That is for its provider to mend.'
  return null
}

function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
