// Alert rules, and how they stand.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { type Rule, canaryOf, conditionText, groupName, rulePath, toRule, useAlerts, useDefinition } from '../../api/analytics'
import { toPublication } from '../../api/apis'
import { ApiError, call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { Act } from '../../ui/act'
import { ButtonLink } from '../../ui/button'
import { type Column, Table } from '../../ui/table'
import { Time, countText } from '../../ui/time'
import { toast } from '../../ui/toast'

const MUTE_S = 3_600
const tones: Record<string, string> = { ok: 'good', ongoing: 'bad', no_data: 'warn' }

/** The worst of a rule's groups. */
function standing(rule: Rule): string {
  if (!rule.enabled) return 'off'
  if ((rule.muted_until ?? 0) > Date.now() / 1000) return 'muted'
  const states = rule.alerts.map((it) => it.state)
  return states.includes('ongoing') ? 'ongoing' : states.includes('no_data') ? 'no_data' : states.length > 0 ? 'ok' : 'not evaluated'
}

/** Where what an alert is about is changed: its rule, or the publication whose canary was taken back. */
function toCause(rule: Rule): string {
  const canary = canaryOf(rule)
  return canary ? toPublication(...canary) : toRule(rule.id)
}

const onlyRules = (rows: Rule[]): string | null => (rows.some((it) => canaryOf(it)) ? 'An alert of a canary is no rule: acknowledge it.' : null)
const onlyCanaries = (rows: Rule[]): string | null => (rows.every((it) => canaryOf(it)) ? null : 'Only alerts of canaries are acknowledged: those of rules end by themselves.')

const columns = (units: Record<string, string>): Column<Rule>[] => [
  { id: 'name', title: 'Name', text: (it) => it.name, render: (it) => <Link href={toCause(it)}>{it.name}</Link> },
  {
    id: 'state',
    title: 'State',
    text: standing,
    render: (it) => <span className={`badge ${tones[standing(it)] ?? ''}`}>{standing(it).replaceAll('_', ' ')}</span>,
    width: 'minmax(6rem, 0.6fr)',
  },
  { id: 'rule', title: 'Fires while', text: (it) => conditionText(it, units[it.metric]), width: 'minmax(9rem, 1.6fr)', from: 2 },
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
  const definition = useDefinition()
  const [doomed, setDoomed] = useState<Rule[] | null>(null)
  const shownColumns = useMemo(() => columns(Object.fromEntries((definition.data?.metrics ?? []).map((it) => [it.name, it.unit]))), [definition.data])
  const isOff = alerts.error instanceof ApiError && alerts.error.status === 404
  const right = useRight('alerts:write')
  const hasCanaries = (alerts.data ?? []).some((it) => canaryOf(it) !== null)
  const refused = isOff ? 'Analytics are off: start Weir with a folder for them.' : right
  const change = async (rules: Rule[], done: string, send: (rule: Rule) => Promise<unknown>) => {
    try {
      for (const rule of rules) await send(rule)
      toast(done)
    } catch (error) {
      toast((error as Error).message, { isBad: true })
    }
    await client.invalidateQueries({ queryKey: ['alerts'] })
  }
  const put = (rule: Rule, more: object) => {
    const { alerts: _, id: __, ...body } = rule
    return call('PUT', rulePath(rule.id), { body: { ...body, ...more } })
  }
  return (
    <Page
      title="Alerts"
      about="Rules over the numbers of the analytics. Each is evaluated every 30 seconds, for each group by itself."
      calls={[{ about: 'List rules with their state', method: 'GET', path: '/api/v1/alerts' }]}
      actions={
        <ButtonLink to="/alerts/@new" look="primary" refused={refused}>
          New rule
        </ButtonLink>
      }
    >
      {alerts.error && !isOff ? (
        <Failure error={alerts.error} onRetry={() => void alerts.refetch()} />
      ) : (
        <Table
          label="Alerts"
          rows={alerts.data ?? []}
          columns={shownColumns}
          rowKey={key}
          isLoading={alerts.isLoading}
          noun={['rule', 'rules']}
          bulk={[
            ...(hasCanaries ? [{ text: 'Acknowledge', refused, refusedFor: onlyCanaries, run: (rules: Rule[]) => void change(rules, 'Acknowledged', (rule) => call('DELETE', rulePath(rule.id))) }] : []),
            { text: 'Mute for an hour', refused, refusedFor: onlyRules, run: (rules) => void change(rules, 'Muted', (rule) => put(rule, { muted_until: Math.round(Date.now() / 1000) + MUTE_S })) },
            { text: 'Switch off', refused, refusedFor: onlyRules, run: (rules) => void change(rules, 'Switched off', (rule) => put(rule, { enabled: false })) },
            { text: 'Switch on', refused, refusedFor: onlyRules, run: (rules) => void change(rules, 'Switched on', (rule) => put(rule, { enabled: true, muted_until: null })) },
            { text: 'Delete', look: 'danger', refused, refusedFor: onlyRules, run: (rows) => setDoomed(rows) },
          ]}
          empty={
            isOff ? (
              <Empty title="Analytics are off" example="weir run --data /var/lib/weir">
                <p>Alerts are rules over the analytics. Give Weir a folder for them:</p>
              </Empty>
            ) : (
              <Empty
                title="No rules yet"
                example={`curl ${location.origin}/api/v1/alerts -d '{"name": "errors", "metric": "share_5xx", "operator": ">",\n  "threshold": 0.05, "period": "5m", "group_by": ["service"], "channels": [{"kind": "log"}]}'`}
              >
                <p>A rule tells you when a number leaves its bounds, such as: more than 5 % of a service's calls fail.</p>
              </Empty>
            )
          }
        />
      )}
      {doomed !== null && (
        <Act
          title={`Delete ${doomed.length === 1 ? (doomed[0]?.name ?? '') : countText(doomed.length, 'rule', 'rules')}?`}
          action="Delete"
          look="danger"
          onClose={() => setDoomed(null)}
          run={async () => {
            for (const rule of doomed) await call('DELETE', rulePath(rule.id))
            await client.invalidateQueries({ queryKey: ['alerts'] })
            toast('Deleted')
            setDoomed(null)
          }}
        >
          <p>{doomed.map((it) => it.name).join(', ')}: nothing is watched by {doomed.length === 1 ? 'it' : 'them'} any more. To stop for a while, mute or switch off instead.</p>
        </Act>
      )}
    </Page>
  )
}
