// A report that is made or changed, shown as its mail, and sent at once.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { useBoards } from '../../api/boards'
import { call } from '../../api/client'
import { type Report, WEEKDAYS, reportPath, toReport, useReports } from '../../api/reports'
import { useRight } from '../../api/rights'
import type { Fields, Json } from '../../api/types'
import type { Begun } from '../../form/draft'
import { EntityEditor } from '../../form/entity-editor'
import { type SendOptions, readVersion, send } from '../../form/send'
import { Failure, Page } from '../../shell/page'
import { useIsNew, useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { AreaField, CheckField, ChoiceField, SelectField, TextField, lines } from '../../ui/field'
import { toast } from '../../ui/toast'

const CRUMBS = [{ to: '/reports', text: 'Reports' }]
const here = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
/** What the server takes for what is left out. */
const STANDARD: Report['schedule'] = { every: 'week', day: 1, at: '07:00', time_zone: 'UTC' }
const FRESH: Fields = { title: '', board: 'overview', to: [], schedule: { every: 'week', day: 1, at: '07:00', time_zone: here }, csv: true, enabled: true }

function editable({ next: _, etag: __, ...rest }: Report): Fields {
  return rest as unknown as Fields
}

export default function EditReport() {
  const [, id = ''] = useSegments()
  const isNew = useIsNew()
  const reports = useReports()
  const known = isNew ? undefined : reports.data?.find((it) => it.id === id)
  const [above, setAbove] = useState<'send' | 'delete' | null>(null)
  const refused = useRight('alerts:write')
  const client = useQueryClient()
  const [, go] = useLocation()
  const base = useMemo((): Begun | null => (isNew ? { data: FRESH, tag: null } : known ? { data: editable(known), tag: known.etag ?? null } : null), [isNew, known])
  const store = async (value: Fields, options: SendOptions): Promise<Begun> => {
    const { data, tag } = await (isNew ? send<Report>('POST', '/api/v1/reports', value, options) : send<Report>('PUT', reportPath(id), value, options))
    return { data: editable(data), tag }
  }
  const missing = (value: Fields): string | null => {
    if (String(value['title'] ?? '').trim() === '') return 'It needs a title.'
    return Array.isArray(value['to']) && value['to'].some((it) => String(it).trim() !== '') ? null : 'It needs an address.'
  }
  const title = isNew ? 'New report' : (known?.title ?? id)
  return (
    <Page
      title={title}
      about="A weekly report is about the seven days before its day, a monthly one about the month before."
      crumbs={CRUMBS}
      calls={
        isNew
          ? [{ about: 'Make it', method: 'POST', path: '/api/v1/reports', body: base?.data }]
          : [
              { about: 'Save it', method: 'PUT', path: reportPath(id), body: base?.data },
              { about: 'Send it now', method: 'POST', path: `${reportPath(id)}/send`, body: { period: 'last' } },
            ]
      }
      actions={
        known && (
          <>
            <Button look="quiet" icon="trash" refused={refused} onPress={() => setAbove('delete')}>
              Delete
            </Button>
            <a className="button plain" href={`${reportPath(id)}/preview?period=current`} target="_blank" rel="noreferrer">
              Preview
            </a>
            <Button refused={refused} onPress={() => setAbove('send')}>
              Send now
            </Button>
          </>
        )
      }
    >
      {reports.error && reports.data === undefined ? (
        <Failure error={reports.error} onRetry={() => void reports.refetch()} />
      ) : reports.isLoading ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : base === null ? (
        <p className="note warn">There is no such report any more.</p>
      ) : (
        <EntityEditor
          key={id}
          kept={`report/${id}`}
          title={isNew ? 'the new report' : title}
          base={base}
          isNew={isNew}
          refused={refused}
          missing={missing}
          form={(value, onChange) => <ReportForm value={value} onChange={onChange} />}
          send={store}
          read={() => readVersion(reportPath(id), editable)}
          isDocument={false}
          onSaved={async (stored) => {
            await client.invalidateQueries({ queryKey: ['reports'] })
            toast(`${String(stored['title'])} is saved`)
            go(toReport(String(stored['id'] ?? id)))
          }}
        />
      )}
      {above === 'send' && known && <SendNow report={known} onClose={() => setAbove(null)} />}
      {above === 'delete' && known && (
        <Act
          title={`Delete ${known.title}?`}
          action="Delete"
          look="danger"
          onClose={() => setAbove(null)}
          run={async () => {
            await call('DELETE', reportPath(id))
            toast(`${known.title} is deleted`)
            go('/reports')
            await client.invalidateQueries({ queryKey: ['reports'] })
          }}
        >
          <p>It is not sent any more. Boards and numbers stay.</p>
        </Act>
      )}
    </Page>
  )
}

function ReportForm({ value, onChange }: { value: Fields; onChange: (value: Fields) => void }) {
  const boards = useBoards()
  const report = value as unknown as Report
  const schedule: Report['schedule'] = { ...STANDARD, ...(report.schedule as Partial<Report['schedule']> | undefined) }
  const [text, setText] = useState((report.to ?? []).join('\n'))
  const shown = lines(text).join('\n') === (report.to ?? []).join('\n') ? text : (report.to ?? []).join('\n')
  const set = (name: string, next: Json) => onChange({ ...value, [name]: next })
  const setSchedule = (more: Partial<Report['schedule']>) => set('schedule', { ...schedule, ...more })
  const hasOwnPanels = Array.isArray(value['panels']) && value['panels'].length > 0
  const options = (boards.data ?? []).map((it) => [it.id, it.title] as const)
  const board = report.board ?? ''
  return (
    <section className="card" aria-label="About it">
      <div className="grid">
        <TextField label="Title" value={report.title ?? ''} onChange={(title) => set('title', title)} isRequired placeholder="The week" />
        {hasOwnPanels ? (
          <div className="field">
            <span className="label">Shows</span>
            <p className="about">Panels of its own, which the text shows.</p>
          </div>
        ) : (
          <SelectField label="Board" value={board} onChange={(id) => set('board', id)} options={options.some(([id]) => id === board) ? options : [[board, board], ...options]} />
        )}
      </div>
      <AreaField
        label="Addresses"
        rows={3}
        value={shown}
        onChange={(next) => {
          setText(next)
          set('to', lines(next))
        }}
        placeholder="team@example.com"
        about="One on each line, at most 20. Mails need --smtp."
        isMono
      />
      <ChoiceField
        label="Sent"
        value={schedule.every}
        onChange={(every) => setSchedule({ every, day: 1 })}
        options={[
          { value: 'week', text: 'Every week' },
          { value: 'month', text: 'Every month' },
        ]}
      />
      <div className="figures">
        <SelectField
          label="Day"
          value={String(schedule.day)}
          onChange={(day) => setSchedule({ day: Number(day) })}
          options={schedule.every === 'week' ? WEEKDAYS.map((it, index) => [String(index + 1), it] as const) : Array.from({ length: 28 }, (_, index) => [String(index + 1), String(index + 1)] as const)}
        />
        <TextField label="Time" value={schedule.at} onChange={(at) => setSchedule({ at })} placeholder="07:00" />
        <TextField label="Time zone" value={schedule.time_zone} onChange={(time_zone) => setSchedule({ time_zone })} placeholder="Europe/Berlin" />
      </div>
      <CheckField label="Attach the numbers as CSV" value={report.csv !== false} onChange={(csv) => set('csv', csv)} />
      <CheckField label="Send it by this schedule" value={report.enabled !== false} onChange={(enabled) => set('enabled', enabled)} />
    </section>
  )
}

function SendNow({ report, onClose }: { report: Report; onClose: () => void }) {
  const [period, setPeriod] = useState<'last' | 'current'>('last')
  const [to, setTo] = useState('')
  return (
    <Act
      title={`Send ${report.title} now`}
      action="Send"
      onClose={onClose}
      run={async () => {
        const addresses = lines(to)
        await call('POST', `${reportPath(report.id)}/send`, { body: { period, ...(addresses.length > 0 ? { to: addresses } : {}) } })
        toast('It is on its way', { link: { to: '/deliveries', text: 'Deliveries' } })
        onClose()
      }}
    >
      <ChoiceField
        label={`Of which ${report.schedule.every}`}
        value={period}
        onChange={setPeriod}
        options={[
          { value: 'last', text: `The last whole ${report.schedule.every}` },
          { value: 'current', text: `This ${report.schedule.every}, up to now` },
        ]}
      />
      <AreaField label="To others" rows={2} value={to} onChange={setTo} placeholder={report.to.join('\n')} about="One address on each line; left empty: those of the report." isMono />
    </Act>
  )
}
