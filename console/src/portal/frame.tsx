// What every page of the portal has: a title, what it is for, and how failures are shown.
import { type ReactNode, useEffect } from 'react'
import { ApiError } from '../api/client'
import { useLocation } from 'wouter'
import { Failure } from '../shell/page'
import { ButtonLink } from '../ui/button'
import { usePortal } from './data'

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

/** As below; somebody who is not signed in is asked to, and comes back here. */
export function SignedIn({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const [location] = useLocation()
  if (!(error instanceof ApiError) || error.status !== 401) return <Broken error={error} onRetry={onRetry} />
  const to = `/login?to=${encodeURIComponent(location + window.location.search)}`
  return (
    <Page title="Sign in first" isSlim>
      <p>This page is for those who have an account here.</p>
      <div className="row">
        <ButtonLink to={to} look="primary">
          Sign in
        </ButtonLink>
        <ButtonLink to="/sign-up">Make an account</ButtonLink>
      </div>
    </Page>
  )
}

/** A page whose data could not be read: what is not there says so, everything else offers another try. */
export function Broken({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Page title="Nothing here" isSlim>
        <p>This page does not exist, or it is not shown to you. Sign in if you have an account.</p>
      </Page>
    )
  }
  return (
    <Page title="This page cannot be shown" isSlim>
      <Failure error={error} onRetry={onRetry} />
    </Page>
  )
}

export const Loading = () => <main id="page" className="page" aria-busy="true" tabIndex={-1} />
