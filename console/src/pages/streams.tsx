// Native stream routes: what is passed on without being read.
import { useRight } from '../api/rights'
import { Link } from 'wouter'
import { useDocuments } from '../api/hooks'
import type { Fields } from '../api/types'
import { type Kind, kindOf, textOf, words } from '../kinds'
import { Failure, Page } from '../shell/page'
import { ButtonLink } from '../ui/button'
import { type Column, Table } from '../ui/table'
import { EmptyList } from './list'

const columns: Column<Fields>[] = [
  {
    id: 'name',
    title: 'Name',
    text: (it) => textOf(it['name']),
    render: (it) => <Link href={`/stream_routes/${encodeURIComponent(textOf(it['name']))}`}>{textOf(it['name'])}</Link>,
  },
  { id: 'protocol', title: 'Protocols', text: (it) => words(it['protocols']).join(', ') || 'any' },
  { id: 'names', title: 'Server names', text: (it) => words(it['snis']).join(', '), from: 2 },
  { id: 'destination', title: 'Destinations', text: (it) => words(it['destinations']).join(', '), from: 3 },
  { id: 'service', title: 'Service', text: (it) => textOf(it['service']), from: 2 },
]

const key = (it: Fields) => textOf(it['name'])

export default function Streams() {
  const refused = useRight('configuration:write')
  const kind = kindOf('stream_routes') as Kind
  const streams = useDocuments('stream_routes')
  return (
    <Page
      title="Streams"
      about={kind.about}
      calls={[{ about: 'List stream routes', method: 'GET', path: '/api/v1/resources/stream_routes' }]}
      actions={
        <ButtonLink to="/stream_routes/@new" look="primary" refused={refused}>
          New stream route
        </ButtonLink>
      }
    >
      {streams.error ? (
        <Failure error={streams.error} onRetry={() => void streams.refetch()} />
      ) : (
        <Table label="Streams" rows={streams.data ?? []} columns={columns} rowKey={key} isLoading={streams.isLoading} noun={['stream', 'streams']} empty={<EmptyList kind={kind} />} />
      )}
    </Page>
  )
}
