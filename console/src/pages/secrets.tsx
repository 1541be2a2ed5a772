// Secrets: the stores that documents refer to, what refers to them, and whether each can be read. A value is never here.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { components } from '../../generated/api'
import { call, get } from '../api/client'
import { listOf } from '../api/dialects'
import { useStoredRight } from '../api/rights'
import { placeOf } from '../documents'
import { Empty, Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { TextField } from '../ui/field'
import { type Column, Table } from '../ui/table'
import { Time, countText, duration } from '../ui/time'
import { DIALECTS } from './dialects'

type Reference = components['schemas']['SecretReference']
type Store = components['schemas']['SecretStoreSummary']
type Stand = components['schemas']['SecretStatus']
type Place = components['schemas']['ReferenceLocation']

const PATH = '/api/v1/secrets'
/** What a person asks now is read again so often. */
const EVERY_MS = 10_000

const STATES: Record<Stand['state'], { text: string; tone: string; about: string }> = {
  missing: { text: 'missing', tone: 'bad', about: 'Weir cannot read it. What refers to it is left out.' },
  kept: { text: 'not renewed', tone: 'warn', about: 'The last read failed. The value from before stays in use.' },
  waiting: { text: 'not asked yet', tone: '', about: 'Nothing that is served has asked for it.' },
  resolved: { text: 'resolves', tone: 'good', about: 'It is known.' },
}

const isInEnvironment = (it: Pick<Reference, 'store'>) => it.store === 'env'

/** A document's page; `null`: it has none. */
function pageOf(place: Place): string | null {
  if (!place.document) return null
  const { kind, to } = placeOf(place.document)
  const list = listOf(kind)
  return to ?? (list === null ? null : `/view/${list}/${encodeURIComponent(place.document)}`)
}

const holderOf = (place: Place) => place.document ?? place.file ?? ''

function Holder({ place }: { place: Place }) {
  const to = pageOf(place)
  const name = place.document ? placeOf(place.document) : null
  const text = name === null ? holderOf(place) : `${name.kind.replace(/s$/, '')} ${name.name}`
  return to === null ? <span title={holderOf(place)}>{text}</span> : <Link href={to} title={holderOf(place)}>{text}</Link>
}

const columns = (open: (it: Reference) => void): Column<Reference>[] => [
  {
    id: 'reference',
    title: 'Reference',
    text: (it) => it.text,
    render: (it) => (
      <button className="link mono clip" onClick={() => open(it)}>
        {it.text}
      </button>
    ),
    width: 'minmax(10rem, 2fr)',
  },
  {
    id: 'state',
    title: 'Now',
    text: (it) => STATES[it.state].text,
    render: (it) => (
      <span className={`badge ${STATES[it.state].tone}`} title={it.reason ?? STATES[it.state].about}>
        {STATES[it.state].text}
      </span>
    ),
    width: 'minmax(6.5rem, 0.7fr)',
  },
  { id: 'store', title: 'Store', text: (it) => it.store ?? '', from: 2, width: 'minmax(5rem, 0.6fr)' },
  {
    id: 'used',
    title: 'Used by',
    text: (it) => it.used_by.map(holderOf).join(', '),
    render: (it) => (
      <span className="clip">
        {it.used_by[0] && <Holder place={it.used_by[0]} />}
        {it.uses > 1 && <span className="muted"> and {it.uses - 1} more</span>}
      </span>
    ),
    from: 2,
    width: 'minmax(8rem, 1.2fr)',
  },
  {
    id: 'read',
    title: 'Last read',
    text: (it) => (it.read ? new Date(it.read * 1000).toISOString() : ''),
    order: (it) => it.read ?? 0,
    render: (it) => (it.read ? <Time at={it.read} /> : <span className="muted">{isInEnvironment(it) ? 'with every change' : 'never'}</span>),
    from: 2,
    width: 'minmax(7rem, 0.8fr)',
  },
  {
    id: 'changed',
    title: 'Value changed',
    text: (it) => (it.changed ? new Date(it.changed * 1000).toISOString() : ''),
    order: (it) => it.changed ?? 0,
    render: (it) => (it.changed ? <Time at={it.changed} /> : ''),
    from: 3,
    width: 'minmax(7rem, 0.8fr)',
  },
]

const key = (it: Reference) => `${it.dialect} ${it.text} ${it.used_by[0]?.file ?? ''}`

export default function Secrets() {
  const found = useQuery({
    queryKey: ['configuration', 'secrets'],
    queryFn: ({ signal }) => get<components['schemas']['SecretList']>(PATH, {}, signal),
    refetchInterval: EVERY_MS,
    staleTime: 0,
  })
  const refused = useStoredRight('configuration:write')
  const [shown, setShown] = useState<Reference | null>(null)
  const [isTesting, setTesting] = useState(false)
  const [, go] = useLocation()
  const failing = (found.data?.references ?? []).filter((it) => it.state === 'missing' || it.state === 'kept')
  return (
    <Page
      title="Secrets"
      about="Documents refer to what is kept elsewhere: in the environment, or in a vault. Weir reads it, keeps it fresh, and never shows it."
      calls={[
        { about: 'List stores and references', method: 'GET', path: PATH },
        { about: 'Test a reference', method: 'POST', path: `${PATH}/test`, body: { reference: '{vault://env/DB_PASSWORD}' } },
      ]}
      actions={
        <>
          <Button refused={refused} onPress={() => setTesting(true)}>
            Test a reference
          </Button>
          <Button look="primary" refused={refused} onPress={() => go('/new/kong/vaults')}>
            New vault
          </Button>
        </>
      }
    >
      {found.error && found.data === undefined ? (
        <Failure error={found.error} onRetry={() => void found.refetch()} />
      ) : (
        <>
          {failing.length > 0 && (
            <div className="note bad" role="status">
              <strong>{countText(failing.length, 'secret cannot', 'secrets cannot')} be read</strong>
              <span>{failing[0]?.reason}</span>
            </div>
          )}
          {(found.data?.skipped ?? 0) > 0 && (
            <p className="muted">{countText(found.data?.skipped ?? 0, 'more reference is', 'more references are')} not shown.</p>
          )}
          <Table
            label="References"
            rows={found.data?.references ?? []}
            columns={columns(setShown)}
            rowKey={key}
            isLoading={found.isLoading}
            noun={['reference', 'references']}
            empty={
              <Empty title="Nothing refers to a secret yet" example={'name: partner\ncredentials:\n  - key-auth: {key: "{vault://env/PARTNER_KEY}"}'}>
                <p>Write a reference where a document would hold a password, a key or a token. It is replaced when the configuration is served; the store, the history and this console hold the reference only.</p>
              </Empty>
            }
          />
          <Stores stores={found.data?.stores ?? []} />
        </>
      )}
      {shown && <Shown reference={shown} refused={refused} onClose={() => setShown(null)} />}
      {isTesting && <Test onClose={() => setTesting(false)} />}
    </Page>
  )
}

function Stores({ stores }: { stores: Store[] }) {
  return (
    <section className="card" aria-label="Stores">
      <h2>Stores</h2>
      <ul className="rows">
        {stores.map((it) => (
          <li className="row between" key={`${it.dialect} ${it.document ?? it.name}`}>
            <span className="row">
              <span className="badge">{DIALECTS[it.dialect] ?? it.dialect}</span>
              {it.document ? <Link href={`/vaults/${encodeURIComponent(it.document)}`}>{it.name}</Link> : <span>{it.name}</span>}
              <span className="muted">{it.document ? it.kind : 'the environment of each gateway'}</span>
              {it.address && <code className="clip">{it.address}</code>}
            </span>
            <span className="row">
              {it.failing > 0 && <span className="badge bad">{it.failing} failing</span>}
              <span className="muted one-line">{countText(it.references, 'reference', 'references')}</span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function StandText({ stand, isInEnv }: { stand: Stand; isInEnv: boolean }) {
  return (
    <>
      <p>
        <span className={`badge ${STATES[stand.state].tone}`}>{STATES[stand.state].text}</span> {STATES[stand.state].about}
      </p>
      {stand.reason && (
        <div className="note bad">
          <strong>The last error</strong>
          <span>{stand.reason}</span>
        </div>
      )}
      <dl className="pairs">
        {stand.read && (
          <>
            <dt>Last read</dt>
            <dd>
              <Time at={stand.read} />
            </dd>
          </>
        )}
        {stand.changed && (
          <>
            <dt>Value changed</dt>
            <dd>
              <Time at={stand.changed} />
            </dd>
          </>
        )}
        {stand.failed && (
          <>
            <dt>Last failed read</dt>
            <dd>
              <Time at={stand.failed} />
            </dd>
          </>
        )}
        <dt>Read again</dt>
        <dd>{isInEnv ? 'with every change of the configuration' : stand.fresh_for ? `every ${duration(stand.fresh_for * 1000)}` : 'never: it leads nowhere'}</dd>
      </dl>
    </>
  )
}

function Shown({ reference, refused, onClose }: { reference: Reference; refused: string | null; onClose: () => void }) {
  return (
    <Dialog title="Reference" isOpen wide onClose={onClose} actions={<Button onPress={onClose}>Close</Button>}>
      <pre className="code" tabIndex={0} aria-label="As it is written">
        {reference.text}
      </pre>
      <StandText stand={reference} isInEnv={isInEnvironment(reference)} />
      <h3>Used in {countText(reference.uses, 'place', 'places')}</h3>
      <ul className="rows">
        {reference.used_by.map((it) => (
          <li key={`${holderOf(it)}${it.pointer}`} className="row">
            <Holder place={it} />
            <code className="clip">{it.pointer}</code>
          </li>
        ))}
      </ul>
      <Ask reference={reference.text} refused={refused} />
    </Dialog>
  )
}

/** Asks for a secret now. */
function Ask({ reference, refused }: { reference: string; refused: string | null }) {
  const [stand, setStand] = useState<Stand | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const client = useQueryClient()
  const ask = async () => {
    setBusy(true)
    setError(null)
    try {
      setStand((await call<Stand>('POST', `${PATH}/test`, { body: { reference: reference.trim() } })).data)
      await client.invalidateQueries({ queryKey: ['configuration', 'secrets'] })
    } catch (wrong) {
      setStand(null)
      setError(wrong)
    }
    setBusy(false)
  }
  return (
    <>
      <div>
        <Button refused={refused ?? (reference.trim() === '' ? 'There is no reference yet.' : null)} isBusy={isBusy} onPress={() => void ask()}>
          Ask for it now
        </Button>
      </div>
      {error !== null && <Failure error={error} />}
      {stand && (
        <div className={`note ${STATES[stand.state].tone}`} role="status">
          <strong>{stand.state === 'resolved' ? 'It resolves' : 'It cannot be read'}</strong>
          <span>{stand.reason ?? 'The value is not shown.'}</span>
        </div>
      )}
    </>
  )
}

function Test({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  return (
    <Dialog title="Test a reference" isOpen onClose={onClose} actions={<Button onPress={onClose}>Close</Button>}>
      <TextField label="Reference" isMono autoFocus value={text} onChange={setText} placeholder="{vault://env/DB_PASSWORD}" about="As a document would hold it. Weir asks for it now and says whether it can be read, never what it is." />
      <Ask key={text} reference={text} refused={null} />
    </Dialog>
  )
}
