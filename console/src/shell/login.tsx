// The login. It lies above the page that was asked for, and above what is open on it; both are there again afterwards.
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useCallback, useEffect, useState } from 'react'
import { Dialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import { useLocation } from 'wouter'
import { ApiError, login } from '../api/client'
import { type Secret, WINDOW, failureOf, goToProvider, logIn, onLogin, placeBefore, useLoginOptions } from '../api/session'
import { TextField } from '../ui/field'

const failure = () => failureOf(new URLSearchParams(location.search).get('login_error'))

export default function Login() {
  const options = useLoginOptions()
  const [, go] = useLocation()
  const client = useQueryClient()
  const [wantsToken, setWantsToken] = useState(false)
  const [error, setError] = useState<string | null>(failure)
  const hasEnded = login.wasIn()
  const enter = useCallback(async () => {
    if (window.name === WINDOW) window.close()
    const place = new URLSearchParams(location.search).has('login_error') ? (placeBefore() ?? '/') : null
    login.set(false)
    if (place !== null) go(place, { replace: true })
    await client.invalidateQueries()
  }, [client, go])
  useEffect(() => onLogin(() => void enter()), [enter])
  const attempt = async (secret: Secret) => {
    setError(null)
    try {
      await logIn(secret)
      await enter()
    } catch (refused) {
      setError(wordsOf(refused))
    }
  }
  const known = options.data
  const hasPasswords = known?.password === true
  const providers = known?.providers ?? []
  const isTokenForm = wantsToken || (!hasPasswords && providers.length === 0)
  return (
    <ModalOverlay className="backdrop login" isOpen isKeyboardDismissDisabled>
      <Modal className="modal">
        <Dialog className="dialog">
          <Heading slot="title" level={1}>
            Log in to Weir
          </Heading>
          {hasEnded && <p className="note">Your session has ended. The page below keeps what you typed.</p>}
          {error !== null && (
            <p className="note bad" role="alert">
              {error}
            </p>
          )}
          {options.isLoading ? (
            <div className="skeleton" aria-busy="true" />
          ) : (
            <>
              {providers.map((it) => (
                <button key={it.name} type="button" className="button" onClick={() => goToProvider(it.name)}>
                  Log in with {it.display_name}
                </button>
              ))}
              {providers.length > 0 && (hasPasswords || isTokenForm) && <p className="or">or</p>}
              {isTokenForm ? <TokenForm onEnter={attempt} /> : hasPasswords && <PasswordForm onEnter={attempt} />}
              {(hasPasswords || providers.length > 0) && (
                <button type="button" className="button quiet" onClick={() => setWantsToken(!isTokenForm)}>
                  {!isTokenForm ? 'Use a token' : hasPasswords ? 'Use a password' : 'Use no token'}
                </button>
              )}
            </>
          )}
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

function wordsOf(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error)
  switch (error.kind) {
    case 'wrong-password':
      return 'The name or the password is wrong.'
    case 'wrong-token':
      return 'Weir does not know this token. `weir user add NAME` shows a new one.'
    default:
      return `${error.message}${/[.!]$/.test(error.message) ? '' : '.'}`
  }
}

interface FormProps {
  onEnter: (secret: Secret) => Promise<void>
}

function useForm(enter: () => Promise<void>) {
  const [isBusy, setBusy] = useState(false)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    void enter().finally(() => setBusy(false))
  }
  return { isBusy, submit }
}

function PasswordForm({ onEnter }: FormProps) {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const { isBusy, submit } = useForm(() => onEnter({ name: name.trim(), password }))
  return (
    <form className="stack" onSubmit={submit}>
      <TextField label="User name" value={name} onChange={setName} autoComplete="username" autoFocus />
      <TextField label="Password" type="password" value={password} onChange={setPassword} autoComplete="current-password" />
      <button className="button primary" type="submit" disabled={isBusy || name.trim() === '' || password === ''}>
        Log in
      </button>
    </form>
  )
}

function TokenForm({ onEnter }: FormProps) {
  const [token, setToken] = useState('')
  const { isBusy, submit } = useForm(() => onEnter({ token: token.trim() }))
  return (
    <form className="stack" onSubmit={submit}>
      <TextField label="Token" type="password" value={token} onChange={setToken} about="The one that `weir user add` showed. It begins a session; the browser does not keep it." autoComplete="current-password" autoFocus />
      <button className="button primary" type="submit" disabled={isBusy || token.trim() === ''}>
        Log in
      </button>
    </form>
  )
}
