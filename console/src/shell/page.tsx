// What every page begins with: its title, what it is for, its actions, and its calls as command lines. And how it shows
// that a call failed.
import { type ReactNode, createContext, useContext, useEffect, useState, useSyncExternalStore } from 'react'
import { createPortal } from 'react-dom'
import { Link, useLocation } from 'wouter'
import { ApiError, asCurl, login } from '../api/client'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { copy } from '../ui/files'
import { Icon } from '../ui/icons'
import { pages } from './pages'

export interface ShownCall {
  about: string
  method: string
  path: string
  body?: unknown
  headers?: Record<string, string>
  /** The same on the command line, if there is a command. */
  command?: string
}

interface Props {
  title: string
  about?: ReactNode
  crumbs?: { to: string; text: string }[]
  actions?: ReactNode
  calls: ShownCall[]
  children: ReactNode
}

/** Where the page's actions stand. */
const Actions = createContext<HTMLElement | null>(null)

/** Actions of an editor within the page. They stand after those of the page itself: in the same place on every page. */
export function PageActions({ children }: { children: ReactNode }) {
  const place = useContext(Actions)
  return place && createPortal(children, place)
}

export function Page({ title, about, crumbs, actions, calls, children }: Props) {
  const [isShown, setShown] = useState(false)
  const [place, setPlace] = useState<HTMLElement | null>(null)
  useEffect(() => {
    document.title = `${title} · Weir`
  }, [title])
  return (
    <main id="page" className="page" tabIndex={-1}>
      <div className="head">
        <div className="titles">
          {crumbs && (
            <nav className="crumbs" aria-label="Place">
              {crumbs.map((crumb) => (
                <Link key={crumb.to} href={crumb.to}>
                  {crumb.text}
                </Link>
              ))}
            </nav>
          )}
          <h1>{title}</h1>
          {about && <p>{about}</p>}
        </div>
        <div className="row">
          <span className="as-call">
            <Button look="quiet" icon="code" onPress={() => setShown(true)}>
              <span className="word">Show as call</span>
            </Button>
          </span>
          {actions}
          <span className="more-actions" ref={setPlace} />
        </div>
      </div>
      <Actions.Provider value={place}>{children}</Actions.Provider>
      <Dialog title="This page as calls" isOpen={isShown} onClose={() => setShown(false)}>
        <p className="muted">Everything here is a documented call of Weir's API. These are the calls of this page.</p>
        {calls.map((it) => (
          <CallText key={it.about} call={it} />
        ))}
      </Dialog>
    </main>
  )
}

function CallText({ call }: { call: ShownCall }) {
  const line = asCurl(call.method, call.path, call.body, call.headers)
  return (
    <section className="stack tight">
      <div className="row between">
        <h3>{call.about}</h3>
        <Button
          small
          look="quiet"
          onPress={() => void copy(line)}
        >
          Copy
        </Button>
      </div>
      <pre className="code" tabIndex={0}>{line}</pre>
      {call.command && <pre className="code" tabIndex={0}>{call.command}</pre>}
    </section>
  )
}

/** What browsers say when a part of the application cannot be loaded. */
const UNLOADED = /dynamically imported module|Importing a module script failed|Unable to preload CSS/i

/** What went wrong, in words that say what to do. */
export function failureText(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error)
  return UNLOADED.test(said) ? 'This page could not be loaded: the server does not answer, or it has another version by now. Wait a moment, and try again.' : said
}

/** A call that failed: which one, what was said, and a way to try again. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const said = error instanceof ApiError ? error : null
  const isLoginNeeded = useSyncExternalStore(login.subscribe, login.isNeeded)
  // The login lies above the page, which is read again after it.
  if (said?.status === 401 && isLoginNeeded) return <div className="skeleton" />
  // An address that somebody has kept, or that is mistyped: nothing is broken.
  const isGone = said?.status === 404 && said.method === 'GET'
  const what = said && `${said.method} ${said.path} ${said.status === 0 ? 'got no answer' : `answered ${said.status}`}`
  return (
    <div className={isGone ? 'note warn' : 'note bad'} role="alert">
      <strong>{isGone ? 'This does not exist, or not any more' : (what ?? 'This did not work')}</strong>
      <span>{failureText(error)}</span>
      {isGone && <span className="small">{what}</span>}
      {said && said.findings.length > 0 && (
        <ul>
          {said.findings.map((it) => (
            <li key={`${it.path}${it.message}`}>
              <code>{it.path}</code> {it.message}
            </li>
          ))}
        </ul>
      )}
      {said?.requestId && <span className="small">Request {said.requestId}</span>}
      {onRetry && (
        <div>
          <Button small onPress={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  )
}

interface EmptyProps {
  title: string
  children: ReactNode
  /** An example, as text. */
  example?: string
  actions?: ReactNode
}

/** A command in which no option is broken after its hyphens. */
function whole(text: string): ReactNode[] {
  return text.split(/(?<=\s)(--[\w-]+)/).map((part, at) =>
    part.startsWith('--') ? (
      <span key={at} className="one-line">
        {part}
      </span>
    ) : (
      part
    ),
  )
}

/** What an empty list teaches. */
export function Empty({ title, children, example, actions }: EmptyProps) {
  const [place] = useLocation()
  const icon = pages.find((it) => it.path === place)?.icon
  return (
    <div className="empty">
      {icon && (
        <span className="emblem">
          <Icon name={icon} />
        </span>
      )}
      <h2>{title}</h2>
      {children}
      {example && <pre tabIndex={0}>{whole(example)}</pre>}
      {actions && <div className="row">{actions}</div>}
    </div>
  )
}
