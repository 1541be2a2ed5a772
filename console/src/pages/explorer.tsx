// The explorer: any metric by up to two dimensions, over any time, drawn or as a table. The question is in the address.
import { useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'
import { type Query, metricTitle, useDefinition, useNumbers } from '../api/analytics'
import { useParts, within } from '../api/parts'
import { useRight } from '../api/rights'
import { Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { LateInput, SelectField } from '../ui/field'
import { SavePanel } from './boards/save-panel'
import { Drawn, RANGES, lastText, save } from './panel'
import { PartsChoice } from './parts-choice'

const MOST_GROUPS = 2

/** A custom range, as it stands in the address: `OWN` with a beginning and an end in seconds since 1970. */
const OWN = 'own'
const DAY_S = 86_400

/** A time for a field that asks for one, in the reader's zone. */
function fieldOf(seconds: number): string {
  const date = new Date(seconds * 1000)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** `route:a|b status:500` */
function readFilter(text: string): Record<string, string[]> {
  const pairs = text.split(/\s+/).filter(Boolean).map((part) => part.split(':'))
  return Object.fromEntries(pairs.flatMap(([name, ...rest]) => (name && rest.length > 0 ? [[name, rest.join(':').split('|')]] : [])))
}

/** Compared with as much time right before. */
const BEFORE = 'before'
const COMPARED: [string, string][] = [
  ['', 'nothing'],
  [BEFORE, 'as much time before'],
  ['1d', 'the day before'],
  ['1w', 'the week before'],
]

/** How much earlier the time lies that is compared with. */
function compareOf(compare: string, range: string, from: string, to: string): Pick<Query, 'compare'> {
  if (compare !== BEFORE) return compare === '' ? {} : { compare }
  if (range !== OWN) return { compare: range.replace(/^-/, '') }
  const length = Number(to) - Number(from)
  return length > 0 ? { compare: `${length}s` } : {}
}

export default function Explorer() {
  const [parameters, setParameters] = useSearchParams()
  const definition = useDefinition()
  const metrics = (parameters.get('metrics') ?? 'calls').split(',').filter(Boolean)
  const by = (parameters.get('by') ?? '').split(',').filter(Boolean)
  const range = parameters.get('range') ?? '-1h'
  const filter = parameters.get('filter') ?? ''
  const isTable = parameters.get('as') === 'table'
  const compare = parameters.get('compare') ?? ''
  const [from, to] = [parameters.get('from') ?? '', parameters.get('to') ?? '']
  const set = (name: string, value: string) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old)
        if (value === '') next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  /** An own time begins with the last day. */
  const setRange = (value: string) => {
    const now = Math.floor(Date.now() / 1000)
    setParameters(
      (old) => {
        const next = new URLSearchParams(old)
        next.set('range', value)
        for (const [name, at] of [['from', now - DAY_S], ['to', now]] as const) {
          if (value === OWN) next.set(name, String(at))
          else next.delete(name)
        }
        return next
      },
      { replace: true },
    )
  }
  const refused = useRight('boards:write')
  const [isSaving, setSaving] = useState(false)
  const { current } = useParts()
  const whole = useMemo(
    (): Query => ({
      metrics,
      ...(range === OWN ? { from, to } : { from: range }),
      ...(isTable ? {} : { step: 'auto' }),
      ...(by.length > 0 ? { group_by: by } : {}),
      ...(filter === '' ? {} : { filter: readFilter(filter) }),
      ...compareOf(compare, range, from, to),
      limit: isTable ? 100 : 6,
    }),
    // The lists are made of these texts.
    [parameters, isTable, range, filter, from, to, compare],
  )
  const query = useMemo(() => within(whole, current), [whole, current])
  const numbers = useNumbers(query, range !== OWN || (from !== '' && to !== ''))
  const chosen = definition.data?.metrics.filter((it) => metrics.includes(it.name)) ?? []
  const cubes = chosen.map((it) => it.cubes.map((cube) => cube.cube))
  const isKept = (dimension: string) =>
    chosen.length === 0 ||
    (definition.data?.cubes ?? []).some((cube) => cubes.every((some) => some.includes(cube.name)) && [...by.filter((it) => it !== dimension), dimension].every((it) => cube.dimensions.includes(it)))
  return (
    <Page
      title="Explorer"
      crumbs={[{ to: '/analytics', text: 'Analytics' }]}
      calls={[
        { about: 'These numbers', method: 'POST', path: '/api/v1/analytics/query', body: query },
        { about: 'What can be asked', method: 'GET', path: '/api/v1/analytics/definition' },
      ]}
      actions={
        <>
          <Button onPress={() => void save(query)}>Download CSV</Button>
          <Button look="primary" refused={refused} onPress={() => setSaving(true)}>
            Save as a panel
          </Button>
        </>
      }
    >
      <PartsChoice />
      <section className="card" aria-label="Question">
        <div className="grid">
          <div className="field">
            <label htmlFor="metric">Metric</label>
            <select id="metric" className="select" value={metrics[0] ?? 'calls'} onChange={(event) => set('metrics', event.target.value)}>
              {(definition.data?.metrics ?? [{ name: metrics[0] ?? 'calls', description: '' }]).map((it) => (
                <option key={it.name} value={it.name}>
                  {metricTitle(it.name)}
                </option>
              ))}
            </select>
            <p className="about">{chosen[0] && chosen[0].description !== `${metricTitle(chosen[0].name)}.` && chosen[0].description}</p>
          </div>
          {Array.from({ length: MOST_GROUPS }, (_, index) => (
            <div className="field" key={index}>
              <label htmlFor={`by-${index}`}>{index === 0 ? 'By' : 'and by'}</label>
              <select
                id={`by-${index}`}
                className="select"
                value={by[index] ?? ''}
                disabled={index > by.length}
                onChange={(event) => set('by', [...by.slice(0, index), event.target.value, ...by.slice(index + 1)].filter(Boolean).join(','))}
              >
                <option value="">nothing</option>
                {definition.data?.dimensions.map((it) => (
                  <option key={it.name} value={it.name} disabled={!isKept(it.name)}>
                    {metricTitle(it.name)}
                    {isKept(it.name) ? '' : ' (not kept together)'}
                  </option>
                ))}
              </select>
            </div>
          ))}
          <div className="field">
            <label htmlFor="range">Time</label>
            <select id="range" className="select" value={range} onChange={(event) => setRange(event.target.value)}>
              {RANGES.map(([value, text]) => (
                <option key={value} value={value}>
                  {lastText(text)}
                </option>
              ))}
              <option value={OWN}>from … to …</option>
            </select>
          </div>
          {range === OWN &&
            ([['from', 'From', from], ['to', 'To', to]] as const).map(([name, title, value]) => (
              <div className="field" key={name}>
                <label htmlFor={`range-${name}`}>{title}</label>
                <input
                  id={`range-${name}`}
                  className="input"
                  type="datetime-local"
                  defaultValue={value === '' ? '' : fieldOf(Number(value))}
                  aria-describedby={`range-${name}-zone`}
                  onChange={(event) => event.target.value !== '' && set(name, String(Math.floor(new Date(event.target.value).getTime() / 1000)))}
                />
                <p className="about" id={`range-${name}-zone`}>
                  In the time zone {Intl.DateTimeFormat().resolvedOptions().timeZone}.
                </p>
              </div>
            ))}
          <SelectField label="Compared with" value={compare} onChange={(value) => set('compare', value)} options={COMPARED.some(([it]) => it === compare) ? COMPARED : [...COMPARED, [compare, `${compare} before`] as [string, string]]} />
          <div className="field">
            <label htmlFor="filter">Only</label>
            <LateInput id="filter" value={filter} placeholder="route:orders class:5xx" onChange={(text) => set('filter', text)} />
          </div>
          <fieldset className="field">
            <legend>Shown as</legend>
            <div className="choices">
              {['chart', 'table'].map((it) => (
                <label className="choice" key={it}>
                  <input type="radio" name="as" checked={isTable === (it === 'table')} onChange={() => set('as', it === 'table' ? 'table' : '')} />
                  {it}
                </label>
              ))}
            </div>
          </fieldset>
        </div>
      </section>
      <section className="card" aria-label="Answer">
        {numbers.error ? <Failure error={numbers.error} onRetry={() => void numbers.refetch()} /> : numbers.data === undefined ? <div className="skeleton chart" aria-busy="true" /> : <Drawn title={metrics.join(', ')} query={query} result={numbers.data} />}
      </section>
      {isSaving && <SavePanel query={query} onClose={() => setSaving(false)} />}
    </Page>
  )
}
