// All stream routes: what is passed on without being read.
import { textOf, words } from '../kinds'
import { type Column } from '../ui/table'
import { ListPage, NameCell, type Row } from './list'

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (row) => row.name, render: (row) => <NameCell row={row} /> },
  { id: 'protocol', title: 'Protocols', text: (row) => words(row.document['protocols']).join(', ') || 'any' },
  { id: 'names', title: 'Server names', text: (row) => words(row.document['snis']).join(', '), from: 2 },
  { id: 'destination', title: 'Destinations', text: (row) => words(row.document['destinations']).join(', '), from: 3 },
  { id: 'service', title: 'Service', text: (row) => textOf(row.document['service']), from: 2 },
]

export default function Streams() {
  return <ListPage path="stream_routes" title="Streams" columns={columns} />
}
