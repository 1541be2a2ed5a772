// All upstreams: their servers, how one is chosen, and whether they are checked.
import { fields, list } from '../kinds'
import { type Column } from '../ui/table'
import { ListPage, NameCell, type Row } from './list'

function targets(row: Row): string[] {
  return list(row.document['targets']).map((it) => (typeof it === 'string' ? it : `${String(fields(it)['host'])}:${String(fields(it)['port'])}`))
}

function checks(row: Row): string {
  const { active, passive } = fields(row.document['checks'])
  return [active && 'active', passive && 'passive'].filter(Boolean).join(', ') || 'none'
}

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (row) => row.name, render: (row) => <NameCell row={row} /> },
  { id: 'target', title: 'Targets', text: (row) => targets(row).join(', '), width: 'minmax(9rem, 1.6fr)' },
  {
    id: 'algorithm',
    title: 'Balancing',
    text: (row) => (typeof row.document['algorithm'] === 'string' ? row.document['algorithm'] : 'round-robin'),
    from: 2,
  },
  {
    id: 'checks',
    title: 'Health checks',
    text: checks,
    render: (row) => <span className={checks(row) === 'none' ? 'badge' : 'badge accent'}>{checks(row)}</span>,
    from: 2,
  },
]

export default function Upstreams() {
  return <ListPage path="upstreams" title="Upstreams" columns={columns} />
}
