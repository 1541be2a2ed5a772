// Alert rules, and how they stand.
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { type Rule, groupName, useAlerts, useDefinition } from '../api/analytics'
import { ApiError, call } from '../api/client'
import { useRight } from '../api/rights'
import { Empty, Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { type Column, Table } from '../ui/table'
import { Time } from '../ui/time'
import { toast } from '../ui/toast'

const MUTE_S = 3_600
const tones: Record<string, string> = { ok: 'good', ongoing: 'bad', no_data: 'warn' }

/** The worst of a rule's groups. */
function standing(rule: Rule): string {
  if (!rule.enabled) return 'off'
  const states = rule.alerts.map((it) => it.state)
  return states.includes('ongoing') ? 'ongoing' : states.includes('no_data') ? 'no_data' : states.length > 0 ? 'ok' : 'not evaluated'
}

const columns: Column<Rule>[] = [
  { id: 'name', title: 'Name', text: (it) => it.name },
  {
    id: 'state',
    title: 'State',
    text: standing,
    render: (it) => <span className={`badge ${tones[standing(it)] ?? ''}`}>{standing(it).replaceAll('_', ' ')}</span>,
    width: 'minmax(6rem, 0.6fr)',
  },
  { id: 'rule', title: 'Fires while', text: (it) => `${it.metric.replaceAll('_', ' ')} ${it.operator} ${it.threshold} over ${it.period}`, width: 'minmax(9rem, 1.6fr)', from: 2 },
  { id: 'severity', title: 'Severity', text: (it) => it.severity, from: 2, width: '6rem' },
  {
    id: 'firing',
    title: 'For',
    text: (it) => it.alerts.filter((alert) => alert.state === 'ongoing').map((alert) => groupName(alert.group)).join(', '),
    render: (it) => {
      const [first, ...more] = it.alerts.filter((alert) => alert.state === 'ongoing')
      return first ? (
        <>
          {groupName(first.group)} since <Time at={first.since} />
          {more.length > 0 && ` and ${more.length} more`}
        </>
      ) : (
        ''
      )
    },
    from: 2,
  },
]

const key = (it: Rule) => it.id

export default function Alerts() {
  const alerts = useAlerts()
  const client = useQueryClient()
  const [isAdding, setAdding] = useState(false)
  const refused = useRight('alerts:write')
  const change = async (rules: Rule[], done: string, send: (rule: Rule) => Promise<unknown>) => {
    try {
      for (const rule of rules) await send(rule)
      toast(done)
    } catch (error) {
      toast((error as Error).message, { isBad: true })
    }
    await client.invalidateQueries({ queryKey: ['alerts'] })
  }
  const path = (rule: Rule) => `/api/v1/alerts/${encodeURIComponent(rule.id)}`
  const put = (rule: Rule, more: object) => {
    const { alerts: _, id: __, ...body } = rule
    return call('PUT', path(rule), { body: { ...body, ...more } })
  }
  const isOff = alerts.error instanceof ApiError && alerts.error.status === 404
  return (
    <Page
      title="Alerts"
      about="Rules over the numbers of the analytics. Each is evaluated every 30 seconds, for each group by itself."
      calls={[{ about: 'List rules with their state', method: 'GET', path: '/api/v1/alerts' }]}
      actions={
        <Button look="primary" refused={refused} onPress={() => setAdding(true)}>
          New rule
        </Button>
      }
    >
      {alerts.error && !isOff ? (
        <Failure error={alerts.error} onRetry={() => void alerts.refetch()} />
      ) : (
        <Table
          label="Alerts"
          rows={alerts.data ?? []}
          columns={columns}
          rowKey={key}
          isLoading={alerts.isLoading}
          noun={['rule', 'rules']}
          bulk={[
            { text: 'Mute for an hour', refused, run: (rules) => void change(rules, 'Muted', (rule) => put(rule, { muted_until: Math.round(Date.now() / 1000) + MUTE_S })) },
            { text: 'Switch off', refused, run: (rules) => void change(rules, 'Switched off', (rule) => put(rule, { enabled: false })) },
            { text: 'Switch on', refused, run: (rules) => void change(rules, 'Switched on', (rule) => put(rule, { enabled: true, muted_until: null })) },
            { text: 'Delete', look: 'danger', refused, run: (rules) => void change(rules, 'Deleted', (rule) => call('DELETE', path(rule))) },
          ]}
          empty={
            isOff ? (
              <Empty title="Analytics are off" example="weir run --data /var/lib/weir">
                <p>Alerts are rules over the analytics. Give Weir a folder for them:</p>
              </Empty>
            ) : (
              <Empty
                title="No rules yet"
                actions={
                  <Button look="primary" refused={refused} onPress={() => setAdding(true)}>
                    New rule
                  </Button>
                }
              >
                <p>A rule tells you when a number leaves its bounds, such as: more than 5 % of a service's calls fail.</p>
              </Empty>
            )
          }
        />
      )}
      {isAdding && <AddRule onClose={() => setAdding(false)} />}
    </Page>
  )
}

function AddRule({ onClose }: { onClose: () => void }) {
  const definition = useDefinition()
  const client = useQueryClient()
  const [rule, setRule] = useState({ name: '', metric: 'share_5xx', operator: '>', threshold: '0.05', period: '5m', group_by: 'service', severity: 'warning', min_calls: '20' })
  const [hook, setHook] = useState('')
  const [error, setError] = useState<unknown>(null)
  const set = (name: keyof typeof rule, value: string) => setRule({ ...rule, [name]: value })
  const add = async (event: FormEvent) => {
    event.preventDefault()
    setError(null)
    const channels = [{ kind: 'log' }, ...(hook === '' ? [] : [{ kind: 'webhook', url: hook }])]
    const { threshold, group_by, min_calls, ...rest } = rule
    try {
      await call('POST', '/api/v1/alerts', {
        body: { ...rest, threshold: Number(threshold), min_calls: Number(min_calls), group_by: group_by === '' ? [] : [group_by], channels },
      })
      toast(`${rule.name} is watched`)
      await client.invalidateQueries({ queryKey: ['alerts'] })
      onClose()
    } catch (refused) {
      setError(refused)
    }
  }
  const choice = (name: keyof typeof rule, title: string, options: string[], about = '') => (
    <div className="field">
      <label htmlFor={`rule-${name}`}>{title}</label>
      <select id={`rule-${name}`} className="select" value={rule[name]} onChange={(event) => set(name, event.target.value)}>
        {options.map((it) => (
          <option key={it} value={it}>
            {it === '' ? 'nothing' : it.replaceAll('_', ' ')}
          </option>
        ))}
      </select>
      {about !== '' && <p className="about">{about}</p>}
    </div>
  )
  const input = (name: keyof typeof rule, title: string, about = '') => (
    <div className="field">
      <label htmlFor={`rule-${name}`}>{title}</label>
      <input id={`rule-${name}`} className="input" value={rule[name]} onChange={(event) => set(name, event.target.value)} />
      {about !== '' && <p className="about">{about}</p>}
    </div>
  )
  const metrics = definition.data?.metrics.map((it) => it.name) ?? [rule.metric]
  return (
    <Dialog title="New rule" isOpen onClose={onClose}>
      <form className="stack" onSubmit={(event) => void add(event)}>
        {input('name', 'Name')}
        <div className="grid">
          {choice('metric', 'Metric', metrics)}
          {choice('operator', 'Is', ['>', '>=', '<', '<='])}
          {input('threshold', 'Than', 'Shares are from 0 to 1, times in microseconds.')}
          {choice('period', 'Over', ['2m', '5m', '15m', '1h', '6h', '24h'])}
          {choice('group_by', 'For each', ['', 'service', 'route', 'consumer', 'gateway'])}
          {input('min_calls', 'With calls of at least')}
          {choice('severity', 'Severity', ['info', 'warning', 'critical'])}
        </div>
        <div className="field">
          <label htmlFor="rule-hook">Webhook</label>
          <input id="rule-hook" className="input" value={hook} placeholder="https://…, besides the log" onChange={(event) => setHook(event.target.value)} />
        </div>
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onPress={onClose}>Cancel</Button>
          <button className="button primary" type="submit" disabled={rule.name.trim() === ''}>
            Add
          </button>
        </div>
      </form>
    </Dialog>
  )
}
