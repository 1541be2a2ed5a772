// All routes, of every dialect, and how much each was called in a day.
import { useMemo } from 'react'
import { Link } from 'wouter'
import { type Frame, type Query, shown, useNumbers } from '../api/analytics'
import type { ViewRow } from '../api/types'
import { chipText } from '../ui/search'
import { type Column } from '../ui/table'
import { ListPage, dialectColumn, nameColumn, pluginColumn } from './list'

/** As many groups as an answer may have. */
const MOST = 1000
const CALLS: Query = { metrics: ['calls', 'share_5xx'], from: '-24h', group_by: ['route'], limit: MOST, marks: false }

const columns: Column<ViewRow>[] = [
  nameColumn('routes'),
  { id: 'host', title: 'Hosts', text: (row) => (row.hosts ?? []).join(', '), sortsAs: 'host', from: 2 },
  { id: 'path', title: 'Paths', text: (row) => (row.paths ?? []).join(', '), sortsAs: 'path', width: 'minmax(7rem, 1.2fr)' },
  { id: 'method', title: 'Methods', text: (row) => (row.methods ?? []).join(', ') || 'any', from: 3, width: 'minmax(6.5rem, 0.6fr)' },
  {
    id: 'service',
    title: 'Service',
    text: (row) => row.service ?? row.upstream ?? '',
    sortsAs: 'service',
    render: (row) => (row.service ? <Link href={`/services?q=${encodeURIComponent(chipText('name', row.service))}`}>{row.service}</Link> : (row.upstream ?? '')),
    from: 2,
  },
  pluginColumn,
]

/** Calls and errors of a day; without analytics there are none of these columns. */
function callColumns(frames: Frame[]): Column<ViewRow>[] {
  const found = new Map(frames.map((it) => [it.group['route'] ?? '', it.total]))
  const rest = found.has('_other') ? '–' : 'none'
  const calls = (row: ViewRow) => found.get(row.name)?.['calls'] ?? 0
  const text = (row: ViewRow) => (row.is_stream ? '' : found.has(row.name) ? shown(calls(row), undefined) : rest)
  return [
    {
      id: 'calls',
      title: 'Calls, 24 h',
      text,
      number: calls,
      render: (row) => (found.has(row.name) ? <Link href={`/analytics/explore?metrics=calls&by=class&range=-24h&filter=${encodeURIComponent(`route:${row.name}`)}`}>{text(row)}</Link> : <span className="muted">{text(row)}</span>),
      from: 3,
      width: '6.5rem',
    },
    {
      id: 'errors',
      title: '5xx',
      text: (row) => (found.has(row.name) ? shown(found.get(row.name)?.['share_5xx'], 'share') : ''),
      number: (row) => found.get(row.name)?.['share_5xx'] ?? 0,
      render: (row) => {
        const share = found.get(row.name)?.['share_5xx'] ?? 0
        return found.has(row.name) ? <span className={share > 0 ? 'bad-text' : 'muted'}>{shown(share, 'share')}</span> : ''
      },
      from: 3,
      width: '5.5rem',
    },
  ]
}

export default function Routes() {
  const numbers = useNumbers(CALLS)
  const frames = numbers.data?.frames
  const all = useMemo(() => [...columns, ...(frames === undefined ? [] : callColumns(frames)), dialectColumn], [frames])
  return <ListPage list="routes" title="Routes" columns={all} />
}
