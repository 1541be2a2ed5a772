// The frame of the portal: its name, its menu, search, and the page that the address names.
import { QueryClientProvider } from '@tanstack/react-query'
import { Suspense, useEffect, useRef, useState } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { Boundary } from '../shell/boundary'
import { setTheme, useIsDark } from '../shell/theme'
import { IconButton } from '../ui/button'
import { Icon } from '../ui/icons'
import { Bell } from './bell'
import { queries, useMe, usePortal } from './data'
import { Loading, NotHere, SessionEnd, useSignIn } from './frame'
import { routes } from './routes'

/** Pages that somebody who signs in does not come back to. */
const ENTRIES = ['/', '/login', '/sign-up', '/confirm', '/reset', '/invitation']

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <Frame />
    </QueryClientProvider>
  )
}

function Frame() {
  const [location] = useLocation()
  useFocusOnPage(location)
  return (
    <>
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <Top />
      <Boundary place={location}>
        <Suspense fallback={<Loading />}>
          <Switch>
            {routes.map(([path, page]) => (
              <Route key={path} path={path}>
                {page}
              </Route>
            ))}
            <Route>
              <NotHere />
            </Route>
          </Switch>
        </Suspense>
      </Boundary>
      <Bottom />
      <SessionEnd />
    </>
  )
}

function Top() {
  const portal = usePortal()
  const me = useMe()
  const [location, go] = useLocation()
  const toSignIn = useSignIn()
  const [words, type] = useState('')
  const dark = useIsDark()
  const other = dark ? 'light' : 'dark'
  const isAt = (path: string) => (location === path || location.startsWith(`${path}/`) ? ('page' as const) : undefined)
  return (
    <header className="top">
      <Link href="/" className="brand">
        <img src={portal.data?.logo ?? '/ui/icon.svg'} alt="" /> <span className="clip">{portal.data?.title ?? 'Developer portal'}</span>
      </Link>
      <nav aria-label="Portal" className="row menu">
        <Link href="/apis" className="item" aria-current={isAt('/apis')}>
          APIs
        </Link>
        {me.data?.id && (
          <>
            <Link href="/apps" className="item" aria-current={isAt('/apps')}>
              Applications
            </Link>
            <Link href="/teams" className="item" aria-current={isAt('/teams')}>
              Teams
            </Link>
          </>
        )}
        {portal.data?.menu.map((it) => (
          <Link key={it.to} href={it.to} className="item" aria-current={isAt(it.to)}>
            {it.title}
          </Link>
        ))}
      </nav>
      <div className="row tail">
        <form
          role="search"
          className="search"
          onSubmit={(event) => {
            event.preventDefault()
            go(`/search?q=${encodeURIComponent(words)}`)
          }}
        >
          <Icon name="search" />
          <input className="input" type="search" aria-label="Search APIs and operations" placeholder="Search" maxLength={200} value={words} onChange={(event) => type(event.target.value)} />
        </form>
        <Link href="/search" className="button icon quiet to-search" aria-label="Search">
          <Icon name="search" />
        </Link>
        <IconButton icon={dark ? 'sun' : 'moon'} label={`Use the ${other} theme`} onPress={() => setTheme(other)} />
        {me.data?.id && <Bell />}
        {me.data && (
          <Link href={me.data.id ? '/account' : ENTRIES.includes(location) ? '/login' : toSignIn} className="button small who" aria-label={me.data.id ? me.data.name : 'Sign in'}>
            <Icon name="person" />
            <span className="clip">{me.data.id ? me.data.name : 'Sign in'}</span>
          </Link>
        )}
      </div>
    </header>
  )
}

function Bottom() {
  const portal = usePortal()
  const links = portal.data?.footer ?? []
  if (links.length === 0) return null
  return (
    <footer className="bottom">
      <div>
        {links.map((it) =>
          it.to.startsWith('/') ? (
            <Link key={it.to} href={it.to}>
              {it.title}
            </Link>
          ) : (
            <a key={it.to} href={it.to} rel="noopener noreferrer">
              {it.title}
            </a>
          ),
        )}
      </div>
    </footer>
  )
}

/** The focus goes to the page that was opened, so that the keyboard and screen readers go on from there. */
function useFocusOnPage(location: string) {
  const before = useRef(location)
  useEffect(() => {
    const at = (path: string) => path.split('/').slice(0, 4).join('/')
    if (at(before.current) === at(location)) return
    before.current = location
    scrollTo(0, 0)
    const timer = setTimeout(() => document.getElementById('page')?.focus({ preventScroll: true }), 60)
    return () => clearTimeout(timer)
  }, [location])
}
