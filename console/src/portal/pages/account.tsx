// One's account: name, password, two-factor login, personal tokens, sessions, data.
import { useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { browserText } from '../../ui/browser-text'
import { CheckField } from '../../ui/field'
import { Time } from '../../ui/time'
import { type Me, type Sessions, readAgain, useMe, useRead, useWrite } from '../data'
import { Loading, Page, SignedIn } from '../frame'
import { TwoFactor } from './account-factor'
import { Tokens } from './account-tokens'
import { Field, Form, Said } from './entry'

export default function Account() {
  const me = useMe()
  const sessions = useRead<Sessions>('/account/sessions')
  const [, go] = useLocation()
  const [old, typeOld] = useState('')
  const [fresh, typeFresh] = useState('')
  const [endsTokens, setEndsTokens] = useState(true)
  const change = useWrite<Me, { old_password: string; new_password: string; end_tokens: boolean }>('PUT', () => '/account')
  const rename = useWrite<Me, { name: string }>('PUT', () => '/account')
  const [name, typeName] = useState<string | null>(null)
  const [isRemoving, setRemoving] = useState(false)
  const end = useWrite<null, string>('DELETE', (id) => `/account/sessions/${encodeURIComponent(id)}`)
  const out = useWrite<null>('DELETE', () => '/session')
  const remove = useWrite<null>('DELETE', () => '/account')
  if (sessions.error) return <SignedIn error={sessions.error} onRetry={() => void sessions.refetch()} />
  if (me.data === undefined || sessions.data === undefined) return <Loading />
  const leave = () => void readAgain().then(() => go('/'))
  return (
    <Page title="Account" about={`${me.data.name}, ${me.data.mail}`} actions={<Button onPress={() => out.mutate(undefined, { onSuccess: leave })}>Sign out</Button>}>
      <div className="halves">
        <Form label="Name" onSubmit={() => rename.mutate({ name: name ?? me.data?.name ?? '' })} submit="Change the name" isBusy={rename.isPending}>
          <h2>Name</h2>
          <Field label="Your name" name="name" autoComplete="name" value={name ?? me.data.name} onChange={typeName} error={rename.error} />
          <Said error={rename.error} fields={['name']} />
          {rename.isSuccess && <p role="status">The name is changed.</p>}
        </Form>
        {me.data.has_password ? (
          <Form label="Password" onSubmit={() => change.mutate({ old_password: old, new_password: fresh, end_tokens: endsTokens })} submit="Change the password" isBusy={change.isPending}>
            <h2>Password</h2>
            <Field label="Password now" name="old_password" type="password" autoComplete="current-password" value={old} onChange={typeOld} error={change.error} />
            <Field label="New password" name="new_password" type="password" autoComplete="new-password" value={fresh} onChange={typeFresh} error={change.error} />
            <CheckField label="End my personal tokens, too" value={endsTokens} onChange={setEndsTokens} about="Somebody else may have made one with the old password." />
            <Said error={change.error} fields={['old_password', 'new_password']} />
            {change.isSuccess && <p role="status">The password is changed, and your other sessions are ended{change.variables?.end_tokens ? ', and so are your personal tokens' : ''}.</p>}
          </Form>
        ) : (
          <p className="note">You sign in through an identity provider. To have a password as well, ask for one at the page to sign in, under “I forgot my password”.</p>
        )}
        <TwoFactor me={me.data} />
        <Tokens />
        <section className="card" aria-label="Sessions">
          <h2>Sessions</h2>
          <ul className="lines-list">
            {sessions.data.items.toReversed().map((it) => (
              <li key={it.id}>
                <div className="row between">
                  <span className="grow">
                    <strong>{browserText(it.agent)}</strong> {it.is_current && <span className="badge good">this browser</span>}
                    <span className="muted small block" title={it.agent}>
                      {it.address}, since <Time at={it.created} />
                    </span>
                  </span>
                  <Button small onPress={() => end.mutate(it.id)}>
                    End
                  </Button>
                </div>
              </li>
            ))}
          </ul>
        </section>
        <section className="card" aria-label="Your data">
          <h2>Your data</h2>
          <p className="muted">All that this portal keeps about you, without secrets. Keys are kept as hashes only.</p>
          <div className="row">
            <a className="button" href="/portal/v1/account/data" download>
              Download my data
            </a>
            <Button onPress={() => setRemoving(true)}>Remove my account</Button>
          </div>
          <Dialog
            title="Remove your account?"
            isOpen={isRemoving}
            onClose={() => setRemoving(false)}
            actions={
              <>
                <Button onPress={() => setRemoving(false)}>Cancel</Button>
                <Button look="danger" isBusy={remove.isPending} onPress={() => remove.mutate(undefined, { onSuccess: leave })}>
                  Remove it
                </Button>
              </>
            }
          >
            <p>It is gone for good, with its sessions, and you leave your teams. Applications of a team stay with the team.</p>
            <Said error={remove.error} />
          </Dialog>
        </section>
      </div>
    </Page>
  )
}
