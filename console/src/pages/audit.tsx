// The record of who called what: every write, and every call that was refused.
import { Link } from 'wouter'
import { useAudit } from '../api/hooks'
import type { AuditEntry } from '../api/types'
import { Empty, Failure, Page } from '../shell/page'
import { type Column, Table } from '../ui/table'
import { Time } from '../ui/time'

const MOST = 5000

const columns: Column<AuditEntry>[] = [
  { id: 'when', title: 'When', text: (it) => new Date(it.time).toISOString(), order: (it) => it.time, render: (it) => <Time at={it.time / 1000} />, width: 'minmax(6rem, 0.8fr)' },
  { id: 'who', title: 'Who', text: (it) => it.who, width: 'minmax(6rem, 0.8fr)' },
  { id: 'what', title: 'What', text: (it) => it.what, width: 'minmax(10rem, 2fr)' },
  {
    id: 'status',
    title: 'Status',
    text: (it) => String(it.status),
    render: (it) => <span className={`badge ${it.status < 300 ? 'good' : it.status < 500 ? 'warn' : 'bad'}`}>{it.status}</span>,
    width: '4.5rem',
  },
  {
    id: 'commit',
    title: 'Commit',
    text: (it) => (it.revisions ?? []).map((revision) => `r${revision}`).join(', '),
    render: (it) =>
      (it.revisions ?? []).map((revision) => (
        <Link key={revision} href={`/history/${revision}`}>
          r{revision}
          <span className="sr">: what it changed</span>{' '}
        </Link>
      )),
    width: 'minmax(4rem, 0.4fr)',
    from: 2,
  },
  { id: 'dialect', title: 'API', text: (it) => it.dialect, from: 2, width: '6rem' },
  { id: 'from', title: 'From', text: (it) => it.from, from: 2, width: 'minmax(6rem, 0.8fr)' },
]

const key = (it: AuditEntry) => `${it.time} ${it.who} ${it.what} ${it.from}`

export default function Audit() {
  const audit = useAudit(MOST)
  return (
    <Page
      title="Audit"
      about="Who wrote what, from where, and what came of it. Calls that were refused are here too. A commit leads to what was there before and after."
      calls={[{ about: 'The latest entries', method: 'GET', path: `/api/v1/audit?limit=${MOST}` }]}
    >
      {audit.error && audit.data === undefined ? (
        <Failure error={audit.error} onRetry={() => void audit.refetch()} />
      ) : (
        <Table
          label="Audit"
          rows={audit.data ?? []}
          columns={columns}
          rowKey={key}
          isLoading={audit.isLoading}
          noun={['entry', 'entries']}
          empty={
            <Empty title="Nothing was written yet">
              <p>The first change makes the first entry.</p>
            </Empty>
          }
        />
      )}
    </Page>
  )
}
