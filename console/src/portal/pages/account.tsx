// One's account and teams.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../../ui/button'
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
  const end = useWrite<null, string>('DELETE', (id) => `/account/sessions/${encodeURIComponent(id)}`)
  const out = useWrite<null>('DELETE', () => '/session')
  const remove = useWrite<null>('DELETE', () => '/account')
  if (sessions.error) return <SignedIn error={sessions.error} onRetry={() => void sessions.refetch()} />
  if (me.data === undefined || sessions.data === undefined) return <Loading />
  const leave = () => void client.invalidateQueries().then(() => go('/'))
  return (
    <Page title="Account" about={`${me.data.name}, ${me.data.mail}`} actions={<Button onPress={() => out.mutate(undefined, { onSuccess: leave })}>Sign out</Button>}>
      <Form label="Password" onSubmit={() => change.mutate({ old_password: old, new_password: fresh })} submit="Change the password" isBusy={change.isPending}>
        <h2>Password</h2>
        <Field label="Password now" name="old_password" type="password" autoComplete="current-password" value={old} onChange={typeOld} error={change.error} />
        <Field label="New password" name="new_password" type="password" autoComplete="new-password" value={fresh} onChange={typeFresh} error={change.error} />
        <Said error={change.error} fields={['old_password', 'new_password']} />
        {change.isSuccess && <p role="status">The password is changed.</p>}
      </Form>
      <section className="stack" aria-label="Sessions">
        <h2>Sessions</h2>
        <ul className="stack tight">
          {sessions.data.items.map((it) => (
            <li key={it.id} className="row between card">
              <span>
                {it.address}, since <Time at={it.created} /> <span className="muted small">{it.agent.slice(0, 60)}</span>
              </span>
              <Button small onPress={() => end.mutate(it.id)}>
                End
              </Button>
            </li>
          ))}
        </ul>
      </section>
      <section className="stack" aria-label="Remove the account">
        <h2>Remove the account</h2>
        <div>
          <Button look="danger" onPress={() => remove.mutate(undefined, { onSuccess: leave })}>
            Remove my account
          </Button>
        </div>
        <Said error={remove.error} />
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
  const invite = useWrite<{ message: string }, { mail: string; role: string }>('POST', () => `/teams/${team.id}/invitations`)
  const remove = useWrite<null, string>('DELETE', (id) => `/teams/${team.id}/members/${id}`)
  const change = useWrite<unknown, { id: string; role: string }>('PUT', ({ id }) => `/teams/${team.id}/members/${id}`)
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
              <span className="badge">{it.role}</span>
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
      <Said error={remove.error ?? change.error} />
      {isOwner && (
        <Form label={`Invite into ${team.name}`} onSubmit={() => invite.mutate({ mail, role: 'member' }, { onSuccess: () => type('') })} submit="Invite" isBusy={invite.isPending}>
          <Field label="Invite by mail" name="mail" type="email" value={mail} onChange={type} error={invite.error} />
          {invite.data && <p role="status">{invite.data.message}</p>}
          <Said error={invite.error} fields={['mail']} />
        </Form>
      )}
    </section>
  )
}
