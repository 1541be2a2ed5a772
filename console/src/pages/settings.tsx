// What belongs to this browser, and what this console is made of.
import { useHead } from '../api/hooks'
import { useMe } from '../api/session'
import { Page } from '../shell/page'
import { type Theme, setTheme, useTheme } from '../shell/theme'
import { Button, ButtonLink } from '../ui/button'
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
  const isKnown = me.data !== undefined && me.data.method !== 'none'
  return (
    <Page title="Settings" about="These are kept in this browser." calls={[{ about: 'The newest revision', method: 'GET', path: '/api/v1/history?limit=1' }]}>
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
              <code>{location.origin}/api/v1</code>
            </dd>
          </dl>
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
