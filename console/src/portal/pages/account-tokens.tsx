// Personal tokens: for programs that call the portal's API in one's name. A token is shown once.
import { useState } from 'react'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { SelectField, TextField } from '../../ui/field'
import { saveFile } from '../../ui/files'
import { End, Time } from '../../ui/time'
import { CopyButton } from '../copy'
import { type Token, type Tokens as TokenList, useMe, usePortal, useRead, useWrite } from '../data'
import { Said } from './entry'

const PATH = '/account/tokens'
const LIVES = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['366', 'a year'],
] as const

type Above = { kind: 'make' } | { kind: 'shown'; token: Token } | { kind: 'revoke'; token: Token } | null

export function Tokens() {
  const found = useRead<TokenList>(PATH)
  const [above, setAbove] = useState<Above>(null)
  const close = () => setAbove(null)
  return (
    <section className="card" aria-label="Personal tokens">
      <h2>Personal tokens</h2>
      <p className="muted">
        For programs that use this portal in your name, as <code>Authorization: Bearer</code> at <a href="/portal/v1/openapi.json">its API</a>. They may do what you may do, and change nothing of your account.
      </p>
      <Said error={found.error} />
      {(found.data?.items.length ?? 0) > 0 && (
        <ul className="lines-list" aria-label="Tokens">
          {found.data?.items.map((it) => (
            <li key={it.id}>
              <div className="row between">
                <span className="grow">
                  <strong>{it.name}</strong>
                  <span className="muted small block">
                    good until <End at={it.ends} />, {it.last_used === null ? 'not used yet' : <>last used <Time at={it.last_used} /></>}
                  </span>
                </span>
                <Button small onPress={() => setAbove({ kind: 'revoke', token: it })}>
                  Revoke<span className="sr"> {it.name}</span>
                </Button>
              </div>
            </li>
          ))}
        </ul>
      )}
      <div className="row">
        <Button onPress={() => setAbove({ kind: 'make' })}>New token</Button>
      </div>
      {above?.kind === 'make' && <Make onClose={close} onMade={(token) => setAbove({ kind: 'shown', token })} />}
      {above?.kind === 'shown' && <Shown token={above.token} onClose={close} />}
      {above?.kind === 'revoke' && <Revoke token={above.token} onClose={close} />}
    </section>
  )
}

function Make({ onClose, onMade }: { onClose: () => void; onMade: (made: Token) => void }) {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [days, setDays] = useState<(typeof LIVES)[number][0]>('30')
  const hasPassword = useMe().data?.has_password === true
  const make = useWrite<Token, { name: string; days: number; password: string | null }>('POST', () => PATH)
  const refused = name.trim() === '' ? 'Say first what it is for.' : hasPassword && password === '' ? 'Type your password first.' : null
  return (
    <Act title="New personal token" action="Make it" refused={refused} onClose={onClose} run={() => make.mutateAsync({ name, days: Number(days), password: hasPassword ? password : null }).then(onMade)}>
      <TextField label="What it is for" placeholder="nightly report" value={name} onChange={setName} autoFocus />
      <SelectField label="Good for" value={days} onChange={setDays} options={LIVES} />
      {hasPassword ? (
        <TextField label="Your password" type="password" autoComplete="current-password" value={password} onChange={setPassword} isRequired about="So that no one else makes one at a browser that you have left open." />
      ) : (
        <SignInAgain />
      )}
    </Act>
  )
}

/** Of who has no password the identity provider has to have asked who it is, a moment ago. */
function SignInAgain() {
  const portal = usePortal()
  return (
    <>
      <p className="muted">You have no password here. Your identity provider has to have asked you who you are within the last ten minutes, so that no one else makes a token at a browser that you have left open.</p>
      <div className="row">
        {portal.data?.providers.map((it) => (
          <a key={it.name} className="button" href={`/portal/v1/session/openid/${encodeURIComponent(it.name)}?to=%2Faccount&fresh=true`}>
            Sign in again with {it.title}
          </a>
        ))}
      </div>
    </>
  )
}

function Shown({ token, onClose }: { token: Token; onClose: () => void }) {
  const text = token.token ?? ''
  return (
    <Dialog
      title="Your token"
      isOpen
      loses="The token is not shown again"
      onClose={onClose}
      actions={
        <>
          <CopyButton text={text} />
          <Button onPress={() => saveFile('token.txt', 'text/plain', [text, '\n'])}>Download</Button>
          <Button look="primary" onPress={onClose}>
            I have kept it
          </Button>
        </>
      }
    >
      <p>This is the only time that you see it. Weir keeps its hash.</p>
      <pre className="code" tabIndex={0} aria-label="Token">
        {text}
      </pre>
    </Dialog>
  )
}

function Revoke({ token, onClose }: { token: Token; onClose: () => void }) {
  const revoke = useWrite<null>('DELETE', () => `${PATH}/${encodeURIComponent(token.id)}`)
  return (
    <Act title={`Revoke ${token.name}?`} action="Revoke" look="danger" onClose={onClose} run={() => revoke.mutateAsync().then(onClose)}>
      <p>Calls with it are refused from now on. This cannot be taken back.</p>
    </Act>
  )
}
