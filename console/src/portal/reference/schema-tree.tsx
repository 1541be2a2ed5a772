// A schema as a tree of fields that open on demand: deep and recursive schemas cost nothing until somebody looks.
import { useState } from 'react'
import { Choices } from '../../ui/choices'
import { Prose } from '../../ui/prose'
import { type Fields, type Schemas, isFields, merged, others, rules, typeOf, variants } from './schema'

interface Props {
  schema: unknown
  schemas: Schemas
  /** Asks for a schema that is not here yet. */
  onMissing: (name: string) => void
}

interface TreeProps extends Props {
  depth: number
  path: string[]
}

/** `said`: the description that stands above already. */
export function SchemaTree({ said = '', ...props }: Props & { said?: string }) {
  const { schema } = merged(props.schema, props.schemas)
  const { description, ...rest } = schema
  return (
    <div className="schema">
      <Facts schema={description === said ? rest : schema} />
      <Tree {...props} depth={0} path={[]} />
    </div>
  )
}

function Tree({ schema, schemas, onMissing, depth, path }: TreeProps) {
  const { schema: whole, name, missing } = merged(schema, schemas)
  if (missing !== null) return <Missing name={missing} onMissing={onMissing} />
  const below = { schemas, onMissing, depth: depth + 1, path: name === null ? path : [...path, name] }
  const choices = variants(whole, schemas)
  const properties = isFields(whole['properties']) ? Object.entries(whole['properties']) : []
  const required = Array.isArray(whole['required']) ? whole['required'] : []
  const more = whole['additionalProperties']
  const apart = Array.isArray(whole['allOf']) ? whole['allOf'] : []
  const tuple = Array.isArray(whole['prefixItems']) ? whole['prefixItems'] : []
  const unknown = others(whole)
  return (
    <>
      {choices.length > 0 && <Alternatives key={choices.length} choices={choices} whole={whole} below={below} />}
      {properties.length > 0 && (
        <ul className="fields">
          {properties.map(([field, it]) => (
            <Field key={field} name={field} schema={it} isRequired={required.includes(field)} {...below} />
          ))}
        </ul>
      )}
      {isFields(more) && (
        <ul className="fields">
          <Field name="any other field" isPlain schema={more} isRequired={false} {...below} />
        </ul>
      )}
      {tuple.map((it, index) => (
        <ul className="fields" key={index}>
          <Field name={`item ${index + 1}`} isPlain schema={it} isRequired={false} {...below} />
        </ul>
      ))}
      {whole['items'] !== undefined && (
        <ul className="fields">
          <Field name="each item" isPlain schema={whole['items']} isRequired={false} {...below} />
        </ul>
      )}
      {whole['not'] !== undefined && <Raw title="must not be" value={whole['not']} />}
      {apart.map((it, index) => (
        <div key={index} className="nested">
          <span className="muted small">and also</span>
          <Tree schema={it} {...below} />
        </div>
      ))}
      {Object.keys(unknown).length > 0 && <Raw title="Also" value={unknown} />}
    </>
  )
}

function Missing({ name, onMissing }: { name: string; onMissing: (name: string) => void }) {
  return (
    <button type="button" className="button small" onClick={() => onMissing(name)}>
      Show {name}
    </button>
  )
}

function Raw({ title, value }: { title: string; value: unknown }) {
  return (
    <div className="stack tight">
      <span className="muted small">{title}</span>
      <pre className="code small" tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
    </div>
  )
}

function Alternatives({ choices, whole, below }: { choices: ReturnType<typeof variants>; whole: Fields; below: Omit<TreeProps, 'schema'> }) {
  const [chosen, choose] = useState(0)
  const key = isFields(whole['discriminator']) ? whole['discriminator']['propertyName'] : null
  const choice = choices[Math.min(chosen, choices.length - 1)]
  return (
    <div className="nested">
      <div className="row">
        <span className="muted small">{Array.isArray(whole['oneOf']) ? 'one of' : 'any of'}</span>
        <Choices
          label={Array.isArray(whole['oneOf']) ? 'One of' : 'Any of'}
          look="row"
          buttonLook="chip-choice"
          chosen={String(chosen)}
          options={choices.map((it, index) => ({ value: String(index), text: it.title }))}
          onChoose={(index) => choose(Number(index))}
        />
      </div>
      {typeof key === 'string' && choice && (
        <p className="muted small">
          <code>{key}</code> says which one.
        </p>
      )}
      {choice && <Shape schema={choice.schema} {...below} />}
    </div>
  )
}

/** A schema without a name in front of it. */
export function Shape(props: TreeProps) {
  const { schema: whole } = merged(props.schema, props.schemas)
  return (
    <div className="stack tight">
      <Facts schema={whole} />
      <Tree {...props} />
    </div>
  )
}

interface FieldProps extends TreeProps {
  name: string
  isRequired: boolean
  /** The name is a word of ours. */
  isPlain?: boolean
}

function Field({ name, isRequired, isPlain, ...tree }: FieldProps) {
  const { schema: whole, name: found, missing } = merged(tree.schema, tree.schemas)
  const isRecursive = found !== null && tree.path.includes(found)
  const [isOpen, open] = useState(tree.depth < 2 && !isRecursive)
  const hasMore =
    missing !== null || ['properties', 'items', 'oneOf', 'anyOf', 'allOf', 'prefixItems', 'not'].some((it) => it in whole) || isFields(whole['additionalProperties'])
  return (
    <li>
      <div className="row field-line">
        {hasMore ? (
          <button type="button" className="toggle" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
            <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> {isPlain ? <em>{name}</em> : <code>{name}</code>}
          </button>
        ) : (
          <span className="leaf">{isPlain ? <em>{name}</em> : <code>{name}</code>}</span>
        )}
        <span className="muted small">{missing ?? (found === null ? typeOf(whole) : `${found}: ${typeOf(whole)}`)}</span>
        {isRequired && <span className="badge warn">required</span>}
        {isRecursive && <span className="badge">refers back</span>}
        {whole['deprecated'] === true && <span className="badge bad">deprecated</span>}
        {whole['readOnly'] === true && <span className="badge">in answers only</span>}
        {whole['writeOnly'] === true && <span className="badge">in requests only</span>}
      </div>
      <Facts schema={whole} />
      {hasMore && isOpen && (
        <div className="below">
          <Tree {...tree} />
        </div>
      )}
    </li>
  )
}

/** What is said of a value: its description, its rules, what it may be. */
function Facts({ schema }: { schema: Fields }) {
  const found = rules(schema)
  const values = Array.isArray(schema['enum']) ? schema['enum'] : []
  const about = typeof schema['description'] === 'string' ? schema['description'] : ''
  return (
    <>
      {about && (
        <p className="about">
          <Prose text={about} />
        </p>
      )}
      {values.length > 0 && (
        <p className="about">
          One of {values.map((it, index) => <code key={index} className="value">{JSON.stringify(it)}</code>)}
        </p>
      )}
      {found.length > 0 && <p className="about muted">{found.join(' · ')}</p>}
    </>
  )
}
