// The questions that a plan asks, as rows of a form. What a question has beside these fields stays as it is.
import type { Fields, Json } from '../../api/types'
import { isMap } from '../../form/path'
import { Button, IconButton } from '../../ui/button'

const KINDS = { text: 'a text', number: 'a number', 'yes-no': 'yes or no', choice: 'one of a few' } as const
type Kind = keyof typeof KINDS

const kindOf = (it: Fields): Kind => (Array.isArray(it['enum']) ? 'choice' : it['type'] === 'boolean' ? 'yes-no' : it['type'] === 'string' ? 'text' : 'number')

/** A question of another kind keeps its title and its help. */
function ofKind(it: Fields, kind: Kind): Fields {
  const { title, description } = it
  const kept = { ...(title === undefined ? {} : { title }), ...(description === undefined ? {} : { description }) }
  if (kind === 'choice') return { type: 'string', ...kept, enum: ['yes', 'no'] }
  return { type: kind === 'text' ? 'string' : kind === 'number' ? 'number' : 'boolean', ...kept }
}

const wordsOf = (value: Json | undefined): string => (Array.isArray(value) ? value.map(String).join(', ') : '')

export function PlanQuestions({ form, onChange }: { form: Fields | undefined; onChange: (form: Fields | undefined) => void }) {
  const properties = isMap(form?.['properties']) ? form['properties'] : {}
  const required = Array.isArray(form?.['required']) ? form['required'] : []
  const write = (next: Fields, needed: Json[] = required) => {
    const left = needed.filter((it) => typeof it === 'string' && it in next)
    onChange(Object.keys(next).length === 0 ? undefined : { ...form, type: 'object', properties: next, required: left })
  }
  const add = () => {
    let number = Object.keys(properties).length + 1
    while (`question-${number}` in properties) number += 1
    write({ ...properties, [`question-${number}`]: { type: 'string', title: '' } })
  }
  return (
    <fieldset className="field">
      <legend className="label">Questions</legend>
      <p className="about">Subscribers answer them; who decides reads the answers.</p>
      <div className="rows">
        {Object.entries(properties).map(([name, value], index) => {
          const it = isMap(value) ? value : {}
          const of = `of question ${index + 1}`
          const set = (more: Fields) => write({ ...properties, [name]: { ...it, ...more } })
          return (
            <div className="row" key={name}>
              <input className="input" aria-label={`Text ${of}`} placeholder="Which team are you?" value={String(it['title'] ?? '')} onChange={(event) => set({ title: event.target.value })} />
              <select className="select" aria-label={`Answer ${of}`} value={kindOf(it)} onChange={(event) => write({ ...properties, [name]: ofKind(it, event.target.value as Kind) })}>
                {Object.entries(KINDS).map(([kind, text]) => (
                  <option key={kind} value={kind}>
                    {text}
                  </option>
                ))}
              </select>
              {Array.isArray(it['enum']) && it['type'] === 'string' && (
                <input className="input" aria-label={`Choices ${of}`} placeholder="inside, outside" defaultValue={wordsOf(it['enum'])} onBlur={(event) => set({ enum: event.target.value.split(',').map((word) => word.trim()).filter(Boolean) })} />
              )}
              <label className="choice">
                <input type="checkbox" aria-label={`Required: question ${index + 1}`} checked={required.includes(name)} onChange={(event) => write(properties, event.target.checked ? [...required, name] : required.filter((one) => one !== name))} />
                <span>required</span>
              </label>
              <IconButton small icon="trash" label={`Remove question ${index + 1}`} onPress={() => write(Object.fromEntries(Object.entries(properties).filter(([other]) => other !== name)))} />
            </div>
          )
        })}
        <div>
          <Button small icon="plus" onPress={add}>
            Add a question
          </Button>
        </div>
      </div>
    </fieldset>
  )
}
