// Two-factor login of the account: set up with an authenticator app, new recovery codes, and turned off again. What is
// shown once stands in a dialog that says so.
import { type ReactNode, useState } from 'react'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { TextField } from '../../ui/field'
import { saveFile } from '../../ui/files'
import { countText } from '../../ui/time'
import { CopyButton } from '../copy'
import { type Me, type NewSecondFactor, type RecoveryCodes, type SecondFactor, useRead, useWrite } from '../data'
import { Said } from './entry'

const PATH = '/account/second-factor'

type Above = { kind: 'begin' | 'renew' | 'remove' } | { kind: 'app'; made: NewSecondFactor } | { kind: 'codes'; codes: string[] } | null

export function TwoFactor({ me }: { me: Me }) {
  const factor = useRead<SecondFactor>(PATH)
  const [above, setAbove] = useState<Above>(null)
  const close = () => setAbove(null)
  const show = ({ codes }: RecoveryCodes) => setAbove({ kind: 'codes', codes })
  const left = factor.data?.recovery_codes_left ?? 0
  return (
    <section className="card" aria-label="Two-factor login">
      <div className="row">
        <h2>Two-factor login</h2>
        {factor.data && <span className={factor.data.is_on ? 'badge good' : 'badge'}>{factor.data.is_on ? 'on' : 'off'}</span>}
      </div>
      <p className="muted">After the password, a code of an app on your phone is asked for. Who steals the password alone does not get in.</p>
      <Said error={factor.error} />
      {!me.has_password && <p className="note">You sign in through an identity provider, which may ask for a second factor itself.</p>}
      {factor.data && me.has_password && !factor.data.is_on && (
        <div className="row">
          <Button onPress={() => setAbove({ kind: 'begin' })}>Turn on two-factor login</Button>
        </div>
      )}
      {factor.data?.is_on && (
        <>
          {left < 3 && (
            <p className="note warn" role="note">
              {left === 0 ? 'No recovery code is left.' : `Only ${countText(left, 'recovery code is', 'recovery codes are')} left.`} Make new ones, so that you get in if you lose your phone.
            </p>
          )}
          <div className="row">
            <Button onPress={() => setAbove({ kind: 'renew' })}>New recovery codes</Button>
            <Button onPress={() => setAbove({ kind: 'remove' })}>
              Turn it off
            </Button>
            <span className="muted small">{countText(left, 'recovery code', 'recovery codes')} left</span>
          </div>
        </>
      )}
      {above?.kind === 'begin' && <Begin onClose={close} onMade={(made) => setAbove({ kind: 'app', made })} />}
      {above?.kind === 'app' && <App made={above.made} onClose={close} onDone={show} />}
      {above?.kind === 'codes' && <Codes codes={above.codes} onClose={close} />}
      {above?.kind === 'renew' && (
        <Prove<RecoveryCodes> title="Make new recovery codes?" action="Make them" path={`${PATH}/recovery-codes`} onClose={close} onDone={show}>
          <p>The codes that you have are good no longer.</p>
        </Prove>
      )}
      {above?.kind === 'remove' && (
        <Prove<Me> title="Turn off two-factor login?" action="Turn it off" look="danger" path={`${PATH}/remove`} onClose={close} onDone={close}>
          <p>Your password alone is enough to sign in then.</p>
        </Prove>
      )}
    </section>
  )
}

function Begin({ onClose, onMade }: { onClose: () => void; onMade: (made: NewSecondFactor) => void }) {
  const [password, setPassword] = useState('')
  const begin = useWrite<NewSecondFactor, { password: string }>('POST', () => PATH, true)
  return (
    <Act title="Turn on two-factor login" action="Go on" refused={password === '' ? 'Type your password first.' : null} onClose={onClose} run={() => begin.mutateAsync({ password }).then(onMade)}>
      <p>You need an authenticator app, such as those of your phone or your password manager. First, your password once more.</p>
      <TextField label="Password" type="password" autoComplete="current-password" value={password} onChange={setPassword} autoFocus />
    </Act>
  )
}

function App({ made, onClose, onDone }: { made: NewSecondFactor; onClose: () => void; onDone: (made: RecoveryCodes) => void }) {
  const [code, setCode] = useState('')
  const confirm = useWrite<RecoveryCodes, { code: string }>('POST', () => `${PATH}/confirm`)
  return (
    <Act title="Add it to your app" action="Turn it on" refused={code.trim() === '' ? 'Type the code of your app first.' : null} onClose={onClose} run={() => confirm.mutateAsync({ code }).then(onDone)}>
      <p>Scan this with the app, open it on this device, or type the secret into it.</p>
      <svg className="qr" viewBox={`0 0 ${made.qr.size} ${made.qr.size}`} role="img" aria-label="QR code of the secret" shapeRendering="crispEdges">
        <path d={made.qr.path} />
      </svg>
      <div className="row">
        <a className="button" href={made.uri}>
          Open in an app here
        </a>
        <CopyButton text={made.secret} />
      </div>
      <pre className="code secret" tabIndex={0} aria-label="Secret">
        {made.secret.replace(/(.{4})(?=.)/g, '$1 ')}
      </pre>
      <TextField label="Code" about="The six digits that the app shows now." autoComplete="one-time-code" isMono value={code} onChange={setCode} autoFocus />
    </Act>
  )
}

function Codes({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  const text = codes.join('\n')
  return (
    <Dialog
      title="Your recovery codes"
      isOpen
      loses="The codes are not shown again"
      onClose={onClose}
      actions={
        <>
          <CopyButton text={text} />
          <Button onPress={() => saveFile('recovery-codes.txt', 'text/plain', [text, '\n'])}>Download</Button>
          <Button look="primary" onPress={onClose}>
            I have kept them
          </Button>
        </>
      }
    >
      <p>Two-factor login is on. If you lose your phone, each of these gets you in once, in place of a code of the app. Keep them where you keep your passwords.</p>
      <pre className="code" tabIndex={0} aria-label="Recovery codes">
        {text}
      </pre>
    </Dialog>
  )
}

/** Asks for password and code, for what both are needed for. */
function Prove<T>({ title, action, look, path, onClose, onDone, children }: { title: string; action: string; look?: 'danger'; path: string; onClose: () => void; onDone: (made: T) => void; children: ReactNode }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const send = useWrite<T, { password: string; code: string }>('POST', () => path)
  return (
    <Act title={title} action={action} {...(look ? { look } : {})} refused={password === '' || code.trim() === '' ? 'Type your password and a code first.' : null} onClose={onClose} run={() => send.mutateAsync({ password, code }).then(onDone)}>
      {children}
      <TextField label="Password" type="password" autoComplete="current-password" value={password} onChange={setPassword} autoFocus />
      <TextField label="Code" about="Six digits of your app, or a recovery code." autoComplete="one-time-code" isMono value={code} onChange={setCode} />
    </Act>
  )
}
