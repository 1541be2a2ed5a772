// The frame: navigation, the bar above, the page that the address names, and what lies above all of them.
import { QueryClientProvider } from '@tanstack/react-query'
import { type ComponentType, Suspense, lazy, useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
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
import { Permitted } from './permitted'
import { useKeyboard } from './keyboard'
import { type PageEntry, groups, pages } from './pages'
import { isDark, setTheme, useTheme } from './theme'
import { TroubleBanner } from './trouble'

const Palette = lazy(() => import('./palette'))
const Help = lazy(() => import('./help'))
const Login = lazy(() => import('./login'))
const LoginDone = lazy(() => import('./login-done'))
const Detail = lazy(() => import('../pages/detail'))
const Commit = lazy(() => import('../pages/commit'))
const Compare = lazy(() => import('../pages/compare'))
const Explorer = lazy(() => import('../pages/explorer'))
const RowPage = lazy(() => import('../pages/row'))
const NewForeign = lazy(() => import('../pages/foreign-new'))
const NewApi = lazy(() => import('../pages/apis/new'))
const Adopt = lazy(() => import('../pages/apis/adopt'))
const ApiPage = lazy(() => import('../pages/apis/api'))
const Design = lazy(() => import('../pages/apis/design'))
const Plans = lazy(() => import('../pages/apis/plans'))
const Tests = lazy(() => import('../pages/apis/tests'))
const Revisions = lazy(() => import('../pages/apis/revisions'))
const Publish = lazy(() => import('../pages/apis/publish'))
const Publication = lazy(() => import('../pages/apis/publication'))
const EditBoard = lazy(() => import('../pages/boards/edit'))
const EditProduct = lazy(() => import('../pages/products/edit'))
const EditReport = lazy(() => import('../pages/reports/edit'))
const ProductPage = lazy(() => import('../pages/products/product'))
const SubscriptionPage = lazy(() => import('../pages/apis/subscription'))
const ApplicationPage = lazy(() => import('../pages/apis/application'))
const NotFound = lazy(() => import('../pages/not-found'))

const loaded: [PageEntry, ComponentType][] = pages.map((it) => [it, lazy(it.load)])

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
        <Frame />
      </Router>
    </QueryClientProvider>
  )
}

type Above = 'palette' | 'help' | 'navigation' | null

function Frame() {
  const [above, setAbove] = useState<Above>(null)
  const [location, go] = useLocation()
  const isLoginNeeded = useSyncExternalStore(login.subscribe, login.isNeeded)
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
                <span className="sr"> is the newest revision</span>
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
          <Boundary key={location}>
            <Suspense fallback={<main className="page" aria-busy="true" />}>
              <Switch>
                {loaded.map(([entry, Component]) => (
                  <Route key={entry.path} path={entry.path}>
                    {entry.needs === undefined ? (
                      <Component />
                    ) : (
                      <Permitted title={entry.title} action={entry.needs}>
                        <Component />
                      </Permitted>
                    )}
                  </Route>
                ))}
                <Route path="/history/compare/:from/:to" component={Compare} />
                <Route path="/history/:revision" component={Commit} />
                <Route path="/analytics/explore" component={Explorer} />
                <Route path="/analytics/boards/:id" component={EditBoard} />
                <Route path="/view/:list/:id" component={RowPage} />
                <Route path="/new/:dialect/:kind" component={NewForeign} />
                <Route path="/apis/new" component={NewApi} />
                <Route path="/apis/new/adopt" component={Adopt} />
                <Route path="/apis/:api" component={ApiPage} />
                <Route path="/apis/:api/:version" component={Design} />
                <Route path="/apis/:api/:version/plans" component={Plans} />
                <Route path="/apis/:api/:version/tests" component={Tests} />
                <Route path="/apis/:api/:version/revisions" component={Revisions} />
                <Route path="/apis/:api/:version/publish" component={Publish} />
                <Route path="/apis/:api/:version/in/:environment" component={Publication} />
                <Route path="/products/new" component={EditProduct} />
                <Route path="/products/:product" component={ProductPage} />
                <Route path="/products/:product/edit" component={EditProduct} />
                <Route path="/reports/:id" component={EditReport} />
                <Route path="/subscriptions/:id" component={SubscriptionPage} />
                <Route path="/applications/:name" component={ApplicationPage} />
                <Route path="/:kind/:name" component={Detail} />
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
        {isLoginNeeded && <Login />}
      </Suspense>
      <Dialog title="Navigation" isOpen={above === 'navigation'} onClose={close}>
        <div className="drawer">
          <Navigation location={location} />
        </div>
      </Dialog>
    </>
  )
}

function Navigation({ location }: { location: string }) {
  const isAt = (path: string) => (path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`))
  const can = useCan()
  const item = ({ path, title, needs }: PageEntry) => {
    const asked = needs === undefined ? [] : (can.data ?? []).filter((it) => it.action === needs)
    const isClosed = asked.length > 0 && asked.every((it) => !it.allowed)
    return (
      <Link key={path} href={path} className={isClosed ? 'item closed' : 'item'} aria-label={isClosed ? `${title}, not for you` : undefined} aria-current={isAt(path) ? 'page' : undefined}>
        {title}
      </Link>
    )
  }
  return (
    <nav className="side" aria-label="Pages">
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
  const dark = isDark(useTheme())
  const other = dark ? 'light' : 'dark'
  return <IconButton icon={dark ? 'sun' : 'moon'} label={`Use the ${other} theme`} onPress={() => setTheme(other)} />
}

/** The focus goes to the page that was opened, so that the keyboard and screen readers go on from there. */
function useFocusOnPage(location: string) {
  const before = useRef(location)
  useEffect(() => {
    if (before.current === location) return
    before.current = location
    scrollTo(0, 0)
    const timer = setTimeout(() => document.getElementById('page')?.focus({ preventScroll: true }), 60)
    return () => clearTimeout(timer)
  }, [location])
}
