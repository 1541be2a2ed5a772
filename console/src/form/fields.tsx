// The form that is made from a JSON Schema. It shows what a document says and what it may say; a default is shown, never
// written; what the schema does not know is kept and listed.
import { createContext, useContext, useId, useState } from 'react'
import type { Fields, Json, Schema } from '../api/types'
import { Choices } from '../ui/choices'
import { Prose } from '../ui/prose'
import { AddField } from './add-field'
import { Chain } from './chain'
import { ChoiceInput, NumberInput, SwitchInput, TextInput } from './inputs'
import { ListInput } from './lists'
import { MapInput } from './maps'
import { type Path, isMap, pathText } from './path'
import { PemInput, isPem } from './pem'
import { listOf } from './reference'
import { SecretReference } from './secret-reference'
import { type Shape, blank, fits, isSecret, label, resolved, shapeOf } from './schema'

export interface FormContext {
  root: Schema
  /** What the server says about a place. */
  findings: Map<string, string[]>
  isReadOnly: boolean
  /** The type of the native document that the whole form is of. */
  document?: string
  /** The dialect of the document; left out: Weir's own. */
  dialect?: string
}

export const Form = createContext<FormContext>({ root: {}, findings: new Map(), isReadOnly: false })

export interface FieldProps {
  name: string
  schema: Schema
  value: Json | undefined
  path: Path
  onChange: (value: Json | undefined) => void
  isRequired?: boolean
  /** Without a title of its own: something around it has one. */
  isBare?: boolean
}

/** The ids that tie a field's parts together. */
export interface Ids {
  input: string
  about: string
}

/** One field with its title, what it is for, and what is wrong with it. */
export function Field(props: FieldProps) {
  const { name, schema, value, path, onChange, isRequired, isBare } = props
  const form = useContext(Form)
  const id = useId()
  const ids: Ids = { input: `${id}-input`, about: `${id}-about` }
  const shape = shapeOf(schema, form.root)
  const it = resolved(schema, form.root)
  const wrong = form.findings.get(pathText(path)) ?? []
  if (isBare) return <Inner {...props} ids={ids} shape={shape} />
  const title = label(name)
  const isGroup = !['boolean', 'number', 'text', 'any'].includes(shape.kind) && !(shape.kind === 'choice' && shape.options.length > 4)
  const head = (
    <>
      <span>{title}</span>
      {isRequired && <span className="badge">required</span>}
      {value !== undefined && !isRequired && !form.isReadOnly && (
        <button type="button" className="button quiet small unset" aria-label={`Unset ${title}`} onClick={() => onChange(undefined)}>
          Unset
        </button>
      )}
    </>
  )
  const rest = (
    <>
      {it.description && (
        <p className="about" id={ids.about}>
          <Prose text={it.description} />
        </p>
      )}
      <Inner {...props} ids={ids} shape={shape} />
      {wrong.map((text) => (
        <p className="wrong" key={text} role="alert">
          {text}
        </p>
      ))}
    </>
  )
  return isGroup ? (
    <fieldset className="field" aria-describedby={it.description ? ids.about : undefined}>
      <legend className="label row">{head}</legend>
      {rest}
    </fieldset>
  ) : (
    <div className="field">
      <div className="label row">
        <label htmlFor={ids.input}>{title}</label>
        {isRequired && <span className="badge">required</span>}
        {value !== undefined && !isRequired && !form.isReadOnly && (
          <button type="button" className="button quiet small unset" aria-label={`Unset ${title}`} onClick={() => onChange(undefined)}>
            Unset
          </button>
        )}
      </div>
      {rest}
    </div>
  )
}

function Inner({ shape, ids, ...props }: FieldProps & { shape: Shape; ids: Ids }) {
  const form = useContext(Form)
  const { schema, value, path, onChange, name } = props
  const it = resolved(schema, form.root)
  const common = { ids, value, onChange, isDisabled: form.isReadOnly, title: label(name), fallback: it.default, isBare: props.isBare === true }
  switch (shape.kind) {
    case 'boolean':
      return <SwitchInput {...common} />
    case 'number':
      return <NumberInput {...common} name={name} shape={shape} />
    case 'text':
      return (
        <>
          {isPem(it) ? <PemInput {...common} isSecret={isSecret(name, it)} /> : <TextInput {...common} isSecret={isSecret(name, it)} examples={it.examples} list={listOf(name, path, form.document)} />}
          {isSecret(name, it) && !form.isReadOnly && <SecretReference title={common.title} dialect={form.dialect ?? 'native'} onChoose={onChange} />}
        </>
      )
    case 'choice':
      return <ChoiceInput {...common} options={shape.options} />
    case 'list':
      return <ListInput {...props} shape={shape} />
    case 'map':
      return <MapInput {...props} shape={shape} />
    case 'object':
      return (
        <div className="nested">
          <ObjectFields schema={schema} value={value} path={path} onChange={onChange} />
        </div>
      )
    case 'variants':
      return <Variants {...props} shape={shape} />
    case 'chain':
      return <Chain {...props} />
    case 'plugin':
      return (
        <div className="nested">
          <ObjectFields schema={schema} value={value} path={path} onChange={onChange} />
        </div>
      )
    case 'any':
      return <AnyInput ids={ids} value={value} onChange={onChange} isDisabled={form.isReadOnly} title={label(name)} isBare={props.isBare === true} />
  }
}

interface ObjectProps {
  schema: Schema
  value: Json | undefined
  path: Path
  onChange: (value: Json | undefined) => void
  /** The fields that are shown although they are not set. */
  first?: string[]
  /** Fields that something else shows. */
  without?: string[]
}

/** The fields of an object: those that are set or required, those that a form begins with, and a way to add others. */
export function ObjectFields({ schema, value, path, onChange, first, without = [] }: ObjectProps) {
  const { root, isReadOnly } = useContext(Form)
  const it = resolved(schema, root)
  const properties = it.properties ?? {}
  const required = it.required ?? []
  const entries: Fields = isMap(value) ? value : {}
  const names = Object.keys(properties).filter((name) => !without.includes(name))
  const few = first === undefined && names.length <= 5
  // Kong writes `null` for what is not set.
  const isSet = (name: string) => entries[name] !== undefined && entries[name] !== null
  const shown = names.filter((name) => isSet(name) || required.includes(name) || few || first?.includes(name))
  const order = (name: string) => {
    const at = first?.indexOf(name) ?? -1
    return at === -1 ? 1000 + names.indexOf(name) : at
  }
  shown.sort((a, b) => order(a) - order(b))
  const unknown = Object.keys(entries).filter((name) => !(name in properties) && !without.includes(name))
  const set = (name: string, next: Json | undefined) => {
    const changed = { ...entries }
    if (next === undefined) delete changed[name]
    else changed[name] = next
    onChange(changed)
  }
  const missing = names.filter((name) => !shown.includes(name))
  return (
    <>
      {shown.map((name) => (
        <Field
          key={name}
          name={name}
          schema={properties[name] ?? {}}
          value={entries[name]}
          path={[...path, name]}
          onChange={(next) => set(name, next)}
          isRequired={required.includes(name)}
        />
      ))}
      {unknown.length > 0 && (
        <div className="note">
          <strong>Not in this form</strong>
          <span>
            These fields are kept as they are: <code>{unknown.join(', ')}</code>. The text shows them.
          </span>
        </div>
      )}
      {missing.length > 0 && !isReadOnly && (
        <AddField
          options={missing.map((name) => ({ name, about: resolved(properties[name] ?? {}, root).description ?? '' }))}
          onAdd={(name) => set(name, blank(properties[name] ?? {}, root))}
        />
      )}
    </>
  )
}

/** One of several forms: tabs above the form of the one that is chosen. */
function Variants({ shape, value, onChange, ...props }: FieldProps & { shape: Extract<Shape, { kind: 'variants' }> }) {
  const { root, isReadOnly } = useContext(Form)
  const found = shape.variants.findIndex((it) => fits(it.schema, value, root))
  const [chosen, setChosen] = useState(0)
  const current = value === undefined ? chosen : Math.max(found, 0)
  const variant = shape.variants[current]
  const choose = (index: number) => {
    setChosen(index)
    const next = shape.variants[index]
    if (next !== undefined && (value !== undefined || resolved(next.schema, root).const !== undefined)) onChange(blank(next.schema, root))
  }
  if (variant === undefined) return null
  const isConstant = resolved(variant.schema, root).const !== undefined
  return (
    <div className="stack tight">
      <Choices
        label={`Form of ${label(props.name)}`}
        look="segments"
        chosen={value !== undefined || !isConstant ? String(current) : null}
        options={shape.variants.map((it, index) => ({ value: String(index), text: it.title }))}
        isDisabled={isReadOnly}
        onChoose={(index) => choose(Number(index))}
      />
      {!(isConstant && value === undefined) && !isConstant && (
        <Field {...props} schema={variant.schema} value={value} onChange={onChange} isBare name={props.name} />
      )}
    </div>
  )
}

/** A value of any form, as JSON. What cannot be read is kept in the field until it can. */
function AnyInput(props: { ids: Ids; value: Json | undefined; onChange: (value: Json | undefined) => void; isDisabled: boolean; title: string; isBare: boolean }) {
  const written = props.value === undefined ? '' : JSON.stringify(props.value, null, 2)
  const [text, setText] = useState<string | null>(null)
  const [error, setError] = useState<string | null>(null)
  const take = (next: string) => {
    setText(next)
    try {
      props.onChange(next.trim() === '' ? undefined : (JSON.parse(next) as Json))
      setError(null)
    } catch (wrong) {
      setError((wrong as Error).message)
    }
  }
  return (
    <>
      <textarea
        id={props.ids.input}
        aria-describedby={props.ids.about}
        aria-label={props.isBare ? props.title : undefined}
        className="input mono"
        rows={Math.min(12, (text ?? written).split('\n').length + 1)}
        disabled={props.isDisabled}
        aria-invalid={error !== null}
        placeholder="as JSON"
        value={text ?? written}
        onBlur={() => error === null && setText(null)}
        onChange={(event) => take(event.target.value)}
      />
      {error !== null && <p className="wrong">This is not JSON yet: {error}</p>}
    </>
  )
}

