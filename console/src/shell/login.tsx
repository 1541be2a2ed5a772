// The login. It lies above the page that was asked for, which is there again afterwards.
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiError, call, login, token } from '../api/client'

export default function Login() {
  const [secret, setSecret] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const client = useQueryClient()
  const enter = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    const before = token.get()
    token.set(secret.trim())
    try {
      await call('GET', '/api/v1/gateways')
      login.set(false)
      await client.invalidateQueries()
    } catch (refused) {
      token.set(before)
      setError(
        refused instanceof ApiError && refused.status === 401
          ? 'Weir does not know this token. `weir user add NAME` shows a new one.'
          : (refused as Error).message,
      )
    }
    setBusy(false)
  }
  return (
    <div className="veil">
      <main className="modal" aria-labelledby="login-title">
        <form className="dialog" onSubmit={(event) => void enter(event)}>
          <h1 id="login-title">Log in to Weir</h1>
          <p className="muted">
            This Weir has users. Enter the token that <code>weir user add</code> showed you. It is kept in this tab only.
          </p>
          <div className="field">
            <label htmlFor="token">Token</label>
            <input
              id="token"
              className="input"
              type="password"
              autoComplete="current-password"
              value={secret}
              aria-invalid={error !== null}
              aria-describedby="login-error"
              autoFocus
              onChange={(event) => setSecret(event.target.value)}
            />
            <p id="login-error" className="wrong" role="alert">
              {error}
            </p>
          </div>
          <div className="actions">
            <button className="button primary" type="submit" disabled={isBusy || secret.trim() === ''}>
              Log in
            </button>
          </div>
        </form>
      </main>
    </div>
  )
}
