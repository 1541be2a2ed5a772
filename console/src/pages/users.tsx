// Users: who may do what. A token is shown once.
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { call } from '../api/client'
import { useUsers } from '../api/hooks'
import { useRight } from '../api/rights'
import type { User } from '../api/types'
import { Empty, Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { type Column, Table } from '../ui/table'
import { Time } from '../ui/time'
import { toast } from '../ui/toast'

const ROLES: [string, string][] = [
  ['read', 'sees everything but secrets'],
  ['write', 'changes configuration'],
  ['admin', 'also makes users, reads the audit log, rolls back'],
  ['gateway', 'follows the configuration, for gateways'],
]

const rights = (user: User): string => user.rights.map((it) => `${it.role} in ${it.workspace === '*' ? 'all workspaces' : it.workspace}`).join(', ')

const columns: Column<User>[] = [
  { id: 'name', title: 'Name', text: (it) => it.name },
  { id: 'rights', title: 'Rights', text: rights, width: 'minmax(9rem, 2fr)' },
  { id: 'created', title: 'Created', text: (it) => String(it.created), render: (it) => <Time at={it.created} />, from: 2 },
]

const key = (it: User) => it.name

export default function Users() {
  const users = useUsers()
  const [isAdding, setAdding] = useState(false)
  const refused = useRight('users:manage')
  const [doomed, setDoomed] = useState<User[]>([])
  return (
    <Page
      title="Users and rights"
      about="As long as there are no users, everybody on this machine may do everything. The first user is an administrator."
      calls={[
        { about: 'List users', method: 'GET', path: '/api/v1/users' },
        { about: 'Add a user', method: 'POST', path: '/api/v1/users/alice', body: { rights: [{ workspace: '*', role: 'read' }] }, command: 'weir user add alice --role read' },
      ]}
      actions={
        <Button look="primary" refused={refused} onPress={() => setAdding(true)}>
          New user
        </Button>
      }
    >
      {users.error ? (
        <Failure error={users.error} onRetry={() => void users.refetch()} />
      ) : (
        <Table
          label="Users"
          rows={users.data ?? []}
          columns={columns}
          rowKey={key}
          isLoading={users.isLoading}
          noun={['user', 'users']}
          bulk={[{ text: 'Remove', look: 'danger', refused, run: setDoomed }]}
          empty={
            <Empty
              title="No users yet"
              example="weir user add alice --role admin"
              actions={
                <Button look="primary" refused={refused} onPress={() => setAdding(true)}>
                  New user
                </Button>
              }
            >
              <p>This console is open to everybody on this machine, and closed to everybody else. Add an administrator to change that.</p>
            </Empty>
          }
        />
      )}
      {isAdding && <AddUser isFirst={(users.data ?? []).length === 0} onClose={() => setAdding(false)} />}
      {doomed.length > 0 && <RemoveUsers users={doomed} onClose={() => setDoomed([])} />}
    </Page>
  )
}

function AddUser({ isFirst, onClose }: { isFirst: boolean; onClose: () => void }) {
  const [name, setName] = useState('')
  const [role, setRole] = useState(isFirst ? 'admin' : 'read')
  const [workspace, setWorkspace] = useState('*')
  const [made, setMade] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)
  const client = useQueryClient()
  const add = async (event: FormEvent) => {
    event.preventDefault()
    setError(null)
    try {
      const answer = await call<{ token: string }>('POST', `/api/v1/users/${encodeURIComponent(name)}`, { body: { rights: [{ workspace, role }] } })
      setMade(answer.data.token)
    } catch (refused) {
      setError(refused)
    }
  }
  const close = () => {
    void client.invalidateQueries({ queryKey: ['users'] })
    onClose()
  }
  if (made !== null) {
    return (
      <Dialog
        title={`${name} has a token`}
        isOpen
        onClose={close}
        actions={
          <>
            <Button onPress={() => void navigator.clipboard.writeText(made).then(() => toast('Copied'))}>Copy</Button>
            <Button look="primary" onPress={close}>
              I have kept it
            </Button>
          </>
        }
      >
        <p>This is the only time that it is shown. Weir keeps its hash.</p>
        <pre className="code" tabIndex={0}>{made}</pre>
      </Dialog>
    )
  }
  return (
    <Dialog title="New user" isOpen onClose={onClose}>
      <form className="stack" onSubmit={(event) => void add(event)}>
        <div className="field">
          <label htmlFor="user-name">Name</label>
          <input id="user-name" className="input" value={name} autoFocus onChange={(event) => setName(event.target.value)} />
        </div>
        <fieldset className="field">
          <legend>Role</legend>
          {ROLES.map(([it, about]) => (
            <label className="choice" key={it}>
              <input type="radio" name="role" checked={role === it} disabled={isFirst && it !== 'admin'} onChange={() => setRole(it)} />
              <span>
                {it} <span className="muted small">{about}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <div className="field">
          <label htmlFor="user-workspace">Workspace</label>
          <input id="user-workspace" className="input" value={workspace} disabled={isFirst} aria-describedby="user-workspace-about" onChange={(event) => setWorkspace(event.target.value)} />
          <p className="about" id="user-workspace-about">
            The name of one of Kong's workspaces, or * for all.
          </p>
        </div>
        {isFirst && (
          <div className="note warn">
            <span>With the first user this console asks for a token. You are logged out until you enter the one that comes next.</span>
          </div>
        )}
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onPress={onClose}>Cancel</Button>
          <button className="button primary" type="submit" disabled={name.trim() === ''}>
            Add
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function RemoveUsers({ users, onClose }: { users: User[]; onClose: () => void }) {
  const [error, setError] = useState<unknown>(null)
  const client = useQueryClient()
  const remove = async () => {
    setError(null)
    try {
      for (const user of users) await call('DELETE', `/api/v1/users/${encodeURIComponent(user.name)}`)
      toast(`${users.map((it) => it.name).join(', ')} removed`)
      onClose()
    } catch (refused) {
      setError(refused)
    }
    await client.invalidateQueries({ queryKey: ['users'] })
  }
  return (
    <Dialog
      title={`Remove ${users.map((it) => it.name).join(', ')}?`}
      isOpen
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Keep</Button>
          <Button look="danger" onPress={() => void remove()}>
            Remove
          </Button>
        </>
      }
    >
      <p>Their tokens stop working at once.</p>
      {error !== null && <Failure error={error} />}
    </Dialog>
  )
}
