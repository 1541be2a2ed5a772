// Maps whose names are free: one line for each.
import { useContext, useState } from 'react'
import type { Fields } from '../api/types'
import { IconButton } from '../ui/button'
import { Icon } from '../ui/icons'
import { Field, type FieldProps, Form } from './fields'
import { isMap } from './path'
import { type Shape, blank, label } from './schema'

export function MapInput({ value, onChange, shape, path, name }: FieldProps & { shape: Extract<Shape, { kind: 'map' }> }) {
  const { root, isReadOnly } = useContext(Form)
  const [fresh, setFresh] = useState('')
  const entries: Fields = isMap(value) ? value : {}
  const title = label(name)
  const add = () => {
    if (fresh.trim() === '' || fresh in entries) return
    onChange({ ...entries, [fresh]: blank(shape.value, root) })
    setFresh('')
  }
  return (
    <div className="rows">
      {Object.entries(entries).map(([key, item]) => (
        <div className="row" key={key} style={{ alignItems: 'flex-start' }}>
          <div className="grow">
            <Field name={key} schema={shape.value} value={item} path={[...path, key]} isRequired onChange={(next) => onChange({ ...entries, [key]: next ?? '' })} />
          </div>
          {!isReadOnly && (
            <IconButton
              small
              icon="trash"
              label={`Remove ${key}`}
              onPress={() => onChange(Object.fromEntries(Object.entries(entries).filter(([other]) => other !== key)))}
            />
          )}
        </div>
      ))}
      {!isReadOnly && (
        <div className="row">
          <input
            className="input grow"
            aria-label={`Name of a new entry of ${title}`}
            placeholder="name"
            value={fresh}
            onChange={(event) => setFresh(event.target.value)}
            onKeyDown={(event) => event.key === 'Enter' && (event.preventDefault(), add())}
          />
          <button type="button" className="button small" disabled={fresh.trim() === '' || fresh in entries} onClick={add}>
            <Icon name="plus" /> Add
          </button>
        </div>
      )}
    </div>
  )
}
