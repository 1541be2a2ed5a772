// All consumers: who may call, and with what.
import type { Json } from '../api/types'
import { fields, list, textOf } from '../kinds'
import { type Column } from '../ui/table'
import { ListPage, NameCell, type Row } from './list'

function kindOfCredential(credential: Json): string {
  const entry = fields(credential)
  if (typeof entry['plugin'] === 'string') return entry['plugin']
  return Object.keys(entry).find((name) => name !== 'id' && name !== 'config') ?? 'unknown'
}

const credentials = (row: Row): string => list(row.document['credentials']).map(kindOfCredential).join(', ')

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (row) => row.name, render: (row) => <NameCell row={row} /> },
  {
    id: 'credential',
    title: 'Credentials',
    text: credentials,
    render: (row) => credentials(row) || <span className="badge warn">none</span>,
  },
  { id: 'group', title: 'Group', text: (row) => textOf(row.document['group']), from: 2 },
  { id: 'custom', title: 'Custom ID', text: (row) => textOf(row.document['custom_id']), from: 2 },
]

export default function Consumers() {
  return <ListPage path="consumers" title="Consumers" columns={columns} />
}
