// A product that is made or changed: which operations of which publications it holds.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { type Product, compact, partsOf, productPath, toProduct, useProducts, usePublications, useSubscriptions, useVersion } from '../../api/apis'
import { useRight } from '../../api/rights'
import type { Fields, Json } from '../../api/types'
import type { Begun } from '../../form/draft'
import { EntityEditor } from '../../form/entity-editor'
import { nameFault, nameIn, readVersion, send } from '../../form/send'
import { Page } from '../../shell/page'
import { useIsNew, useSegments } from '../../shell/segments'
import { Button, ButtonLink } from '../../ui/button'
import { CheckField, ChoiceField, SelectField, TextField } from '../../ui/field'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { Method, Waiting } from '../apis/shared'

const CRUMBS = [{ to: '/products', text: 'Products' }]
const FRESH: Begun = { data: { name: '', publications: {}, state: 'unpublished' }, tag: null }

const isEmpty = (product: Fields): boolean => Object.keys((product as unknown as Product).publications ?? {}).length === 0

export default function EditProduct() {
  const [, name = ''] = useSegments()
  return useIsNew() ? <Editor base={FRESH} isNew /> : <Existing name={name} />
}

function Existing({ name }: { name: string }) {
  const product = useQuery({ queryKey: ['configuration', 'product', name], queryFn: () => readVersion(productPath(name)) })
  if (product.data === undefined) return <Waiting title={name} crumbs={CRUMBS} queries={[product]} />
  return <Editor base={product.data} isNew={false} />
}

function Editor({ base, isNew }: { base: Begun; isNew: boolean }) {
  const known = useProducts()
  const refused = useRight('apis:write', 'putProduct')
  const client = useQueryClient()
  const [, go] = useLocation()
  const name = nameIn(base.data)
  const subscribers = (useSubscriptions().data ?? []).filter((it) => it.product === name && it.state !== 'closed' && it.state !== 'rejected').length
  return (
    <Page
      title={isNew ? 'New product' : `Edit ${String(base.data['display_name'] || name)}`}
      about="Choose publications, and of each the operations that the product opens."
      crumbs={isNew ? CRUMBS : [...CRUMBS, { to: toProduct(name), text: name }]}
      calls={[{ about: 'Store it', method: 'PUT', path: productPath(name || 'NAME'), body: base.data }]}
    >
      <EntityEditor
        kept={`product/${name}`}
        title={isNew ? 'the new product' : name}
        base={base}
        isNew={isNew}
        refused={refused}
        missing={(value) => (isNew ? nameFault(value, known.data, 'A product') : null)}
        form={(value, onChange) => <ProductForm value={value} isNew={isNew} onChange={onChange} />}
        send={(value, options) => send('PUT', productPath(isNew ? nameIn(value) : name), compact(value), options)}
        read={() => readVersion(productPath(name))}
        loss={(before, after) => (isEmpty(before) || !isEmpty(after) ? null : `No API is left in it: the keys of ${subscribers === 0 ? 'those who subscribe to it' : `its ${countText(subscribers, 'subscription', 'subscriptions')}`} open nothing from then on.`)}
        onSaved={async (stored) => {
          await client.invalidateQueries({ queryKey: ['configuration'] })
          toast(`${String(stored['name'])} is saved`)
          go(toProduct(String(stored['name'])))
        }}
      />
    </Page>
  )
}

function ProductForm({ value, isNew, onChange }: { value: Fields; isNew: boolean; onChange: (value: Fields) => void }) {
  const product = value as unknown as Product
  const chosen = product.publications ?? {}
  const publications = usePublications()
  const [added, setAdded] = useState('')
  const ids = (publications.data ?? []).map((it) => `${it.api}/${it.version}/${it.environment}`)
  const free = ids.filter((id) => !(id in chosen))
  const next = free.includes(added) ? added : (free[0] ?? '')
  const set = (name: string, text: Json) => onChange({ ...value, [name]: text })
  const setChosen = (publications: Product['publications']) => set('publications', publications)
  return (
    <>
      <section className="card" aria-label="About it">
        <div className="grid">
          {isNew && <TextField label="Name" value={product.name ?? ''} onChange={(text) => set('name', text)} placeholder="bundle" isRequired about="In addresses; it cannot be changed later." />}
          <TextField label="Name for people" value={product.display_name ?? ''} onChange={(text) => set('display_name', text)} />
          <TextField label="What it is for" value={product.description ?? ''} onChange={(text) => set('description', text)} />
        </div>
        <ChoiceField
          label="State"
          value={product.state}
          onChange={(state) => set('state', state)}
          options={[
            { value: 'unpublished', text: 'Not offered', about: 'Gateways know no key of it.' },
            { value: 'published', text: 'Offered', about: 'Its publications ask for a key.' },
          ]}
        />
      </section>
      <section className="card" aria-label="Operations">
        <h2>Operations</h2>
        {Object.keys(chosen).length === 0 && <p className="muted">Nothing is chosen yet. Add the publications that the product opens; they may be of several APIs.</p>}
        {Object.entries(chosen).map(([id, operations]) => (
          <Chosen
            key={id}
            id={id}
            operations={operations}
            isKnown={publications.data === undefined || ids.includes(id)}
            onChange={(ofIt) => setChosen({ ...chosen, [id]: ofIt })}
            onRemove={() => setChosen(Object.fromEntries(Object.entries(chosen).filter(([other]) => other !== id)))}
          />
        ))}
        {ids.length === 0 && publications.data !== undefined ? (
          <div className="row">
            <p className="muted">No version is published yet.</p>
            <ButtonLink small to="/apis">
              APIs
            </ButtonLink>
          </div>
        ) : (
          free.length > 0 && (
            <div className="row end">
              <SelectField label="Add a publication" value={next} onChange={setAdded} options={free.map((id) => [id, id.replaceAll('/', ' · ')] as const)} />
              <Button icon="plus" onPress={() => setChosen({ ...chosen, [next]: [] })}>
                Add
              </Button>
            </div>
          )
        )}
      </section>
    </>
  )
}

interface ChosenProps {
  id: string
  operations: string[]
  isKnown: boolean
  onChange: (operations: string[]) => void
  onRemove: () => void
}

/** One publication with its operations. An empty list opens all of them, those of later revisions included. */
function Chosen({ id, operations, isKnown, onChange, onRemove }: ChosenProps) {
  const [api, name, environment] = partsOf(id)
  const version = useVersion(api, name)
  const all = version.data?.operations ?? []
  const [isSome, setSome] = useState(operations.length > 0)
  const gone = operations.filter((it) => version.data !== undefined && !all.some((known) => known.id === it))
  return (
    <fieldset className="nested" aria-label={id}>
      <div className="row between">
        <h3>
          {api} {name} <span className="muted">in {environment}</span>
        </h3>
        <Button small look="quiet" icon="trash" onPress={onRemove}>
          Remove<span className="sr"> {id}</span>
        </Button>
      </div>
      {!isKnown && <p className="note warn">It is not published any more. Remove it, or publish it again.</p>}
      <CheckField label="All operations, those that come later included" value={!isSome} onChange={(isAll) => (setSome(!isAll), onChange(isAll ? [] : all.map((it) => it.id)))} />
      {isSome && (
        <>
          <p className="muted small">{countText(operations.length, 'operation is chosen', 'operations are chosen')}{operations.length === 0 && ': choose one, or all of them are opened'}.</p>
          <div className="rows scrolled" role="group" aria-label={`Operations of ${id}`}>
            {all.map((it) => (
              <label className="choice" key={it.id}>
                <input type="checkbox" checked={operations.includes(it.id)} onChange={(event) => onChange(event.target.checked ? [...operations, it.id] : operations.filter((other) => other !== it.id))} />
                <Method name={it.method} />
                <code>{it.path}</code>
                <span className="muted small">{it.summary}</span>
              </label>
            ))}
          </div>
        </>
      )}
      {gone.length > 0 && <p className="note warn">The draft has no operation {gone.join(', ')} any more.</p>}
    </fieldset>
  )
}
