// Sends the call that is explained, for real: the server sends it to its own gateway, and the answer is shown beside what
// was foretold.
import { useEffect, useRef, useState } from 'react'
import type { components } from '../../generated/api'
import { call } from '../api/client'
import { useRight } from '../api/rights'
import { Failure } from '../shell/page'
import { Button } from '../ui/button'
import { countText, duration } from '../ui/time'
import type { AskedCall } from './curl'

type Answer = components['schemas']['TryItResponse']
type Explained = components['schemas']['ExplainResponse']

export const TRY = '/api/v1/try'

const toneOf = (status: number): string => (status < 400 ? 'good' : status < 500 ? 'warn' : 'bad')

/** What the explanation said of the status; `null`: it is the API's own. */
const foretold = (explained: Explained | undefined): number | null => (explained?.end.kind === 'answered' ? (explained.end.status ?? null) : null)

function Compared({ answer, explained }: { answer: Answer; explained: Explained | undefined }) {
  const expected = foretold(explained)
  if (explained === undefined) return null
  if (expected !== null) {
    return expected === answer.status ? <span>As foretold.</span> : <span>The explanation said {expected}: something was different for this call, such as what its limits have left.</span>
  }
  if (explained.end.kind === 'forwarded') return <span>{answer.status < 400 ? 'As foretold, it went to the API.' : 'The explanation said that it goes to the API: the answer may be the API’s own, or the gateway’s that could not reach it.'}</span>
  return <span>The explanation left it open.</span>
}

/** JSON is shown in lines. */
function pretty(answer: Answer): string {
  const type = answer.headers.find(([name]) => name === 'content-type')?.[1] ?? ''
  if (!type.includes('json')) return answer.body
  try {
    return JSON.stringify(JSON.parse(answer.body), null, 2)
  } catch {
    return answer.body
  }
}

export function SendCall({ asked, explained, isNow }: { asked: AskedCall; explained: Explained | undefined; isNow: boolean }) {
  const refused = useRight('calls:send')
  const [answer, setAnswer] = useState<Answer | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  // An answer to another call than the one that stands there is not shown.
  const key = JSON.stringify(asked)
  const current = useRef(key)
  current.current = key
  useEffect(() => {
    setAnswer(null)
    setError(null)
  }, [key])
  const send = async () => {
    setBusy(true)
    setError(null)
    try {
      const { data } = await call<Answer>('POST', TRY, { body: { method: asked.method, url: asked.url, headers: asked.headers, body: asked.body } })
      if (current.current === key) setAnswer(data)
    } catch (wrong) {
      if (current.current === key) {
        setAnswer(null)
        setError(wrong)
      }
    }
    setBusy(false)
  }
  return (
    <section className="card" aria-label="Send it">
      <div className="head2">
        <h2>Send it</h2>
        <Button refused={refused} isBusy={isBusy} onPress={() => void send()}>
          Send for real
        </Button>
      </div>
      <p className="muted small">
        Weir sends the call to its own gateway: it counts, is logged, and reaches the API. The gateway sees its own address as the client.
        {!isNow && ' What is served now answers it, not what is explained.'}
      </p>
      {error !== null && <Failure error={error} />}
      {answer && (
        <>
          <div className={`note ${toneOf(answer.status) === 'good' ? '' : toneOf(answer.status)}`} role="status" aria-label="What came back">
            <strong>The answer is {answer.status}</strong>
            {isNow && <Compared answer={answer} explained={explained} />}
          </div>
          <dl className="pairs">
            <dt>Headers after</dt>
            <dd>{duration(answer.head_ms)}</dd>
            <dt>All of it after</dt>
            <dd>{duration(answer.ms)}</dd>
            {answer.request_id && (
              <>
                <dt>Request id</dt>
                <dd>
                  <code>{answer.request_id}</code>
                </dd>
              </>
            )}
          </dl>
          <details>
            <summary>{countText(answer.headers.length, 'header', 'headers')}</summary>
            <pre className="code" tabIndex={0} aria-label="Headers of the answer">
              {answer.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}
            </pre>
          </details>
          {answer.is_text ? (
            answer.body === '' ? (
              <p className="muted">It has no body.</p>
            ) : (
              <pre className="code scroll" tabIndex={0} aria-label="Body of the answer">
                {pretty(answer)}
              </pre>
            )
          ) : (
            <p className="muted">The body is no text.</p>
          )}
          {answer.is_truncated && <p className="muted">It is longer: 1 MiB of it is shown.</p>}
        </>
      )}
    </section>
  )
}
