// All services: where each is, and what leads to it.
import { list } from '../kinds'
import { type Column } from '../ui/table'
import { ListPage, NameCell, type Row } from './list'

function place(row: Row): string {
  const { url, upstream } = row.document
  if (typeof url === 'string') return url
  return typeof upstream === 'string' ? upstream : upstream === undefined ? '' : 'its own upstream'
}

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (row) => row.name, render: (row) => <NameCell row={row} /> },
  { id: 'url', title: 'Address', text: place, width: 'minmax(9rem, 1.4fr)' },
  {
    id: 'routes',
    title: 'Routes in it',
    text: (row) => String(list(row.document['routes']).length),
    number: (row) => list(row.document['routes']).length,
    from: 2,
    width: '7rem',
  },
]

export default function Services() {
  return <ListPage path="services" title="Services" columns={columns} />
}
