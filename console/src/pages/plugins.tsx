// The catalogue: every plugin, what it does, where it is used, and its form. And the plugins that are shared.
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useDocuments, useSchema } from '../api/hooks'
import type { Fields, Schema } from '../api/types'
import { fields, list, pluginsOf, stepName } from '../kinds'
import { Failure, Page } from '../shell/page'
import { ButtonLink } from '../ui/button'
import { countText } from '../ui/time'
import { PluginForm } from './plugin-form'

interface Use {
  text: string
  to: string
}

/** Where each plugin is used. */
function useUses(): Map<string, Use[]> {
  const [routes, services, consumers, shared] = [useDocuments('routes'), useDocuments('services'), useDocuments('consumers'), useDocuments('plugins')]
  return useMemo(() => {
    const uses = new Map<string, Use[]>()
    const add = (plugin: string, use: Use) => uses.set(plugin, [...(uses.get(plugin) ?? []), use])
    const walk = (documents: Fields[] | undefined, kind: string) => {
      for (const document of documents ?? []) {
        const name = String(document['name'] ?? document['id'] ?? '')
        const to = `/${kind}/${encodeURIComponent(name)}`
        for (const plugin of pluginsOf(document)) add(plugin, { text: name, to })
        for (const route of list(document['routes'])) for (const plugin of pluginsOf(fields(route))) add(plugin, { text: String(fields(route)['name'] ?? name), to })
      }
    }
    walk(routes.data, 'routes')
    walk(services.data, 'services')
    walk(consumers.data, 'consumers')
    for (const document of shared.data ?? []) {
      const name = String(document['id'] ?? '')
      add(stepName(document), { text: name, to: `/plugins/${encodeURIComponent(name)}` })
    }
    return uses
  }, [routes.data, services.data, consumers.data, shared.data])
}

function names(schema: Schema | undefined): string[] {
  return (schema?.$defs?.['PluginInstance']?.properties?.['name']?.enum ?? []).filter((it) => typeof it === 'string')
}

/** What a plugin is for: the first sentence of its schema, unless that only repeats its name. */
function about(schema: Schema | undefined, name: string): string {
  const fieldsOf = Object.keys(schema?.$defs?.[name]?.properties ?? {})
  const text = schema?.$defs?.[name]?.description ?? ''
  return text.startsWith('Configuration of') ? `Fields: ${fieldsOf.slice(0, 5).join(', ')}${fieldsOf.length > 5 ? ', …' : ''}` : (text.split('\n')[0] ?? '')
}

export default function Plugins() {
  const schema = useSchema()
  const uses = useUses()
  const [search, setSearch] = useState('')
  const [parameters] = useSearchParams()
  const opened = parameters.get('plugin')
  const all = names(schema.data)
  const shown = all.filter((name) => name.includes(search.toLowerCase().trim()))
  const shared = useDocuments('plugins')
  return (
    <Page
      title="Plugins"
      about="What a call can meet on its way. A plugin is added to a route; a shared one is configured once and used by several."
      calls={[
        { about: 'The schema of every plugin', method: 'GET', path: '/api/v1/schema', command: 'weir plugins' },
        { about: 'List shared plugins', method: 'GET', path: '/api/v1/resources/plugins' },
      ]}
      actions={
        <ButtonLink to="/plugins/new" look="primary">
          New shared plugin
        </ButtonLink>
      }
    >
      {schema.error && <Failure error={schema.error} onRetry={() => void schema.refetch()} />}
      {(shared.data ?? []).length > 0 && (
        <section className="card" aria-label="Shared plugins">
          <h2>Shared plugins</h2>
          <div className="row">
            {(shared.data ?? []).map((it) => (
              <Link key={String(it['id'])} className="badge accent" href={`/plugins/${encodeURIComponent(String(it['id']))}`}>
                {String(it['id'])}: {stepName(it)}
              </Link>
            ))}
          </div>
        </section>
      )}
      <div className="tools">
        <input className="input search" type="search" data-filter aria-label="Search plugins" placeholder="Search plugins" value={search} onChange={(event) => setSearch(event.target.value)} />
        <span className="muted" role="status">
          {schema.data && countText(shown.length, 'plugin', 'plugins')}
        </span>
      </div>
      <ul className="grid">
        {shown.map((name) => {
          const used = uses.get(name) ?? []
          return (
            <li key={name} className="card">
              <div className="head2">
                <h3>
                  <Link href={`/plugins?plugin=${encodeURIComponent(name)}`}>{name}</Link>
                </h3>
                <span className={used.length > 0 ? 'badge good' : 'badge'}>{used.length > 0 ? `used ${used.length}×` : 'not used'}</span>
              </div>
              <p className="muted small">{about(schema.data, name)}</p>
              {used.length > 0 && (
                <p className="small clip">
                  {used.slice(0, 3).map((use, index) => (
                    <span key={`${use.to}${index}`}>
                      {index > 0 && ', '}
                      <Link href={use.to}>{use.text}</Link>
                    </span>
                  ))}
                </p>
              )}
            </li>
          )
        })}
      </ul>
      {opened !== null && schema.data && all.includes(opened) && <PluginForm key={opened} name={opened} schema={schema.data} />}
    </Page>
  )
}
