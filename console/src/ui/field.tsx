// Single fields with their labels: what a page asks for by hand, where no schema describes it.
import { type ComponentProps, type ReactNode, useEffect, useId, useState } from 'react'

interface Common {
  label: string
  about?: ReactNode
  wrong?: string | null
  isRequired?: boolean
  isDisabled?: boolean
}

interface Around extends Common {
  id: string
  children: ReactNode
}

function Around({ id, label, about, wrong, isRequired, children }: Around) {
  return (
    <div className="field">
      <div className="label row">
        <label htmlFor={id}>{label}</label>
        {isRequired && <span className="badge">required</span>}
      </div>
      {children}
      {about && (
        <p className="about" id={`${id}-about`}>
          {about}
        </p>
      )}
      {wrong && (
        <p className="wrong" role="alert" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
    </div>
  )
}

/** The ids of what is said of a field: what it is for, and what is wrong with it. */
const saidOf = (id: string, { about, wrong }: Common): string | undefined => [about && `${id}-about`, wrong && `${id}-wrong`].filter(Boolean).join(' ') || undefined

interface TextProps extends Common {
  value: string
  onChange: (value: string) => void
  placeholder?: string
  type?: 'text' | 'number' | 'date' | 'password' | 'email' | 'url'
  isMono?: boolean
  autoFocus?: boolean
  /** Texts that are offered. */
  offered?: string[]
  autoComplete?: string
  /** What numbers are counted in. Without it, fractions are taken: Enter in a form would be held up by them. */
  step?: string
}

export function TextField({ value, onChange, placeholder, type = 'text', isMono, autoFocus, offered, autoComplete, step = type === 'number' ? 'any' : undefined, ...common }: TextProps) {
  const id = useId()
  return (
    <Around id={id} {...common}>
      <input
        id={id}
        className={isMono ? 'input mono' : 'input'}
        type={type}
        step={step}
        value={value}
        placeholder={placeholder}
        disabled={common.isDisabled}
        required={common.isRequired}
        aria-describedby={saidOf(id, common)}
        aria-invalid={common.wrong ? true : undefined}
        autoFocus={autoFocus}
        autoComplete={autoComplete}
        list={offered ? `${id}-offered` : undefined}
        onChange={(event) => onChange(event.target.value)}
      />
      {offered && (
        <datalist id={`${id}-offered`}>
          {offered.map((it) => (
            <option key={it} value={it} />
          ))}
        </datalist>
      )}
    </Around>
  )
}

/**
 * The input of a text that counts once it is left or Enter is pressed, as a filter that stands in the address. If somebody
 * else changes it, as a link does, that is what it shows.
 */
export function LateInput({ value, onChange, ...more }: LateProps & Pick<ComponentProps<'input'>, 'id' | 'aria-describedby' | 'aria-invalid'>) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const take = () => text !== value && onChange(text)
  return <input {...more} className="input" value={text} onChange={(event) => setText(event.target.value)} onBlur={take} onKeyDown={(event) => event.key === 'Enter' && take()} />
}

interface LateProps {
  value: string
  onChange: (value: string) => void
  placeholder?: string
}

export function LateField({ value, onChange, placeholder = '', ...common }: LateProps & Common) {
  const id = useId()
  return (
    <Around id={id} {...common}>
      <LateInput id={id} value={value} onChange={onChange} placeholder={placeholder} aria-describedby={saidOf(id, common)} aria-invalid={common.wrong ? true : undefined} />
    </Around>
  )
}

interface NumberProps {
  value: number | undefined
  /** `undefined`: the field is empty. */
  onChange: (value: number | undefined) => void
  placeholder?: string
  min?: number
  /** Shown times this: a share of 0.05 by 100 is 5 percent. */
  scale?: number
}

/** Twelve digits: what a factor adds behind them is none of the number's own. */
const scaled = (value: number, factor: number): number => Number((value * factor).toPrecision(12))

/**
 * A number. What is typed stays as it is typed until the field is left: `0.0` is on its way to `0.05`, and an empty field
 * to another number.
 */
export function NumberBox({ value, onChange, scale = 1, ...more }: NumberProps & Pick<ComponentProps<'input'>, 'id' | 'required' | 'aria-label' | 'aria-describedby' | 'aria-invalid'>) {
  const [typed, setTyped] = useState<string | null>(null)
  return (
    <input
      {...more}
      className="input"
      type="number"
      step="any"
      value={typed ?? (value === undefined ? '' : String(scaled(value, scale)))}
      onChange={(event) => {
        const text = event.target.value
        setTyped(text)
        onChange(text === '' || !Number.isFinite(Number(text)) ? undefined : scaled(Number(text), 1 / scale))
      }}
      onBlur={() => setTyped(null)}
    />
  )
}

export function NumberField({ value, onChange, placeholder, min, scale, ...common }: NumberProps & Common) {
  const id = useId()
  return (
    <Around id={id} {...common}>
      <NumberBox
        id={id}
        value={value}
        onChange={onChange}
        scale={scale ?? 1}
        {...(placeholder === undefined ? {} : { placeholder })}
        {...(min === undefined ? {} : { min })}
        required={common.isRequired}
        aria-describedby={saidOf(id, common)}
        aria-invalid={common.wrong ? true : undefined}
      />
    </Around>
  )
}

interface AreaProps extends Common {
  value: string
  onChange: (value: string) => void
  placeholder?: string
  rows?: number
  isMono?: boolean
}

export function AreaField({ value, onChange, placeholder, rows = 4, isMono, ...common }: AreaProps) {
  const id = useId()
  return (
    <Around id={id} {...common}>
      <textarea
        id={id}
        className={isMono ? 'input mono' : 'input'}
        rows={rows}
        value={value}
        placeholder={placeholder}
        disabled={common.isDisabled}
        required={common.isRequired}
        spellCheck={!isMono}
        aria-describedby={saidOf(id, common)}
        onChange={(event) => onChange(event.target.value)}
      />
    </Around>
  )
}

interface SelectProps<V extends string> extends Common {
  value: V
  onChange: (value: V) => void
  options: readonly (readonly [V, string])[]
}

export function SelectField<V extends string>({ value, onChange, options, ...common }: SelectProps<V>) {
  const id = useId()
  return (
    <Around id={id} {...common}>
      <select
        id={id}
        className="select"
        value={value}
        disabled={common.isDisabled}
        required={common.isRequired}
        aria-describedby={saidOf(id, common)}
        onChange={(event) => onChange(event.target.value as V)}
      >
        {options.map(([it, text]) => (
          <option key={it} value={it}>
            {text}
          </option>
        ))}
      </select>
    </Around>
  )
}

interface ChoiceProps<V extends string> extends Omit<SelectProps<V>, 'options'> {
  options: readonly { value: V; text: string; about?: string; refused?: string | null }[]
}

/** A few alternatives, all visible. */
export function ChoiceField<V extends string>({ label, value, onChange, options, about }: ChoiceProps<V>) {
  const id = useId()
  return (
    <fieldset className="field">
      <legend className="label">{label}</legend>
      {about && <p className="about">{about}</p>}
      <div className="options">
        {options.map((it) => (
          <label className="pick" key={it.value} data-chosen={it.value === value}>
            <input type="radio" name={id} checked={it.value === value} disabled={Boolean(it.refused)} onChange={() => onChange(it.value)} />
            <span>
              <strong>{it.text}</strong>
              {(it.refused ?? it.about) && <span className="muted small">{it.refused ?? it.about}</span>}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

export function CheckField({ label, value, onChange, about, isDisabled }: Common & { value: boolean; onChange: (value: boolean) => void }) {
  return (
    <div className="field">
      <label className="choice">
        <input type="checkbox" checked={value} disabled={isDisabled} onChange={(event) => onChange(event.target.checked)} />
        <span>{label}</span>
      </label>
      {about && <p className="about">{about}</p>}
    </div>
  )
}

/** Lines of text as a list, without empty ones. */
export const lines = (text: string): string[] => text.split('\n').map((it) => it.trim()).filter((it) => it !== '')
