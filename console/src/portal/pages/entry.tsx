// Signing up, confirming, signing in, a new password, and invitations. What mails carry stands behind the # of an
// address, so that no server and no other site gets to see it.
import { type FormEvent, type ReactNode, useEffect, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { ApiError } from '../../api/client'
import { ButtonLink } from '../../ui/button'
import { decoded } from '../../shell/segments'
import { type Me, readAgain, useMe, usePortal, useWrite } from '../data'
import { WaysIn, Page } from '../frame'
import { ownPath } from './own-path'

const secret = () => decoded(location.hash.slice(1))

/** The secret of the address, also of one that is opened while the page is shown: a browser does not load it again. */
function useSecret(): string {
  const [kept, keep] = useState(secret)
  useEffect(() => {
    // The link that skips to the page leads to its fragment, too.
    const read = () => location.hash !== '#page' && keep(secret())
    addEventListener('hashchange', read)
    return () => removeEventListener('hashchange', read)
  }, [])
  return kept
}

/** What a refused call said, beside the fields that it names. */
export function Said({ error, fields = [] }: { error: unknown; fields?: string[] }) {
  if (error === null || error === undefined) return null
  const said = error instanceof ApiError ? error : null
  const others = said?.findings.filter((it) => !fields.includes(it.path)) ?? []
  if (said && said.findings.length > 0 && others.length === 0) return null
  return (
    <p className="note bad" role="alert">
      {error instanceof Error ? error.message : String(error)}
    </p>
  )
}

export function Field({ label, name, value, onChange, type = 'text', about, error, autoComplete, autoFocus, isOptional = false }: { label: string; name: string; value: string; onChange: (value: string) => void; type?: string; about?: string; error?: unknown; autoComplete?: string; autoFocus?: boolean; isOptional?: boolean }) {
  const wrong = error instanceof ApiError ? error.findings.find((it) => it.path === name)?.message : undefined
  return (
    <label className="field">
      <span className="label">{label}</span>
      <input className="input" name={name} type={type} required={!isOptional} value={value} autoComplete={autoComplete} autoFocus={autoFocus} aria-invalid={wrong !== undefined} aria-describedby={wrong ? `${name}-wrong` : undefined} onChange={(event) => onChange(event.target.value)} />
      {about && <span className="about">{about}</span>}
      {wrong && (
        <span className="wrong" id={`${name}-wrong`}>
          {wrong}
        </span>
      )}
    </label>
  )
}

export function Form({ label, onSubmit, children, submit, isBusy, isInline = false }: { label: string; onSubmit: () => void; children: ReactNode; submit: string; isBusy: boolean; isInline?: boolean }) {
  const send = (event: FormEvent) => {
    event.preventDefault()
    if (!isBusy) onSubmit()
  }
  return (
    <form className={isInline ? 'inline-form' : 'card narrow-form'} aria-label={label} onSubmit={send}>
      {children}
      <div className="row">
        <button type="submit" className="button primary" aria-disabled={isBusy}>
          {submit}
        </button>
      </div>
    </form>
  )
}

/** Why a login with an identity provider came to nothing, in words. */
const REFUSED: Record<string, string> = {
  'provider-unavailable': 'The identity provider does not answer as it should. Try again later.',
  refused: 'The identity provider has refused the login.',
  'not-begun-here': 'This login did not begin in this browser, or it took too long. Try again.',
  'token-not-accepted': 'The answer of the identity provider was refused. Ask the administrators of this portal.',
  'no-mail': 'The identity provider sent no confirmed mail address.',
  'other-account': 'There is an account with your mail address already. Sign in with its password.',
  'not-confirmed': 'Confirm your mail address: a link is in the mail. Then sign in again.',
  'not-welcome': 'Accounts like yours cannot sign up here. Ask the administrators of this portal.',
  waiting: 'Your account is waiting for approval.',
  'not-active': 'Your account is not active. Ask the administrators of this portal.',
}

const PASSWORD = 'At least 10 characters. A sentence is good.'

/** Signs in, here or through an identity provider, which leads to `to` afterwards. */
export function SignIn({ to, onDone }: { to: string; onDone: (me: Me) => void }) {
  const [mail, typeMail] = useState('')
  const [password, typePassword] = useState('')
  const [code, typeCode] = useState<string | null>(null)
  const signIn = useWrite<Me, { mail: string; password: string; code: string | null }>('POST', () => '/session', true)
  const portal = usePortal()
  const isCodeNeeded = signIn.error instanceof ApiError && signIn.error.kind === 'code-needed'
  const send = () =>
    signIn.mutate(
      { mail, password, code },
      {
        onSuccess: (me) => void readAgain().then(() => onDone(me)),
        onError: (error) => error instanceof ApiError && error.kind === 'code-needed' && typeCode(''),
      },
    )
  return (
    <>
      {(portal.data?.providers.length ?? 0) > 0 && (
        <ul className="card narrow-form providers" aria-label="Identity providers">
          {portal.data?.providers.map((it) => (
            <li key={it.name}>
              {/* The server sends the browser on: this is no page of the application. */}
              <a className="button" href={`/portal/v1/session/openid/${encodeURIComponent(it.name)}?to=${encodeURIComponent(to)}`}>
                Sign in with {it.title}
              </a>
            </li>
          ))}
        </ul>
      )}
      <Form label="Sign in" onSubmit={send} submit="Sign in" isBusy={signIn.isPending}>
        <Field label="Mail address" name="mail" type="email" autoComplete="username" value={mail} onChange={typeMail} />
        <Field label="Password" name="password" type="password" autoComplete="current-password" value={password} onChange={typePassword} />
        {code !== null && <Field label="Code" name="code" autoComplete="one-time-code" about="Six digits of your authenticator app, or a recovery code." value={code} onChange={typeCode} autoFocus />}
        <Said error={isCodeNeeded ? null : signIn.error} />
      </Form>
    </>
  )
}

export function Login() {
  const [query] = useSearchParams()
  const [, go] = useLocation()
  const portal = usePortal()
  const me = useMe()
  const asked = query.get('to') ?? '/apps'
  const wanted = ownPath(asked, location.origin) ?? '/apps'
  const refused = query.get('error')
  // As it was when the page was opened: who signs in here goes on by itself.
  const [before, keep] = useState<Me | null>(null)
  const isKnown = me.data !== undefined
  useEffect(() => {
    if (me.data?.id) keep(me.data)
    // Only what is known first counts.
  }, [isKnown])
  return (
    <Page title="Sign in" about="For your applications, their keys and their usage." isSlim>
      {refused !== null && (
        <p className="note bad" role="alert">
          {REFUSED[refused] ?? 'The login has failed.'}
        </p>
      )}
      {before !== null && (
        <div className="note">
          <span>
            You are signed in as <strong>{before.name}</strong>. If you sign in as somebody else, this account is signed out.
          </span>
          <div className="row">
            <ButtonLink to={wanted} small>
              Go on as {before.name}
            </ButtonLink>
          </div>
        </div>
      )}
      <SignIn to={wanted} onDone={() => go(wanted)} />
      <p className="elsewhere">
        {portal.data?.sign_up === 'open' && <Link href="/sign-up">Make an account</Link>}
        <Link href="/reset">I forgot my password</Link>
      </p>
    </Page>
  )
}

export function SignUp() {
  const [mail, typeMail] = useState('')
  const [name, typeName] = useState('')
  const [password, typePassword] = useState('')
  const invitation = useSecret()
  const signUp = useWrite<{ message: string }, { mail: string; name: string; password: string; invitation: string | null }>('POST', () => '/sign-up', true)
  return (
    <Page title="Make an account" about="For applications of your own, their keys and their usage. A mail confirms your address." isSlim>
      {signUp.data ? (
        <p className="note" role="status">
          {signUp.data.message}
        </p>
      ) : (
        <Form label="Make an account" onSubmit={() => signUp.mutate({ mail, name, password, invitation: invitation || null })} submit="Make an account" isBusy={signUp.isPending}>
          <Field label="Mail address" name="mail" type="email" autoComplete="username" value={mail} onChange={typeMail} error={signUp.error} />
          <Field label="Name" name="name" autoComplete="name" value={name} onChange={typeName} error={signUp.error} />
          <Field label="Password" name="password" type="password" autoComplete="new-password" about={PASSWORD} value={password} onChange={typePassword} error={signUp.error} />
          <Said error={signUp.error} fields={['mail', 'name', 'password']} />
        </Form>
      )}
      <p className="elsewhere">
        <Link href="/login">I have an account</Link>
      </p>
    </Page>
  )
}

/** What a page says whose address lacks the secret of the mail. */
function LinkIsCut() {
  return <p className="note warn">The link is not whole. Open the one in the mail again, or copy all of it.</p>
}

/** A button, so that a program that only opens the links of mails uses none of them up. */
export function Confirm() {
  const token = useSecret()
  // Another link is another beginning.
  return <ConfirmWith key={token} token={token} />
}

function ConfirmWith({ token }: { token: string }) {
  const confirm = useWrite<{ message: string }, { token: string }>('POST', () => '/confirm', true)
  return (
    <Page title="Confirm your mail address" isSlim>
      {confirm.data ? (
        <p className="note" role="status">
          {confirm.data.message} <Link href="/login">Sign in</Link>
        </p>
      ) : token === '' ? (
        <LinkIsCut />
      ) : (
        <Form label="Confirm" onSubmit={() => confirm.mutate({ token })} submit="Confirm" isBusy={confirm.isPending}>
          <p>One step is left: say that this address is yours.</p>
          <Said error={confirm.error} />
        </Form>
      )}
    </Page>
  )
}

export function Reset() {
  const token = useSecret()
  // The link of the mail is often opened in the tab that asked for it.
  return <ResetWith key={token} token={token} />
}

function ResetWith({ token }: { token: string }) {
  const [mail, typeMail] = useState('')
  const [password, typePassword] = useState('')
  const ask = useWrite<{ message: string }, { mail: string }>('POST', () => '/reset', true)
  const set = useWrite<{ message: string }, { token: string; password: string }>('POST', () => '/reset/password', true)
  const said = ask.data ?? set.data
  return (
    <Page title="A new password" about={token === '' && !said ? 'You get a link by mail with which to set one.' : undefined} isSlim>
      {said ? (
        <p className="note" role="status">
          {said.message} {set.data && <Link href="/login">Sign in</Link>}
        </p>
      ) : token === '' ? (
        <Form label="Ask for a new password" onSubmit={() => ask.mutate({ mail })} submit="Send the link" isBusy={ask.isPending}>
          <Field label="Mail address" name="mail" type="email" autoComplete="username" value={mail} onChange={typeMail} error={ask.error} />
          <Said error={ask.error} fields={['mail']} />
        </Form>
      ) : (
        <Form label="Set a new password" onSubmit={() => set.mutate({ token, password })} submit="Set the password" isBusy={set.isPending}>
          <Field label="New password" name="password" type="password" autoComplete="new-password" about={PASSWORD} value={password} onChange={typePassword} error={set.error} />
          <Said error={set.error} fields={['password']} />
        </Form>
      )}
      {!said && (
        <p className="elsewhere">
          <Link href="/login">Sign in</Link>
        </p>
      )}
    </Page>
  )
}

export function Invitation() {
  const token = useSecret()
  const me = useMe()
  const [, go] = useLocation()
  const accept = useWrite<unknown, { token: string }>('POST', () => '/invitations')
  return (
    <Page title="Join a team" isSlim>
      {token === '' ? (
        <LinkIsCut />
      ) : me.data === undefined ? (
        <div className="skeleton" aria-busy="true" />
      ) : me.data.id ? (
        <Form label="Join" onSubmit={() => accept.mutate({ token }, { onSuccess: () => go('/teams') })} submit="Join the team" isBusy={accept.isPending}>
          <p>You join as {me.data.mail}.</p>
          <Said error={accept.error} />
        </Form>
      ) : (
        <WaysIn to="/login" invitation={token}>
          Sign in first, or make an account with the address that was invited. Then open the link of the mail again.
        </WaysIn>
      )}
    </Page>
  )
}
