// All routes: those with a document of their own, and those that are written in a service.
import { useMemo } from 'react'
import { Link } from 'wouter'
import type { Fields, Json } from '../api/types'
import { type Kind, fields, kindOf, list, pluginsOf, words } from '../kinds'
import { type Column } from '../ui/table'
import { ListPage, NameCell, type Row, useRows } from './list'

/** What a route asks of a call, from its short fields or the alternatives of `match`. */
function matched(document: Fields, field: string): string[] {
  const short = words(document[field])
  if (short.length > 0) return short
  return list(document['match']).flatMap((it) => words(fields(it)[field]))
}

function serviceOf(row: Row): string {
  if (row.parent !== null) return row.parent
  const to: Json | undefined = row.document['service'] ?? row.document['to']
  if (typeof to === 'string') return to
  const name = fields(to)['service'] ?? fields(to)['name']
  return typeof name === 'string' ? name : ''
}

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (row) => row.name, render: (row) => <NameCell row={row} />, width: 'minmax(8rem, 1.3fr)' },
  { id: 'host', title: 'Hosts', text: (row) => matched(row.document, 'hosts').join(', '), from: 2 },
  { id: 'path', title: 'Paths', text: (row) => matched(row.document, 'paths').join(', '), width: 'minmax(7rem, 1.2fr)' },
  { id: 'method', title: 'Methods', text: (row) => matched(row.document, 'methods').join(', ') || 'any', from: 3, width: 'minmax(5rem, 0.6fr)' },
  {
    id: 'service',
    title: 'Service',
    text: serviceOf,
    render: (row) => {
      const service = serviceOf(row)
      return service === '' ? '' : <Link href={`/services/${encodeURIComponent(service)}`}>{service}</Link>
    },
    from: 2,
  },
  {
    id: 'plugin',
    title: 'Plugins',
    text: (row) => pluginsOf(row.document).join(', '),
    render: (row) => (
      <span className="row" style={{ flexWrap: 'nowrap' }}>
        {pluginsOf(row.document).map((name, index) => (
          <span className="badge" key={`${name}${index}`}>
            {name}
          </span>
        ))}
      </span>
    ),
    from: 3,
    width: 'minmax(7rem, 1.2fr)',
  },
]

export default function Routes() {
  const own = useRows('routes')
  const services = useRows('services')
  const rows = useMemo(() => {
    const kind = kindOf('routes') as Kind
    const nested = services.rows.flatMap((service) =>
      list(service.document['routes']).map((it, index): Row => {
        const document = fields(it)
        const name = document['name']
        return {
          kind,
          name: typeof name === 'string' ? name : `${service.name} ${index + 1}`,
          document,
          parent: service.name,
        }
      }),
    )
    return [...own.rows, ...nested]
  }, [own.rows, services.rows])
  const all = {
    rows,
    isLoading: own.isLoading || services.isLoading,
    error: own.error ?? services.error,
    refetch: () => {
      own.refetch()
      services.refetch()
    },
  }
  return <ListPage path="routes" title="Routes" columns={columns} rows={all} />
}
