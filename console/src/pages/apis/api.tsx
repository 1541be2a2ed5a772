// One API: its versions by environment, what it is, and who subscribes.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type ApiEntity, apiPath, asFields, compact, partsOf, useAllVersions, useApi, useEnvironments, usePublications, useSubscriptions } from '../../api/apis'
import { type Query, useNumbers } from '../../api/analytics'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { readVersion } from '../../form/send'
import { useVersioned } from '../../form/versioned'
import { Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { AreaField, ChoiceField, TextField, lines } from '../../ui/field'
import { LogoField } from '../../ui/logo-field'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { Panel } from '../panel'
import { Matrix } from './matrix'
import { Pairs, State, Waiting } from './shared'

export default function ApiPage() {
  const [, name = ''] = useSegments()
  const [api, versions, publications, environments, subscriptions] = [useApi(name), useAllVersions(), usePublications(), useEnvironments(), useSubscriptions()]
  const [above, setAbove] = useState<'edit' | 'delete' | null>(null)
  const refused = useRight('apis:write')
  const publishing = useRight('apis:publish')
  if (api.data === undefined || versions.data === undefined || environments.data === undefined) {
    return <Waiting title={name} crumbs={[{ to: '/apis', text: 'APIs' }]} queries={[api, versions, environments]} />
  }
  const own = versions.data.filter((it) => it.api === name).sort((a, b) => b.version.localeCompare(a.version, undefined, { numeric: true }))
  const here = (publications.data ?? []).filter((it) => it.api === name)
  const subscribers = (subscriptions.data ?? []).filter((it) => partsOf(it.publication)[0] === name)
  const close = () => setAbove(null)
  return (
    <Page
      title={api.data.display_name || name}
      about={api.data.description}
      crumbs={[{ to: '/apis', text: 'APIs' }]}
      calls={[
        { about: 'Read the API', method: 'GET', path: apiPath(name) },
        { about: 'List its versions', method: 'GET', path: `${apiPath(name)}/versions` },
        { about: 'List publications', method: 'GET', path: '/api/v1/publications' },
      ]}
      actions={
        <>
          <Button look="quiet" icon="trash" refused={refused} onPress={() => setAbove('delete')}>
            Delete
          </Button>
          <Button isEdit refused={refused} onPress={() => setAbove('edit')}>
            Edit
          </Button>
          <ButtonLink to={`/apis/@new?api=${encodeURIComponent(name)}`} look="primary" refused={refused}>
            New version
          </ButtonLink>
        </>
      }
    >
      <section className="card flush" aria-label="Versions and environments">
        <div className="head2">
          <h2>Versions and environments</h2>
          <span className="muted small">Drag a cell to the next environment to promote it.</span>
        </div>
        {own.length === 0 ? (
          <p className="empty muted">There is no version yet. A version is an OpenAPI document and what you add to its operations.</p>
        ) : environments.data.length === 0 ? (
          <div className="empty">
            <p>There is no environment yet. A version is published to one.</p>
            <ButtonLink to="/environments" look="primary">
              Environments
            </ButtonLink>
          </div>
        ) : (
          <Matrix api={name} versions={own} environments={environments.data} publications={here} refused={publishing} />
        )}
      </section>
      <Calls api={name} />
      <div className="halves">
        <section className="card" aria-label="About it">
          <h2>About it</h2>
          <Pairs
            pairs={[
              ['Name', <code key="name">{name}</code>],
              ['Owner', api.data.owner],
              ['Category', api.data.category],
              ['Visible to', visibilityText(api.data)],
              ['Contacts', (api.data.contacts ?? []).join(', ')],
              ['Links', Object.entries(api.data.links ?? {}).map(([title, to]) => <LinkTo key={title} title={title} to={to} />)],
            ]}
          />
        </section>
        <section className="card" aria-label="Subscriptions">
          <div className="head2">
            <h2>Subscriptions</h2>
            <Link href={`/subscriptions?q=${encodeURIComponent(`api:${name}`)}`}>All of them</Link>
          </div>
          {subscribers.length === 0 ? (
            <p className="muted">No application subscribes yet. A version offers plans; applications subscribe to one.</p>
          ) : (
            <>
              <p>{countText(subscribers.length, 'subscription', 'subscriptions')}</p>
              <ul className="stack tight">
                {[...new Set(subscribers.map((it) => it.state))].map((state) => (
                  <li key={state} className="row">
                    <State state={state} /> {subscribers.filter((it) => it.state === state).length}
                  </li>
                ))}
              </ul>
            </>
          )}
        </section>
      </div>
      {above === 'edit' && <EditApi api={api.data} onClose={close} />}
      {above === 'delete' && <DeleteApi name={name} versions={own.length} onClose={close} />}
    </Page>
  )
}

/** Calls of a day, by version and environment; nothing without analytics. */
function Calls({ api }: { api: string }) {
  const query = useMemo((): Query => ({ metrics: ['calls', 'share_5xx', 'latency_avg'], from: '-24h', step: 'auto', group_by: ['version', 'environment'], filter: { api }, limit: 6 }), [api])
  const numbers = useNumbers(query)
  if (numbers.error !== null && numbers.data === undefined) return null
  return <Panel title="Calls in 24 hours" query={query} kind="area" />
}

/** Only addresses of the web are links. */
function LinkTo({ title, to }: { title: string; to: string }) {
  return /^https?:\/\//.test(to) ? (
    <a href={to} rel="noreferrer">
      {title}{' '}
    </a>
  ) : (
    <span>
      {title}: {to}{' '}
    </span>
  )
}

const visibilityText = (api: ApiEntity): string =>
  typeof api.visibility === 'object' ? `the groups ${api.visibility.groups.join(', ')}` : api.visibility === 'public' ? 'everybody' : 'everybody who is signed in'

function EditApi({ api, onClose }: { api: ApiEntity; onClose: () => void }) {
  const [fields, setFields] = useState(api)
  const client = useQueryClient()
  const { put, choice } = useVersioned({
    opened: compact(api),
    read: () => readVersion<ApiEntity>(apiPath(api.name), (it) => asFields(compact(it))),
    onChosen: (value) => setFields(value as unknown as ApiEntity),
  })
  const set = <K extends keyof ApiEntity>(name: K, value: ApiEntity[K]) => setFields({ ...fields, [name]: value })
  const groups = typeof fields.visibility === 'object' ? fields.visibility.groups : null
  const kind = groups === null ? (fields.visibility as string) : 'groups'
  return (
    <Act
      title={`Edit ${api.name}`}
      action="Save"
      onClose={onClose}
      run={async () => {
        await put(apiPath(api.name), compact(fields))
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${api.name} is saved`)
        onClose()
      }}
    >
      <TextField label="Name for people" value={fields.display_name ?? ''} onChange={(value) => set('display_name', value)} />
      <TextField label="What it is for" value={fields.description ?? ''} onChange={(value) => set('description', value)} />
      <div className="grid">
        <TextField label="Owner" value={fields.owner ?? ''} onChange={(value) => set('owner', value)} />
        <TextField label="Category" value={fields.category ?? ''} onChange={(value) => set('category', value)} />
      </div>
      <ChoiceField
        label="Who may see it"
        value={kind}
        onChange={(value) => set('visibility', value === 'groups' ? { groups: [] } : (value as 'public' | 'signed-in'))}
        options={[
          { value: 'public', text: 'Everybody' },
          { value: 'signed-in', text: 'Everybody who is signed in' },
          { value: 'groups', text: 'Some groups' },
        ]}
      />
      {groups !== null && <AreaField label="Groups" rows={2} value={groups.join('\n')} onChange={(value) => set('visibility', { groups: value.split('\n') })} about="One on each line." />}
      <AreaField label="Contacts" rows={2} value={(fields.contacts ?? []).join('\n')} onChange={(value) => set('contacts', lines(value))} about="One on each line." />
      <LogoField value={fields.logo ?? ''} onChange={(value) => set('logo', value)} />
      {choice}
    </Act>
  )
}

function DeleteApi({ name, versions, onClose }: { name: string; versions: number; onClose: () => void }) {
  const [, go] = useLocation()
  const client = useQueryClient()
  return (
    <Act
      title={`Delete ${name}?`}
      action="Delete"
      look="danger"
      refused={versions > 0 ? `It has ${countText(versions, 'version', 'versions')}. Delete these first, on their Revisions pages.` : null}
      onClose={onClose}
      run={async () => {
        await call('DELETE', apiPath(name))
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${name} is deleted`)
        go('/apis')
      }}
    >
      <p>{versions > 0 ? `It has ${countText(versions, 'version', 'versions')}, so it stays. A version is deleted on its Revisions page, when nothing of it is published.` : 'It has no versions. Nothing is served of it.'}</p>
    </Act>
  )
}
