// Certificates of every dialect, by when they end, and orders for those that an authority signs.
import { useRight } from '../api/rights'
import { Link } from 'wouter'
import { useDocuments } from '../api/hooks'
import type { Fields, ViewRow } from '../api/types'
import { textOf, words } from '../kinds'
import { ButtonLink } from '../ui/button'
import { type Column } from '../ui/table'
import { Time } from '../ui/time'
import { ListPage, dialectColumn, nameColumn } from './list'

/** Certificates that end within so many seconds are marked. */
const SOON_S = 30 * 86_400

function Ends({ at }: { at: number }) {
  const left = at - Date.now() / 1000
  return (
    <span className={left < 0 ? 'badge bad' : left < SOON_S ? 'badge warn' : ''}>
      <Time at={at} />
    </span>
  )
}

const columns: Column<ViewRow>[] = [
  nameColumn('certificates'),
  { id: 'server-name', title: 'Server names', text: (row) => (row.server_names ?? []).join(', '), width: 'minmax(9rem, 2fr)' },
  {
    id: 'ends',
    title: 'Ends',
    text: (row) => (!row.not_after ? '' : new Date(row.not_after * 1000).toISOString()),
    render: (row) => (!row.not_after ? '' : <Ends at={row.not_after} />),
    sortsAs: 'not-after',
  },
  dialectColumn,
]

export default function Certificates() {
  return <ListPage list="certificates" title="Certificates" columns={columns} above={<Orders />} />
}

function Orders() {
  const refused = useRight('configuration:write')
  const orders = useDocuments('acme').data ?? []
  return (
    <section className="card" aria-label="Certificate orders">
      <div className="head2">
        <h2>Certificates that Weir gets by itself</h2>
        <ButtonLink small to="/acme/@new" refused={refused}>
          New certificate order
        </ButtonLink>
      </div>
      {orders.length === 0 ? (
        <p className="muted">Weir can get certificates from an authority such as Let's Encrypt, and renews them in time.</p>
      ) : (
        <ul className="rows">
          {orders.map((it: Fields) => (
            <li className="row between" key={textOf(it['name'])}>
              <Link href={`/acme/${encodeURIComponent(textOf(it['name']))}`}>{textOf(it['name'])}</Link>
              <span className="muted clip">{words(it['hosts']).join(', ')}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
