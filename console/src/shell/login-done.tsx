// Where the window of an identity provider ends: it tells the page that waits, and closes.
import { useEffect } from 'react'
import { tellLogin } from '../api/session'

export default function LoginDone() {
  useEffect(() => {
    tellLogin()
    window.close()
  }, [])
  return (
    <main className="page">
      <h1>You are logged in</h1>
      <p>The page that asked for the login goes on. This window can be closed.</p>
    </main>
  )
}
