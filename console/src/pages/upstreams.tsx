// All upstreams, of every dialect: their servers, and how healthy these are right now.
import { useHealth } from '../api/hooks'
import type { AddressHealth, UpstreamHealth, ViewRow } from '../api/types'
import { type Column, Table } from '../ui/table'
import { countText } from '../ui/time'
import { ListPage, dialectColumn, nameColumn } from './list'

const columns: Column<ViewRow>[] = [
  nameColumn('upstreams'),
  { id: 'target', title: 'Targets', text: (row) => (row.targets ?? []).join(', '), width: 'minmax(9rem, 1.6fr)' },
  { id: 'algorithm', title: 'Balancing', text: (row) => row.algorithm ?? 'round-robin', from: 2 },
  dialectColumn,
]

export default function Upstreams() {
  return <ListPage list="upstreams" title="Upstreams" columns={columns} above={<Health />} />
}

interface TargetRow {
  upstream: string
  target: string
  weight: number
  status: string
  counts: AddressHealth | undefined
}

const tones: Record<string, string> = { HEALTHY: 'good', UNHEALTHY: 'bad', healthy: 'good', unhealthy: 'bad' }

export function HealthBadge({ status }: { status: string }) {
  const text = status.toLowerCase().replaceAll('_', ' ').replaceAll('-', ' ')
  return <span className={`badge ${tones[status] ?? ''}`}>{text.includes('off') || text.includes('unchecked') ? 'not checked' : text}</span>
}

const failures = (it: AddressHealth | undefined): string => {
  if (it === undefined) return ''
  const parts = [it.tcp_failures > 0 && countText(it.tcp_failures, 'connection', 'connections'), it.http_failures > 0 && countText(it.http_failures, 'answer', 'answers'), it.timeouts > 0 && countText(it.timeouts, 'time-out', 'time-outs')]
  return parts.filter(Boolean).join(', ') || 'none'
}

const targetColumns: Column<TargetRow>[] = [
  { id: 'target', title: 'Target', text: (it) => it.target },
  { id: 'upstream', title: 'Upstream', text: (it) => it.upstream, from: 2 },
  { id: 'status', title: 'Health', text: (it) => it.status, render: (it) => <HealthBadge status={it.status} />, width: 'minmax(6rem, 0.6fr)' },
  { id: 'weight', title: 'Weight', text: (it) => String(it.weight), number: (it) => it.weight, from: 2, width: '5rem' },
  { id: 'failures', title: 'Failures in a row', text: (it) => failures(it.counts), from: 2 },
]

function rowsOf(upstreams: UpstreamHealth[]): TargetRow[] {
  return upstreams.flatMap((upstream) =>
    upstream.targets.flatMap((target): TargetRow[] =>
      target.addresses.length === 0
        ? [{ upstream: upstream.name, target: `${target.host}:${target.port}`, weight: target.weight, status: target.status, counts: undefined }]
        : target.addresses.map((it) => ({ upstream: upstream.name, target: it.address, weight: target.weight, status: it.status, counts: it })),
    ),
  )
}

const key = (it: TargetRow) => `${it.upstream} ${it.target}`
const version = (it: TargetRow) => it.status

/** What the gateway of this process sees. */
function Health() {
  const health = useHealth(true)
  const rows = rowsOf(health.data ?? [])
  if (rows.length === 0) return null
  const sick = rows.filter((it) => it.status.toLowerCase() === 'unhealthy').length
  return (
    <details open={sick > 0 || rows.length <= 12}>
      <summary>
        <strong>Health of targets</strong>{' '}
        <span className={sick === 0 ? 'badge good' : 'badge bad'}>{sick === 0 ? 'none is unhealthy' : `${sick} of ${rows.length} unhealthy`}</span>
      </summary>
      <div style={{ paddingTop: '0.75rem' }}>
        <Table label="Health of targets" place="health" rows={rows} columns={targetColumns} rowKey={key} version={version} empty={null} noun={['target', 'targets']} />
      </div>
    </details>
  )
}
