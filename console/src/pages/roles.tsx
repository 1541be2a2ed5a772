// Roles as a table, and the question whether a user may do something: which right says so, or what is missing.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { components } from '../../generated/api'
import { get } from '../api/client'
import { useUsers } from '../api/hooks'
import { useRight } from '../api/rights'
import { Failure, Page } from '../shell/page'
import { SelectField, TextField } from '../ui/field'
import { Icon } from '../ui/icons'
import { KINDS, type Kind, ROLES, rightText } from './rights-field'

type RoleTable = components['schemas']['RoleTable']
type Verdict = components['schemas']['Verdict']

const pathOf = (user: string) => `/api/v1/users/${encodeURIComponent(user)}/can`

export default function Roles() {
  const table = useQuery({ queryKey: ['roles'], queryFn: ({ signal }) => get<RoleTable>('/api/v1/roles', {}, signal), staleTime: Infinity })
  return (
    <Page
      title="Roles"
      about="A role is a list of what one may do. A user has roles, each everywhere or in one workspace, environment, API or portal."
      crumbs={[{ to: '/users', text: 'Users and rights' }]}
      calls={[
        { about: 'The table', method: 'GET', path: '/api/v1/roles' },
        { about: 'May alice change the API orders?', method: 'GET', path: `${pathOf('alice')}?action=apis:write&scope=api:orders` },
      ]}
    >
      {table.error && table.data === undefined ? (
        <Failure error={table.error} onRetry={() => void table.refetch()} />
      ) : table.data === undefined ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : (
        <>
          <Ask table={table.data} />
          <Matrix table={table.data} />
        </>
      )}
    </Page>
  )
}

/** The question stands in the address, so that it can be passed on. */
function Ask({ table }: { table: RoleTable }) {
  const refused = useRight('users:manage')
  return (
    <section className="card" aria-label="May a user do this?">
      <h2>May a user do this?</h2>
      {refused === null ? <Question table={table} /> : <p className="muted">{refused}</p>}
    </section>
  )
}

function Question({ table }: { table: RoleTable }) {
  const users = useUsers()
  const [parameters, setParameters] = useSearchParams()
  const names = (users.data ?? []).map((it) => it.name)
  const user = parameters.get('user') ?? names[0] ?? ''
  const action = parameters.get('action') ?? 'configuration:write'
  const [kind, setKind] = useState<Kind>(() => kindIn(parameters.get('scope')))
  const name = (parameters.get('scope') ?? '').split(':').slice(1).join(':')
  const set = (changes: Record<string, string>) =>
    setParameters(
      (old) => {
        for (const [key, value] of Object.entries(changes)) {
          if (value === '') old.delete(key)
          else old.set(key, value)
        }
        return new URLSearchParams(old)
      },
      { replace: true },
    )
  if (users.error && users.data === undefined) return <Failure error={users.error} onRetry={() => void users.refetch()} />
  if (users.data?.length === 0) {
    return (
      <p className="muted">
        There are no users yet, so everybody on this machine may do everything. <Link href="/users">Add one</Link> to change that.
      </p>
    )
  }
  const isWhole = kind === 'everything' || name.trim() !== ''
  return (
    <>
      <div className="grid">
        <SelectField label="User" value={user} onChange={(it) => set({ user: it })} options={[...new Set([...names, user])].map((it) => [it, it] as const)} />
        <SelectField label="Action" value={action} onChange={(it) => set({ action: it })} options={table.actions.map((it) => [it.name, it.meaning] as const)} />
        <SelectField
          label="Where"
          value={kind}
          onChange={(it) => {
            setKind(it)
            set({ scope: it === 'everything' ? '' : `${it}:` })
          }}
          options={KINDS.map(([it, text]) => [it, it === 'everything' ? 'everywhere' : `in ${text}`] as const)}
        />
        {kind !== 'everything' && <TextField label={`Name of the ${kind === 'api' ? 'API' : kind}`} value={name} onChange={(it) => set({ scope: `${kind}:${it}` })} />}
      </div>
      {isWhole && user !== '' ? <Answer user={user} action={action} scope={kind === 'everything' ? '' : `${kind}:${name.trim()}`} /> : <p className="muted">Type a name.</p>}
    </>
  )
}

const kindIn = (scope: string | null): Kind => KINDS.find(([it]) => it === scope?.split(':')[0])?.[0] ?? 'everything'

function Answer({ user, action, scope }: { user: string; action: string; scope: string }) {
  const verdict = useQuery({
    queryKey: ['users', user, 'can', action, scope],
    queryFn: ({ signal }) => get<Verdict>(pathOf(user), { action, scope }, signal),
    placeholderData: (before) => before,
  })
  if (verdict.error) return <Failure error={verdict.error} onRetry={() => void verdict.refetch()} />
  if (verdict.data === undefined) return <div className="skeleton" aria-busy="true" />
  const { allowed, reason, by, elsewhere, roles } = verdict.data
  return (
    <div className={allowed ? 'note good' : 'note bad'} role="status" aria-label="Answer">
      <strong>{allowed ? 'Yes' : 'No'}</strong>
      <span>{reason}.</span>
      {by.length > 1 && <span>Each of these rights is enough: {by.map(rightText).join(', ')}.</span>}
      {!allowed && elsewhere.length > 0 && <span>Roles that would allow it here: {roles.join(', ')}.</span>}
      {!allowed && (
        <span>
          <Link href={`/users?q=${encodeURIComponent(user)}`}>Change the rights of {user}</Link>
        </span>
      )}
    </div>
  )
}

function Matrix({ table }: { table: RoleTable }) {
  return (
    <section className="card flush" aria-label="What each role allows">
      <div className="head2">
        <h2>What each role allows</h2>
      </div>
      <div className="wide" tabIndex={0} role="group" aria-label="Table of roles">
        <table className="matrix roles">
          <caption className="sr">Actions in rows, roles in columns</caption>
          <thead>
            <tr>
              <th scope="col">Action</th>
              {table.roles.map((it) => (
                <th key={it.name} scope="col" title={ROLES.find(([name]) => name === it.name)?.[1]}>
                  {it.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.actions.map((action) => (
              <tr key={action.name}>
                <th scope="row">
                  {action.meaning}
                  <code className="small muted">
                    {/* Where there is little room, a name breaks behind its colon. */}
                    {action.name.split(/(?<=:)/).map((it) => [it, <wbr key={it} />])}
                  </code>
                </th>
                {table.roles.map((role) => {
                  const has = role.actions.includes(action.name)
                  return (
                    <td key={role.name} className={has ? 'has' : ''}>
                      {has ? <Icon name="check" /> : <span aria-hidden="true">·</span>}
                      {/* Seen where the columns have no room. */}
                      {has && (
                        <span className="role" aria-hidden="true">
                          {role.name}
                        </span>
                      )}
                      <span className="sr">{has ? 'yes' : 'no'}</span>
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
