// Inputs for single values. Each shows its default where nothing is set.
import { useState } from 'react'
import type { ViewList } from '../api/hooks'
import type { Json } from '../api/types'
import { IconButton } from '../ui/button'
import { Prose } from '../ui/prose'
import type { Ids } from './fields'
import { Named } from './reference'
import { isReference } from './secret-reference'
import { type Option, type Shape, type Unit, unitOf } from './schema'

interface Common {
  ids: Ids
  value: Json | undefined
  onChange: (value: Json | undefined) => void
  isDisabled: boolean
  title: string
  fallback: Json | undefined
  /** Without a label of its own on the page. */
  isBare: boolean
}

/** Texts beyond begin in a field of several lines. */
const LONG = 120

const shown = (value: Json | undefined): string => (value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value))

export function TextInput(props: Common & { isSecret: boolean; examples: Json[] | undefined; list: ViewList | null }) {
  const { ids, value, onChange, isDisabled, fallback, isSecret, examples, list } = props
  const [isRevealed, setRevealed] = useState(false)
  const text = shown(value)
  // A text that grows while it is typed stays in the field that has the focus.
  const [isLong] = useState(text.length > LONG)
  const placeholder = fallback !== undefined && fallback !== null ? `default: ${shown(fallback)}` : examples?.[0] !== undefined ? `such as ${shown(examples[0])}` : ''
  const shared = {
    id: ids.input,
    className: 'input',
    value: text,
    placeholder,
    disabled: isDisabled,
    'aria-describedby': ids.about,
    autoComplete: 'off',
    'aria-label': props.isBare ? props.title : undefined,
    spellCheck: false,
  }
  if ((isLong || text.includes('\n')) && !isSecret) return <textarea {...shared} rows={Math.min(10, text.split('\n').length + 1)} onChange={(event) => onChange(event.target.value)} />
  return (
    <>
      <div className="row" style={{ flexWrap: 'nowrap' }}>
        <input {...shared} type={isSecret && !isRevealed && !isReference(text) ? 'password' : 'text'} onChange={(event) => onChange(event.target.value)} />
        {isSecret && text !== '' && <IconButton icon="eye" label={isRevealed ? `Hide ${props.title}` : `Show ${props.title}`} onPress={() => setRevealed(!isRevealed)} />}
      </div>
      {list !== null && <Named list={list} title={props.title} text={text} onChoose={isDisabled ? null : onChange} />}
    </>
  )
}

const UNITS: Record<Unit, [string, number][]> = {
  time: [
    ['ms', 1],
    ['s', 1000],
    ['min', 60_000],
    ['h', 3_600_000],
    ['d', 86_400_000],
  ],
  size: [
    ['B', 1],
    ['KiB', 1024],
    ['MiB', 1024 ** 2],
    ['GiB', 1024 ** 3],
  ],
}

/** The largest unit that says a value without a fraction. */
function bestUnit(unit: Unit, value: number): [string, number] {
  const fitting = UNITS[unit].filter(([, size]) => value % size === 0 && (value !== 0 || size === 1))
  return fitting.at(-1) ?? (UNITS[unit][0] as [string, number])
}

export function NumberInput(props: Common & { name: string; shape: Extract<Shape, { kind: 'number' }> }) {
  const { ids, value, onChange, isDisabled, fallback, shape } = props
  const measured = unitOf(props.name)
  const number = typeof value === 'number' ? value : undefined
  const [chosen, setChosen] = useState<string | null>(null)
  const [text, setText] = useState<string | null>(null)
  const inBase = (measured?.base ?? 1) * (number ?? (typeof fallback === 'number' ? fallback : 0))
  const units = measured ? UNITS[measured.unit].filter(([, size]) => size >= measured.base) : []
  const best = measured ? bestUnit(measured.unit, inBase) : null
  const [unitName, size] = units.find(([name]) => name === chosen) ?? (best && units.find(([name]) => name === best[0])) ?? units[0] ?? ['', 1]
  const factor = size / (measured?.base ?? 1)
  const written = text ?? (number === undefined ? '' : String(number / factor))
  const take = (next: string, by: number) => {
    setText(next)
    if (next.trim() === '') return onChange(undefined)
    const parsed = Number(next)
    if (!Number.isNaN(parsed)) onChange(shape.isWhole ? Math.round(parsed * by) : parsed * by)
  }
  const isOut = number !== undefined && ((shape.minimum !== undefined && number < shape.minimum) || (shape.maximum !== undefined && number > shape.maximum))
  const isNoNumber = text !== null && text.trim() !== '' && Number.isNaN(Number(text))
  return (
    <>
      <div className="row" style={{ flexWrap: 'nowrap', maxWidth: '20rem' }}>
        <input
          id={ids.input}
          className="input"
          inputMode="decimal"
          autoComplete="off"
          value={written}
          disabled={isDisabled}
          aria-describedby={ids.about}
          aria-invalid={isOut || isNoNumber}
          aria-label={props.isBare ? props.title : undefined}
          placeholder={typeof fallback === 'number' ? `default: ${fallback / factor}` : ''}
          onChange={(event) => take(event.target.value, factor)}
          onBlur={() => setText(null)}
        />
        {measured && (
          <select
            className="select"
            style={{ width: '6rem' }}
            aria-label={`Unit of ${props.title}`}
            value={unitName}
            disabled={isDisabled}
            onChange={(event) => setChosen(event.target.value)}
          >
            {units.map(([name]) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </div>
      {isNoNumber && <p className="wrong">Expected a number.</p>}
      {isOut && (
        <p className="wrong">
          Expected a number from {shape.minimum ?? 'any'} to {shape.maximum ?? 'any'}.
        </p>
      )}
    </>
  )
}

export function SwitchInput({ ids, value, onChange, isDisabled, fallback, title }: Common) {
  const usual = fallback === true
  return (
    <label className="choice">
      <input
        type="checkbox"
        id={ids.input}
        role="switch"
        aria-label={title}
        aria-describedby={ids.about}
        checked={typeof value === 'boolean' ? value : usual}
        disabled={isDisabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span className="muted">
        {value === undefined ? `default: ${usual ? 'yes' : 'no'}` : value === true ? 'yes' : 'no'}
      </span>
    </label>
  )
}

const RADIOS = 4

export function ChoiceInput(props: Common & { options: Option[] }) {
  const { ids, value, onChange, isDisabled, options, fallback, title } = props
  if (options.length > RADIOS) {
    return (
      <select
        id={ids.input}
        className="select"
        aria-label={title}
        aria-describedby={ids.about}
        disabled={isDisabled}
        value={value === undefined ? '' : shown(value)}
        onChange={(event) => onChange(options.find((it) => shown(it.value) === event.target.value)?.value)}
      >
        <option value="">{fallback === undefined || fallback === null ? 'not set' : `default: ${shown(fallback)}`}</option>
        {options.map((it) => (
          <option key={shown(it.value)} value={shown(it.value)}>
            {shown(it.value)}
          </option>
        ))}
      </select>
    )
  }
  return (
    <div className="stack tight">
      {options.map((it) => (
        <label className="choice" key={shown(it.value)}>
          <input
            type="radio"
            name={ids.input}
            disabled={isDisabled}
            checked={value === it.value}
            onChange={() => onChange(it.value)}
          />
          <span>
            {shown(it.value)}
            {value === undefined && fallback === it.value && <span className="badge">default</span>}
            {it.about && <span className="muted small"> <Prose text={it.about} /></span>}
          </span>
        </label>
      ))}
    </div>
  )
}
