// One panel of a board: what it asks and how it is drawn, beside the panel itself.
import { useState } from 'react'
import type { Definition, Query } from '../../api/analytics'
import { type Board, type BoardPanel, type PanelKind, queryOf } from '../../api/boards'
import { IconButton } from '../../ui/button'
import { NumberField, SelectField, TextField } from '../../ui/field'
import { Icon } from '../../ui/icons'
import { Panel } from '../panel'

export const PANEL_KINDS: [PanelKind, string][] = [
  ['line', 'lines over time'],
  ['area', 'areas over time'],
  ['bar', 'bars'],
  ['table', 'a table'],
  ['stat', 'numbers'],
]
export const PANEL_WIDTHS: [string, string][] = [
  ['3', 'a quarter'],
  ['4', 'a third'],
  ['6', 'a half'],
  ['8', 'two thirds'],
  ['12', 'all of it'],
]
const MOST_GROUPS = 2

interface Props {
  index: number
  count: number
  panel: BoardPanel
  board: Board
  definition: Definition | undefined
  onChange: (panel: BoardPanel) => void
  onMove: (to: number) => void
  onRemove: () => void
}

/** A query with a field that is left out if it is empty. */
function withField<K extends keyof Query>(query: Query, name: K, value: Query[K] | undefined): Query {
  const { [name]: _, ...rest } = query
  return (value === undefined || (Array.isArray(value) && value.length === 0) ? rest : { ...query, [name]: value }) as Query
}

export function PanelForm({ index, count, panel, board, definition, onChange, onMove, onRemove }: Props) {
  const [isOpen, setOpen] = useState(count <= 2)
  const query: Query = { ...panel.query, metrics: panel.query?.metrics ?? [] }
  const by = query.group_by ?? []
  const setQuery = (next: Query) => onChange({ ...panel, query: next })
  const setKind = (kind: PanelKind) => {
    const isSeries = kind === 'line' || kind === 'area'
    onChange({ ...panel, kind, query: withField(query, 'step', isSeries ? (query.step ?? 'auto') : undefined) })
  }
  const name = panel.title || `panel ${index + 1}`
  const width = String(panel.width ?? 6)
  return (
    <section className="card" aria-label={`Panel ${name}`}>
      <div className="head2">
        <button type="button" className="button quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> {index + 1}. <strong>{name}</strong>
        </button>
        <span className="row">
          {index > 0 && <IconButton small icon="up" label={`Move ${name} up`} onPress={() => onMove(index - 1)} />}
          {index < count - 1 && <IconButton small icon="down" label={`Move ${name} down`} onPress={() => onMove(index + 1)} />}
          <IconButton small icon="trash" label={`Remove ${name}`} onPress={onRemove} />
        </span>
      </div>
      {isOpen && (
        <div className="halves">
          <div className="stack">
            <TextField label={`Title of panel ${index + 1}`} value={panel.title ?? ''} onChange={(title) => onChange({ ...panel, title })} isRequired />
            <div className="figures">
              <SelectField label="Drawn as" value={panel.kind} onChange={setKind} options={PANEL_KINDS} />
              <SelectField label="Width" value={width} onChange={(text) => onChange({ ...panel, width: Number(text) })} options={PANEL_WIDTHS.some(([it]) => it === width) ? PANEL_WIDTHS : [...PANEL_WIDTHS, [width, `${width} of 12 columns`]]} />
            </div>
            <Metrics query={query} definition={definition} onChange={setQuery} />
            <div className="figures">
              {Array.from({ length: MOST_GROUPS }, (_, place) => (
                <SelectField
                  key={place}
                  label={place === 0 ? 'By' : 'and by'}
                  value={by[place] ?? ''}
                  isDisabled={place > by.length}
                  onChange={(text) => setQuery(withField(query, 'group_by', [...by.slice(0, place), text, ...by.slice(place + 1)].filter(Boolean)))}
                  options={[['', 'nothing'], ...(definition?.dimensions ?? by.map((it) => ({ name: it }))).map((it) => [it.name, it.name] as const)]}
                />
              ))}
              <NumberField label="Groups at most" min={1} value={query.limit ?? undefined} placeholder="all" onChange={(limit) => setQuery(withField(query, 'limit', limit))} />
            </div>
          </div>
          {query.metrics.length > 0 && <Panel title={name} kind={panel.kind} query={queryOf(board, { ...panel, query }, '', false)} />}
        </div>
      )}
    </section>
  )
}

/** The metrics of a query; the first one is drawn if there are groups. */
function Metrics({ query, definition, onChange }: { query: Query; definition: Definition | undefined; onChange: (query: Query) => void }) {
  const free = (definition?.metrics ?? []).filter((it) => !query.metrics.includes(it.name))
  return (
    <fieldset className="field">
      <legend className="label">Metrics</legend>
      <div className="row">
        {query.metrics.map((it) => (
          <span className="chip" key={it}>
            {it.replaceAll('_', ' ')}
            <button type="button" aria-label={`Remove the metric ${it.replaceAll('_', ' ')}`} onClick={() => onChange({ ...query, metrics: query.metrics.filter((other) => other !== it) })}>
              <Icon name="close" />
            </button>
          </span>
        ))}
        <select className="select fit" aria-label="Add a metric" value="" onChange={(event) => onChange({ ...query, metrics: [...query.metrics, event.target.value] })}>
          <option value="" disabled>
            add a metric
          </option>
          {free.map((it) => (
            <option key={it.name} value={it.name}>
              {it.name.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      </div>
    </fieldset>
  )
}
