// What belongs to this browser, and what this console is made of.
import { useState } from 'react'
import { useDefinition } from '../api/analytics'
import { get } from '../api/client'
import { useHead } from '../api/hooks'
import { useMe } from '../api/session'
import { Page } from '../shell/page'
import { type Theme, setTheme, useTheme } from '../shell/theme'
import { Button, ButtonLink } from '../ui/button'
import { saveFile } from '../ui/files'
import { duration } from '../ui/time'
import { leave } from './account'

const LIBRARIES: [string, string][] = [
  ['React', 'MIT'],
  ['React Aria Components', 'Apache-2.0'],
  ['TanStack Query and Virtual', 'MIT'],
  ['wouter', 'Unlicense'],
  ['uPlot', 'MIT'],
  ['CodeMirror', 'MIT'],
  ['yaml', 'ISC'],
]

export default function Settings() {
  const theme = useTheme()
  const head = useHead()
  const me = useMe()
  const [isBusy, setBusy] = useState(false)
  const download = async () => {
    setBusy(true)
    saveFile('weir-diagnostics.json', 'application/json', [JSON.stringify(await diagnostics(), null, 2)])
    setBusy(false)
  }
  const isKnown = me.data !== undefined && me.data.method !== 'none'
  return (
    <Page title="Settings" about="The theme is kept in this browser. The rest is what this Weir was started with." calls={[{ about: 'The newest revision', method: 'GET', path: '/api/v1/history?limit=1' }, { about: 'What analytics keep', method: 'GET', path: '/api/v1/analytics/definition' }]}>
      <div className="halves">
        <section className="card" aria-label="Look">
          <h2>Theme</h2>
          <div className="stack tight">
            {(['system', 'light', 'dark'] as Theme[]).map((it) => (
              <label className="choice" key={it}>
                <input type="radio" name="theme" checked={theme === it} onChange={() => setTheme(it)} />
                {{ system: 'As the system', light: 'Light', dark: 'Dark' }[it]}
              </label>
            ))}
          </div>
        </section>
        <section className="card" aria-label="Session">
          <h2>Session</h2>
          <p className="muted">{isKnown ? `You are logged in as ${me.data.name}.` : 'This Weir asks for no login from this machine.'}</p>
          {isKnown && (
            <div className="row">
              <ButtonLink to="/account">Your account</ButtonLink>
              {me.data.session && <Button onPress={() => void leave()}>Log out</Button>}
            </div>
          )}
        </section>
        <section className="card" aria-label="Configuration">
          <h2>Configuration</h2>
          <dl className="pairs">
            <dt>Newest revision</dt>
            <dd>{head.data ? `r${head.data.revision}` : 'none'}</dd>
            <dt>API</dt>
            <dd>
              <code>
                {location.origin}
                <wbr />
                /api/v1
              </code>
            </dd>
          </dl>
        </section>
        <Kept />
        <section className="card" aria-label="Diagnostics">
          <h2>Diagnostics</h2>
          <p className="muted">Versions, gateways, what was left out and how analytics are set, as one file for a report of a fault. It holds no document, no key and no call.</p>
          <div>
            <Button icon="download" isBusy={isBusy} onPress={() => void download()}>
              Download
            </Button>
          </div>
        </section>
        <section className="card" aria-label="Libraries">
          <h2>Libraries of this console</h2>
          <dl className="pairs">
            {LIBRARIES.map(([name, licence]) => [<dt key={name}>{name}</dt>, <dd key={`${name} licence`}>{licence}</dd>])}
          </dl>
        </section>
      </div>
    </Page>
  )
}

/** Calls whose answers tell how a Weir is, and nothing of what it serves. */
const TOLD = ['/api/v1/state', '/api/v1/gateways', '/api/v1/alerts', '/api/v1/me']

async function diagnostics(): Promise<Record<string, unknown>> {
  const answers = await Promise.all(
    TOLD.map(async (path): Promise<[string, unknown]> => {
      try {
        return [path, await get<unknown>(path)]
      } catch (error) {
        return [path, { error: error instanceof Error ? error.message : String(error) }]
      }
    }),
  )
  const { retention, privacy, store } = await get<Settled>('/api/v1/analytics/definition').catch((): Settled => ({}))
  return { at: new Date().toISOString(), browser: navigator.userAgent, analytics: { retention, privacy, store }, ...Object.fromEntries(answers) }
}

interface Settled {
  retention?: { step: number; for: number | null }[]
  privacy?: { addresses?: string; headers?: string[] }
  store?: unknown
}

/** What analytics keep, and for how long. */
function Kept() {
  const definition = useDefinition()
  const { retention = [], privacy, store } = (definition.data ?? {}) as Settled
  if (definition.isLoading) return <div className="skeleton tall" aria-busy="true" />
  return (
    <section className="card" aria-label="Analytics">
      <h2>Analytics</h2>
      {definition.data === undefined ? (
        <p className="muted">They are off, or not yours to see.</p>
      ) : (
        <dl className="pairs">
          {retention.map((it) => [
            <dt key={it.step}>Steps of {duration(it.step * 1000)}</dt>,
            <dd key={`${it.step} for`}>{it.for === null ? 'kept for good' : `kept for ${duration(it.for * 1000)}`}</dd>,
          ])}
          <dt>Client addresses</dt>
          <dd>{privacy?.addresses ?? 'none'}</dd>
          <dt>Store</dt>
          <dd>{typeof store === 'string' ? store : 'sqlite'}</dd>
        </dl>
      )}
    </section>
  )
}
