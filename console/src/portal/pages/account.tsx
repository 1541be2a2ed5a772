// One's account and teams.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { Time } from '../../ui/time'
import { type Me, type Sessions, type Team, type TeamList, useMe, useRead, useWrite } from '../data'
import { Loading, Page, SignedIn } from '../frame'
import { Field, Form, Said } from './entry'

export default function Account() {
  const me = useMe()
  const sessions = useRead<Sessions>('/account/sessions')
  const client = useQueryClient()
  const [, go] = useLocation()
  const [old, typeOld] = useState('')
  const [fresh, typeFresh] = useState('')
  const change = useWrite<Me, { old_password: string; new_password: string }>('PUT', () => '/account')
  const rename = useWrite<Me, { name: string }>('PUT', () => '/account')
  const [name, typeName] = useState<string | null>(null)
  const [isRemoving, setRemoving] = useState(false)
  const end = useWrite<null, string>('DELETE', (id) => `/account/sessions/${encodeURIComponent(id)}`)
  const out = useWrite<null>('DELETE', () => '/session')
  const remove = useWrite<null>('DELETE', () => '/account')
  if (sessions.error) return <SignedIn error={sessions.error} onRetry={() => void sessions.refetch()} />
  if (me.data === undefined || sessions.data === undefined) return <Loading />
  const leave = () => void client.invalidateQueries().then(() => go('/'))
  return (
    <Page title="Account" about={`${me.data.name}, ${me.data.mail}`} actions={<Button onPress={() => out.mutate(undefined, { onSuccess: leave })}>Sign out</Button>}>
      <Form label="Name" onSubmit={() => rename.mutate({ name: name ?? me.data?.name ?? '' })} submit="Change the name" isBusy={rename.isPending}>
        <h2>Name</h2>
        <Field label="Your name" name="name" autoComplete="name" value={name ?? me.data.name} onChange={typeName} error={rename.error} />
        <Said error={rename.error} fields={['name']} />
        {rename.isSuccess && <p role="status">The name is changed.</p>}
      </Form>
      {me.data.has_password ? (
      <Form label="Password" onSubmit={() => change.mutate({ old_password: old, new_password: fresh })} submit="Change the password" isBusy={change.isPending}>
        <h2>Password</h2>
        <Field label="Password now" name="old_password" type="password" autoComplete="current-password" value={old} onChange={typeOld} error={change.error} />
        <Field label="New password" name="new_password" type="password" autoComplete="new-password" value={fresh} onChange={typeFresh} error={change.error} />
        <Said error={change.error} fields={['old_password', 'new_password']} />
        {change.isSuccess && <p role="status">The password is changed, and your other sessions are ended.</p>}
      </Form>
      ) : (
        <p className="note">You sign in through an identity provider. To have a password as well, ask for one at the page to sign in, under “I forgot my password”.</p>
      )}
      <section className="stack" aria-label="Sessions">
        <h2>Sessions</h2>
        <ul className="stack tight">
          {sessions.data.items.map((it) => (
            <li key={it.id} className="card">
              <div className="row between">
                <span>
                  {it.address}, since <Time at={it.created} /> <span className="muted small">{it.agent.slice(0, 60)}</span>
                </span>
                <Button small onPress={() => end.mutate(it.id)}>
                  End
                </Button>
              </div>
            </li>
          ))}
        </ul>
      </section>
      <section className="stack" aria-label="Your data">
        <h2>Your data</h2>
        <p className="muted">All that this portal keeps about you, without secrets. Keys are kept as hashes only.</p>
        <div className="row">
          <a className="button" href="/portal/v1/account/data" download>
            Download my data
          </a>
          <Button look="danger" onPress={() => setRemoving(true)}>
            Remove my account
          </Button>
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
    </Page>
  )
}

export function Teams() {
  const teams = useRead<TeamList>('/teams')
  const [name, type] = useState('')
  const make = useWrite<Team, { name: string }>('POST', () => '/teams')
  if (teams.error) return <SignedIn error={teams.error} onRetry={() => void teams.refetch()} />
  if (teams.data === undefined) return <Loading />
  return (
    <Page title="Teams" about="Applications of a team belong to all of its members. They stay when somebody leaves.">
      {teams.data.items.map((it) => (
        <TeamCard key={it.id} team={it} />
      ))}
      <Form label="New team" onSubmit={() => make.mutate({ name }, { onSuccess: () => type('') })} submit="Make a team" isBusy={make.isPending}>
        <h2>New team</h2>
        <Field label="Name" name="name" value={name} onChange={type} error={make.error} />
        <Said error={make.error} fields={['name']} />
      </Form>
    </Page>
  )
}

function TeamCard({ team }: { team: Team }) {
  const me = useMe()
  const [mail, type] = useState('')
  const [role, setRole] = useState('member')
  const invite = useWrite<{ message: string }, { mail: string; role: string }>('POST', () => `/teams/${team.id}/invitations`)
  const remove = useWrite<null, string>('DELETE', (id) => `/teams/${team.id}/members/${id}`)
  const isOwner = team.role === 'owner'
  return (
    <section className="card" aria-label={team.name}>
      <h2>{team.name}</h2>
      <ul className="stack tight">
        {team.members.map((it) => (
          <li key={it.id} className="row between">
            <span>
              {it.name} <span className="muted small">{it.mail}</span>
            </span>
            <span className="row">
              {isOwner && it.id !== me.data?.id ? (
                <RoleOf team={team.id} member={it} />
              ) : (
                <span className="badge">{it.role}</span>
              )}
              {it.id === me.data?.id ? (
                <Button small onPress={() => remove.mutate(it.id)}>
                  Leave
                </Button>
              ) : (
                isOwner && (
                  <Button small look="quiet" onPress={() => remove.mutate(it.id)}>
                    Remove {it.name}
                  </Button>
                )
              )}
            </span>
          </li>
        ))}
      </ul>
      <Said error={remove.error} />
      {isOwner && (
        <Form label={`Invite into ${team.name}`} onSubmit={() => invite.mutate({ mail, role }, { onSuccess: () => type('') })} submit="Invite" isBusy={invite.isPending}>
          <Field label="Invite by mail" name="mail" type="email" value={mail} onChange={type} error={invite.error} />
          <label className="field">
            <span className="label">Role</span>
            <select className="select" value={role} onChange={(event) => setRole(event.target.value)}>
              <Roles />
            </select>
          </label>
          {invite.data && <p role="status">{invite.data.message}</p>}
          <Said error={invite.error} fields={['mail']} />
        </Form>
      )}
    </section>
  )
}

function Roles() {
  return (
    <>
      <option value="viewer">viewer: sees applications</option>
      <option value="member">member: changes them, too</option>
      <option value="owner">owner: invites and removes, too</option>
    </>
  )
}

function RoleOf({ team, member }: { team: string; member: Team['members'][number] }) {
  const change = useWrite<unknown, { role: string }>('PUT', () => `/teams/${team}/members/${member.id}`)
  return (
    <>
      <select className="select narrow" aria-label={`Role of ${member.name}`} value={member.role} onChange={(event) => change.mutate({ role: event.target.value })}>
        <Roles />
      </select>
      <Said error={change.error} />
    </>
  )
}
