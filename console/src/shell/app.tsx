// The frame: navigation, the bar above, the page that the address names, and what lies above all of them.
import { QueryClientProvider } from '@tanstack/react-query'
import { type ComponentType, type ReactNode, Suspense, lazy, useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { Button as AriaButton } from 'react-aria-components'
import { Link, Route, Router, Switch, useLocation } from 'wouter'
import { login } from '../api/client'
import { queries, useFollowing } from '../api/hooks'
import { useCan, useConfigurationState } from '../api/rights'
import { useMe } from '../api/session'
import { Button, IconButton } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { Icon } from '../ui/icons'
import { Toasts } from '../ui/toast'
import { Boundary } from './boundary'
import { showPlace } from './place'
import { Permitted } from './permitted'
import { useKeyboard } from './keyboard'
import { type PageEntry, groups, pages } from './pages'
import { singles } from './singles'
import { setTheme, useIsDark } from './theme'
import { TroubleBanner } from './trouble'

const Palette = lazy(() => import('./palette'))
const Help = lazy(() => import('./help'))
const Login = lazy(() => import('./login'))
const LoginDone = lazy(() => import('./login-done'))
const NotFound = lazy(() => import('../pages/not-found'))

const loaded: [PageEntry, ComponentType][] = pages.map((it) => [it, lazy(it.load)])
/** Pages of single things, which need what the list of them needs. */
const inner: [string, ComponentType][] = singles.map(([path, load]) => [path, lazy(load)])

export function App() {
  if (location.pathname === '/ui/login/done') {
    return (
      <Suspense fallback={null}>
        <LoginDone />
      </Suspense>
    )
  }
  return (
    <QueryClientProvider client={queries}>
      <Router base="/ui">
        <Gate />
      </Router>
    </QueryClientProvider>
  )
}

/**
 * If a login is needed first, there is the login and no page: a page would make calls that are refused, and each of them
 * would stand in the audit log. A session that ends later leaves the page where it is.
 */
function Gate() {
  const me = useMe()
  const isLoginNeeded = useSyncExternalStore(login.subscribe, login.isNeeded)
  const [isIn, setIn] = useState(false)
  const isDecided = me.data !== undefined || (me.error !== null && !isLoginNeeded)
  const hasLeft = isLoginNeeded && !login.wasIn()
  useEffect(() => {
    if (hasLeft) setIn(false)
    else if (isDecided) setIn(true)
  }, [isDecided, hasLeft])
  return (
    <>
      {isIn ? (
        <Frame />
      ) : (
        <>
          <TroubleBanner />
          <main id="page" className="page" aria-busy={!isLoginNeeded} />
        </>
      )}
      <Suspense fallback={null}>{isLoginNeeded && <Login />}</Suspense>
    </>
  )
}

type Above = 'palette' | 'help' | 'navigation' | null

function Frame() {
  const [above, setAbove] = useState<Above>(null)
  const [location, go] = useLocation()
  const head = useFollowing()
  const state = useConfigurationState()
  const open = useMemo(() => ({ palette: () => setAbove('palette'), help: () => setAbove('help') }), [])
  useKeyboard(open, go)
  useFocusOnPage(location)
  const close = useCallback(() => setAbove(null), [])
  useEffect(close, [close, location])
  return (
    <>
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <div className="shell">
        <Navigation location={location} />
        <div className="main">
          <header className="bar">
            <span className="open-side">
              <IconButton icon="menu" label="Navigation" onPress={() => setAbove('navigation')} />
            </span>
            <AriaButton className="find" onPress={open.palette} aria-keyshortcuts="Control+K">
              <Icon name="search" /> <span className="grow">Find</span> <kbd>Ctrl K</kbd>
            </AriaButton>
            <span className="grow" />
            {head.data && (
              <Link href={`/history/${head.data.revision}`} className="badge">
                r{head.data.revision}
                <span className="sr"> is the newest change</span>
              </Link>
            )}
            <Person />
            <ThemeButton />
            <Button look="quiet" onPress={open.help}>
              <span aria-hidden="true">?</span>
              <span className="sr">Keys</span>
            </Button>
          </header>
          <TroubleBanner />
          {state.data?.read_only === true && (
            <div className="banner" role="status">
              Read-only: this Weir serves files and has no store. Change the files, or start it with <code>--data DIR</code> to change things here.
            </div>
          )}
          <Boundary key={location} place={location}>
            <Suspense fallback={<main className="page" aria-busy="true" />}>
              <Switch>
                {loaded.map(([entry, Component]) => (
                  <Route key={entry.path} path={entry.path}>
                    <Allowed of={entry}>
                      <Component />
                    </Allowed>
                  </Route>
                ))}
                {inner.map(([path, Component]) => (
                  <Route key={path} path={path}>
                    <Allowed of={pages.find((it) => it.path !== '/' && path.startsWith(`${it.path}/`))}>
                      <Component />
                    </Allowed>
                  </Route>
                ))}
                <Route component={NotFound} />
              </Switch>
            </Suspense>
          </Boundary>
        </div>
      </div>
      <Toasts />
      <Suspense fallback={null}>
        {above === 'palette' && <Palette onClose={close} />}
        {above === 'help' && <Help onClose={close} />}
      </Suspense>
      <Dialog title="Navigation" isOpen={above === 'navigation'} onClose={close}>
        <div className="drawer">
          <Navigation location={location} />
        </div>
      </Dialog>
    </>
  )
}

function Allowed({ of, children }: { of: PageEntry | undefined; children: ReactNode }) {
  if (of?.needs === undefined) return children
  return (
    <Permitted title={of.title} action={of.needs}>
      {children}
    </Permitted>
  )
}

function Navigation({ location }: { location: string }) {
  const isAt = (path: string) => (path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`))
  const can = useCan()
  const side = useRef<HTMLElement>(null)
  // There are more pages than fit: the one that is shown is in sight.
  useEffect(() => {
    // It may give a promise, which is no end of an effect.
    void side.current?.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest' })
  }, [location])
  const item = ({ path, title, needs, icon }: PageEntry) => {
    const asked = needs === undefined ? [] : (can.data ?? []).filter((it) => it.action === needs)
    const isClosed = asked.length > 0 && asked.every((it) => !it.allowed)
    return (
      <Link key={path} href={path} className={isClosed ? 'item closed' : 'item'} aria-label={isClosed ? `${title}, not for you` : undefined} aria-current={isAt(path) ? 'page' : undefined}>
        <Icon name={icon} /> <span className="clip">{title}</span>
      </Link>
    )
  }
  return (
    <nav className="side" aria-label="Pages" ref={side}>
      <Link href="/" className="brand">
        <img src="/ui/icon.svg" alt="" /> Weir
      </Link>
      {pages.filter((it) => it.group === null).map(item)}
      {groups.map((group) => {
        const members = pages.filter((it) => it.group === group)
        return (
          members.length > 0 && (
            <section key={group} aria-label={group}>
              <h2>{group}</h2>
              {members.map(item)}
            </section>
          )
        )
      })}
    </nav>
  )
}

/** Who is logged in; nothing, if this Weir has no users. */
function Person() {
  const me = useMe()
  if (me.data === undefined || me.data.method === 'none') return null
  return (
    <Link href="/account" className="button quiet person" aria-label={`${me.data.name}: your account`}>
      <Icon name="person" />
      <span className="clip">{me.data.name}</span>
    </Link>
  )
}

function ThemeButton() {
  const dark = useIsDark()
  const other = dark ? 'light' : 'dark'
  return <IconButton icon={dark ? 'sun' : 'moon'} label={`Use the ${other} theme`} onPress={() => setTheme(other)} />
}

/** The focus goes to the page that was opened, so that the keyboard and screen readers go on from there. */
function useFocusOnPage(location: string) {
  const before = useRef(location)
  useEffect(() => {
    if (before.current === location) return
    before.current = location
    showPlace()
    const timer = setTimeout(() => document.getElementById('page')?.focus({ preventScroll: true }), 60)
    return () => clearTimeout(timer)
  }, [location])
}
