// The catalogue: every plugin, what it does, what Kong and APISIX call it, and its form. And the plugins that are shared.
import { useRight } from '../api/rights'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useCatalogue, useDocuments, useSchema } from '../api/hooks'
import type { CataloguePlugin } from '../api/types'
import { stepName } from '../kinds'
import { Failure, Page } from '../shell/page'
import { ButtonLink } from '../ui/button'
import { Prose } from '../ui/prose'
import { countText } from '../ui/time'
import { DIALECTS } from './dialects'
import { PluginForm } from './plugin-form'

const texts = (it: CataloguePlugin): string => [it.name, it.summary, ...Object.values(it.names).flat()].join(' ').toLowerCase()

export default function Plugins() {
  const refused = useRight('configuration:write')
  const schema = useSchema()
  const catalogue = useCatalogue()
  const shared = useDocuments('plugins').data ?? []
  const [search, setSearch] = useState('')
  const [parameters] = useSearchParams()
  const opened = parameters.get('plugin')
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean)
  const shown = (catalogue.data ?? []).filter((it) => wanted.every((word) => texts(it).includes(word)))
  const error = catalogue.error ?? schema.error
  return (
    <Page
      title="Plugins"
      about="What a call can meet on its way. A plugin is added to a route; a shared one is configured once and used by several."
      calls={[
        { about: 'The catalogue', method: 'GET', path: '/api/v1/plugins', command: 'weir plugins' },
        { about: 'List shared plugins', method: 'GET', path: '/api/v1/resources/plugins' },
      ]}
      actions={
        <ButtonLink to="/plugins/@new" look="primary" refused={refused}>
          New shared plugin
        </ButtonLink>
      }
    >
      {catalogue.isLoading && <div className="skeleton tall" aria-busy="true" />}
      {error && <Failure error={error} onRetry={() => void Promise.all([catalogue.refetch(), schema.refetch()])} />}
      {shared.length > 0 && (
        <section className="card" aria-label="Shared plugins">
          <h2>Shared plugins</h2>
          <div className="row">
            {shared.map((it) => (
              <Link key={String(it['id'])} className="badge accent" href={`/plugins/${encodeURIComponent(String(it['id']))}`}>
                {String(it['id'])}: {stepName(it)}
              </Link>
            ))}
          </div>
        </section>
      )}
      <div className="tools">
        <input
          className="input search"
          type="search"
          data-filter
          aria-label="Search plugins"
          placeholder="Search by name or by what it does"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <span className="muted" role="status">
          {catalogue.data && countText(shown.length, 'plugin', 'plugins')}
        </span>
      </div>
      <ul className="grid">
        {shown.map((it) => (
          <li key={it.name} className="card">
            <div className="head2">
              <h3>
                <Link href={`/plugins?plugin=${encodeURIComponent(it.name)}`}>{it.name}</Link>
              </h3>
              <Link className="small" href={`/routes?q=${encodeURIComponent(`plugin:${it.name}`)}`}>
                Where used<span className="sr">: {it.name}</span>
              </Link>
            </div>
            <p className="muted small"><Prose text={it.summary} /></p>
            <p className="small muted">
              {Object.entries(it.names)
                .filter(([, names]) => names.length > 0)
                .map(([dialect, names]) => `${DIALECTS[dialect] ?? dialect}: ${names.join(', ')}.`)
                .join(' ')}
            </p>
          </li>
        ))}
      </ul>
      {opened !== null && schema.data?.$defs?.[opened] && <PluginForm key={opened} name={opened} schema={schema.data} />}
    </Page>
  )
}
