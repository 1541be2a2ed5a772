// All routes, of every dialect.
import { Link } from 'wouter'
import type { ViewRow } from '../api/types'
import { type Column } from '../ui/table'
import { ListPage, doorColumn, nameColumn, pluginColumn } from './list'

const columns: Column<ViewRow>[] = [
  nameColumn('routes'),
  { id: 'host', title: 'Hosts', text: (row) => (row.hosts ?? []).join(', '), sortsAs: 'host', from: 2 },
  { id: 'path', title: 'Paths', text: (row) => (row.paths ?? []).join(', '), sortsAs: 'path', width: 'minmax(7rem, 1.2fr)' },
  { id: 'method', title: 'Methods', text: (row) => (row.methods ?? []).join(', ') || 'any', from: 3, width: 'minmax(5rem, 0.6fr)' },
  {
    id: 'service',
    title: 'Service',
    text: (row) => row.service ?? row.upstream ?? '',
    sortsAs: 'service',
    render: (row) => (row.service ? <Link href={`/services?q=${encodeURIComponent(`name:${row.service}`)}`}>{row.service}</Link> : (row.upstream ?? '')),
    from: 2,
  },
  pluginColumn,
  doorColumn,
]

export default function Routes() {
  return <ListPage list="routes" title="Routes" columns={columns} />
}
