// An alert rule that is made or changed, above the numbers that it would have watched.
import { useQueryClient } from '@tanstack/react-query'
import { Suspense, lazy, useMemo } from 'react'
import { useLocation } from 'wouter'
import { type Definition, type Query, type Rule, conditionText, groupName, isFactor, metricTitle, rulePath, ruleValues, useAlerts, useDefinition, useNumbers } from '../../api/analytics'
import { ApiError } from '../../api/client'
import { useRight } from '../../api/rights'
import type { Fields, Json } from '../../api/types'
import type { Begun } from '../../form/draft'
import { EntityEditor } from '../../form/entity-editor'
import { type SendOptions, nameFault, readVersion, send } from '../../form/send'
import { Failure, Page } from '../../shell/page'
import { useIsNew, useSegments } from '../../shell/segments'
import { AreaField, CheckField, ChoiceField, NumberField, SelectField, TextField } from '../../ui/field'
import { toast } from '../../ui/toast'

const Chart = lazy(() => import('../../ui/chart'))

const ALL = '/api/v1/alerts'
const CRUMBS = [{ to: '/alerts', text: 'Alerts' }]
const FRESH: Fields = { name: '', metric: 'share_5xx', operator: '>', threshold: 0.05, period: '5m', group_by: ['service'], min_calls: 20, severity: 'warning', channels: [{ kind: 'log' }] }
const DIMENSIONS = ['service', 'route', 'consumer', 'api', 'gateway', 'upstream']
/** Lines of the chart beside that of the threshold. */
const SHOWN_GROUPS = 4

/** What of a rule is edited: not how it stands. */
function editable({ alerts: _, etag: __, muted_until, ...rest }: Rule): Fields {
  return { ...rest, ...(muted_until === null || muted_until === undefined ? {} : { muted_until }) } as unknown as Fields
}

export default function EditAlert() {
  const [, id = ''] = useSegments()
  const isNew = useIsNew()
  const rules = useAlerts()
  const known = isNew ? undefined : rules.data?.find((it) => it.id === id)
  const refused = useRight('alerts:write')
  const client = useQueryClient()
  const [, go] = useLocation()
  const base = useMemo((): Begun | null => (isNew ? { data: FRESH, tag: null } : known ? { data: editable(known), tag: known.etag ?? null } : null), [isNew, known])
  const store = async (value: Fields, options: SendOptions): Promise<Begun> => {
    const { data, tag } = await (isNew ? send<Rule>('POST', ALL, value, options) : send<Rule>('PUT', rulePath(id), value, options))
    return { data: editable(data), tag }
  }
  return (
    <Page
      title={isNew ? 'New rule' : (known?.name ?? id)}
      about="A rule is evaluated every 30 seconds, for each group by itself. It says when it fires, and when that is over."
      crumbs={CRUMBS}
      calls={[isNew ? { about: 'Make it', method: 'POST', path: ALL, body: base?.data } : { about: 'Save it', method: 'PUT', path: rulePath(id), body: base?.data }]}
    >
      {rules.error instanceof ApiError && rules.error.status === 404 ? (
        <p className="note">Analytics are off. Alerts are rules over them: start Weir with a folder, as in weir run --data /var/lib/weir.</p>
      ) : rules.error && rules.data === undefined ? (
        <Failure error={rules.error} onRetry={() => void rules.refetch()} />
      ) : !isNew && rules.isLoading ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : base === null ? (
        <p className="note warn">There is no such rule any more.</p>
      ) : (
        <EntityEditor
          key={id}
          kept={`alert/${id}`}
          title={isNew ? 'the new rule' : (known?.name ?? id)}
          base={base}
          isNew={isNew}
          refused={refused}
          missing={(value) => nameFault(value, undefined, 'A rule') ?? numberFault(value)}
          form={(value, onChange) => <RuleForm value={value} onChange={onChange} />}
          send={store}
          read={() => readVersion(rulePath(id), editable)}
          isDocument={false}
          onSaved={async (stored) => {
            await client.invalidateQueries({ queryKey: ['alerts'] })
            toast(`${String(stored['name'])} is saved`)
            if (isNew) go('/alerts')
          }}
        />
      )}
    </Page>
  )
}

/** Which number a rule lacks; `null`: none. An emptied field is not 0, which would be another rule. */
export function numberFault(value: Fields): string | null {
  const burn = (value as unknown as Rule).burn_rate
  if (burn && typeof burn.objective !== 'number') return 'It needs an objective.'
  return typeof value['threshold'] === 'number' ? null : 'It needs a threshold.'
}

/** A threshold as people write it: shares in percent, times in milliseconds. */
const SCALES: Record<string, [number, string]> = { share: [100, 'percent'], ratio: [100, 'percent'], microseconds: [0.001, 'milliseconds'] }

function RuleForm({ value, onChange }: { value: Fields; onChange: (value: Fields) => void }) {
  const definition = useDefinition()
  const rule = value as unknown as Rule & { min_calls?: number; no_data?: string; channels?: { kind: string; to?: string; url?: string }[] }
  const set = (name: string, next: Json) => onChange({ ...value, [name]: next })
  const metrics = definition.data?.metrics ?? []
  const unit = metrics.find((it) => it.name === rule.metric)?.unit
  const [scale, word] = isFactor(rule) ? [1, rule.over ? '' : 'times'] : (SCALES[unit ?? ''] ?? [1, unit === undefined || unit === 'count' ? '' : unit])
  const channels = rule.channels ?? []
  const of = (kind: string) => channels.filter((it) => it.kind === kind)
  const setOf = (kind: string, next: { kind: string; to?: string; url?: string }[]) => set('channels', [...channels.filter((it) => it.kind !== kind), ...next] as unknown as Json)
  return (
    <>
      <section className="card" aria-label="Condition">
        <div className="grid">
          <TextField label="Name" value={rule.name ?? ''} onChange={(text) => set('name', text)} placeholder="Errors" isRequired />
          <SelectField label="Metric" value={rule.metric} onChange={(metric) => set('metric', metric)} options={named(metrics, rule.metric)} />
          <ValueFields value={value} onChange={onChange} metrics={metrics} />
          <SelectField label="Is" value={rule.operator} onChange={(operator) => set('operator', operator)} options={[['>', 'above'], ['>=', 'at least'], ['<', 'below'], ['<=', 'at most']]} />
          <Threshold label={word === '' ? 'Threshold' : `Threshold, ${word}`} value={rule.threshold} scale={scale} fault="It needs a threshold." onChange={(threshold) => onChange(withField(value, 'threshold', threshold))} />
          <SelectField label="Over" value={String(rule.period)} onChange={(period) => set('period', period)} options={[...new Set(['2m', '5m', '15m', '1h', '6h', '24h', String(rule.period)])].map((it) => [it, it] as const)} />
          <SelectField
            label="For each"
            value={(rule.group_by ?? []).join(', ')}
            onChange={(text) => set('group_by', text === '' ? [] : text.split(', '))}
            options={[['', 'nothing: one alert for all'], ...[...new Set([...DIMENSIONS, (rule.group_by ?? []).join(', ')])].filter((it) => it !== '').map((it) => [it, it] as const)]}
          />
          <NumberField label="With calls of at least" min={0} value={rule.min_calls ?? 0} onChange={(count) => set('min_calls', Math.max(0, Math.trunc(count ?? 0)))} about="Groups with fewer in that time have no value." />
          <SelectField label="Without calls" value={rule.no_data ?? 'no_data'} onChange={(next) => set('no_data', next)} options={[['no_data', 'it has no data'], ['keep', 'the state stays'], ['zero', 'the value is 0']]} />
        </div>
        <Preview rule={rule} unit={unit} />
      </section>
      <section className="card" aria-label="Who is told">
        <ChoiceField
          label="Severity"
          value={rule.severity ?? 'warning'}
          onChange={(severity) => set('severity', severity)}
          options={[
            { value: 'info', text: 'Info' },
            { value: 'warning', text: 'Warning' },
            { value: 'critical', text: 'Critical' },
          ]}
        />
        <div className="grid">
          <AreaField label="Mails to" rows={2} value={of('mail').map((it) => it.to ?? '').join('\n')} onChange={(text) => setOf('mail', text === '' ? [] : text.split('\n').map((to) => ({ kind: 'mail', to: to.trim() })))} placeholder="team@example.com" about="One on each line. Mails need --smtp." />
          <AreaField label="Webhooks" rows={2} isMono value={of('webhook').map((it) => it.url ?? '').join('\n')} onChange={(text) => setOf('webhook', text === '' ? [] : text.split('\n').map((url) => ({ kind: 'webhook', url: url.trim() })))} placeholder="https://chat.example.com/hook" about="URLs, one on each line." />
        </div>
        <div className="row">
          <CheckField label="Weir's own log" value={of('log').length > 0} onChange={(isOn) => setOf('log', isOn ? [{ kind: 'log' }] : [])} />
          <CheckField label="It is evaluated" value={rule.enabled !== false} onChange={(isOn) => set('enabled', isOn)} />
        </div>
      </section>
    </>
  )
}

/** The metrics to choose from, with one that is chosen already. */
function named(metrics: Definition['metrics'], chosen: string): (readonly [string, string])[] {
  return [...new Set([...metrics.map((it) => it.name), chosen])].map((it) => [it, metricTitle(it)] as const)
}

/** What the value of a rule is: the metric, or a factor of it. */
const WAYS = [
  ['metric', 'the metric itself'],
  ['over', 'the metric divided by another one'],
  ['compare', 'the metric divided by that of earlier'],
  ['burn_rate', 'how fast an error budget is used up'],
] as const
type Way = (typeof WAYS)[number][0]

/** A way that has just been chosen. */
const BEGUN: Record<Way, Fields> = { metric: {}, over: { over: 'calls' }, compare: { compare: '1w' }, burn_rate: { burn_rate: { objective: 0.999, short: '5m' } } }
/** A threshold that makes sense for a way; of the metric itself, its unit decides. */
const THRESHOLDS: Record<Way, number> = { metric: 0.05, over: 1, compare: 2, burn_rate: 10 }

function ValueFields({ value, onChange, metrics }: { value: Fields; onChange: (value: Fields) => void; metrics: Definition['metrics'] }) {
  const rule = value as unknown as Rule
  const way: Way = rule.burn_rate ? 'burn_rate' : rule.compare ? 'compare' : rule.over ? 'over' : 'metric'
  const choose = (next: Way) => {
    if (next === way) return
    const { over: _, compare: __, burn_rate: ___, ...rest } = value
    const isShare = metrics.find((it) => it.name === rule.metric)?.unit === 'share'
    const metric = next === 'burn_rate' && !isShare ? 'share_5xx' : rule.metric
    onChange({ ...rest, metric, threshold: THRESHOLDS[next], ...BEGUN[next] })
  }
  const burn = rule.burn_rate
  const times = (chosen: string | number, offered: string[]) => [...new Set([...offered, String(chosen)])].map((it) => [it, it] as const)
  return (
    <>
      <SelectField label="Its value is" value={way} onChange={choose} options={WAYS} />
      {rule.over && <SelectField label="Divided by" value={rule.over} onChange={(over) => onChange({ ...value, over })} options={named(metrics, rule.over)} />}
      {rule.compare && <SelectField label="Earlier by" value={String(rule.compare)} onChange={(compare) => onChange({ ...value, compare })} options={times(rule.compare, ['1h', '1d', '1w', '4w'])} />}
      {burn && (
        <>
          <Threshold label="Objective, percent of good calls" value={burn.objective} scale={100} fault="It needs an objective." onChange={(objective) => onChange({ ...value, burn_rate: withField(burn as unknown as Fields, 'objective', objective) })} />
          <SelectField label="And over" value={String(burn.short)} onChange={(short) => onChange({ ...value, burn_rate: { ...burn, short } })} options={times(burn.short, ['1m', '2m', '5m', '15m', '30m', '1h'])} about="A shorter time in which it must be as fast: the alert ends soon after the errors do." />
        </>
      )}
    </>
  )
}

/** Fields with one more value, or without it. */
function withField(value: Fields, name: string, next: Json | undefined): Fields {
  const { [name]: _, ...rest } = value
  return next === undefined ? rest : { ...value, [name]: next }
}

interface ThresholdProps {
  label: string
  /** `undefined`: the field is empty. */
  value: number | undefined
  scale: number
  /** What is said then. */
  fault: string
  onChange: (value: number | undefined) => void
}

function Threshold({ label, value, scale, fault, onChange }: ThresholdProps) {
  return <NumberField label={label} value={value} scale={scale} isRequired wrong={typeof value === 'number' ? null : fault} onChange={onChange} />
}

/** The last day of the metric, with the threshold, if there is one. */
function Preview({ rule, unit }: { rule: Rule; unit: string | undefined }) {
  const { metric, over, compare, burn_rate, group_by, threshold } = rule
  const isWhole = numberFault(rule as unknown as Fields) === null
  const query = useMemo(
    (): Query => ({
      metrics: [...new Set([metric, ...(over ? [over] : [])])],
      from: '-24h',
      step: 'auto',
      group_by: group_by ?? [],
      limit: SHOWN_GROUPS,
      marks: false,
      ...(compare ? { compare: String(compare) } : {}),
    }),
    [metric, over, compare, group_by],
  )
  const numbers = useNumbers(query)
  const lines = useMemo(() => {
    const times = numbers.data?.times ?? []
    const frames = (numbers.data?.frames ?? []).filter((it) => !Object.values(it.group).includes('_other'))
    const groups = frames.map((it) => ({ name: groupName(it.group), values: ruleValues({ metric, over, compare, burn_rate }, it) }))
    return isWhole ? [...groups, { name: 'threshold', values: times.map(() => threshold) }] : groups
  }, [numbers.data, metric, over, compare, burn_rate, threshold, isWhole])
  const title = `${isWhole ? conditionText(rule, unit) : metricTitle(metric)}, in the last 24 hours`
  return (
    <section className="stack tight" aria-label="Preview">
      <h2>{title}</h2>
      {numbers.error ? (
        <p className="muted small">There are no numbers of this metric by this group.</p>
      ) : numbers.data === undefined ? (
        <div className="skeleton chart" aria-busy="true" />
      ) : numbers.data.frames.length === 0 ? (
        <p className="muted small">No calls in this time.</p>
      ) : (
        <Suspense fallback={<div className="skeleton chart" />}>
          <Chart label={title} times={numbers.data.times ?? []} lines={lines} unit={isFactor(rule) ? undefined : unit} />
        </Suspense>
      )}
    </section>
  )
}
