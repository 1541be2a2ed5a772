// Every page of the portal: its pattern, in the order in which they are tried, and what it shows.
import { type ReactNode, lazy } from 'react'

const Home = lazy(() => import('./pages/home'))
const Catalogue = lazy(() => import('./pages/catalogue'))
const Search = lazy(() => import('./pages/search'))
const Api = lazy(() => import('./pages/api'))
const TextPage = lazy(() => import('./pages/text-page'))
const Login = lazy(() => import('./pages/entry').then((it) => ({ default: it.Login })))
const SignUp = lazy(() => import('./pages/entry').then((it) => ({ default: it.SignUp })))
const Confirm = lazy(() => import('./pages/entry').then((it) => ({ default: it.Confirm })))
const Reset = lazy(() => import('./pages/entry').then((it) => ({ default: it.Reset })))
const Invitation = lazy(() => import('./pages/entry').then((it) => ({ default: it.Invitation })))
const Apps = lazy(() => import('./pages/apps'))
const AppPage = lazy(() => import('./pages/app'))
const Notices = lazy(() => import('./pages/notices'))
const Subscribe = lazy(() => import('./pages/subscribe'))
const Account = lazy(() => import('./pages/account'))
const Teams = lazy(() => import('./pages/teams'))

/** What a pattern finds in an address. */
type Found = Record<string, string | undefined>

export const routes: [string, (found: Found) => ReactNode][] = [
  ['/', () => <Home />],
  ['/apis', () => <Catalogue />],
  ['/search', () => <Search />],
  ['/login', () => <Login />],
  ['/sign-up', () => <SignUp />],
  ['/confirm', () => <Confirm />],
  ['/reset', () => <Reset />],
  ['/invitation', () => <Invitation />],
  ['/account', () => <Account />],
  ['/teams', () => <Teams />],
  ['/notices', () => <Notices />],
  ['/apps', () => <Apps />],
  ['/apps/:app', ({ app = '' }) => <AppPage name={app} tab="" />],
  ['/apps/:app/:tab', ({ app = '', tab = '' }) => <AppPage name={app} tab={tab} />],
  ['/apis/:api/:version/subscribe', ({ api = '', version = '' }) => <Subscribe api={api} version={version} />],
  ['/apis/:api', ({ api = '' }) => <Api api={api} version={null} rest="" />],
  ['/apis/:api/:version', ({ api = '', version = '' }) => <Api api={api} version={version} rest="" />],
  ['/apis/:api/:version/*', ({ api = '', version = '', '*': rest = '' }) => <Api api={api} version={version} rest={rest} />],
  ['/pages/:page', ({ page = '' }) => <TextPage name={page} />],
]
