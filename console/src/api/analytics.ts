// What pages ask of the analytics.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { ApiError, call, get, refusalOf } from './client'
import { every } from './events'
import { useParts, within } from './parts'

export interface Definition {
  metrics: { name: string; unit: string; description: string; cubes: { cube: string; finest_step: number }[] }[]
  dimensions: { name: string; description: string; cubes: string[] }[]
  cubes: { name: string; description: string; dimensions: string[] }[]
  ranges: { name: string; seconds: number }[]
}

export interface Query {
  metrics: string[]
  from: string
  to?: string
  step?: string
  group_by?: string[]
  filter?: Record<string, string | string[]>
  limit?: number
  order?: string
  compare?: string
  /** `false`: no commits and publications with the answer. */
  marks?: boolean
}

/** A commit or a publication on the time axis. */
export interface Mark {
  kind: 'commit' | 'publication'
  at: number
  revision: number
  author: string
  note: string
  publications?: string[]
}

type Series = Record<string, (number | null)[]>

export interface Frame {
  group: Record<string, string>
  total: Record<string, number | null>
  values?: Series
  compare?: { total: Record<string, number | null>; values?: Series }
}

export interface Result {
  from: number
  to: number
  step: number | null
  resolution: number
  partial: boolean
  gaps: { gateway: string; from: number; to: number; reason: string }[]
  sampled: boolean
  notes: string[]
  units: Record<string, string>
  times?: number[]
  frames: Frame[]
  marks?: Mark[]
}

export interface Call {
  time: number
  weight: number
  status: number
  total_us: number
  upstream_us: number
  request_id: string
  gateway: string
  service: string
  route: string
  consumer: string
  refusal: string
  plugin: string
  method: string
  host: string
  path: string
  target: string
  network: string
}

export interface Rule {
  id: string
  name: string
  metric: string
  operator: string
  threshold: number
  period: string | number
  group_by: string[]
  severity: string
  enabled: boolean
  muted_until: number | null
  /** Its version. */
  etag?: string
  /** The value is the metric divided by this one. */
  over?: string | null
  /** The value is divided by that of so much earlier. */
  compare?: string | number | null
  /** The value is how many times as fast as allowed an error budget is used up. */
  burn_rate?: { objective: number; short: string | number } | null
  alerts: { group: Record<string, string>; state: string; since: number; last_value: number | null }[]
}

export const rulePath = (id: string) => `/api/v1/alerts/${encodeURIComponent(id)}`
export const toRule = (id: string) => `/alerts/${encodeURIComponent(id)}`

const REFRESH_MS = 15_000

export function useDefinition() {
  return useQuery({ queryKey: ['analytics', 'definition'], queryFn: ({ signal }) => get<Definition>('/api/v1/analytics/definition', {}, signal), staleTime: Infinity })
}

/** The answer to a query, about the parts that the caller sees. */
export function useNumbers(query: Query, isWanted = true) {
  const { isKnown, current } = useParts()
  const asked = within(query, current)
  return useQuery({
    queryKey: ['analytics', 'query', asked],
    queryFn: async ({ signal }) => (await call<Result>('POST', '/api/v1/analytics/query', { body: asked, signal })).data,
    // Where there are no analytics, there are none later: each of these calls would stand in the audit log.
    refetchInterval: (query) => (query.state.error instanceof ApiError && query.state.error.status === 404 ? false : REFRESH_MS),
    placeholderData: keepPreviousData,
    enabled: isWanted && isKnown,
  })
}

export function useAlerts() {
  return useQuery({
    queryKey: ['alerts'],
    queryFn: async ({ signal }) => (await get<{ items: Rule[] }>('/api/v1/alerts', {}, signal)).items,
    refetchInterval: every(REFRESH_MS),
  })
}

const LIVE = '/api/v1/analytics/live'

interface Listener {
  /** From now on, no call that ends is missed. */
  onOpen: () => void
  onCall: (call: Call) => void
  /** More ended at once than are sent. */
  onSkipped: (calls: number) => void
}

/** Calls as they end, until `signal` aborts. */
export async function follow(query: Record<string, string>, signal: AbortSignal, { onOpen, onCall, onSkipped }: Listener): Promise<void> {
  const response = await fetch(`${LIVE}?${new URLSearchParams(query).toString()}`, { signal })
  if (!response.ok || response.body === null) throw await refusalOf('GET', LIVE, response)
  onOpen()
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    rest += value
    const events = rest.split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) {
      const lines = event.split('\n')
      const kind = lines.find((line) => line.startsWith('event:'))?.slice(6).trim()
      const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n')
      if (kind === 'call') onCall(JSON.parse(data) as Call)
      if (kind === 'skipped') onSkipped((JSON.parse(data) as { calls: number }).calls)
    }
  }
}

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })

/** A value in its unit, as people read it. */
export function shown(value: number | null | undefined, unit: string | undefined): string {
  if (value === null || value === undefined) return '–'
  switch (unit) {
    case 'share':
    case 'ratio':
      return `${(value * 100).toFixed(value !== 0 && value < 0.01 ? 2 : 1)} %`
    case 'microseconds':
      return value < 1000 ? `${value.toFixed(0)} µs` : value < 1e6 ? `${(value / 1000).toFixed(1)} ms` : `${(value / 1e6).toFixed(2)} s`
    case 'bytes':
      return value < 1024 ? `${value.toFixed(0)} B` : value < 1024 ** 2 ? `${(value / 1024).toFixed(1)} KiB` : value < 1024 ** 3 ? `${(value / 1024 ** 2).toFixed(1)} MiB` : `${(value / 1024 ** 3).toFixed(2)} GiB`
    default:
      // A call in a minute is not no call in a second.
      if (value !== 0 && Math.abs(value) < 0.1) return String(Number(value.toPrecision(2)))
      return Number.isInteger(value) && value < 100_000 ? whole.format(value) : compact.format(value)
  }
}

/** What metrics are called whose name alone does not say it. */
const METRICS: Record<string, string> = {
  errors_4xx: '4xx answers',
  errors_5xx: '5xx answers',
  share_4xx: '4xx share',
  share_5xx: '5xx share',
  share_refused: 'Refused share',
  unique_callers: 'Callers',
}

/** A metric as people read it: `latency_p95` is "Latency p95". */
export const metricTitle = (name: string): string => METRICS[name] ?? `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll('_', ' ')}`

const LENGTHS = [
  [604_800, 'w'],
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
] as const

/** A length of time of the API: a number is one of seconds, and 120 of them are `2m`. */
export function lengthText(length: string | number): string {
  const seconds = Number(length)
  if (!Number.isInteger(seconds)) return String(length)
  const [size, letter] = LENGTHS.find(([size]) => seconds > 0 && seconds % size === 0) ?? [1, 's']
  return `${seconds / size}${letter}`
}

/** What begins the id of the alert of a canary that its guard took back. */
const CANARY = 'canary:'
/** The publication whose canary an alert is about: its API, version and environment. `null`: the alert is of a rule. */
export function canaryOf(rule: Pick<Rule, 'id'>): [string, string, string] | null {
  const [api, version, environment] = rule.id.startsWith(CANARY) ? rule.id.slice(CANARY.length).split('/') : []
  return api && version && environment ? [api, version, environment] : null
}

/** When a rule fires, in words and in the unit of its metric. */
export function conditionText(rule: Pick<Rule, 'metric' | 'operator' | 'threshold' | 'period' | 'over' | 'compare' | 'burn_rate'>, unit: string | undefined): string {
  const title = metricTitle(rule.metric)
  const during = `over ${lengthText(rule.period)}`
  if (rule.burn_rate) return `${title}: error budget of ${shown(1 - rule.burn_rate.objective, 'share')} used up ${rule.operator} ${rule.threshold} times as fast as allowed, ${during} and ${lengthText(rule.burn_rate.short)}`
  if (rule.over) return `${title} / ${metricTitle(rule.over)} ${rule.operator} ${rule.threshold} ${during}`
  if (rule.compare) return `${title} ${rule.operator} ${rule.threshold} times that of ${lengthText(rule.compare)} earlier, ${during}`
  return `${title} ${rule.operator} ${shown(rule.threshold, unit)} ${during}`
}

/** Whether a rule's value is a factor, and not one of its metric. */
export const isFactor = (rule: Pick<Rule, 'over' | 'compare' | 'burn_rate'>): boolean => Boolean(rule.over ?? rule.compare ?? rule.burn_rate)

/** The values of a rule over the times of a frame. */
export function ruleValues(rule: Pick<Rule, 'metric' | 'over' | 'compare' | 'burn_rate'>, frame: Frame): (number | null)[] {
  const values = frame.values?.[rule.metric] ?? []
  const { burn_rate: burn } = rule
  if (burn) return values.map((it) => (it === null ? null : it / (1 - burn.objective)))
  const below = rule.over ? frame.values?.[rule.over] : rule.compare ? frame.compare?.values?.[rule.metric] : undefined
  if (!rule.over && !rule.compare) return values
  return values.map((it, place) => {
    const whole = below?.[place] ?? 0
    return it === null || whole <= 0 ? null : it / whole
  })
}

/** A value on an axis: without a part that says nothing. */
export const tick = (value: number, unit: string | undefined): string => shown(value, unit).replace(/\.0+(?=\s)/, '')

/** What a group is called: groups without a value, calls that no route took, and what is left over have names of their own. */
const GROUPS = new Map([['', '(none)'], ['_other', 'all others'], ['_unmatched', 'no route']])
export const groupName = (group: Record<string, string>): string => Object.values(group).map((it) => GROUPS.get(it) ?? it).join(' · ') || 'all'
