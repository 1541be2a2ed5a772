// An operation: what it does, what goes in and comes out, the same call in several languages, and a form to try it.
import { Suspense, lazy, useCallback, useMemo, useState } from 'react'
import { call } from '../../api/client'
import { Failure } from '../../shell/page'
import { Choices } from '../../ui/choices'
import { Prose } from '../../ui/prose'
import { CopyButton } from '../copy'
import { type OperationDetail, type VersionDetail, useOperation, versionPath } from '../data'
import { Text } from '../text'
import { CallForm } from './form'
import { type Content, type Typed, contentsOf, formFields, isForm, keyOf, parametersOf, wireOf } from './request'
import { LANGUAGES, type Language, sample } from './samples'
import { type Fields, type Schemas, isFields, typeOf, merged } from './schema'
import { SchemaTree } from './schema-tree'

const Try = lazy(() => import('./try'))

/** What stands in samples for the address of a gateway that is not given. */
const UNKNOWN_HOST = 'https://GATEWAY'

/** Schemas that an operation brought, and those that were asked for since. */
function useSchemas(api: string, version: string, first: Schemas): [Schemas, (name: string) => void] {
  const [more, add] = useState<Schemas>({})
  const ask = useCallback(
    (name: string) => {
      const path = `${versionPath(api, version)}/schemas/${encodeURIComponent(name)}`
      call<{ schemas: Schemas }>('GET', path).then(
        ({ data }) => add((known) => ({ ...known, ...data.schemas })),
        () => add((known) => ({ ...known, [name]: { description: 'This schema is not described.' } })),
      )
    },
    [api, version],
  )
  return [useMemo(() => ({ ...first, ...more }), [first, more]), ask]
}

export default function Operation({ version, id }: { version: VersionDetail; id: string }) {
  const found = useOperation(version.api, version.version, id)
  if (found.error) return <Failure error={found.error} onRetry={() => void found.refetch()} />
  if (found.data === undefined) return <div aria-busy="true" className="loading" />
  return <Shown key={id} version={version} operation={found.data} />
}

function Shown({ version, operation }: { version: VersionDetail; operation: OperationDetail }) {
  const value = operation.value as Fields
  const [schemas, ask] = useSchemas(version.api, version.version, operation.schemas as Schemas)
  const parameters = useMemo(() => parametersOf(value, schemas), [value, schemas])
  const body = useMemo(() => contentsOf(value['requestBody'], schemas, 'request'), [value, schemas])
  const [typed, type] = useState<Typed>(() => beginning(parameters, body, schemas))
  const content = body.find((it) => it.media === typed.media)
  const form = useMemo(() => (content && isForm(content.media) ? formFields(content.schema, schemas) : []), [content, schemas])
  const [placeAt, choosePlace] = useState(0)
  const place = version.places[placeAt]
  const plan = version.plans.find((it) => it.security === 'key')
  const base = place?.base_url ?? `${UNKNOWN_HOST}${place?.base_path ?? ''}`
  const wire = wireOf({ method: operation.method, path: operation.path, base, key: plan ? '$API_KEY' : null }, parameters, typed, schemas, form)
  const chooseMedia = (media: string) => type({ ...typed, media, body: body.find((it) => it.media === media)?.examples[0]?.text ?? '' })
  return (
    <article className="operation" aria-label={operation.summary || operation.id}>
      <header className="stack tight">
        <h2>{operation.summary || operation.id}</h2>
        <div className="endpoint">
          <Method method={operation.method} />
          <code className="path">
            <span className="muted">{place?.base_url ?? place?.base_path}</span>
            {operation.path}
          </code>
          {operation.is_deprecated && <span className="badge bad">deprecated</span>}
        </div>
      </header>
      <div className="two">
        <div className="stack loose">
          {operation.description.length > 0 && <Text nodes={operation.description} />}
          {parameters.length > 0 && (
            <section className="stack" aria-label="Parameters">
              <h3>Parameters</h3>
              <ul className="fields">
                {parameters.map((it) => (
                  <li key={keyOf(it)}>
                    <div className="row field-line">
                      <code>{it.name}</code>
                      <span className="muted small">
                        in {it.place}, {typeOf(merged(it.schema, schemas).schema)}
                      </span>
                      {it.isRequired && <span className="badge warn">required</span>}
                      {it.isDeprecated && <span className="badge bad">deprecated</span>}
                    </div>
                    {it.description && (
                      <p className="about">
                        <Prose text={it.description} />
                      </p>
                    )}
                    <div className="below">
                      <SchemaTree schema={it.schema} schemas={schemas} onMissing={ask} said={it.description} />
                    </div>
                  </li>
                ))}
              </ul>
            </section>
          )}
          {body.length > 0 && <Body contents={body} media={typed.media} onMedia={chooseMedia} value={value} schemas={schemas} onMissing={ask} />}
          <Answers value={value} schemas={schemas} onMissing={ask} />
          <Callbacks value={value} />
        </div>
        <aside className="stack" aria-label="Call">
          {version.places.length > 1 && (
            <label className="field">
              <span className="label">Environment</span>
              <select className="select" value={placeAt} onChange={(event) => choosePlace(Number(event.target.value))}>
                {version.places.map((it, index) => (
                  <option key={it.publication} value={index}>
                    {it.title}
                  </option>
                ))}
              </select>
            </label>
          )}
          <Samples wire={wire} />
          {place && place.base_url === null && (
            <p className="muted small">
              The address of the gateway is not given here. Put it in place of <code>{UNKNOWN_HOST}</code>; the provider of the API knows it.
            </p>
          )}
          <div className="card try">
            <CallForm parameters={parameters} typed={typed} onType={type} content={content} form={form} />
            {place && (
              <Suspense fallback={<div className="loading" aria-busy="true" />}>
                <Try publication={place.publication} operation={operation} parameters={parameters} typed={typed} schemas={schemas} form={form} needsKey={plan !== undefined} securities={version.plans.map((it) => it.security)} hasAddress={place.base_url !== null} plans={`/apis/${encodeURIComponent(version.api)}/${encodeURIComponent(version.version)}/plans`} />
              </Suspense>
            )}
          </div>
        </aside>
      </div>
    </article>
  )
}

function beginning(parameters: ReturnType<typeof parametersOf>, body: Content[], schemas: Schemas): Typed {
  const first = body.find((it) => it.media.includes('json')) ?? body[0]
  const fields = first && isForm(first.media) ? formFields(first.schema, schemas) : []
  return {
    parameters: Object.fromEntries(parameters.map((it) => [keyOf(it), it.example])),
    media: first?.media ?? '',
    body: first?.examples[0]?.text ?? '',
    form: Object.fromEntries(fields.map((it) => [it.name, it.example])),
  }
}

export function Method({ method }: { method: string }) {
  return <span className={`method ${method.toLowerCase()}`}>{method}</span>
}

function Body({ contents, media, onMedia, value, schemas, onMissing }: { contents: Content[]; media: string; onMedia: (media: string) => void; value: Fields; schemas: Schemas; onMissing: (name: string) => void }) {
  const chosen = contents.find((it) => it.media === media) ?? contents[0]
  const body = isFields(value['requestBody']) ? value['requestBody'] : {}
  return (
    <section className="stack" aria-label="Request body">
      <div className="row">
        <h3>Request body</h3>
        {body['required'] === true && <span className="badge warn">required</span>}
        <Media contents={contents} media={media} onMedia={onMedia} label="Media type of the request" />
      </div>
      {typeof body['description'] === 'string' && (
        <p className="about">
          <Prose text={body['description']} />
        </p>
      )}
      {chosen && <SchemaTree schema={chosen.schema} schemas={schemas} onMissing={onMissing} />}
    </section>
  )
}

function Media({ contents, media, onMedia, label }: { contents: Content[]; media: string; onMedia: (media: string) => void; label: string }) {
  if (contents.length < 2) return <code className="muted small">{contents[0]?.media}</code>
  return (
    <select className="select narrow" aria-label={label} value={media} onChange={(event) => onMedia(event.target.value)}>
      {contents.map((it) => (
        <option key={it.media}>{it.media}</option>
      ))}
    </select>
  )
}

function Answers({ value, schemas, onMissing }: { value: Fields; schemas: Schemas; onMissing: (name: string) => void }) {
  const answers = isFields(value['responses']) ? Object.entries(value['responses']) : []
  const [open, choose] = useState(answers[0]?.[0] ?? '')
  const chosen = answers.find(([status]) => status === open)?.[1]
  if (answers.length === 0) return null
  return (
    <section className="stack" aria-label="Answers">
      <h3>Answers</h3>
      <Choices label="Status" look="row" buttonLook="chip-choice" chosen={open} options={answers.map(([status]) => ({ value: status, text: status }))} onChoose={choose} />
      {isFields(chosen) && <AnswerShown key={open} answer={chosen} schemas={schemas} onMissing={onMissing} />}
    </section>
  )
}

function AnswerShown({ answer, schemas, onMissing }: { answer: Fields; schemas: Schemas; onMissing: (name: string) => void }) {
  const contents = contentsOf(answer, schemas, 'response')
  const [media, choose] = useState(contents[0]?.media ?? '')
  const [example, show] = useState(0)
  const chosen = contents.find((it) => it.media === media)
  const headers = isFields(answer['headers']) ? Object.entries(answer['headers']) : []
  const links = isFields(answer['links']) ? answer['links'] : null
  return (
    <div className="stack">
      {typeof answer['description'] === 'string' && (
        <p className="about">
          <Prose text={answer['description']} />
        </p>
      )}
      {headers.length > 0 && (
        <ul className="fields" aria-label="Headers">
          {headers.map(([name, header]) => (
            <li key={name}>
              <div className="row field-line">
                <code>{name}</code>
                <span className="muted small">header</span>
              </div>
              {isFields(header) && typeof header['description'] === 'string' && <p className="about">{header['description']}</p>}
            </li>
          ))}
        </ul>
      )}
      {contents.length > 0 && <Media contents={contents} media={media} onMedia={choose} label="Media type of the answer" />}
      {chosen && <SchemaTree schema={chosen.schema} schemas={schemas} onMissing={onMissing} />}
      {chosen && (
        <div className="stack tight">
          <Choices
            label="Example of the answer"
            look="row"
            buttonLook="chip-choice"
            chosen={String(example)}
            options={chosen.examples.map((it, index) => ({ value: String(index), text: it.title }))}
            onChoose={(index) => show(Number(index))}
          />
          <pre className="code small" tabIndex={0}>{chosen.examples[example]?.text}</pre>
        </div>
      )}
      {links && <pre className="code small" tabIndex={0}>{JSON.stringify({ links }, null, 2)}</pre>}
    </div>
  )
}

/** Calls that the API makes, as they are written. */
function Callbacks({ value }: { value: Fields }) {
  if (!isFields(value['callbacks'])) return null
  return (
    <section className="stack" aria-label="Callbacks">
      <h3>Callbacks</h3>
      <pre className="code small" tabIndex={0}>{JSON.stringify(value['callbacks'], null, 2)}</pre>
    </section>
  )
}

const KEPT = 'weir-portal-language'

function Samples({ wire }: { wire: Parameters<typeof sample>[1] }) {
  const [language, choose] = useState<Language>(() => LANGUAGES.find((it) => it === localStorage.getItem(KEPT)) ?? 'curl')
  const text = sample(language, wire)
  return (
    <section className="card samples" aria-label="Code samples">
      <div className="row between">
        <Choices
          label="Language"
          look="row"
          buttonLook="chip-choice"
          chosen={language}
          options={LANGUAGES.map((it) => ({ value: it, text: it }))}
          onChoose={(it) => {
            localStorage.setItem(KEPT, it)
            choose(it)
          }}
        />
        <CopyButton isQuiet text={text} />
      </div>
      <pre className="code small" tabIndex={0} aria-label={`Call in ${language}`}>{text}</pre>
    </section>
  )
}
