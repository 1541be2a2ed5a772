// Lists: lines for single values, cards for anything larger.
import { useContext } from 'react'
import { Icon } from '../ui/icons'
import { Field, type FieldProps, Form } from './fields'
import { type Shape, blank, label, shapeOf } from './schema'
import type { Json } from '../api/types'
import { IconButton } from '../ui/button'

/** `[a, b, c]` with one of them somewhere else. */
export function moved<T>(list: T[], from: number, to: number): T[] {
  const next = [...list]
  const [it] = next.splice(from, 1)
  if (it !== undefined) next.splice(to, 0, it)
  return next
}

export function ListInput({ value, onChange, shape, path, name }: FieldProps & { shape: Extract<Shape, { kind: 'list' }> }) {
  const { root, isReadOnly } = useContext(Form)
  const items: Json[] = Array.isArray(value) ? value : []
  const inner = shapeOf(shape.item, root)
  const isSimple = inner.kind === 'text' || inner.kind === 'number'
  const set = (index: number, next: Json | undefined) =>
    onChange(items.map((it, at) => (at === index ? (next ?? (isSimple ? '' : blank(shape.item, root))) : it)))
  const isFull = shape.most !== undefined && items.length >= shape.most
  const title = label(name)
  return (
    <div className="rows">
      {items.map((item, index) => {
        const field = (
          <Field
            name={`${name} ${index + 1}`}
            schema={shape.item}
            value={item}
            path={[...path, index]}
            onChange={(next) => set(index, next)}
            isBare={isSimple}
          />
        )
        const tools = !isReadOnly && (
          <span className="row" style={{ flexWrap: 'nowrap' }}>
            {index > 0 && (
              <IconButton small icon="up" label={`Move ${title} ${index + 1} up`} onPress={() => onChange(moved(items, index, index - 1))} />
            )}
            <IconButton
              small
              icon="trash"
              label={`Remove ${title} ${index + 1}`}
              onPress={() => onChange(items.filter((_, at) => at !== index))}
            />
          </span>
        )
        return isSimple ? (
          <div className="row" key={index}>
            <div className="grow" role="group" aria-label={`${title} ${index + 1}`}>
              {field}
            </div>
            {tools}
          </div>
        ) : (
          <div className="row" key={index} style={{ alignItems: 'flex-start' }}>
            <div className="grow">{field}</div>
            {tools}
          </div>
        )
      })}
      {!isReadOnly && (
        <div>
          <button
            type="button"
            className="button small"
            disabled={isFull}
            onClick={() => onChange([...items, isSimple && inner.kind === 'text' ? '' : blank(shape.item, root)])}
          >
            <Icon name="plus" /> Add to {title.toLowerCase()}
          </button>
        </div>
      )}
    </div>
  )
}
