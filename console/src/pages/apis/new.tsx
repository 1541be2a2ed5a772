// A new API, or a new version of one: a document is pasted, chosen, fetched or taken from an example. What cannot be read is said
// with its line.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { type ApiEntity, type VersionDetail, apiPath, compact, toVersion, useApis } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Failure, Page } from '../../shell/page'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { SelectField, TextField } from '../../ui/field'
import { toast } from '../../ui/toast'

const EXAMPLE = `openapi: 3.1.0
info: {title: Pets, version: 1.0.0}
paths:
  /pets:
    get:
      operationId: listPets
      summary: All pets
      responses: {"200": {description: The pets}}
    post:
      operationId: addPet
      summary: Adds a pet
      responses: {"201": {description: It is there}}
  /pets/{id}:
    get:
      operationId: getPet
      summary: One pet
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: The pet}, "404": {description: There is none}}
`

/** A name for addresses, made of a title. */
const nameOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')

const titleIn = (text: string): string => /title["']?\s*:\s*["']?([^"'\n,}]+)/.exec(text)?.[1]?.trim() ?? ''

export default function NewApi() {
  const [parameters] = useSearchParams()
  const known = parameters.get('api')
  const [text, setText] = useState('')
  const [fields, setFields] = useState<ApiEntity>({ name: known ?? '', display_name: '', description: '', owner: '', category: '', visibility: 'public' })
  const [version, setVersion] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [isFetching, setFetching] = useState(false)
  const [, go] = useLocation()
  const client = useQueryClient()
  const apis = useApis()
  const refused = useRight('apis:write')
  const set = <K extends keyof ApiEntity>(name: K, value: ApiEntity[K]) => setFields({ ...fields, [name]: value })
  const name = fields.name || nameOf(titleIn(text))
  // An API whose document was refused is there already: the next try goes on with it.
  const [made, setMade] = useState<string | null>(null)
  const isTaken = known === null && name !== made && (apis.data ?? []).some((it) => it.name === name)
  const cannot = refused ?? (text.trim() === '' ? 'There is no document yet.' : name === '' ? 'It needs a name.' : isTaken ? 'An API of this name exists.' : null)

  const create = async () => {
    setBusy(true)
    setError(null)
    try {
      if (known === null) {
        await call('PUT', apiPath(name), { body: compact({ ...fields, name }) })
        setMade(name)
      }
      const answer = await call<VersionDetail>('POST', `${apiPath(name)}/versions`, { query: { version }, text: { content: text, mediaType: 'text/plain' } })
      await client.invalidateQueries({ queryKey: ['configuration'] })
      toast(`${name} ${answer.data.version} is there`)
      go(toVersion(name, answer.data.version))
    } catch (wrong) {
      setError(wrong)
    }
    setBusy(false)
  }

  return (
    <Page
      title={known === null ? 'New API' : `New version of ${known}`}
      about="Begin with an OpenAPI document (3.2, 3.1, 3.0 or 2.0) or a Postman collection. Nothing is served until you publish it."
      crumbs={known === null ? [{ to: '/apis', text: 'APIs' }] : [{ to: '/apis', text: 'APIs' }, { to: `/apis/${encodeURIComponent(known)}`, text: known }]}
      calls={[
        { about: 'Make the API', method: 'PUT', path: apiPath(name || 'NAME'), body: compact({ ...fields, name }) },
        { about: 'Fetch a document', method: 'POST', path: '/api/v1/documents/fetch', body: { url: 'https://example.com/openapi.yaml' } },
        { about: 'Make its version', method: 'POST', path: `${apiPath(name || 'NAME')}/versions` },
      ]}
      actions={
        <Button look="primary" refused={cannot} isBusy={isBusy} onPress={() => void create()}>
          {known === null ? 'Create the API' : 'Create the version'}
        </Button>
      }
    >
      {error !== null && <Failure error={error} />}
      <div className="two-columns">
        <section className="card" aria-label="Document">
          <div className="head2">
            <h2>Document</h2>
            <div className="row">
              <Button small refused={refused} onPress={() => setFetching(true)}>
                From an address
              </Button>
              <label className="button small">
                Choose a file
                <input
                  className="sr"
                  type="file"
                  accept=".yaml,.yml,.json"
                  onChange={(event) => {
                    const [file] = event.target.files ?? []
                    if (file) void file.text().then(setText, setError)
                  }}
                />
              </label>
              <Button small look="quiet" onPress={() => setText(EXAMPLE)}>
                Use an example
              </Button>
            </div>
          </div>
          <textarea
            className="input mono"
            rows={24}
            aria-label="OpenAPI document, as YAML or JSON"
            placeholder="Paste an OpenAPI document or a Postman collection here"
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </section>
        <section className="card" aria-label="About it">
          <h2>About it</h2>
          {known === null && (
            <>
              <TextField label="Name" value={fields.name} placeholder={nameOf(titleIn(text)) || 'pets'} onChange={(value) => set('name', value)} about="In addresses and in names of documents." wrong={isTaken ? 'An API of this name exists.' : null} />
              <TextField label="Name for people" value={fields.display_name ?? ''} placeholder={titleIn(text)} onChange={(value) => set('display_name', value)} />
              <TextField label="What it is for" value={fields.description ?? ''} onChange={(value) => set('description', value)} />
              <TextField label="Owner" value={fields.owner ?? ''} placeholder="a team" onChange={(value) => set('owner', value)} />
              <TextField label="Category" value={fields.category ?? ''} onChange={(value) => set('category', value)} />
              <SelectField
                label="Who may see it"
                value={fields.visibility === 'signed-in' ? 'signed-in' : 'public'}
                onChange={(value) => set('visibility', value)}
                options={[
                  ['public', 'Everybody'],
                  ['signed-in', 'Everybody who is signed in'],
                ]}
              />
            </>
          )}
          <TextField label="Version" value={version} placeholder="as the document says" onChange={setVersion} />
        </section>
      </div>
      {isFetching && <Fetch onFetched={(fetched) => (setText(fetched), setError(null), setFetching(false))} onClose={() => setFetching(false)} />}
    </Page>
  )
}

/** Fetches the document that an address leads to. The server asks: pages may not. */
function Fetch({ onFetched, onClose }: { onFetched: (text: string) => void; onClose: () => void }) {
  const [url, setUrl] = useState('')
  return (
    <Act
      title="A document from an address"
      action="Fetch"
      refused={url.trim() === '' ? 'There is no address yet.' : null}
      onClose={onClose}
      run={async () => onFetched((await call<{ text: string }>('POST', '/api/v1/documents/fetch', { body: { url: url.trim() } })).data.text)}
    >
      <TextField label="Address" type="url" isMono autoFocus value={url} onChange={setUrl} placeholder="https://raw.githubusercontent.com/…/openapi.yaml" about="Weir fetches it now, and once: public addresses, and networks that --document-allow names. For a file on GitHub, take the address behind Raw." />
    </Act>
  )
}
