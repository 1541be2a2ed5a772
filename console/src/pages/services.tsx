// All services, of every dialect: where each is.
import type { ViewRow } from '../api/types'
import { type Column } from '../ui/table'
import { ListPage, dialectColumn, nameColumn, pluginColumn } from './list'

const columns: Column<ViewRow>[] = [
  nameColumn('services'),
  { id: 'url', title: 'Address', text: (row) => row.url ?? row.upstream ?? (row.targets ?? []).join(', '), sortsAs: 'url', width: 'minmax(9rem, 1.4fr)' },
  pluginColumn,
  dialectColumn,
]

export default function Services() {
  return <ListPage list="services" title="Services" columns={columns} />
}
