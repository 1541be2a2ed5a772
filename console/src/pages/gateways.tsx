// The gateways that follow this configuration: what each serves, and how far behind it is.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { shown } from '../api/analytics'
import { call } from '../api/client'
import { servedRevision, useGateways, useHead } from '../api/hooks'
import { useRight } from '../api/rights'
import type { Gateway } from '../api/types'
import { Empty, Failure, Page } from '../shell/page'
import { Act } from '../ui/act'
import { type Column, Table } from '../ui/table'
import { Time, countText, duration, isoTime } from '../ui/time'
import { toast } from '../ui/toast'

const number = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** Thousandths of a core as a share of one. */
const share = (permille: number | null | undefined): string => (permille == null ? 'not told' : `${(permille / 10).toFixed(permille < 100 ? 1 : 0)} %`)

const tone: Record<string, string> = { serving: 'good', offline: 'bad', 'last-known-good': 'warn', 'store-unreachable': 'warn' }

const columnsOf = (head: number | undefined): Column<Gateway>[] => [
  { id: 'name', title: 'Name', text: (it) => it.name },
  {
    id: 'state',
    title: 'State',
    text: (it) => it.state,
    render: (it) => (
      <span className="row tight">
        <span className={`badge ${tone[it.state] ?? ''}`}>{it.state.replaceAll('-', ' ')}</span>
        {it.drain && <span className="badge warn">{it.draining ? 'draining' : 'to be taken out'}</span>}
        {!it.drain && it.draining && <span className="badge">to be taken back</span>}
      </span>
    ),
    width: 'minmax(6rem, 0.7fr)',
  },
  { id: 'revision', title: 'Revision', text: (it) => `r${servedRevision(it, head)}`, number: (it) => servedRevision(it, head), width: '4.5rem' },
  {
    id: 'lag',
    title: 'Behind',
    text: (it) => (number(it['lag_revisions']) === 0 ? 'in step' : `${countText(number(it['lag_revisions']), 'revision', 'revisions')}, ${duration(number(it['lag_ms']))}`),
    from: 2,
    width: 'minmax(7rem, 0.9fr)',
  },
  {
    id: 'skipped',
    title: 'Left out',
    text: (it) => String(it.skipped),
    number: (it) => it.skipped,
    render: (it) => (it.skipped > 0 ? <span className="badge bad">{countText(it.skipped, 'document', 'documents')}</span> : 'none'),
    from: 2,
    width: '5.5rem',
  },
  {
    id: 'cpu',
    title: 'CPU',
    text: (it) => share(it.cpu_permille),
    number: (it) => it.cpu_permille ?? -1,
    render: (it) => <span title="Of one core, between its last two reports">{share(it.cpu_permille)}</span>,
    from: 2,
    width: '3.5rem',
  },
  { id: 'memory', title: 'Memory', text: (it) => (it.memory_bytes == null ? 'not told' : shown(it.memory_bytes, 'bytes')), number: (it) => it.memory_bytes ?? -1, from: 2, width: '5.5rem' },
  { id: 'up', title: 'Running for', text: (it) => (it.uptime_s == null ? 'not told' : duration(it.uptime_s * 1000)), number: (it) => it.uptime_s ?? -1, from: 3, width: '6.5rem' },
  { id: 'environment', title: 'Environments', text: (it) => it.environments.join(', ') || 'not told', from: 3, width: 'minmax(6rem, 0.8fr)' },
  { id: 'address', title: 'Address', text: (it) => it.address, from: 3, width: 'minmax(8.5rem, 1fr)' },
  { id: 'version', title: 'Version', text: (it) => it.version, from: 3, width: '4rem' },
  { id: 'seen', title: 'Last heard', text: (it) => isoTime(number(it['last_seen'])), render: (it) => <Time at={number(it['last_seen'])} />, from: 2 },
]

const key = (it: Gateway) => it.name
const pathOf = (name: string) => `/api/v1/gateways/${encodeURIComponent(name)}`

export default function Gateways() {
  const gateways = useGateways()
  const head = useHead().data?.revision
  const columns = useMemo(() => columnsOf(head), [head])
  const refused = useRight('environments:write')
  const [gone, setGone] = useState<Gateway[]>([])
  const [drained, setDrained] = useState<{ gateways: Gateway[]; isOut: boolean } | null>(null)
  return (
    <Page
      title="Gateways"
      about="Every gateway says what it serves. In step means: it serves the newest change."
      calls={[
        { about: 'List gateways', method: 'GET', path: '/api/v1/gateways' },
        { about: 'Take one out', method: 'PUT', path: `${pathOf('edge-1')}/drain` },
        { about: 'Take it back', method: 'DELETE', path: `${pathOf('edge-1')}/drain` },
        { about: 'Forget one that is away', method: 'DELETE', path: pathOf('edge-1') },
      ]}
    >
      {gateways.error && gateways.data === undefined ? (
        <Failure error={gateways.error} onRetry={() => void gateways.refetch()} />
      ) : (
        <Table
          label="Gateways"
          rows={gateways.data?.items ?? []}
          columns={columns}
          rowKey={key}
          isLoading={gateways.isLoading}
          noun={['gateway', 'gateways']}
          bulk={[
            { text: 'Drain', refused, run: (gateways) => setDrained({ gateways, isOut: true }) },
            { text: 'Take back', refused, run: (gateways) => setDrained({ gateways, isOut: false }) },
            { text: 'Forget', look: 'danger', refused, run: (rows) => setGone(rows) },
          ]}
          empty={
            <Empty title="No gateway follows this one" example={'weir run --role gateway --control https://HOST:8002 --token TOKEN'}>
              <p>
                This process serves calls by itself. More gateways can follow it: each keeps serving what it knows while this one is away.
              </p>
            </Empty>
          }
        />
      )}
      {drained !== null && <Drain {...drained} onClose={() => setDrained(null)} />}
      {gone.length > 0 && <Forget gateways={gone} onClose={() => setGone([])} />}
    </Page>
  )
}

/** A gateway that is out goes on answering: it is for load balancers to send it nothing more. */
function Drain({ gateways, isOut, onClose }: { gateways: Gateway[]; isOut: boolean; onClose: () => void }) {
  const client = useQueryClient()
  const names = gateways.map((it) => it.name).join(', ')
  const isOne = gateways.length === 1
  const whose = isOne ? 'Its' : 'The'
  const others = gateways.filter((it) => it.drain === isOut).map((it) => it.name)
  const refused = others.length === 0 ? null : `${others.join(', ')} ${others.length === 1 ? 'is' : 'are'} ${isOut ? 'taken out already' : 'not taken out'}.`
  return (
    <Act
      title={isOut ? `Drain ${names}?` : `Take ${names} back?`}
      action={isOut ? 'Drain' : 'Take back'}
      refused={refused}
      onClose={onClose}
      run={async () => {
        try {
          for (const it of gateways) await call(isOut ? 'PUT' : 'DELETE', `${pathOf(it.name)}/drain`)
        } finally {
          await client.invalidateQueries({ queryKey: ['gateways'] })
        }
        toast(isOut ? `${names} ${isOne ? 'drains' : 'drain'}` : `${names} ${isOne ? 'is' : 'are'} taken back`)
        onClose()
      }}
    >
      {isOut ? (
        <p>
          {whose} <code>/status/ready</code> {isOne ? 'answers' : 'of each answers'} 503 in 10 seconds at most, so that load balancers send it no more calls. What still comes is answered. It stays so, after a restart too, until you take it back.
        </p>
      ) : (
        <p>
          {whose} <code>/status/ready</code> {isOne ? 'answers' : 'of each answers'} 200 again in 10 seconds at most.
        </p>
      )}
    </Act>
  )
}

/** One that runs still would be back with its next report. */
function Forget({ gateways, onClose }: { gateways: Gateway[]; onClose: () => void }) {
  const client = useQueryClient()
  const names = gateways.map((it) => it.name).join(', ')
  const running = gateways.filter((it) => it.state !== 'offline').map((it) => it.name)
  const refused = running.length === 0 ? null : `${running.join(', ')} ${running.length === 1 ? 'is' : 'are'} not away. Stop ${running.length === 1 ? 'it' : 'them'} first: a gateway that is stopped ends its open calls and takes no new ones.`
  return (
    <Act
      title={`Forget ${names}?`}
      action="Forget"
      look="danger"
      refused={refused}
      onClose={onClose}
      run={async () => {
        try {
          for (const it of gateways) await call('DELETE', pathOf(it.name))
        } finally {
          await client.invalidateQueries({ queryKey: ['gateways'] })
        }
        toast(`${names} ${gateways.length === 1 ? 'is' : 'are'} forgotten`)
        onClose()
      }}
    >
      <p>{refused ?? (gateways.length === 1 ? 'It leaves this list, and publications no longer wait for it. If it runs again, it is back with its first report.' : 'They leave this list, and publications no longer wait for them. One that runs again is back with its first report.')}</p>
    </Act>
  )
}
