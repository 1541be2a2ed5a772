// Users: who may do what, and how they log in. A token is shown once.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Answer, call } from '../api/client'
import { useUsers } from '../api/hooks'
import { useRight } from '../api/rights'
import { logIn } from '../api/session'
import type { Right, User } from '../api/types'
import { Empty, Failure, Page } from '../shell/page'
import { Act } from '../ui/act'
import { Button, ButtonLink } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { ChoiceField, TextField } from '../ui/field'
import { ShownOnce } from '../ui/once'
import { type Column, Table } from '../ui/table'
import { Time, isoTime } from '../ui/time'
import { toast } from '../ui/toast'
import { RightsField, areWhole, rightsText } from './rights-field'

const pathOf = (name: string) => `/api/v1/users/${encodeURIComponent(name)}`
const waysOf = (user: User): string => [user.has_password && 'password', user.has_token && 'token'].filter(Boolean).join(', ') || 'not at all'
const key = (it: User) => it.name

const columnsOf = (open: (user: User) => void): Column<User>[] => [
  {
    id: 'name',
    title: 'Name',
    text: (it) => it.name,
    render: (it) => (
      <button type="button" className="link" onClick={() => open(it)}>
        {it.name}
      </button>
    ),
  },
  { id: 'rights', title: 'Rights', text: (it) => rightsText(it.rights), width: 'minmax(9rem, 2fr)' },
  { id: 'ways', title: 'Logs in with', text: waysOf, from: 2 },
  { id: 'created', title: 'Created', text: (it) => isoTime(it.created), render: (it) => <Time at={it.created} />, from: 2 },
]

export default function Users() {
  const users = useUsers()
  const [isAdding, setAdding] = useState(false)
  const [secret, setSecret] = useState<{ name: string; token: string } | null>(null)
  const [opened, setOpened] = useState<User | null>(null)
  const [doomed, setDoomed] = useState<User[]>([])
  const refused = useRight('users:manage')
  const add = (
    <Button look="primary" refused={refused} onPress={() => setAdding(true)}>
      New user
    </Button>
  )
  return (
    <Page
      title="Users and rights"
      about={
        users.data?.length === 0
          ? 'As long as there are no users, everybody on this machine may do everything. The first user is an administrator.'
          : 'Who may log in to this console and call its API, and what they may do. A right is a role, everywhere or in one place.'
      }
      calls={[
        { about: 'List users', method: 'GET', path: '/api/v1/users' },
        { about: 'Add a user', method: 'POST', path: pathOf('alice'), body: { rights: [{ role: 'viewer' }] }, command: 'weir user add alice --role viewer' },
        { about: 'Change rights', method: 'PUT', path: `${pathOf('alice')}/rights`, body: { rights: [{ role: 'api-owner', api: 'orders' }] }, command: 'weir user rights alice --right api-owner@api:orders' },
      ]}
      actions={
        <>
          <ButtonLink to="/roles">Roles</ButtonLink>
          {add}
        </>
      }
    >
      {users.error && users.data === undefined ? (
        <Failure error={users.error} onRetry={() => void users.refetch()} />
      ) : (
        <Table
          label="Users"
          rows={users.data ?? []}
          columns={columnsOf(setOpened)}
          rowKey={key}
          isLoading={users.isLoading}
          noun={['user', 'users']}
          bulk={[{ text: 'Remove', look: 'danger', refused, run: (rows) => setDoomed(rows) }]}
          empty={
            <Empty title="No users yet" example="weir user add alice --role admin">
              <p>This console is open to everybody on this machine, and closed to everybody else. Add an administrator to change that.</p>
            </Empty>
          }
        />
      )}
      {isAdding && <AddUser isFirst={(users.data ?? []).length === 0} onClose={() => setAdding(false)} onToken={setSecret} />}
      {secret !== null && <ShownOnce title={`${secret.name} has a token`} secret={secret.token} onClose={() => setSecret(null)} />}
      {opened !== null && <OneUser user={opened} onClose={() => setOpened(null)} />}
      {doomed.length > 0 && <RemoveUsers users={doomed} onClose={() => setDoomed([])} />}
    </Page>
  )
}

/** Says what a right waits for: the API or workspace that it names may come later. */
function warn(warning: string | null) {
  if (warning !== null) toast(`Check the rights: ${warning}.`)
}

type Ways = 'token' | 'password' | 'both'

function AddUser({ isFirst, onClose, onToken }: { isFirst: boolean; onClose: () => void; onToken: (made: { name: string; token: string }) => void }) {
  const [name, setName] = useState('')
  const [ways, setWays] = useState<Ways>('token')
  const [password, setPassword] = useState('')
  const [rights, setRights] = useState<Right[]>([{ role: isFirst ? 'admin' : 'viewer', workspace: '*' }])
  const client = useQueryClient()
  const wrong = name.trim() === '' ? 'A user needs a name.' : ways !== 'token' && password === '' ? 'Type a password.' : !areWhole(rights) ? 'A right has no name of its scope.' : null
  const add = async () => {
    const body = { rights, ...(ways === 'token' ? {} : { password }), ...(ways === 'password' ? { without_token: true } : {}) }
    const { data, warning } = await call<{ token?: string }>('POST', pathOf(name.trim()), { body })
    // With the first user everything asks for a login. The caller who made the user goes on as that user.
    if (isFirst) await logIn(data.token ? { token: data.token } : { name: name.trim(), password })
    await client.invalidateQueries()
    onClose()
    warn(warning)
    if (data.token) onToken({ name: name.trim(), token: data.token })
    else toast(`${name.trim()} can log in`)
  }
  return (
    <Act title="New user" action="Add" refused={wrong} onClose={onClose} run={add}>
      <TextField label="Name" value={name} onChange={setName} autoFocus isRequired autoComplete="off" />
      <ChoiceField
        label="Logs in with"
        value={ways}
        onChange={setWays}
        options={[
          { value: 'token', text: 'A token', about: 'It is shown once, and works for programs, too.' },
          { value: 'password', text: 'A password', about: 'For people.' },
          { value: 'both', text: 'Both' },
        ]}
      />
      {ways !== 'token' && <TextField label="Password" type="password" value={password} onChange={setPassword} about="At least 10 characters. The user can change it." autoComplete="new-password" />}
      <RightsField label="Rights" value={rights} onChange={setRights} isFixed={isFirst} />
      {isFirst && (
        <div className="note">
          <span>The first user is an administrator. From then on Weir asks for a login; this browser is logged in as this user.</span>
        </div>
      )}
    </Act>
  )
}

function OneUser({ user, onClose }: { user: User; onClose: () => void }) {
  const [rights, setRights] = useState<Right[]>([...user.rights])
  const [password, setPassword] = useState('')
  const [error, setError] = useState<unknown>(null)
  const refused = useRight('users:manage')
  const client = useQueryClient()
  const act = async (done: string, run: () => Promise<Answer<unknown>>) => {
    setError(null)
    try {
      const { warning } = await run()
      toast(done)
      warn(warning)
      await client.invalidateQueries({ queryKey: ['users'] })
      onClose()
    } catch (wrong) {
      setError(wrong)
    }
  }
  const path = pathOf(user.name)
  const setThePassword = () => void act(`${user.name} has another password`, () => call('PUT', `${path}/password`, { body: { password } }))
  return (
    <Dialog title={user.name} isOpen wide onClose={onClose}>
      <section className="stack" aria-label="Rights">
        <RightsField label="Rights" value={rights} onChange={setRights} />
        <div>
          <Button refused={refused ?? (areWhole(rights) ? null : 'A right has no name of its scope.')} onPress={() => void act(`${user.name} has other rights`, () => call('PUT', `${path}/rights`, { body: { rights }, headers: { 'if-match': user.etag ?? undefined } }))}>
            Save the rights
          </Button>
        </div>
      </section>
      <section aria-label="Password">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (refused === null && password !== '') setThePassword()
        }}
      >
        <TextField label="New password" type="password" value={password} onChange={setPassword} about="The user's sessions end." autoComplete="new-password" />
        <div className="row">
          <Button refused={refused ?? (password === '' ? 'Type a password.' : null)} onPress={setThePassword}>
            Set the password
          </Button>
          {user.has_password && (
            <Button refused={refused} onPress={() => void act(`${user.name} has no password`, () => call('PUT', `${path}/password`, { body: { password: null } }))}>
              Take it away
            </Button>
          )}
          <Button refused={refused} onPress={() => void act(`${user.name} is logged out everywhere`, () => call('DELETE', `${path}/sessions`))}>
            End all sessions
          </Button>
        </div>
      </form>
      </section>
      {error !== null && <Failure error={error} />}
    </Dialog>
  )
}

function RemoveUsers({ users, onClose }: { users: User[]; onClose: () => void }) {
  const client = useQueryClient()
  const names = users.map((it) => it.name).join(', ')
  return (
    <Act
      title={`Remove ${names}?`}
      action="Remove"
      look="danger"
      onClose={onClose}
      run={async () => {
        try {
          for (const user of users) await call('DELETE', pathOf(user.name))
        } finally {
          await client.invalidateQueries({ queryKey: ['users'] })
        }
        toast(`${names} removed`)
        onClose()
      }}
    >
      <p>Their tokens stop working at once.</p>
    </Act>
  )
}
