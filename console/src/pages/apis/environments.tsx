// Environments: where publications go, in the order of promotion. Two of them are compared hash by hash.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { type Environment, type Publication, asFields, compact, toPublication, toPublish, useEnvironments, usePublications } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { readVersion } from '../../form/send'
import { useVersioned } from '../../form/versioned'
import { Empty, Failure, Page } from '../../shell/page'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { AreaField, CheckField, NumberField, SelectField, TextField, lines } from '../../ui/field'
import { Prose } from '../../ui/prose'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { Hash, Pairs } from './shared'

const pathOf = (name: string) => `/api/v1/environments/${encodeURIComponent(name)}`
const FRESH: Environment = { name: '', kind: 'non-production', order: 0 }

export default function Environments() {
  const [environments, publications] = [useEnvironments(), usePublications()]
  const [edited, setEdited] = useState<Environment | null>(null)
  const [doomed, setDoomed] = useState<Environment | null>(null)
  const refused = useRight('environments:write')
  const all = environments.data ?? []
  const add = (
    <Button look="primary" refused={refused} onPress={() => setEdited({ ...FRESH, order: (all.at(-1)?.order ?? 0) + 10 })}>
      New environment
    </Button>
  )
  return (
    <Page
      title="Environments"
      about={<Prose text="A version is published to an environment. The gateways that are started with `--environment NAME` serve it. Promotion goes from left to right." />}
      calls={[
        { about: 'List environments', method: 'GET', path: '/api/v1/environments' },
        { about: 'Make one', method: 'PUT', path: pathOf('test'), body: { order: 10 } },
      ]}
      actions={add}
    >
      {environments.error && environments.data === undefined ? (
        <Failure error={environments.error} onRetry={() => void environments.refetch()} />
      ) : all.length === 0 && !environments.isLoading ? (
        <div className="table">
          <Empty title="No environments yet" example={`curl -X PUT ${location.origin}/api/v1/environments/test -d '{}'\nweir run --data data --environment test`}>
            <p>Most teams have two: one to try things, and a protected one that customers call. Make them here, or on the command line:</p>
          </Empty>
        </div>
      ) : (
        <ol className="grid path">
          {all.map((it) => {
            const here = (publications.data ?? []).filter((one) => one.environment === it.name)
            return (
              <li key={it.name} className="card" aria-label={it.name}>
                <div className="head2">
                  <h2>{it.display_name || it.name}</h2>
                  <span className="row">
                    {it.kind === 'production' && <span className="badge accent">production</span>}
                    {it.protected && <span className="badge warn">protected</span>}
                  </span>
                </div>
                {it.description && <p className="muted">{it.description}</p>}
                <Pairs
                  pairs={[
                    ['Name', <code key="name">{it.name}</code>],
                    ['Callers use', (it.base_urls ?? []).join(', ')],
                    ['Published', countText(here.length, 'version', 'versions')],
                    ['Plugins before all', it.chain && it.chain.length > 0 ? countText(it.chain.length, 'plugin', 'plugins') : ''],
                    ['Variables', Object.keys(it.variables ?? {}).join(', ')],
                    ['Lint blocks at', it.lint_blocks ?? ''],
                  ]}
                />
                <div className="row">
                  <Button small refused={refused} onPress={() => setEdited(it)}>
                    Edit<span className="sr"> {it.name}</span>
                  </Button>
                  <Button small look="quiet" refused={refused} onPress={() => setDoomed(it)}>
                    Delete<span className="sr"> {it.name}</span>
                  </Button>
                </div>
              </li>
            )
          })}
        </ol>
      )}
      {all.length > 1 && <Compare environments={all} publications={publications.data ?? []} />}
      {edited && <EditEnvironment environment={edited} known={all} onClose={() => setEdited(null)} />}
      {doomed && <DeleteEnvironment environment={doomed} published={(publications.data ?? []).filter((it) => it.environment === doomed.name).length} onClose={() => setDoomed(null)} />}
    </Page>
  )
}

function Compare({ environments, publications }: { environments: Environment[]; publications: Publication[] }) {
  const [left, setLeft] = useState(environments[0]?.name ?? '')
  const [right, setRight] = useState(environments[1]?.name ?? '')
  const options = environments.map((it) => [it.name, it.display_name || it.name] as const)
  const names = [...new Set(publications.filter((it) => it.environment === left || it.environment === right).map((it) => `${it.api}/${it.version}`))].sort()
  const find = (name: string, environment: string) => publications.find((it) => `${it.api}/${it.version}` === name && it.environment === environment)
  return (
    <section className="card" aria-label="Compare">
      <h2>Compare two environments</h2>
      <div className="grid">
        <SelectField label="One" value={left} onChange={setLeft} options={options} />
        <SelectField label="The other" value={right} onChange={setRight} options={options} />
      </div>
      {names.length === 0 ? (
        <p className="muted">Nothing is published in either.</p>
      ) : (
        <div className="wide">
          <table className="plain stacked">
            <thead>
              <tr>
                <th scope="col">Version</th>
                <th scope="col">{left}</th>
                <th scope="col">{right}</th>
                <th scope="col">Content</th>
              </tr>
            </thead>
            <tbody>
              {names.map((name) => {
                const [one, other] = [find(name, left), find(name, right)]
                const [api = '', version = ''] = name.split('/')
                return (
                  <tr key={name}>
                    <th scope="row" className="whole">
                      {api} {version}
                    </th>
                    {[one, other].map((it, index) => (
                      <td key={index} data-head={index === 0 ? left : right}>
                        {it ? (
                          <Link href={toPublication(api, version, it.environment)}>
                            r{it.revision} <Hash value={it.hash} />
                          </Link>
                        ) : (
                          <span className="muted">not published</span>
                        )}
                      </td>
                    ))}
                    <td>
                      {one && other && one.hash === other.hash ? (
                        <span className="badge good">the same</span>
                      ) : one && left !== right ? (
                        <Link href={toPublish(api, version, { to: right, from: left })}>
                          Promote to {right}
                          <span className="sr">
                            {' '}
                            {api} {version}
                          </span>
                        </Link>
                      ) : (
                        <span className="badge warn">differs</span>
                      )}
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

const variablesText = (variables: Record<string, string> | undefined): string =>
  Object.entries(variables ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')

function variablesIn(text: string): Record<string, string> {
  return Object.fromEntries(
    lines(text).map((line) => {
      const at = line.indexOf('=')
      return at === -1 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    }),
  )
}

const bodyOf = (it: Environment) => ({ ...compact(it), variables: it.variables ?? {} })

function EditEnvironment({ environment, known, onClose }: { environment: Environment; known: Environment[]; onClose: () => void }) {
  const isNew = environment.name === ''
  const [fields, setFields] = useState(environment)
  const [variables, setVariables] = useState(variablesText(environment.variables))
  const client = useQueryClient()
  const { put, choice } = useVersioned({
    opened: isNew ? null : bodyOf(environment),
    read: () => readVersion<Environment>(pathOf(environment.name), (it) => asFields(bodyOf(it))),
    onChosen: (value) => {
      const chosen = value as unknown as Environment
      setFields(chosen)
      setVariables(variablesText(chosen.variables))
    },
  })
  const set = <K extends keyof Environment>(name: K, value: Environment[K]) => setFields({ ...fields, [name]: value })
  return (
    <Act
      title={isNew ? 'New environment' : `Edit ${environment.name}`}
      action={isNew ? 'Create' : 'Save'}
      refused={fields.name === '' ? 'It needs a name.' : isNew && known.some((it) => it.name === fields.name) ? 'An environment of this name exists.' : null}
      onClose={onClose}
      run={async () => {
        const body = { ...compact(fields), variables: variablesIn(variables) }
        await (isNew ? call('POST', '/api/v1/environments', { body }) : put(pathOf(fields.name), body))
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${fields.name} is saved`)
        onClose()
      }}
    >
      {isNew && <TextField label="Name" value={fields.name} onChange={(value) => set('name', value)} placeholder="test" isRequired autoFocus about={<Prose text="Gateways name it: `weir run --environment NAME`." />} />}
      <TextField label="Name for people" value={fields.display_name ?? ''} onChange={(value) => set('display_name', value)} />
      <div className="grid">
        <SelectField
          label="Kind"
          value={fields.kind}
          onChange={(value) => set('kind', value)}
          options={[
            ['non-production', 'for trying things'],
            ['production', 'customers call it'],
          ]}
        />
        <NumberField label="Place in the promotion path" value={fields.order} onChange={(value) => set('order', Math.trunc(value ?? 0))} about="Lowest first." />
      </div>
      <CheckField label="Protected" value={fields.protected === true} onChange={(value) => set('protected', value)} about="Publishing to it needs the approval of another person." />
      <AreaField label="Addresses that callers use" rows={2} value={(fields.base_urls ?? []).join('\n')} onChange={(value) => set('base_urls', value.split('\n'))} placeholder="https://api.example.com" about="One on each line." isMono />
      <AreaField label="Variables" rows={3} value={variables} onChange={setVariables} placeholder="BACKEND_HOST=10.0.0.7" about="NAME=value, one on each line. In addresses of backends, ${NAME} stands for the value." isMono />
      <SelectField
        label="What a linter finds blocks a publish"
        value={fields.lint_blocks ?? ''}
        onChange={(value) => set('lint_blocks', value === '' ? null : (value as 'error'))}
        options={[
          ['', 'never'],
          ['error', 'if it is an error'],
          ['warn', 'if it is a warning or worse'],
          ['info', 'if it is information or worse'],
        ]}
      />
      {choice}
    </Act>
  )
}

function DeleteEnvironment({ environment, published, onClose }: { environment: Environment; published: number; onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const client = useQueryClient()
  const refused = published > 0 ? `${countText(published, 'version is', 'versions are')} published here. Remove the publications first.` : typed === environment.name ? null : 'Type its name first.'
  return (
    <Act
      title={`Delete ${environment.name}?`}
      action="Delete"
      look="danger"
      refused={refused}
      onClose={onClose}
      run={async () => {
        await call('DELETE', pathOf(environment.name))
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${environment.name} is deleted`)
        onClose()
      }}
    >
      {published > 0 ? <p>{refused}</p> : <TextField label={`Type ${environment.name} to confirm`} value={typed} onChange={setTyped} autoFocus />}
    </Act>
  )
}
