// Certificates that are shown to clients, and orders for those that an authority signs.
import { words } from '../kinds'
import { ButtonLink } from '../ui/button'
import { type Column, Table } from '../ui/table'
import { ListPage, NameCell, type Row, useRows } from './list'

const names = (row: Row): string =>
  words(row.document['names'] ?? row.document['hosts']).join(', ')

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (row) => row.name, render: (row) => <NameCell row={row} /> },
  { id: 'names', title: 'Server names', text: names, width: 'minmax(9rem, 2fr)' },
]

export default function Certificates() {
  return <ListPage path="certificates" title="Certificates" columns={columns} above={<Orders />} />
}

function Orders() {
  const orders = useRows('acme')
  if (orders.rows.length === 0) {
    return (
      <div className="note">
        <div className="row between">
          <span>Weir can get and renew certificates by itself from an authority such as Let's Encrypt.</span>
          <ButtonLink small to="/acme/new">
            New certificate order
          </ButtonLink>
        </div>
      </div>
    )
  }
  return (
    <section className="stack tight" aria-label="Certificate orders">
      <div className="row between">
        <h2>Certificate orders</h2>
        <ButtonLink small to="/acme/new">
          New certificate order
        </ButtonLink>
      </div>
      <Table label="Certificate orders" rows={orders.rows} columns={columns} rowKey={(row) => row.name} empty={null} noun={['order', 'orders']} />
    </section>
  )
}
