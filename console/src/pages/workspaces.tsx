// Workspaces: the parts of a configuration that teams share a Weir by, what lies in each, and who may change it. Kong's
// Admin API makes and removes them; documents of the other dialects lie in one that they name.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { components } from '../../generated/api'
import { call, get } from '../api/client'
import { useUsers } from '../api/hooks'
import { useRight, useStoredRight } from '../api/rights'
import type { User } from '../api/types'
import { Empty, Failure, Page } from '../shell/page'
import { Act } from '../ui/act'
import { Button } from '../ui/button'
import { TextField } from '../ui/field'
import { type Column, Table } from '../ui/table'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'

type Workspace = components['schemas']['Workspace']

interface Row extends Workspace {
  /** Rights of users that hold in it and not everywhere; `null`: the reader may not know. */
  members: string[] | null
  /** Whether Kong's Admin API knows it, and can remove it. */
  isKongs: boolean
}

const KONG = '/api/v1/dialects/kong/workspaces'
/** It cannot be removed. */
const DEFAULT = 'default'
const LISTS = ['routes', 'services', 'upstreams', 'consumers', 'certificates', 'plugins']
const DIALECTS: Record<string, string> = { kong: 'Kong', apisix: 'APISIX', native: 'Weir' }

const sum = (it: Workspace): number => Object.values(it.resources).reduce((all, count) => all + count, 0)
const contents = (it: Workspace): string =>
  LISTS.filter((list) => (it.resources[list] ?? 0) > 0)
    .map((list) => countText(it.resources[list] ?? 0, list.replace(/s$/, ''), list))
    .join(', ') || 'nothing yet'

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (it) => it.name, width: 'minmax(7rem, 1fr)' },
  {
    id: 'contents',
    title: 'Holds',
    text: contents,
    order: sum,
    width: 'minmax(10rem, 2.4fr)',
    render: (it) => {
      const lists = LISTS.filter((list) => (it.resources[list] ?? 0) > 0)
      if (lists.length === 0) return <span className="muted">nothing yet</span>
      return (
        <span className="row tight">
          {lists.map((list) => (
            <Link key={list} href={`/${list}?q=${encodeURIComponent(`workspace:${it.name}`)}`}>
              {countText(it.resources[list] ?? 0, list.replace(/s$/, ''), list)}
            </Link>
          ))}
        </span>
      )
    },
  },
  { id: 'dialects', title: 'Dialects', text: (it) => it.dialects.map((one) => DIALECTS[one] ?? one).join(', '), from: 2, width: 'minmax(6rem, 0.9fr)' },
  { id: 'members', title: 'Rights in it', text: (it) => (it.members === null ? 'not shown to you' : it.members.join(', ') || 'no right of its own'), from: 2, width: 'minmax(8rem, 1.4fr)' },
]

const key = (it: Row) => it.name

/** The workspaces that Kong's Admin API knows; none if the reader may not ask it. */
const readKongs = (signal: AbortSignal): Promise<string[]> =>
  get<{ data: { name: string }[] }>(KONG, { size: 1000 }, signal)
    .then(({ data }) => data.map((it) => it.name))
    .catch(() => [])

const membersOf = (workspace: string, users: User[]): string[] =>
  users.flatMap((user) => user.rights.filter((it) => it.workspace === workspace).map((it) => `${user.name} (${it.role})`))

export default function Workspaces() {
  const known = useQuery({ queryKey: ['configuration', 'workspaces'], queryFn: async ({ signal }) => (await get<{ items: Workspace[] }>('/api/v1/workspaces', {}, signal)).items })
  const kongs = useQuery({ queryKey: ['configuration', 'workspaces', 'kong'], queryFn: ({ signal }) => readKongs(signal) })
  const mayManage = useRight('users:manage') === null
  const users = useUsers()
  const refused = useStoredRight('configuration:write')
  const [isNew, setNew] = useState(false)
  const [doomed, setDoomed] = useState<Row[]>([])
  const names = [...new Set([...(known.data ?? []).map((it) => it.name), ...(kongs.data ?? [])])].sort()
  const rows = names.map((name): Row => {
    const one = known.data?.find((it) => it.name === name) ?? { name, dialects: [], resources: {} }
    return { ...one, members: mayManage ? membersOf(name, users.data ?? []) : null, isKongs: kongs.data?.includes(name) === true }
  })
  const add = (
    <Button look="primary" refused={refused} onPress={() => setNew(true)}>
      New workspace
    </Button>
  )
  return (
    <Page
      title="Workspaces"
      about="Teams share one Weir by workspaces: names count in each by themselves, and rights can hold in one only."
      calls={[
        { about: 'List workspaces', method: 'GET', path: '/api/v1/workspaces' },
        { about: "Make one, by Kong's Admin API", method: 'POST', path: KONG, body: { name: 'shop' } },
        { about: 'Let a user change one only', method: 'PUT', path: '/api/v1/users/alice/rights', body: { rights: [{ role: 'write', workspace: 'shop' }] }, command: 'weir user rights alice --right write@workspace:shop' },
      ]}
      actions={add}
    >
      {known.error && known.data === undefined ? (
        <Failure error={known.error} onRetry={() => void known.refetch()} />
      ) : (
        <Table
          label="Workspaces"
          rows={rows}
          columns={columns}
          rowKey={key}
          isLoading={known.isLoading || kongs.isLoading}
          noun={['workspace', 'workspaces']}
          bulk={[{ text: 'Delete', look: 'danger', refused, run: (rows) => setDoomed(rows) }]}
          empty={
            <Empty title="No workspaces yet" example={`curl -X POST ${location.origin}${KONG} -d name=shop`}>
              <p>Without one, everything lies in the workspace {DEFAULT}. Make one for each team that manages its own routes.</p>
            </Empty>
          }
        />
      )}
      {isNew && <NewWorkspace known={names} onClose={() => setNew(false)} />}
      {doomed.length > 0 && <DeleteWorkspaces rows={doomed} onClose={() => setDoomed([])} />}
    </Page>
  )
}

function NewWorkspace({ known, onClose }: { known: string[]; onClose: () => void }) {
  const [name, setName] = useState('')
  const [comment, setComment] = useState('')
  const client = useQueryClient()
  const wanted = name.trim()
  const wrong = known.includes(wanted) ? 'A workspace of this name exists.' : null
  return (
    <Act
      title="New workspace"
      action="Create"
      refused={wanted === '' ? 'It needs a name.' : wrong}
      onClose={onClose}
      run={async () => {
        await call('POST', KONG, { body: comment.trim() === '' ? { name: wanted } : { name: wanted, comment: comment.trim() } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${wanted} is there`)
        onClose()
      }}
    >
      <TextField label="Name" value={name} onChange={setName} placeholder="shop" isRequired autoFocus wrong={wrong} about={`In addresses of Kong's Admin API: /${wanted || 'shop'}/routes.`} />
      <TextField label="What it is for" value={comment} onChange={setComment} />
    </Act>
  )
}

/** Only what is empty is deleted: Kong's Admin API refuses the rest. What the lists do not show is found by it alone. */
function DeleteWorkspaces({ rows, onClose }: { rows: Row[]; onClose: () => void }) {
  const client = useQueryClient()
  const names = rows.map((it) => it.name).join(', ')
  const first = rows.find((it) => it.name === DEFAULT) ?? rows.find((it) => sum(it) > 0) ?? rows.find((it) => !it.isKongs)
  const refused =
    first === undefined ? null : first.name === DEFAULT ? `${DEFAULT} always stays.` : sum(first) > 0 ? `${first.name} holds ${contents(first)}. Delete them first.` : `${first.name} is not one of Kong's Admin API.`
  return (
    <Act
      title={`Delete ${names}?`}
      action="Delete"
      look="danger"
      refused={refused}
      onClose={onClose}
      run={async () => {
        try {
          for (const row of rows) await call('DELETE', `${KONG}/${encodeURIComponent(row.name)}`)
        } finally {
          await client.invalidateQueries({ queryKey: ['configuration'] })
        }
        toast(`${names} deleted`)
        onClose()
      }}
    >
      <p>{refused ?? `The lists show nothing in it. If it holds anything else, Kong's Admin API refuses to delete it. Rights in it stay with their users, and allow nothing.`}</p>
    </Act>
  )
}
