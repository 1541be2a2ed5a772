// Adoption: routes that exist, of any dialect, become a version of an API. What would be made is shown first; nothing that
// serves is changed by it.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { type Operation, type Runtime, apiPath, toPublish, toVersion, useApis } from '../../api/apis'
import { ApiError, call } from '../../api/client'
import { readView } from '../../api/hooks'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { Button, ButtonLink } from '../../ui/button'
import { ChoiceField, SelectField, TextField } from '../../ui/field'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { DIALECTS } from '../dialects'
import { Method, Pairs } from './shared'

const CRUMBS = [{ to: '/apis', text: 'APIs' }]
const PAUSE_MS = 400
const NEW = ''

interface Adopted {
  version: string
  operations: Operation[]
  runtime: Runtime
  routes: string[]
  notes: string[]
}

interface Wanted {
  api: string
  dialect: string
  service: string
  version: string
}

const adopt = (it: Wanted, isDry: boolean, signal?: AbortSignal) =>
  call<Adopted>('POST', `${apiPath(it.api)}/adopt`, { body: { dialect: it.dialect, service: it.service, version: it.version }, headers: isDry ? { 'weir-dry-run': 'true' } : {}, ...(signal ? { signal } : {}) })

const nameOf = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '')

export default function Adopt() {
  const [parameters] = useSearchParams()
  const services = useQuery({
    queryKey: ['configuration', 'adoptable'],
    queryFn: async () => (await readView('routes', '', '')).filter((it) => it.service && !it.is_stream),
  })
  const apis = useApis()
  // A service has as many rows as it has routes.
  const known = useMemo(() => [...new Map((services.data ?? []).map((it) => [`${it.dialect}/${it.service}`, { dialect: it.dialect, service: it.service ?? '' }])).values()], [services.data])
  const [chosen, setChosen] = useState(parameters.get('service') ?? '')
  const [into, setInto] = useState(parameters.get('api') ?? NEW)
  const [typed, setTyped] = useState('')
  const [version, setVersion] = useState('1.0.0')
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [, go] = useLocation()
  const client = useQueryClient()
  const right = useRight('apis:write')
  const source = known.find((it) => `${it.dialect}/${it.service}` === chosen) ?? known[0]
  const name = into !== NEW ? into : typed || nameOf(source?.service ?? '')
  const isTaken = into === NEW && (apis.data ?? []).some((it) => it.name === name)
  const wanted = useMemo((): Wanted | null => (source && name !== '' && version.trim() !== '' ? { api: name, dialect: source.dialect, service: source.service, version: version.trim() } : null), [source, name, version])
  const trial = useTrial(wanted, into !== NEW)
  const refused = right ?? (source === undefined ? 'There are no routes to adopt.' : name === '' ? 'It needs a name.' : isTaken ? 'An API of this name exists: choose it above, or another name.' : version.trim() === '' ? 'It needs a version.' : null)

  const create = async () => {
    if (wanted === null) return
    setBusy(true)
    setError(null)
    try {
      if (into === NEW) await call('PUT', apiPath(name), { body: {} })
      const { data } = await adopt(wanted, false)
      await client.invalidateQueries({ queryKey: ['configuration'] })
      toast(`${name} ${data.version} is made of ${countText(data.routes.length, 'route', 'routes')}`, { link: { to: toVersion(name, data.version), text: 'Design' } })
      go(toPublish(name, data.version), { state: { adopted: data.runtime, notes: data.notes } })
    } catch (wrong) {
      // The API is there, if the adoption failed after it: the next try is into it.
      if (into === NEW && wrong instanceof ApiError && !wrong.path.endsWith(`/${name}`)) setInto(name)
      await client.invalidateQueries({ queryKey: ['configuration'] })
      setError(wrong)
    }
    setBusy(false)
  }

  return (
    <Page
      title="Adopt existing routes"
      about="Routes that serve now become a version of an API: with plans, subscriptions and environments. Nothing that serves is changed until a publication takes them over."
      crumbs={CRUMBS}
      calls={[
        { about: 'What would be made', method: 'POST', path: `${apiPath(name || 'NAME')}/adopt`, body: wanted ? { dialect: wanted.dialect, service: wanted.service, version: wanted.version } : {}, headers: { 'Weir-Dry-Run': 'true' } },
        { about: 'Make it', method: 'POST', path: `${apiPath(name || 'NAME')}/adopt`, body: wanted ? { dialect: wanted.dialect, service: wanted.service, version: wanted.version } : {} },
      ]}
      actions={
        <Button look="primary" refused={refused} isBusy={isBusy} onPress={() => void create()}>
          Adopt and go on
        </Button>
      }
    >
      {error !== null && <Failure error={error} />}
      {services.error && services.data === undefined ? (
        <Failure error={services.error} onRetry={() => void services.refetch()} />
      ) : services.isLoading ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : known.length === 0 ? (
        <div className="table">
          <Empty
            title="There are no routes to adopt"
            example={`weir run -c kong.yml --data data`}
            actions={
              <>
                <ButtonLink to="/apis/@new" look="primary">
                  Begin with a document
                </ButtonLink>
                <ButtonLink to="/import">Import routes</ButtonLink>
              </>
            }
          >
            <p>Once Weir serves routes, of Kong, of APISIX or its own, they can become an API here. Serve a file, import one, or begin with an OpenAPI document.</p>
          </Empty>
        </div>
      ) : (
        <div className="two-columns">
          <section className="card" aria-label="What is adopted">
            <SelectField label="Service" value={source ? `${source.dialect}/${source.service}` : ''} onChange={setChosen} options={known.map((it) => [`${it.dialect}/${it.service}`, `${it.service} (${DIALECTS[it.dialect] ?? it.dialect})`] as const)} about="All routes that lead to it are adopted." />
            <ChoiceField
              label="Into"
              value={into === NEW ? 'new' : 'known'}
              onChange={(value) => setInto(value === 'new' ? NEW : (apis.data?.[0]?.name ?? NEW))}
              options={[
                { value: 'new', text: 'A new API' },
                { value: 'known', text: 'An API that exists', about: 'As one more version of it.', refused: (apis.data ?? []).length === 0 ? 'There is none yet.' : null },
              ]}
            />
            <div className="grid">
              {into === NEW ? (
                <TextField label="Name" value={typed} placeholder={nameOf(source?.service ?? '')} onChange={setTyped} wrong={isTaken ? 'An API of this name exists.' : null} />
              ) : (
                <SelectField label="API" value={into} onChange={setInto} options={(apis.data ?? []).map((it) => [it.name, it.display_name || it.name] as const)} />
              )}
              <TextField label="Version" value={version} onChange={setVersion} isRequired />
            </div>
          </section>
          <section className="card" aria-label="What is made of it" aria-busy={trial.isLoading}>
            <h2>What is made of it</h2>
            {into === NEW ? <p className="muted">The operations, the addresses, and what differs from the routes are shown once the API is there. Nothing is served of it before you publish.</p> : trial.error ? <Failure error={trial.error} /> : trial.data && <Shown adopted={trial.data} />}
          </section>
        </div>
      )}
    </Page>
  )
}

/** What would be made, asked a moment after the last change. A dry run needs an API that exists. */
function useTrial(wanted: Wanted | null, isWanted: boolean) {
  const [asked, setAsked] = useState<Wanted | null>(null)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(isWanted ? wanted : null), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [wanted, isWanted])
  return useQuery({
    queryKey: ['configuration', 'adoption', asked],
    queryFn: async ({ signal }) => (await adopt(asked as Wanted, true, signal)).data,
    enabled: asked !== null,
    retry: false,
  })
}

function Shown({ adopted }: { adopted: Adopted }) {
  return (
    <>
      <Pairs
        pairs={[
          ['Routes', adopted.routes.join(', ')],
          ['Base path', <code key="base">{adopted.runtime.base_path || '/'}</code>],
          ['Backends', Object.entries(adopted.runtime.backends).map(([name, it]) => `${name}: ${it.url ?? countText((it.targets ?? []).length, 'target', 'targets')}`).join(', ')],
        ]}
      />
      <ul className="rows" aria-label="Operations">
        {adopted.operations.map((it) => (
          <li key={it.id} className="row">
            <Method name={it.method} />
            <code>{it.path}</code>
          </li>
        ))}
      </ul>
      {adopted.notes.length > 0 && (
        <div className="note warn">
          <strong>What it does not do as the routes do</strong>
          <ul>
            {adopted.notes.map((it) => (
              <li key={it}>{it}</li>
            ))}
          </ul>
        </div>
      )}
    </>
  )
}
