// The questions that a plan asks: fields for texts, numbers, choices and truth values, made of its JSON Schema; and what was
// answered, as people read it. What a question asks exactly is checked by the server.
import type { Fields, Json } from '../api/types'
import { AreaField, CheckField, SelectField, TextField } from './field'

/** From how many characters on an answer has a large field. */
const LONG = 200

interface Question {
  name: string
  title: string
  about: string | undefined
  kind: 'text' | 'long' | 'number' | 'yes-no' | 'choice'
  /** What may be chosen, as it is sent. */
  options: Json[]
  isRequired: boolean
}

/** What is typed, as it stands in the fields. */
export type Typed = Record<string, string | boolean>

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : value === undefined || value === null ? '' : typeof value === 'boolean' ? (value ? 'yes' : 'no') : JSON.stringify(value))

const fieldsOf = (value: Json | undefined): Fields => (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {})

function kindOf(it: Fields): Question['kind'] {
  if (Array.isArray(it['enum'])) return 'choice'
  if (it['type'] === 'boolean') return 'yes-no'
  if (it['type'] === 'integer' || it['type'] === 'number') return 'number'
  return Number(it['maxLength'] ?? 0) >= LONG ? 'long' : 'text'
}

function questionsOf(form: Json | null | undefined): Question[] {
  const { properties, required } = fieldsOf(form ?? null)
  const needed = Array.isArray(required) ? required : []
  return Object.entries(fieldsOf(properties)).map(([name, value]) => {
    const it = fieldsOf(value)
    const options = it['enum']
    return { name, title: textOf(it['title']) || name, about: textOf(it['description']) || undefined, kind: kindOf(it), options: Array.isArray(options) ? options : [], isRequired: needed.includes(name) }
  })
}

/** What stands in the fields before anything is typed: what the plan offers. */
export function begun(form: Json | null | undefined): Typed {
  const known = Object.entries(fieldsOf(fieldsOf(form ?? null)['properties'])).flatMap(([name, value]): [string, string | boolean][] => {
    const offered = fieldsOf(value)['default']
    if (offered === undefined) return []
    return [[name, typeof offered === 'boolean' && kindOf(fieldsOf(value)) === 'yes-no' ? offered : textOf(offered)]]
  })
  return Object.fromEntries(known)
}

/** The answers as they are sent. What is left empty is not answered. */
export function answersOf(form: Json | null | undefined, typed: Typed): Fields {
  const answers: Fields = {}
  for (const it of questionsOf(form)) {
    const value = typed[it.name]
    if (it.kind === 'yes-no') answers[it.name] = value === true
    else if (value === undefined || value === '') continue
    else if (it.kind === 'choice') answers[it.name] = it.options.find((option) => textOf(option) === value) ?? null
    else answers[it.name] = it.kind === 'number' ? Number(value) : value
  }
  return answers
}

/** The first question that has to be answered and is not. */
export function unanswered(form: Json | null | undefined, typed: Typed): string | null {
  const answers = answersOf(form, typed)
  return questionsOf(form).find((it) => it.isRequired && answers[it.name] === undefined)?.title ?? null
}

/** Questions with their answers, as people read them. One that is asked no longer goes by its name. */
export function answerLines(form: Json | null | undefined, answers: Fields): [string, string][] {
  const questions = questionsOf(form)
  return Object.entries(answers).map(([name, value]) => [questions.find((it) => it.name === name)?.title ?? name, textOf(value)])
}

interface Props {
  form: Json | null | undefined
  typed: Typed
  onChange: (typed: Typed) => void
}

export function Questions({ form, typed, onChange }: Props) {
  return questionsOf(form).map((it) => {
    const value = typed[it.name]
    const set = (next: string | boolean) => onChange({ ...typed, [it.name]: next })
    const common = { label: it.title, about: it.about, isRequired: it.isRequired, onChange: set, value: typeof value === 'string' ? value : '' }
    if (it.kind === 'yes-no') return <CheckField key={it.name} label={it.title} about={it.about} value={value === true} onChange={set} />
    if (it.kind === 'choice') return <SelectField key={it.name} {...common} options={[['', 'Choose one'], ...it.options.map((option) => [textOf(option), textOf(option)] as const)]} />
    if (it.kind === 'long') return <AreaField key={it.name} {...common} />
    return <TextField key={it.name} {...common} {...(it.kind === 'number' ? { type: 'number' as const, step: 'any' } : {})} />
  })
}
