// Developer portals: which there are, where each is, what it shows, and who may sign up.
import { Link } from 'wouter'
import { type Portal, portalPath, toPortal, useWrittenPortals } from '../../api/portals'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { ButtonLink } from '../../ui/button'
import { type Column, Table } from '../../ui/table'

/** Who may sign up, in words. */
export const SIGN_UP: Record<string, string> = { open: 'everybody', invited: 'those who are invited', closed: 'no one: administrators make accounts' }

const columns: Column<Portal>[] = [
  { id: 'name', title: 'Name', text: (it) => it.display_name || it.name, render: (it) => <Link href={toPortal(it.name)}>{it.display_name || it.name}</Link> },
  { id: 'where', title: 'Where', text: (it) => it.url || (it.hosts ?? []).join(', ') || 'every host', width: 'minmax(9rem, 1.5fr)' },
  { id: 'environments', title: 'Shows', text: (it) => `${(it.apis ?? []).join(', ') || 'all APIs'} in ${(it.environments ?? []).join(', ') || 'all environments'}`, from: 2, width: 'minmax(8rem, 1.4fr)' },
  { id: 'sign-up', title: 'May sign up', text: (it) => `${SIGN_UP[it.sign_up?.mode ?? 'open'] ?? it.sign_up?.mode}${it.sign_up?.approval ? ', after approval' : ''}`, from: 3, width: 'minmax(7rem, 1fr)' },
  { id: 'developers', title: 'Developers', text: () => '', render: (it) => <Link href={`/developers?portal=${encodeURIComponent(it.name)}`}>Show<span className="sr"> developers of {it.name}</span></Link>, from: 3, width: '7rem' },
]

const key = (it: Portal) => it.name

export default function Portals() {
  const portals = useWrittenPortals()
  const refused = useRight('portals:write')
  const add = (
    <ButtonLink to="/portals/@new" look="primary" refused={refused}>
      New portal
    </ButtonLink>
  )
  return (
    <Page
      title="Portals"
      about="A developer portal shows your APIs to those who call them. A browser's host decides which one it gets."
      calls={[
        { about: 'List portals', method: 'GET', path: '/api/v1/portals' },
        { about: 'Make one', method: 'PUT', path: portalPath('main'), body: { display_name: 'Example developers', url: 'https://developers.example.com' } },
      ]}
      actions={add}
    >
      {portals.error && portals.data === undefined ? (
        <Failure error={portals.error} onRetry={() => void portals.refetch()} />
      ) : (
        <Table
          label="Portals"
          rows={portals.data ?? []}
          columns={columns}
          rowKey={key}
          isLoading={portals.isLoading}
          noun={['portal', 'portals']}
          empty={
            <Empty title="No portal of your own yet" example="weir run --data /var/lib/weir --console 127.0.0.1:8002 --portal 0.0.0.0:8003">
              <p>Weir shows all public APIs in a portal with its own look as soon as it has an address for one. Make one here to choose what it shows, how it looks, and who may sign up.</p>
            </Empty>
          }
        />
      )}
    </Page>
  )
}
