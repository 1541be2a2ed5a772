// The reader's own account: rights, password, sessions, and personal tokens for programs.
import { forgetDrafts } from '../form/kept'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call, get, login } from '../api/client'
import { type Me, type SessionState, type TokenState, logOut, useMe } from '../api/session'
import { queries } from '../api/hooks'
import type { Right } from '../api/types'
import { Empty, Failure, Page } from '../shell/page'
import { Act } from '../ui/act'
import { Button } from '../ui/button'
import { ChoiceField, TextField } from '../ui/field'
import { browserText } from '../ui/browser-text'
import { ShownOnce } from '../ui/once'
import { type Column, Table } from '../ui/table'
import { End, Time, isoTime } from '../ui/time'
import { toast } from '../ui/toast'
import { RightsField, areWhole, rightText, rightsText } from './rights-field'

const SESSIONS = '/api/v1/me/sessions'
const TOKENS = '/api/v1/me/tokens'

const items = <T,>(path: string) => async ({ signal }: { signal: AbortSignal }) => (await get<{ items: T[] }>(path, {}, signal)).items

export default function Account() {
  const me = useMe()
  return (
    <Page
      title="Your account"
      about="Who you are to this Weir, where you are logged in, and tokens for programs that act as you."
      calls={[
        { about: 'Who you are', method: 'GET', path: '/api/v1/me' },
        { about: 'What you may do', method: 'GET', path: '/api/v1/me/can' },
        { about: 'Make a personal token', method: 'POST', path: TOKENS, body: { name: 'ci', days: 90, password: '…' } },
        { about: 'List your sessions', method: 'GET', path: SESSIONS },
      ]}
      actions={me.data?.session ? <Button onPress={() => void leave()}>Log out</Button> : undefined}
    >
      {me.error && me.data === undefined && <Failure error={me.error} onRetry={() => void me.refetch()} />}
      {me.isLoading && <div className="skeleton tall" aria-busy="true" />}
      {me.data?.method === 'none' && (
        <div className="table">
          <Empty title="This Weir has no users" example="weir user add alice --role admin --password-file alice.txt">
            <p>From this machine everything may be done without a login, and from elsewhere nothing. Add an administrator to change that:</p>
          </Empty>
        </div>
      )}
      {me.data && me.data.method !== 'none' && <Known me={me.data} />}
    </Page>
  )
}

/** Logs out here, and at the identity provider if there is one. */
export async function leave() {
  try {
    const provider = await logOut()
    forgetDrafts()
    queries.clear()
    if (provider !== null) location.assign(provider)
    else login.leave()
  } catch (error) {
    toast((error as Error).message, { isBad: true })
  }
}

const METHODS: Record<string, string> = { password: 'a password', token: 'a token', key: 'a key', 'personal-token': 'a personal token' }
const methodText = (method: string): string => METHODS[method] ?? (method.startsWith('openid:') ? `the identity provider ${method.slice(7)}` : method)

function Known({ me }: { me: Me }) {
  return (
    <>
      <div className="halves">
        <section className="card" aria-label="You">
          <h2>You</h2>
          <dl className="pairs">
            <dt>Name</dt>
            <dd>{me.name}</dd>
            <dt>Logged in with</dt>
            <dd>{methodText(me.method)}</dd>
            {me.session && (
              <>
                <dt>Until</dt>
                <dd>
                  <End at={me.session.ends} />, if you do nothing meanwhile
                </dd>
              </>
            )}
            <dt>Rights</dt>
            <dd>
              <ul>
                {(me.rights ?? []).map((it) => (
                  <li key={rightText(it)}>{rightText(it)}</li>
                ))}
              </ul>
            </dd>
          </dl>
        </section>
        <section className="card" aria-label="Password">
          <h2>Password</h2>
          {me.is_stored ? <Password hasOne={me.has_password} /> : <p className="muted">Your identity provider keeps your password.</p>}
        </section>
      </div>
      <Tokens me={me} />
      <Sessions />
    </>
  )
}

function Password({ hasOne }: { hasOne: boolean }) {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [error, setError] = useState<unknown>(null)
  const client = useQueryClient()
  const change = async () => {
    setError(null)
    try {
      await call('PUT', '/api/v1/me/password', { body: hasOne ? { current, new: next } : { new: next } })
      setCurrent('')
      setNext('')
      toast('The password is changed, and your other sessions have ended')
      await client.invalidateQueries({ queryKey: ['me'] })
    } catch (refused) {
      setError(refused)
    }
  }
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        void change()
      }}
    >
      {hasOne && <TextField label="Current password" type="password" value={current} onChange={setCurrent} autoComplete="current-password" />}
      <TextField label="New password" type="password" value={next} onChange={setNext} autoComplete="new-password" about="At least 10 characters. Your other sessions end." />
      {error !== null && <Failure error={error} />}
      <div>
        <button className="button" type="submit" disabled={next === '' || (hasOne && current === '')}>
          {hasOne ? 'Change the password' : 'Set a password'}
        </button>
      </div>
    </form>
  )
}

const tokenColumns: Column<TokenState>[] = [
  { id: 'name', title: 'For', text: (it) => it.name },
  { id: 'rights', title: 'May do', text: (it) => (it.rights ? rightsText(it.rights) : 'all that you may'), width: 'minmax(9rem, 2fr)' },
  { id: 'used', title: 'Last used', text: (it) => isoTime(it.last_used), render: (it) => (it.last_used ? <Time at={it.last_used} /> : <span className="muted">never</span>), from: 2 },
  { id: 'ends', title: 'Ends', text: (it) => isoTime(it.ends), render: (it) => <Time at={it.ends} /> },
]
const keyOf = (it: { id: string }) => it.id

function Tokens({ me }: { me: Me }) {
  const tokens = useQuery({ queryKey: ['me', 'tokens'], queryFn: items<TokenState>(TOKENS) })
  const client = useQueryClient()
  const [isAdding, setAdding] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const [doomed, setDoomed] = useState<TokenState[]>([])
  const reread = () => client.invalidateQueries({ queryKey: ['me', 'tokens'] })
  const refused = me.is_stored ? null : 'Only users that this Weir keeps have personal tokens.'
  const add = (
    <Button look="primary" refused={refused} onPress={() => setAdding(true)}>
      New token
    </Button>
  )
  return (
    <section className="stack" aria-label="Personal tokens">
      <div className="row between">
        <h2>Personal tokens</h2>
        {add}
      </div>
      {tokens.error && tokens.data === undefined ? (
        <Failure error={tokens.error} onRetry={() => void tokens.refetch()} />
      ) : (
        <Table
          label="Personal tokens"
          rows={tokens.data ?? []}
          columns={tokenColumns}
          rowKey={keyOf}
          isLoading={tokens.isLoading}
          noun={['token', 'tokens']}
          bulk={[{ text: 'Remove', look: 'danger', run: (rows) => setDoomed(rows) }]}
          empty={
            <Empty title="No personal tokens" example={`curl ${location.origin}/api/v1/me -H "Authorization: Bearer $WEIR_TOKEN"`}>
              <p>A personal token is for a program that acts as you, with your rights or fewer. It ends by itself.</p>
            </Empty>
          }
        />
      )}
      {isAdding && (
        <NewToken
          proof={me.session ? (me.has_password ? 'password' : 'login') : null}
          onClose={() => setAdding(false)}
          onMade={(token) => {
            setAdding(false)
            setSecret(token)
            void reread()
          }}
        />
      )}
      {secret !== null && <ShownOnce title="The token" secret={secret} onClose={() => setSecret(null)} />}
      {doomed.length > 0 && (
        <Act
          title={`Remove ${doomed.map((it) => it.name).join(', ')}?`}
          action="Remove"
          look="danger"
          onClose={() => setDoomed([])}
          run={async () => {
            for (const it of doomed) await call('DELETE', `${TOKENS}/${encodeURIComponent(it.id)}`)
            await reread()
            setDoomed([])
          }}
        >
          <p>Programs that show it are refused from now on.</p>
        </Act>
      )}
    </section>
  )
}

/** `proof`: what the server asks for besides the session, so that a browser that was left open makes no token. */
function NewToken({ proof, onClose, onMade }: { proof: 'password' | 'login' | null; onClose: () => void; onMade: (token: string) => void }) {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [days, setDays] = useState('90')
  const [extent, setExtent] = useState<'all' | 'some'>('all')
  const [rights, setRights] = useState<Right[]>([{ role: 'viewer', workspace: '*' }])
  const count = Number(days)
  const wrong = name.trim() === '' ? 'Say what it is for.' : !(Number.isInteger(count) && count >= 1 && count <= 366) ? 'It lasts from 1 to 366 days.' : extent === 'some' && !areWhole(rights) ? 'A right has no name of its scope.' : proof === 'password' && password === '' ? 'Type your password.' : null
  return (
    <Act
      title="New personal token"
      action="Create"
      refused={wrong}
      onClose={onClose}
      run={async () => {
        const made = await call<{ token: string }>('POST', TOKENS, { body: { name: name.trim(), days: count, ...(extent === 'some' ? { rights } : {}), ...(proof === 'password' ? { password } : {}) } })
        onMade(made.data.token)
      }}
    >
      <TextField label="For" value={name} onChange={setName} placeholder="the pipeline of orders" autoFocus isRequired />
      <TextField label="Days" type="number" value={days} onChange={setDays} about="From 1 to 366." />
      <ChoiceField
        label="May do"
        value={extent}
        onChange={setExtent}
        options={[
          { value: 'all', text: 'All that you may', about: 'Also what you may later.' },
          { value: 'some', text: 'Only some of it', about: 'Never more than you may at the time of the call.' },
        ]}
      />
      {extent === 'some' && <RightsField label="Rights" value={rights} onChange={setRights} />}
      {proof === 'password' && <TextField label="Your password" type="password" value={password} onChange={setPassword} autoComplete="current-password" isRequired about="So that no one else makes a token at a browser that you have left open." />}
      {proof === 'login' && <p className="muted">You have no password here: log in again if that was more than ten minutes ago.</p>}
    </Act>
  )
}

const sessionColumns: Column<SessionState>[] = [
  { id: 'agent', title: 'Program', text: (it) => browserText(it.agent), render: (it) => <span title={it.agent}>{browserText(it.agent)}</span>, width: 'minmax(9rem, 2fr)' },
  { id: 'own', title: 'Which', text: (it) => (it.is_own ? 'this one' : ''), render: (it) => (it.is_own ? <span className="badge accent">this one</span> : ''), width: '5.5rem' },
  { id: 'method', title: 'With', text: (it) => methodText(it.method), from: 2 },
  { id: 'address', title: 'From', text: (it) => it.address, from: 2 },
  { id: 'created', title: 'Since', text: (it) => isoTime(it.created), render: (it) => <Time at={it.created} />, from: 3 },
  { id: 'last_used', title: 'Last used', text: (it) => isoTime(it.last_used), render: (it) => <Time at={it.last_used} />, from: 2 },
]

function Sessions() {
  const sessions = useQuery({ queryKey: ['me', 'sessions'], queryFn: items<SessionState>(SESSIONS) })
  const client = useQueryClient()
  const end = async (chosen: SessionState[]) => {
    try {
      // The own one comes last: after it, nothing more is allowed.
      for (const it of [...chosen].sort((a, b) => Number(a.is_own) - Number(b.is_own))) await call('DELETE', `${SESSIONS}/${encodeURIComponent(it.id)}`)
      toast(chosen.length === 1 ? 'The session has ended' : `${chosen.length} sessions have ended`)
    } catch (error) {
      toast((error as Error).message, { isBad: true })
    }
    await client.invalidateQueries({ queryKey: ['me'] })
  }
  return (
    <section className="stack" aria-label="Sessions">
      <h2>Sessions</h2>
      {sessions.error && sessions.data === undefined ? (
        <Failure error={sessions.error} onRetry={() => void sessions.refetch()} />
      ) : (
        <Table
          label="Sessions"
          place="sessions"
          rows={sessions.data ?? []}
          columns={sessionColumns}
          rowKey={keyOf}
          isLoading={sessions.isLoading}
          noun={['session', 'sessions']}
          bulk={[{ text: 'End', look: 'danger', run: (chosen) => void end(chosen) }]}
          empty={
            <Empty title="No sessions">
              <p>You show a token with each call. A login with a password begins a session.</p>
            </Empty>
          }
        />
      )}
    </section>
  )
}
