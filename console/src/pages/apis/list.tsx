// All APIs: each version, and what of it is published in which environment.
import { useMemo } from 'react'
import { Link } from 'wouter'
import { type ApiEntity, type Environment, type Publication, type VersionBrief, toApi, toPublication, toPublish, toVersion, useAllVersions, useApis, useEnvironments, usePublications } from '../../api/apis'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { ButtonLink } from '../../ui/button'
import { type Column, Table } from '../../ui/table'
import { Cell } from './matrix'
import { State } from './shared'

interface Row {
  api: ApiEntity
  /** `null`: the API has none yet. */
  version: VersionBrief | null
  published: Map<string, Publication>
}

const key = (row: Row) => `${row.api.name}/${row.version?.version ?? ''}`
const CALLS = [
  { about: 'List APIs', method: 'GET', path: '/api/v1/apis' },
  { about: 'List the versions of all APIs', method: 'GET', path: '/api/v1/versions' },
  { about: 'List publications', method: 'GET', path: '/api/v1/publications' },
]

export default function Apis() {
  const [apis, versions, publications, environments] = [useApis(), useAllVersions(), usePublications(), useEnvironments()]
  const refused = useRight('apis:write')
  const all = [apis, versions, publications, environments]
  const failed = all.find((it) => it.error !== null && it.data === undefined)
  const rows = useMemo(() => rowsOf(apis.data ?? [], versions.data ?? [], publications.data ?? []), [apis.data, versions.data, publications.data])
  const columns = useMemo(() => columnsOf(environments.data ?? []), [environments.data])
  return (
    <Page
      title="APIs"
      about="Each version of each API, and which revision of it every environment serves."
      calls={CALLS}
      actions={
        <>
          <ButtonLink to="/apis/@new/adopt" refused={refused}>
            Adopt routes
          </ButtonLink>
          <ButtonLink to="/apis/@new" look="primary" refused={refused}>
            New API
          </ButtonLink>
        </>
      }
    >
      {failed ? (
        <Failure error={failed.error} onRetry={() => all.forEach((it) => void it.refetch())} />
      ) : (
        <Table
          label="APIs"
          rows={rows}
          columns={columns}
          rowKey={key}
          isLoading={all.some((it) => it.isLoading)}
          noun={['version', 'versions']}
          empty={
            <Empty
              title="No APIs yet"
              example={`curl -X PUT ${location.origin}/api/v1/apis/pets -d '{}'\ncurl -X POST ${location.origin}/api/v1/apis/pets/versions --data-binary @petstore.yaml`}
              actions={<ButtonLink to="/environments">Environments</ButtonLink>}
            >
              <p>
                An API is a contract: an OpenAPI document with versions. You publish a version to an environment, offer plans, and applications subscribe to
                them. Begin with a document, with routes that serve already, or on the command line:
              </p>
            </Empty>
          }
        />
      )}
    </Page>
  )
}

function rowsOf(apis: ApiEntity[], versions: VersionBrief[], publications: Publication[]): Row[] {
  return apis.flatMap((api): Row[] => {
    const own = versions.filter((it) => it.api === api.name).sort((a, b) => b.version.localeCompare(a.version, undefined, { numeric: true }))
    if (own.length === 0) return [{ api, version: null, published: new Map() }]
    return own.map((version) => {
      const here = publications.filter((it) => it.api === api.name && it.version === version.version)
      return { api, version, published: new Map(here.map((it) => [it.environment, it])) }
    })
  })
}

function columnsOf(environments: Environment[]): Column<Row>[] {
  return [
    {
      id: 'name',
      title: 'API',
      text: (it) => it.api.name,
      render: (it) => <Link href={toApi(it.api.name)}>{it.api.display_name || it.api.name}</Link>,
      width: 'minmax(8rem, 1.4fr)',
    },
    {
      id: 'version',
      title: 'Version',
      text: (it) => it.version?.version ?? '',
      render: (it) => (it.version ? <Link href={toVersion(it.api.name, it.version.version)}>{it.version.version}</Link> : <span className="muted">none yet</span>),
      width: 'minmax(4.5rem, 0.6fr)',
    },
    {
      id: 'state',
      title: 'State',
      text: (it) => it.version?.line ?? '',
      render: (it) => it.version && <State state={it.version.line} />,
      width: '6.5rem',
      from: 2,
    },
    ...environments.map(
      (environment): Column<Row> => ({
        id: environment.name,
        title: environment.display_name || environment.name,
        text: (it) => (it.published.has(environment.name) ? `r${it.published.get(environment.name)?.revision}` : ''),
        render: (it) => <InEnvironment row={it} environment={environment.name} />,
        width: 'minmax(7rem, 1fr)',
        from: 2,
      }),
    ),
    { id: 'owner', title: 'Owner', text: (it) => it.api.owner ?? '', from: 3, width: 'minmax(5rem, 0.7fr)' },
  ]
}

function InEnvironment({ row, environment }: { row: Row; environment: string }) {
  if (row.version === null) return null
  const { api, version } = row.version
  const publication = row.published.get(environment)
  if (publication) return <Cell to={toPublication(api, version, environment)} publication={publication} draft={row.version.draft.hash} />
  return row.version.line === 'retired' ? null : (
    <Link href={toPublish(api, version, { to: environment })} className="muted small" aria-label={`Publish ${api} ${version} to ${environment}`}>
      publish
    </Link>
  )
}
