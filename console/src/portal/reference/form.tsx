// The form of a call: a field for each parameter, and the body. What is typed appears in the samples at once.
import { type Content, type Parameter, type Typed, isForm, keyOf } from './request'
import { isFields } from './schema'

interface Props {
  parameters: Parameter[]
  typed: Typed
  onType: (typed: Typed) => void
  content: Content | undefined
  form: { name: string; isFile: boolean; isRequired: boolean }[]
}

export function CallForm({ parameters, typed, onType, content, form }: Props) {
  if (parameters.length === 0 && content === undefined) return null
  return (
    <section aria-label="Values">
      <h3>Values</h3>
      {parameters.map((it) => (
        <ParameterField key={keyOf(it)} parameter={it} value={typed.parameters[keyOf(it)] ?? ''} onChange={(value) => onType({ ...typed, parameters: { ...typed.parameters, [keyOf(it)]: value } })} />
      ))}
      {content && isForm(content.media)
        ? form.map((it) => (
            <label key={it.name} className="field">
              <span className="label">
                {it.name} {it.isFile && <span className="muted small">file</span>} {it.isRequired && <span className="muted small">required</span>}
              </span>
              <input className="input" value={typed.form[it.name] ?? ''} onChange={(event) => onType({ ...typed, form: { ...typed.form, [it.name]: event.target.value } })} />
            </label>
          ))
        : content && (
            <label className="field">
              <span className="label">
                Body <span className="muted small">{content.media}</span>
              </span>
              <textarea className="input mono" rows={Math.min(14, typed.body.split('\n').length + 1)} spellCheck={false} value={typed.body} onChange={(event) => onType({ ...typed, body: event.target.value })} />
            </label>
          )}
    </section>
  )
}

function ParameterField({ parameter, value, onChange }: { parameter: Parameter; value: string; onChange: (value: string) => void }) {
  const schema = isFields(parameter.schema) ? parameter.schema : {}
  const choices = Array.isArray(schema['enum']) ? schema['enum'].map(String) : schema['type'] === 'boolean' ? ['true', 'false'] : null
  return (
    <label className="field">
      <span className="label">
        {parameter.name} <span className="muted small">{parameter.place}</span> {parameter.isRequired && <span className="muted small">required</span>}
      </span>
      {choices === null ? (
        <input className="input" value={value} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <select className="select" value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">(left out)</option>
          {choices.map((it) => (
            <option key={it}>{it}</option>
          ))}
        </select>
      )}
    </label>
  )
}
