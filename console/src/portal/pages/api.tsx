// A version of an API: what it is for, its reference, its plans, and what changed.
import { type MouseEvent, Suspense, lazy, useDeferredValue, useMemo, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { Failure } from '../../shell/page'
import { decoded } from '../../shell/segments'
import { Icon } from '../../ui/icons'
import { countText, exactTime } from '../../ui/time'
import { type ApiDetail, type OperationLine, type VersionChanges, type VersionDetail, type VersionStatus, useApi, useOperation, useRead, useVersion, versionPath } from '../data'
import { Broken, Loading, Page } from '../frame'
import { Logo } from '../cards'
import { Plans, limitText } from '../plans'
import { StatusLine } from '../status'
import { Text } from '../text'

const Operation = lazy(() => import('../reference/operation'))

export default function Api({ api: name, version: wanted, rest }: { api: string; version: string | null; rest: string }) {
  const api = useApi(name)
  const number = wanted ?? api.data?.versions[0]?.version ?? null
  const version = useVersion(name, number)
  // What the address names is read beside the version, not after it.
  useOperation(name, wanted, operationOf(rest))
  const error = api.error ?? version.error
  if (error) return <Broken error={error} onRetry={() => void Promise.all([api.refetch(), version.refetch()])} />
  if (api.data === undefined || version.data === undefined) return <Loading />
  return <Shown api={api.data} version={version.data} rest={rest} />
}

/** The operation that the address names. It is read from the address itself: the router has decoded `rest` in part. */
function operationOf(rest: string): string | null {
  const [, , , , , id] = location.pathname.split('/')
  return rest.startsWith('operations/') && id !== undefined && id !== '' ? decoded(id) : null
}

function Shown({ api, version, rest }: { api: ApiDetail; version: VersionDetail; rest: string }) {
  const [, go] = useLocation()
  const base = `/apis/${encodeURIComponent(api.name)}/${encodeURIComponent(version.version)}`
  const [part] = rest.split('/', 1)
  const operation = operationOf(rest)
  const tab = part === 'plans' || part === 'changes' ? part : 'reference'
  const link = (to: string, text: string, isHere: boolean) => (
    <Link href={to} className="tab" aria-current={isHere ? 'page' : undefined}>
      {text}
    </Link>
  )
  return (
    <Page
      title={api.title}
      mark={<Logo title={api.title} image={api.logo} isLarge />}
      about={version.title !== api.title ? version.title : undefined}
      actions={
        <>
          <label className="row">
            <span className="muted small">Version</span>
            <select className="select narrow" value={version.version} onChange={(event) => go(`/apis/${encodeURIComponent(api.name)}/${encodeURIComponent(event.target.value)}`)}>
              {api.versions.map((it) => (
                <option key={it.version} value={it.version}>
                  {it.version}
                  {it.state === 'deprecated' ? ' (deprecated)' : ''}
                </option>
              ))}
            </select>
          </label>
          <a className="button" href={`${versionPath(api.name, version.version)}/openapi.json`} download>
            OpenAPI
          </a>
          <a className="button" href={`${versionPath(api.name, version.version)}/openapi.yaml`} download aria-label="OpenAPI as YAML">
            YAML
          </a>
        </>
      }
    >
      <Notices version={version} />
      <nav className="tabs" aria-label="API">
        {link(base, 'Reference', tab === 'reference')}
        {version.plans.length > 0 && link(`${base}/plans`, 'Plans', tab === 'plans')}
        {api.versions.length > 1 && link(`${base}/changes`, 'Changes', tab === 'changes')}
      </nav>
      {tab === 'plans' && <Plans version={version} />}
      {tab === 'changes' && <Changes version={version} />}
      {tab === 'reference' && (
        <div className="reference">
          <Operations base={base} version={version} chosen={operation} />
          {operation === null ? (
            <Overview api={api} version={version} />
          ) : (
            <Suspense fallback={<div aria-busy="true" className="loading" />}>
              <Operation version={version} id={operation} />
            </Suspense>
          )}
        </div>
      )}
    </Page>
  )
}

function Notices({ version }: { version: VersionDetail }) {
  return version.places
    .filter((it) => it.deprecation !== null)
    .map((it) => (
      <div key={it.publication} className="note warn" role="note">
        <strong>
          This version is deprecated in {it.title}
          {it.deprecation?.sunset ? ` and ends on ${exactTime(it.deprecation.sunset)}` : ''}.
        </strong>
        {it.deprecation?.successor && <span>Its successor is {it.deprecation.successor}.</span>}
        {it.deprecation?.link && (
          <a href={it.deprecation.link} rel="noopener noreferrer">
            What to do
          </a>
        )}
      </div>
    ))
}

function Overview({ api, version }: { api: ApiDetail; version: VersionDetail }) {
  const about = version.description.length > 0 ? version.description : api.description
  const base = `/apis/${encodeURIComponent(api.name)}/${encodeURIComponent(version.version)}`
  const status = useRead<VersionStatus>(`/apis/${encodeURIComponent(api.name)}/versions/${encodeURIComponent(version.version)}/status`)
  const statusOf = (environment: string) => status.data?.items.filter((it) => it.environment === environment) ?? []
  return (
    <div className="two">
      <div className="stack loose">
        {about.length > 0 ? <Text nodes={about} /> : <p className="muted">This API has no description yet. Choose an operation at the side.</p>}
        {version.news.length > 0 && (
          <section className="stack" aria-label="What is new">
            <h2>What is new</h2>
            <Text nodes={version.news} />
          </section>
        )}
      </div>
      <aside className="stack" aria-label="At a glance">
        <section className="card" aria-label="Where to call">
          <h2>Where to call</h2>
          <ul className="stack">
            {version.places.map((it) => (
              <li key={it.publication} className="stack tight">
                <span className="row">
                  <span className={it.is_production ? 'badge good' : 'badge'}>{it.title}</span>
                </span>
                <code className="path">{it.base_url ?? (it.base_path || '/')}</code>
                {it.base_url === null && <span className="muted small">This path at the gateway, whose address is not given here: the provider of the API knows it.</span>}
                {statusOf(it.environment).map((now) => (
                  <StatusLine key={now.environment} status={now} />
                ))}
              </li>
            ))}
          </ul>
        </section>
        {version.plans.length > 0 && (
          <section className="card" aria-label="Plans of this version">
            <h2>Plans</h2>
            <ul className="stack tight">
              {version.plans.map((it) => (
                <li key={it.name}>
                  <strong>{it.title}</strong>
                  <div className="muted small">{[it.price, it.limits.map(limitText).join(', ')].filter((part) => part !== '').join(' · ')}</div>
                </li>
              ))}
            </ul>
            <div>
              <Link className="button primary" href={`${base}/plans`}>
                Get access
              </Link>
            </div>
          </section>
        )}
        {(api.pages.length > 0 || api.links.length > 0 || api.contacts.length > 0) && (
          <section className="card" aria-label="More">
            <h2>More</h2>
            <ul className="stack tight">
              {api.pages.map((it) => (
                <li key={it.to}>
                  <Link href={it.to}>{it.title}</Link>
                </li>
              ))}
              {api.links.map((it) => (
                <li key={it.to}>
                  <a href={it.to} rel="noopener noreferrer">
                    {it.title}
                  </a>
                </li>
              ))}
              {api.contacts.map((it) => (
                <li key={it} className="muted">
                  {it}
                </li>
              ))}
            </ul>
          </section>
        )}
      </aside>
    </div>
  )
}

/** Operations that are drawn at first. */
const FIRST = 150

/** The list of operations by tag; of thousands only the first are drawn until all are asked for. */
function Operations({ base, version, chosen }: { base: string; version: VersionDetail; chosen: string | null }) {
  const [words, type] = useState('')
  const sought = useDeferredValue(words.trim().toLowerCase())
  const [isWhole, showAll] = useState(false)
  // A phone shows the list on demand: the operation that was chosen is what is read.
  const [isOpen, setOpen] = useState(false)
  const [, go] = useLocation()
  const { groups, left } = useMemo(() => {
    const fits = (it: OperationLine) => sought === '' || `${it.method} ${it.path} ${it.summary} ${it.id}`.toLowerCase().includes(sought)
    const found = version.operations.filter(fits)
    const drawn = isWhole ? found : found.slice(0, FIRST)
    const here = isWhole ? undefined : found.slice(FIRST).find((it) => it.id === chosen)
    if (here !== undefined) drawn.push(here)
    const byTag = new Map<string, OperationLine[]>(version.tags.map((it) => [it.name, []]))
    for (const it of drawn) {
      const group = byTag.get(it.tag)
      if (group === undefined) byTag.set(it.tag, [it])
      else group.push(it)
    }
    return { groups: [...byTag].filter(([, all]) => all.length > 0), left: found.length - drawn.length }
  }, [version, sought, isWhole, chosen])
  // One handler for all links: thousands of them would each listen to the address.
  const follow = (event: MouseEvent<HTMLElement>) => {
    const link = (event.target as Element).closest('a')
    const to = link?.getAttribute('href')
    if (!to || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return
    event.preventDefault()
    setOpen(false)
    go(to)
  }
  return (
    <nav className={isOpen ? 'operations open' : 'operations'} aria-label="Operations" onClick={follow}>
      <button type="button" className="button unfold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Operations <span className="muted small">{version.operations.length}</span>
        <Icon name="chevron" />
      </button>
      <div className="seek">
        <input className="input" type="search" aria-label="Filter operations" placeholder={`Filter ${countText(version.operations.length, 'operation', 'operations')}`} value={words} onChange={(event) => type(event.target.value)} />
      </div>
      <a href={base} className="item" aria-current={chosen === null ? 'page' : undefined}>
        Overview
      </a>
      {groups.map(([tag, all]) => (
        <section key={tag} aria-label={tag || 'Operations'}>
          {tag && <h2>{tag}</h2>}
          <ul>
            {all.map((it) => (
              <li key={it.id}>
                <a href={`${base}/operations/${encodeURIComponent(it.id)}`} className="item" aria-current={it.id === chosen ? 'page' : undefined} title={`${it.method} ${it.path}`}>
                  <span className={`method ${it.method.toLowerCase()}`}>{it.method}</span>
                  <span className={it.is_deprecated ? 'clip gone' : 'clip'}>{it.summary || it.path}</span>
                </a>
              </li>
            ))}
          </ul>
        </section>
      ))}
      {left > 0 && (
        <button type="button" className="button small" onClick={() => showAll(true)}>
          Show {left} more
        </button>
      )}
      {groups.length === 0 && <p className="muted small">No operation fits.</p>}
    </nav>
  )
}

function Changes({ version }: { version: VersionDetail }) {
  const changes = useRead<VersionChanges>(`/apis/${encodeURIComponent(version.api)}/versions/${encodeURIComponent(version.version)}/changes`)
  if (changes.error) return <Failure error={changes.error} onRetry={() => void changes.refetch()} />
  if (changes.data === undefined) return <div aria-busy="true" className="loading" />
  return (
    <section className="stack" aria-label="Changes">
      <h2>
        From {changes.data.from} to {changes.data.to}
      </h2>
      {changes.data.operations.length === 0 && <p className="muted">No operation has changed.</p>}
      <ul className="stack">
        {changes.data.operations.map((it) => (
          <li key={it.operation} className="card">
            <code className="path">{it.operation}</code>
            <ul className="stack tight">
              {it.changes.map((change) => (
                <li key={change.text} className="row">
                  {change.is_breaking && <span className="badge bad">breaks callers</span>}
                  <span>{change.text}</span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  )
}
