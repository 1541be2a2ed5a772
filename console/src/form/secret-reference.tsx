// A reference in place of a secret: chosen from the stores that Weir knows, and written in the way of the document's dialect.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { components } from '../../generated/api'
import { get } from '../api/client'
import { Button } from '../ui/button'
import { SelectField, TextField } from '../ui/field'

type Stores = components['schemas']['SecretList']
type Store = Stores['stores'][number]

/** A reference to something in a store, in the way of the store's dialect. */
export function referenceTo({ dialect, kind, name }: Pick<Store, 'dialect' | 'kind' | 'name'>, place: string): string {
  if (dialect !== 'apisix') return `{vault://${name}/${place}}`
  return kind === 'env' ? `$env://${place}` : `$secret://${name}/${place}`
}

/** Whether a text is a reference, and no secret itself. */
export const isReference = (text: string): boolean => /^(\{vault:|\$env:|\$secret:)/.test(text)

/** Where in a store a secret is, if a reference leads there. */
function placeIn(store: Store, text: string): string[] {
  const [before = '', after = ''] = referenceTo(store, '\0').split('\0')
  return text.startsWith(before) && text.endsWith(after) ? [text.slice(before.length, text.length - after.length)] : []
}

const keyOf = (it: Store): string => `${it.dialect} ${it.name}`

interface Props {
  title: string
  dialect: string
  onChoose: (text: string) => void
}

export function SecretReference({ title, dialect, onChoose }: Props) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <div>
        <button type="button" className="link small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Reference a secret<span className="sr"> for {title}</span>
        </button>
      </div>
      {isOpen && (
        <Choose
          title={title}
          dialect={dialect}
          onChoose={(text) => {
            onChoose(text)
            setOpen(false)
          }}
        />
      )}
    </>
  )
}

function Choose({ title, dialect, onChoose }: Props) {
  const found = useQuery({ queryKey: ['configuration', 'secrets'], queryFn: ({ signal }) => get<Stores>('/api/v1/secrets', {}, signal) })
  const [chosen, setChosen] = useState('')
  const [place, setPlace] = useState('')
  if (found.error) return <p className="wrong">{found.error.message}</p>
  if (found.data === undefined) return <p className="muted small">Stores are looked up …</p>
  // Weir's own documents know all ways; the others theirs only.
  const stores = found.data.stores.filter((it) => dialect === 'native' || it.dialect === dialect)
  const store = stores.find((it) => keyOf(it) === chosen) ?? stores[0]
  if (store === undefined) return <p className="muted small">There is no store of secrets that this document can refer to.</p>
  const offered = [...new Set(found.data.references.flatMap((it) => placeIn(store, it.text)))]
  const isEnvironment = store.kind === 'env'
  return (
    <div className="nested stack" role="group" aria-label={`A secret for ${title}`}>
      <SelectField label="Store" value={keyOf(store)} onChange={setChosen} options={stores.map((it) => [keyOf(it), `${it.kind === 'env' ? 'The environment of each gateway' : it.name}${it.address ? `, ${it.address}` : ''} (${it.dialect === 'apisix' ? 'APISIX' : 'Kong'}’s form)`] as const)} />
      <TextField label={isEnvironment ? 'Variable' : 'Path and field'} value={place} onChange={setPlace} isMono placeholder={isEnvironment ? 'DB_PASSWORD' : 'team/database/password'} offered={offered} />
      {place !== '' && (
        <p className="small">
          It is written as <code>{referenceTo(store, place)}</code>
        </p>
      )}
      <div>
        <Button small refused={/^[^\s{}]+$/.test(place) ? null : isEnvironment ? 'Say which variable.' : 'Say where in the store.'} onPress={() => onChoose(referenceTo(store, place))}>
          Use this reference
        </Button>
      </div>
    </div>
  )
}
