// Single fields with their labels: what a page asks for by hand, where no schema describes it.
import { type ReactNode, useId } from 'react'

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
        <p className="wrong" role="alert">
          {wrong}
        </p>
      )}
    </div>
  )
}

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
  /** What numbers are counted in; `any` takes fractions. */
  step?: string
}

export function TextField({ value, onChange, placeholder, type = 'text', isMono, autoFocus, offered, autoComplete, step, ...common }: TextProps) {
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
        aria-describedby={common.about ? `${id}-about` : undefined}
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
        aria-describedby={common.about ? `${id}-about` : undefined}
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
        aria-describedby={common.about ? `${id}-about` : undefined}
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
