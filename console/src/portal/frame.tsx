// What every page of the portal has: a title, what it is for, and how failures are shown.
import { type ReactNode, Suspense, lazy, useEffect, useSyncExternalStore } from 'react'
import { ApiError } from '../api/client'
import { useLocation } from 'wouter'
import { Failure } from '../shell/page'
import { ButtonLink } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { asksToSignIn, sessionEnd, useMe, usePortal } from './data'

const SignIn = lazy(() => import('./pages/entry').then((it) => ({ default: it.SignIn })))

interface Props {
  title: string
  about?: ReactNode
  /** Stands before the title. */
  mark?: ReactNode
  actions?: ReactNode
  /** A form or a few words: a narrow column in the middle. */
  isSlim?: boolean
  /** What stands in place of the title, if the page has a head of its own. */
  head?: ReactNode
  children: ReactNode
}

export function Page({ title, about, mark, actions, isSlim = false, head, children }: Props) {
  const portal = usePortal()
  const name = portal.data?.title
  useEffect(() => {
    document.title = name === undefined || name === title ? title : `${title} · ${name}`
  }, [title, name])
  return (
    <main id="page" className={isSlim ? 'page slim' : 'page'} tabIndex={-1}>
      {head ?? (
        <div className="head">
          {mark}
          <div className="titles">
            <h1>{title}</h1>
            {about && <div className="muted">{about}</div>}
          </div>
          {actions && <div className="row">{actions}</div>}
        </div>
      )}
      {children}
    </main>
  )
}

/** The page that is shown, as an address below the portal's. */
const place = (location: string) => location + window.location.search

/** Where to sign in, and to come back to the page that is shown. */
export function useSignIn(): string {
  const [location] = useLocation()
  return `/login?to=${encodeURIComponent(place(location))}`
}

interface WaysInProps {
  to: string
  /** With what a new account begins: the secret of an invitation. */
  invitation?: string
  children: ReactNode
}

/** The two ways in, for somebody who is not signed in. */
export function WaysIn({ to, invitation = '', children }: WaysInProps) {
  const mode = usePortal().data?.sign_up
  const isWelcome = mode === 'open' || (mode === 'invited' && invitation !== '')
  return (
    <section className="card" aria-label="Sign in or make an account">
      <p>{children}</p>
      <div className="row">
        <ButtonLink to={to} look="primary">
          Sign in
        </ButtonLink>
        {isWelcome && <ButtonLink to={invitation === '' ? '/sign-up' : `/sign-up#${encodeURIComponent(invitation)}`}>Make an account</ButtonLink>}
      </div>
    </section>
  )
}

/** As below; somebody who is not signed in is asked to, and comes back here. */
export function SignedIn({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const to = useSignIn()
  if (!asksToSignIn(error)) return <Broken error={error} onRetry={onRetry} />
  return (
    <Page title="Sign in first" isSlim>
      <WaysIn to={to}>This page is for those who have an account here.</WaysIn>
    </Page>
  )
}

/** A part of a page whose data could not be read. */
export function PartFailure({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const to = useSignIn()
  if (!asksToSignIn(error)) return <Failure error={error} onRetry={onRetry} />
  return (
    <div className="note warn" role="alert">
      <strong>Your session has ended</strong>
      <div>
        <ButtonLink to={to} small>
          Sign in
        </ButtonLink>
      </div>
    </div>
  )
}

/** Asks to sign in again above the page, once a write was refused: what was typed into the page is not lost. */
export function SessionEnd() {
  const [location] = useLocation()
  const hasEnded = useSyncExternalStore(sessionEnd.subscribe, sessionEnd.has)
  const close = () => sessionEnd.set(false)
  return (
    <Dialog title="Your session has ended" isOpen={hasEnded} onClose={close}>
      <p>Sign in, and then do this again. What you typed is still there.</p>
      <Suspense fallback={null}>
        <SignIn to={place(location)} onDone={close} />
      </Suspense>
    </Dialog>
  )
}

/** A page whose data could not be read: what is not there says so, everything else offers another try. */
export function Broken({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  if (error instanceof ApiError && error.status === 404) return <NotHere />
  return (
    <Page title="This page cannot be shown" isSlim>
      <Failure error={error} onRetry={onRetry} />
    </Page>
  )
}

/** A page that does not exist, or not for the visitor: the ways on from it. */
export function NotHere() {
  const isIn = Boolean(useMe().data?.id)
  const to = useSignIn()
  return (
    <Page title="Nothing here" isSlim>
      <p>This page does not exist, or it is not shown to you.{isIn ? '' : ' Sign in if you have an account.'}</p>
      <div className="row">
        {!isIn && (
          <ButtonLink to={to} look="primary">
            Sign in
          </ButtonLink>
        )}
        <ButtonLink to="/apis">All APIs</ButtonLink>
        {isIn && <ButtonLink to="/apps">Your applications</ButtonLink>}
      </div>
    </Page>
  )
}

export const Loading = () => <main id="page" className="page" aria-busy="true" tabIndex={-1} />
