// The tests of a version: calls with what has to come of them. They run here on demand, and at every publish.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useEnvironments, usePublications, useRevisions, useTests, useVersion, versionPath } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import type { components } from '../../../generated/api'
import { type CallTest, inWords } from '../../explain/keep'
import { Empty, Failure, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { SelectField } from '../../ui/field'
import { toast } from '../../ui/toast'
import { Method, Waiting } from './shared'
import { TestForm } from './test-form'
import { VersionTabs, crumbsOf } from './version-tabs'

type Report = components['schemas']['TestReport']

export default function Tests() {
  const [, api = '', name = ''] = useSegments()
  const [version, tests, environments, revisions, publications] = [useVersion(api, name), useTests(api, name), useEnvironments(), useRevisions(api, name), usePublications()]
  const writing = useRight('apis:write')
  const [above, setAbove] = useState<{ kind: 'edit' | 'remove'; test: CallTest | null } | null>(null)
  const [environment, setEnvironment] = useState('')
  const [content, setContent] = useState('')
  const [report, setReport] = useState<Report | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  if (version.data === undefined || tests.data === undefined || environments.data === undefined || revisions.data === undefined) {
    return <Waiting title={`Tests of ${api} ${name}`} crumbs={crumbsOf(api)} queries={[version, tests, environments, revisions]} />
  }
  const places = environments.data
  const isServed = (it: string) => publications.data?.some((one) => one.api === api && one.version === name && one.environment === it) ?? false
  const to = environment !== '' ? environment : ((places.find((it) => isServed(it.name)) ?? places[0])?.name ?? '')
  const options: [string, string][] = [['', 'the draft'], ...(isServed(to) ? [['published', `what is published in ${to}`] as [string, string]] : []), ...[...revisions.data].reverse().map((it): [string, string] => [String(it.number), `r${it.number}`])]
  const chosen = options.some(([it]) => it === content) ? content : ''
  const body = { environment: to, ...(chosen === 'published' ? { published: true } : chosen === '' ? {} : { revision: Number(chosen) }) }
  const path = `${versionPath(api, name)}/tests`
  const run = async () => {
    setBusy(true)
    setError(null)
    try {
      setReport((await call<Report>('POST', `${path}/run`, { body })).data)
    } catch (wrong) {
      setReport(null)
      setError(wrong)
    }
    setBusy(false)
  }
  const add = (
    <Button refused={writing} onPress={() => setAbove({ kind: 'edit', test: null })}>
      New test
    </Button>
  )
  return (
    <Page
      title={`${api} ${name}`}
      about="A test is a call, and what has to come of it. Every publish and promotion runs all of them, and is refused if one fails. No backend is called."
      crumbs={crumbsOf(api)}
      calls={[
        { about: 'List tests', method: 'GET', path },
        { about: 'Run them', method: 'POST', path: `${path}/run`, body, command: `weir api test ${api} ${name} ${to || 'ENVIRONMENT'}${chosen === 'published' ? ' --published' : chosen === '' ? '' : ` --revision ${chosen}`}` },
      ]}
      actions={add}
    >
      <VersionTabs api={api} version={name} at="tests" />
      {tests.data.length === 0 ? (
        <div className="table">
          <Empty
            title="No tests yet"
            example={`weir api test ${api} ${name} test --output junit`}
            actions={
              <ButtonLink to="/explain" look="primary">
                Explain a call and keep it
              </ButtonLink>
            }
          >
            <p>Explain a call as it should be answered, and keep it. From then on a change that would answer it in another way does not get published unnoticed.</p>
          </Empty>
        </div>
      ) : (
        <>
          <section className="card" aria-label="Run">
            <div className="grid">
              <SelectField label="Environment" value={to} onChange={setEnvironment} options={places.map((it) => [it.name, it.display_name || it.name] as const)} />
              <SelectField label="Content" value={chosen} onChange={setContent} options={options} />
            </div>
            <div className="row">
              <Button look="primary" isBusy={isBusy} refused={to === '' ? 'There is no environment yet.' : null} onPress={() => void run()}>
                Run all tests
              </Button>
              {report && (
                <span role="status" aria-label="What came of the run">
                  <span className={`badge ${report.failed === 0 ? 'good' : 'bad'}`}>{report.failed === 0 ? 'all passed' : `${report.failed} failed`}</span> <span className="muted">{report.passed} passed in {report.publication.split('/')[2]}</span>
                </span>
              )}
            </div>
            {error !== null && <Failure error={error} />}
          </section>
          <section className="card flush" aria-label="Tests">
            <div className="wide">
              <table className="plain" aria-label="Tests">
                <thead>
                  <tr>
                    <th scope="col">Test</th>
                    <th scope="col">Call</th>
                    <th scope="col">Has to come of it</th>
                    <th scope="col">Result</th>
                    <th scope="col">
                      <span className="sr">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {tests.data.map((it) => (
                    <Row key={it.name} test={it} result={report?.results.find((one) => one.name === it.name)} refused={writing} onEdit={() => setAbove({ kind: 'edit', test: it })} onRemove={() => setAbove({ kind: 'remove', test: it })} />
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        </>
      )}
      {above?.kind === 'edit' && <TestForm api={api} version={name} test={above.test} operations={version.data.operations} environments={places.map((it) => it.name)} onClose={() => setAbove(null)} />}
      {above?.kind === 'remove' && above.test && <Remove path={`${path}/${encodeURIComponent(above.test.name ?? '')}`} name={above.test.name ?? ''} onClose={() => setAbove(null)} />}
    </Page>
  )
}

interface RowProps {
  test: CallTest
  result: Report['results'][number] | undefined
  refused: string | null
  onEdit: () => void
  onRemove: () => void
}

function Row({ test, result, refused, onEdit, onRemove }: RowProps) {
  const request = test.request
  const who = request?.application ? `application ${request.application}` : request?.consumer ? `consumer ${request.consumer}` : ''
  return (
    <tr>
      <th scope="row">
        {test.name}
        {test.description && <div className="muted small">{test.description}</div>}
        {test.environments && test.environments.length > 0 && <div className="muted small">in {test.environments.join(', ')}</div>}
      </th>
      <td>
        <Method name={request?.method || 'GET'} /> <code>{request?.path}</code>
        {who !== '' && <div className="muted small">{who}</div>}
      </td>
      <td>{inWords(test.expected ?? {}).join(', ')}</td>
      <td>
        {result === undefined ? (
          <span className="muted">not run</span>
        ) : result.passed ? (
          <span className="badge good">passed</span>
        ) : (
          <>
            <span className="badge bad">failed</span>
            <ul className="stack tight">
              {result.differences.map((it) => (
                <li key={it.field}>
                  {it.field}: expected {it.expected}, found {it.found}
                </li>
              ))}
            </ul>
          </>
        )}
      </td>
      <td>
        <div className="row">
          <Button small look="quiet" refused={refused} onPress={onEdit}>
            Edit<span className="sr"> {test.name}</span>
          </Button>
          <Button small look="quiet" refused={refused} onPress={onRemove}>
            Remove<span className="sr"> {test.name}</span>
          </Button>
        </div>
      </td>
    </tr>
  )
}

function Remove({ path, name, onClose }: { path: string; name: string; onClose: () => void }) {
  const queries = useQueryClient()
  return (
    <Act
      title={`Remove the test ${name}?`}
      action="Remove"
      look="danger"
      onClose={onClose}
      run={async () => {
        await call('DELETE', path)
        await queries.invalidateQueries({ queryKey: ['configuration'] })
        onClose()
        toast(`${name} is removed`)
      }}
    >
      <p>No publish asks for it any more.</p>
    </Act>
  )
}
