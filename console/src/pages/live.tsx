// Calls: those of the request log, and new ones as they end.
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { type Call, shown } from '../api/analytics'
import { ApiError } from '../api/client'
import { useGatewayAddress } from '../api/hooks'
import { Empty, Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { LateField } from '../ui/field'
import { type Column, Table } from '../ui/table'
import { Time, clockText, countText } from '../ui/time'
import { type LiveCalls, keyOf, useLiveCalls } from './live-calls'

const FILTERS: [string, string, string][] = [
  ['status', 'Status', '404 or 5xx'],
  ['route', 'Route', ''],
  ['consumer', 'Consumer', ''],
  ['api', 'API', 'pets'],
  ['application', 'Application', ''],
  ['path', 'Path begins with', '/orders'],
  ['request_id', 'Request', ''],
]

const columns: Column<Call>[] = [
  { id: 'when', title: 'When', text: (it) => new Date(it.time).toISOString(), order: (it) => it.time, render: (it) => <Time at={it.time / 1000} />, width: 'minmax(6rem, 0.7fr)' },
  {
    id: 'status',
    title: 'Status',
    text: (it) => String(it.status),
    render: (it) => <span className={`badge ${it.status < 400 ? 'good' : it.status < 500 ? 'warn' : 'bad'}`}>{it.status}</span>,
    width: '4.5rem',
  },
  {
    id: 'call',
    title: 'Call',
    text: (it) => `${it.method} ${it.host}${it.path}`,
    render: (it) => (
      <Link href={`/explain?request_id=${encodeURIComponent(it.request_id)}`} aria-label={`Explain ${it.method} ${it.host}${it.path}`}>
        {it.method} {it.host}
        {it.path}
      </Link>
    ),
    width: 'minmax(9rem, 1.8fr)',
  },
  { id: 'why', title: 'Why refused', text: (it) => [it.refusal, it.plugin].filter(Boolean).join(' by '), from: 2, width: 'minmax(8rem, 1.3fr)' },
  { id: 'route', title: 'Route', text: (it) => it.route, from: 2, width: 'minmax(8rem, 1.3fr)' },
  { id: 'consumer', title: 'Consumer', text: (it) => it.consumer, from: 3, width: 'minmax(4rem, 0.6fr)' },
  { id: 'took', title: 'Took', text: (it) => shown(it.total_us, 'microseconds'), number: (it) => it.total_us, width: '6rem', from: 2 },
  { id: 'target', title: 'Target', text: (it) => it.target, from: 3 },
]

/** What Weir refuses of the filters, by the name of the filter. */
function faultsIn(error: unknown): Map<string, string> {
  const findings = error instanceof ApiError ? error.findings : []
  return new Map(findings.filter((it) => FILTERS.some(([name]) => name === it.path)).map((it) => [it.path, it.message]))
}

export default function Live() {
  const [parameters, setParameters] = useSearchParams()
  const address = useGatewayAddress()
  const [isFollowing, setFollowing] = useState(true)
  const text = FILTERS.map(([name]) => parameters.get(name) ?? '').join('\n')
  const filter = useMemo(() => Object.fromEntries(FILTERS.flatMap(([name]) => (parameters.get(name) ? [[name, parameters.get(name) as string]] : []))), [text])
  const calls = useLiveCalls(filter, isFollowing)
  const { error } = calls
  const faults = faultsIn(error)
  const isOff = error instanceof ApiError && error.status === 404
  return (
    <Page
      title="Live calls"
      about="Calls as they end. Errors and slow calls are all kept for a day; of the others, one in many."
      calls={[
        { about: 'Calls of the log', method: 'GET', path: `/api/v1/analytics/calls?${new URLSearchParams(filter).toString()}` },
        { about: 'Calls as they end', method: 'GET', path: `/api/v1/analytics/live?${new URLSearchParams(filter).toString()}` },
      ]}
      actions={
        <Button look={isFollowing ? 'plain' : 'primary'} onPress={() => setFollowing(!isFollowing)}>
          {isFollowing ? 'Pause' : 'Follow'}
        </Button>
      }
    >
      {isOff ? (
        <div className="table">
          <Empty title="Analytics are off" example="weir run --data /var/lib/weir">
            <p>Weir keeps calls if it has a place for them. Give it a folder:</p>
          </Empty>
        </div>
      ) : (
        <>
          <div className="figures">
            {FILTERS.map(([name, title, hint]) => (
              <LateField
                key={name}
                label={title}
                placeholder={hint}
                value={parameters.get(name) ?? ''}
                wrong={faults.get(name) ?? null}
                onChange={(text) => setParameters((old) => (text === '' ? old.delete(name) : old.set(name, text), new URLSearchParams(old)), { replace: true })}
              />
            ))}
          </div>
          {error !== null && faults.size === 0 && <Failure error={error} onRetry={calls.retry} />}
          <Missing of={calls} />
          {faults.size === 0 && <Table
            label="Calls"
            rows={calls.rows}
            columns={columns}
            rowKey={keyOf}
            isLoading={calls.isLoading}
            noun={['call', 'calls']}
            empty={
              Object.keys(filter).length > 0 ? (
                <Empty title="No call fits" actions={<Button onPress={() => setParameters((old) => (FILTERS.forEach(([name]) => old.delete(name)), new URLSearchParams(old)), { replace: true })}>Clear the filters</Button>}>
                  <p>None of the calls that are kept. New ones appear here as they end.</p>
                </Empty>
              ) : (
                <Empty title="No calls yet" example={`curl -i http://${address}/`}>
                  <p>Make one, and it is here a moment later.</p>
                </Empty>
              )
            }
          />}
        </>
      )}
    </Page>
  )
}

/** Which calls are not among those that are shown. */
function Missing({ of: { lostSince, gap, skipped } }: { of: LiveCalls }) {
  const said = [
    lostSince !== null && `No new calls come in since ${clockText(lostSince)}: the connection to Weir is lost, and is being made again. What ends meanwhile is read from the log then.`,
    gap !== null && `Calls may be missing between ${clockText(gap.from)} and ${clockText(gap.to)}: more ended meanwhile than this page reads back from the log, or the log could not be read.`,
    skipped > 0 && `${countText(skipped, 'call is', 'calls are')} not shown: more ended at once than this page takes. A filter shows fewer of them.`,
  ].filter((it) => it !== false)
  return (
    <div role="status" className={said.length === 0 ? 'sr' : 'note warn'}>
      {said.map((it) => (
        <span key={it}>{it}</span>
      ))}
    </div>
  )
}
