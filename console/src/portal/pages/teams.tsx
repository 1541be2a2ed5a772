// One's teams: members, roles, invitations.
import { useState } from 'react'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { type Team, type TeamList, useMe, useRead, useWrite } from '../data'
import { Empty } from '../empty'
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
      {teams.data.items.length === 0 && (
        <Empty title="No team yet" icon="people">
          <p>Make a team, and invite your colleagues into it by mail. All of them see its applications, their keys and their usage; what each may change is a matter of the role.</p>
        </Empty>
      )}
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
  const [leaving, setLeaving] = useState<Team['members'][number] | null>(null)
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
                <Button small onPress={() => setLeaving(it)}>
                  Leave
                </Button>
              ) : (
                isOwner && (
                  <Button small look="quiet" onPress={() => setLeaving(it)}>
                    Remove {it.name}
                  </Button>
                )
              )}
            </span>
          </li>
        ))}
      </ul>
      {leaving && <Leave team={team} member={leaving} isMe={leaving.id === me.data?.id} onClose={() => setLeaving(null)} />}
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

/** Who is out is let in again by an invitation only. */
function Leave({ team, member, isMe, onClose }: { team: Team; member: Team['members'][number]; isMe: boolean; onClose: () => void }) {
  const remove = useWrite<null>('DELETE', () => `/teams/${team.id}/members/${member.id}`)
  return (
    <Act
      title={isMe ? `Leave ${team.name}?` : `Remove ${member.name} from ${team.name}?`}
      action={isMe ? 'Leave the team' : 'Remove'}
      look="danger"
      onClose={onClose}
      run={() => remove.mutateAsync().then(onClose)}
    >
      <p>{isMe ? 'You no longer see its applications. They stay with the team; an owner can invite you again.' : `${member.name} no longer sees its applications. They stay with the team.`}</p>
    </Act>
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
