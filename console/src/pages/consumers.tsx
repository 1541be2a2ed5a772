// All consumers, of every dialect: who may call, and with what.
import type { ViewRow } from '../api/types'
import { type Column } from '../ui/table'
import { ListPage, badges, dialectColumn, nameColumn, pluginColumn } from './list'

const columns: Column<ViewRow>[] = [
  nameColumn('consumers'),
  {
    id: 'credential',
    title: 'Credentials',
    text: (row) => (row.credentials ?? []).join(', '),
    render: (row) => ((row.credentials ?? []).length > 0 ? badges(row.credentials) : <span className="muted">none</span>),
  },
  { id: 'group', title: 'Groups', text: (row) => (row.groups ?? []).join(', '), from: 2 },
  { id: 'custom', title: 'Custom ID', text: (row) => row.custom_id ?? '', from: 3 },
  pluginColumn,
  dialectColumn,
]

export default function Consumers() {
  return <ListPage list="consumers" title="Consumers" columns={columns} />
}
