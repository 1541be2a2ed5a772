// The revisions of a version: snapshots that never change. Any two are compared; 0 is the draft.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { type OperationChange, toPublication, toPublish, usePublications, useRevisions, useVersion, versionPath } from '../../api/apis'
import { get } from '../../api/client'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Button, ButtonLink } from '../../ui/button'
import { SelectField } from '../../ui/field'
import { Time } from '../../ui/time'
import { DeleteVersion } from './delete-version'
import { Hash, OperationChanges, Waiting } from './shared'
import { VersionTabs, crumbsOf } from './version-tabs'

export default function Revisions() {
  const [, api = '', name = ''] = useSegments()
  const [version, revisions, publications] = [useVersion(api, name), useRevisions(api, name), usePublications()]
  const publishing = useRight('apis:publish')
  const writing = useRight('apis:write')
  const [isDoomed, setDoomed] = useState(false)
  if (version.data === undefined || revisions.data === undefined) return <Waiting title={`Revisions of ${api} ${name}`} crumbs={crumbsOf(api)} queries={[version, revisions]} />
  const all = [...revisions.data].reverse()
  const served = (number: number) => (publications.data ?? []).filter((it) => it.api === api && it.version === name && it.revision === number)
  return (
    <Page
      title={`${api} ${name}`}
      about="A revision is a snapshot of the draft, made when it is published. It never changes, so the same number is the same everywhere."
      crumbs={crumbsOf(api)}
      calls={[
        { about: 'List revisions', method: 'GET', path: `${versionPath(api, name)}/revisions` },
        { about: 'Compare one with the draft', method: 'GET', path: `${versionPath(api, name)}/diff?from=1&to=0` },
      ]}
      actions={
        <Button look="quiet" icon="trash" refused={writing} onPress={() => setDoomed(true)}>
          Delete version
        </Button>
      }
    >
      <VersionTabs api={api} version={name} at="revisions" />
      {all.length === 0 ? (
        <div className="table">
          <Empty title="No revisions yet" actions={<ButtonLink to={toPublish(api, name)} look="primary" refused={publishing}>Publish</ButtonLink>}>
            <p>The first publish makes the first revision.</p>
          </Empty>
        </div>
      ) : (
        <>
          <section className="card flush" aria-label="Revisions">
            <div className="wide">
              <table className="plain stacked">
                <thead>
                  <tr>
                    <th scope="col">Revision</th>
                    <th scope="col">Content</th>
                    <th scope="col">Served in</th>
                    <th scope="col">By</th>
                    <th scope="col">When</th>
                    <th scope="col">Note</th>
                    <th scope="col">
                      <span className="sr">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {all.map((it) => (
                    <tr key={it.number}>
                      <th scope="row">r{it.number}</th>
                      <td>
                        <Hash value={it.hash} />
                      </td>
                      <td>
                        {served(it.number).map((one) => (
                          <Link key={one.environment} href={toPublication(api, name, one.environment)} className="badge good">
                            {one.environment}
                          </Link>
                        ))}
                      </td>
                      <td>{it.author}</td>
                      <td>
                        <Time at={it.created} />
                      </td>
                      <td>{it.note}</td>
                      <td>
                        <ButtonLink small to={toPublish(api, name, { revision: String(it.number) })} refused={publishing}>
                          Publish<span className="sr"> r{it.number}</span>
                        </ButtonLink>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </section>
          <Compare api={api} version={name} numbers={all.map((it) => it.number)} />
        </>
      )}
      {isDoomed && <DeleteVersion api={api} version={name} environments={(publications.data ?? []).filter((it) => it.api === api && it.version === name).map((it) => it.environment)} onClose={() => setDoomed(false)} />}
    </Page>
  )
}

function Compare({ api, version, numbers }: { api: string; version: string; numbers: number[] }) {
  const [parameters, setParameters] = useSearchParams()
  const from = parameters.get('from') ?? String(numbers[0] ?? 1)
  const to = parameters.get('to') ?? '0'
  const options = [['0', 'the draft'] as const, ...numbers.map((it) => [String(it), `r${it}`] as const)]
  const diff = useQuery({
    queryKey: ['configuration', 'compare', api, version, from, to],
    queryFn: ({ signal }) => get<{ breaking: boolean; operations: OperationChange[] }>(`${versionPath(api, version)}/diff`, { from, to }, signal),
  })
  const set = (name: string, value: string) => setParameters((old) => (old.set(name, value), new URLSearchParams(old)), { replace: true })
  return (
    <section className="card" aria-label="Compare">
      <div className="head2">
        <h2>Compare</h2>
        {diff.data && <span className={`badge ${diff.data.breaking ? 'bad' : 'good'}`}>{diff.data.breaking ? 'breaks callers' : 'breaks no caller'}</span>}
      </div>
      <div className="grid">
        <SelectField label="From" value={from} onChange={(value) => set('from', value)} options={options.filter(([it]) => it !== '0')} />
        <SelectField label="To" value={to} onChange={(value) => set('to', value)} options={options} />
      </div>
      {diff.error && <Failure error={diff.error} />}
      {diff.data && <OperationChanges operations={diff.data.operations} />}
    </section>
  )
}
