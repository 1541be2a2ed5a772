// The form of a document of Kong or APISIX and its text, side by side.
import type { Fields, Json, Schema } from '../api/types'
import type { Draft, Format } from '../form/draft'
import { Form, ObjectFields } from '../form/fields'
import { FormatChoice } from '../form/format-choice'
import { Choices } from '../ui/choices'
import { TextEditor } from '../ui/text-editor'

export type View = 'form' | 'both' | 'text'

const VIEWS = [
  { value: 'form', text: 'Form' },
  { value: 'both', text: 'Form and text' },
  { value: 'text', text: 'Text' },
] as const

export function ViewTabs({ view, onChange }: { view: View; onChange: (view: View) => void }) {
  return <Choices label="View" look="tabs" chosen={view} options={VIEWS} onChoose={onChange} />
}

interface Props {
  dialect: string
  name: string
  /** Fields that the original fills in. */
  without: string[]
  first?: string[]
  view: View
  draft: Draft
  schema: Schema | undefined
  findings: Map<string, string[]>
  isReadOnly: boolean
  setValue: (value: Json | undefined) => void
  setText: (text: string) => void
  setFormat: (format: Format) => void
}

const NONE: string[] = []

export function ForeignFields({ dialect, name, without, first = NONE, view, draft, schema, findings, isReadOnly, setValue, setText, setFormat }: Props) {
  const root: Schema = schema ?? {}
  const value: Fields = draft.value
  return (
    <div className={view === 'both' ? 'halves' : 'stack'}>
      {view !== 'text' && schema && (
        <section className="card" aria-label="Form">
          {draft.error !== null && (
            <div className="note bad" role="alert">
              <strong>The text cannot be read</strong>
              <span>{draft.error.message} The form is locked until it is mended; what you typed is kept.</span>
            </div>
          )}
          <fieldset disabled={draft.error !== null} className="stack loose" aria-label={name}>
            <Form.Provider value={{ root, findings, isReadOnly: draft.error !== null || isReadOnly, dialect }}>
              <ObjectFields schema={root} value={value} path={[]} first={first} without={without} onChange={setValue} />
            </Form.Provider>
          </fieldset>
        </section>
      )}
      {view !== 'form' && (
        <section className="card" aria-label="Text">
          <FormatChoice draft={draft} onFormat={setFormat} />
          <TextEditor label={`${name} as text`} text={draft.text} format={draft.format} onChange={setText} problems={draft.error === null ? [] : [draft.error]} isReadOnly={isReadOnly} />
        </section>
      )}
    </div>
  )
}
