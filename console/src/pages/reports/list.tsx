// Reports that are sent by mail: which board, to whom, and when next.
import { Link } from 'wouter'
import { type Report, scheduleText, toReport, useReports } from '../../api/reports'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { ButtonLink } from '../../ui/button'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'

const EXAMPLE = { title: 'The week', board: 'overview', to: ['team@example.com'], schedule: { every: 'week', day: 1, at: '07:00', time_zone: 'Europe/Berlin' } }

const columns: Column<Report>[] = [
  { id: 'title', title: 'Title', text: (it) => it.title, render: (it) => <Link href={toReport(it.id)}>{it.title}</Link> },
  { id: 'board', title: 'Shows', text: (it) => it.board ?? 'panels of its own', from: 2 },
  { id: 'schedule', title: 'Sent', text: (it) => scheduleText(it.schedule), width: 'minmax(9rem, 1.6fr)' },
  { id: 'to', title: 'To', text: (it) => it.to.join(', '), from: 2, width: 'minmax(8rem, 1.4fr)' },
  { id: 'next', title: 'Next', text: (it) => (it.next === null ? 'off' : new Date(it.next * 1000).toISOString()), order: (it) => it.next ?? 0, render: (it) => (it.next === null ? <span className="badge">off</span> : <Time at={it.next} />), width: '7rem' },
]

const key = (it: Report) => it.id

export default function Reports() {
  const reports = useReports()
  const refused = useRight('alerts:write')
  const add = (
    <ButtonLink to="/reports/@new" look="primary" refused={refused}>
      New report
    </ButtonLink>
  )
  return (
    <Page
      title="Reports"
      about="A board as a mail, every week or month, with its numbers beside those of the time before."
      calls={[
        { about: 'List reports', method: 'GET', path: '/api/v1/reports' },
        { about: 'Make one', method: 'POST', path: '/api/v1/reports', body: EXAMPLE },
      ]}
      actions={add}
    >
      {reports.error && reports.data === undefined ? (
        <Failure error={reports.error} onRetry={() => void reports.refetch()} />
      ) : (
        <Table
          label="Reports"
          rows={reports.data ?? []}
          columns={columns}
          rowKey={key}
          isLoading={reports.isLoading}
          noun={['report', 'reports']}
          empty={
            reports.data === null ? (
              <Empty title="Analytics are off" example="weir run --data /var/lib/weir">
                <p>Reports are made of the analytics. Give Weir a folder for them:</p>
              </Empty>
            ) : (
              <Empty title="No reports yet" example={`curl ${location.origin}/api/v1/reports -d '${JSON.stringify(EXAMPLE)}'`}>
                <p>People who never open a console read a mail: what was called last week, what failed, and how that compares with the week before. Make one here, or on the command line:</p>
              </Empty>
            )
          }
        />
      )}
    </Page>
  )
}
