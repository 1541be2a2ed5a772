// One's teams: members, roles, invitations.
import { useState } from 'react'
import { Button } from '../../ui/button'
import { type Team, type TeamList, useMe, useRead, useWrite } from '../data'
import { Loading, Page, SignedIn } from '../frame'
import { Field, Form, Said } from './entry'

export default function Teams() {
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
      <section className="card" aria-label="New team">
      <h2>New team</h2>
      <Form isInline label="New team" onSubmit={() => make.mutate({ name }, { onSuccess: () => type('') })} submit="Make a team" isBusy={make.isPending}>
        <Field label="Name" name="name" value={name} onChange={type} error={make.error} />
        <Said error={make.error} fields={['name']} />
      </Form>
      </section>
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
        <Form isInline label={`Invite into ${team.name}`} onSubmit={() => invite.mutate({ mail, role }, { onSuccess: () => type('') })} submit="Invite" isBusy={invite.isPending}>
          <Field label="Invite by mail" name="mail" type="email" value={mail} onChange={type} error={invite.error} />
          <label className="field">
            <span className="label">Role</span>
            <select className="select" value={role} onChange={(event) => setRole(event.target.value)}>
              <Roles />
            </select>
          </label>
        </Form>
      )}
      {invite.data && <p role="status">{invite.data.message}</p>}
      <Said error={invite.error} fields={['mail']} />
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
