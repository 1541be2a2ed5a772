// The chain of plugins: its steps in their order, each with the form of its plugin.
import { useContext, useState } from 'react'
import type { Fields, Json, Schema } from '../api/types'
import { IconButton } from '../ui/button'
import { Prose } from '../ui/prose'
import { stepName } from '../kinds'
import { AddField } from './add-field'
import { type FieldProps, Form, ObjectFields } from './fields'
import { moved } from './lists'
import { type Path, isMap } from './path'
import { blank } from './schema'

/** The names of all plugins that the schema knows. */
export function pluginNames(root: Schema): string[] {
  return (root.$defs?.['PluginInstance']?.properties?.['name']?.enum ?? []).filter((it) => typeof it === 'string')
}

/** Fields of a step that belong to the step and not to its plugin. */
const STEP = ['when', 'on_refusal', 'overrides', 'response_only', 'response_order', 'id']

export function Chain({ value, onChange, path }: FieldProps) {
  const { root, isReadOnly } = useContext(Form)
  const steps: Json[] = Array.isArray(value) ? value : []
  const options = pluginNames(root).map((name) => ({ name, about: root.$defs?.[name]?.description ?? '' }))
  return (
    <div className="rows">
      {steps.length > 1 && (
        <ol className="row small" aria-label="Order">
          {steps.map((step, index) => (
            <li key={index} className="row">
              {index > 0 && <span aria-hidden="true">→</span>}
              <span className="badge accent">{stepName(step)}</span>
            </li>
          ))}
        </ol>
      )}
      {steps.map((step, index) => (
        <Step
          key={index}
          step={step}
          index={index}
          count={steps.length}
          path={[...path, index]}
          onChange={(next) => onChange(steps.map((it, at) => (at === index ? next : it)))}
          onMove={(to) => onChange(moved(steps, index, to))}
          onRemove={() => onChange(steps.filter((_, at) => at !== index))}
        />
      ))}
      {!isReadOnly && (
        <AddField
          text="Add a plugin"
          options={options}
          onAdd={(name) => onChange([...steps, { [name]: blank({ $ref: `#/$defs/${name}` }, root) }])}
        />
      )}
    </div>
  )
}

interface StepProps {
  step: Json
  index: number
  count: number
  path: Path
  onChange: (step: Json) => void
  onMove: (to: number) => void
  onRemove: () => void
}

function Step({ step, index, count, path, onChange, onMove, onRemove }: StepProps) {
  const { isReadOnly } = useContext(Form)
  const name = stepName(step)
  const [isOpen, setOpen] = useState(count <= 2)
  return (
    <section className="nested" aria-label={`Plugin ${name}`}>
      <div className="row between">
        <button type="button" className="button quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> {index + 1}. <strong>{name}</strong>
        </button>
        {!isReadOnly && (
          <span className="row">
            {index > 0 && <IconButton small icon="up" label={`Run ${name} earlier`} onPress={() => onMove(index - 1)} />}
            {index < count - 1 && <IconButton small icon="down" label={`Run ${name} later`} onPress={() => onMove(index + 1)} />}
            <IconButton small icon="trash" label={`Remove ${name}`} onPress={onRemove} />
          </span>
        )}
      </div>
      {isOpen && <StepForm step={step} name={name} path={path} onChange={onChange} />}
    </section>
  )
}

/** A step is `{PLUGIN: configuration}`, `{name: PLUGIN, config: …}`, or names a shared plugin. */
function StepForm({ step, name, path, onChange }: { step: Json; name: string; path: Path; onChange: (step: Json) => void }) {
  const { root } = useContext(Form)
  const schema = root.$defs?.[name]
  if (!isMap(step) || schema === undefined) {
    return (
      <p className="muted">
        This step uses the shared plugin <code>{name}</code>.
      </p>
    )
  }
  const entry: Fields = step
  const place = typeof entry['name'] === 'string' ? 'config' : name
  const around = root.$defs?.['ChainStep'] ?? {}
  const own: Schema = {
    ...around,
    properties: Object.fromEntries(Object.entries(around.properties ?? {}).filter(([field]) => STEP.includes(field))),
    required: [],
  }
  return (
    <>
      {schema.description && <p className="muted"><Prose text={schema.description} /></p>}
      <ObjectFields schema={schema} value={entry[place] ?? {}} path={[...path, place]} onChange={(next) => onChange({ ...entry, [place]: next ?? {} })} />
      <details>
        <summary className="small">When it runs, and what its refusals answer</summary>
        <div className="stack" style={{ paddingTop: '1rem' }}>
          <ObjectFields schema={own} value={entry} path={path} without={[place, 'name']} onChange={(next) => isMap(next) && onChange(next)} />
        </div>
      </details>
    </>
  )
}
