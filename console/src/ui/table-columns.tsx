// The columns of a table: what each shows, and the choice of those that are shown, kept in the browser.
import { type ReactNode, useState } from 'react'
import { Button as AriaButton, Dialog as AriaDialog, DialogTrigger, Popover } from 'react-aria-components'
import { Icon } from './icons'

export interface Column<Row> {
  id: string
  title: string
  /** What is searched, sorted and exported. */
  text: (row: Row) => string
  render?: (row: Row) => ReactNode
  /** A number: it is sorted as one and stands at the end. */
  number?: (row: Row) => number
  /** What it is sorted by, if not by its text; it stands at the start. Times have one. */
  order?: (row: Row) => number
  /** A share of the width, as in `grid-template-columns`. */
  width?: string
  /** 1: always; 2: from tablets on; 3: on wide screens. */
  from?: 1 | 2 | 3
  /** What the server calls it, for rows that the server searches and sorts; left out: it cannot sort by it. */
  sortsAs?: string
}

export function ColumnChoice<Row>(props: { columns: Column<Row>[]; hidden: string[]; onChange: (hidden: string[]) => void }) {
  return (
    <DialogTrigger>
      <AriaButton className="button quiet" aria-label="Choose columns">
        <Icon name="columns" /> <span className="word">Columns</span>
      </AriaButton>
      <Popover className="popover" placement="bottom end">
        <AriaDialog aria-label="Columns" className="stack tight">
          {props.columns.map((column, index) => (
            <label className="option choice" key={column.id}>
              <input
                type="checkbox"
                disabled={index === 0}
                checked={!props.hidden.includes(column.id)}
                onChange={(event) =>
                  props.onChange(
                    event.target.checked ? props.hidden.filter((id) => id !== column.id) : [...props.hidden, column.id],
                  )
                }
              />
              {column.title}
            </label>
          ))}
        </AriaDialog>
      </Popover>
    </DialogTrigger>
  )
}

/** The columns of a table that are hidden, by its label. */
export function useHidden(label: string): [string[], (hidden: string[]) => void] {
  const key = `weir-columns-${label}`
  const [hidden, set] = useState<string[]>(() => wordsIn(localStorage.getItem(key)))
  return [
    hidden,
    (next) => {
      localStorage.setItem(key, JSON.stringify(next))
      set(next)
    },
  ]
}

/** A list of texts that was kept; what somebody else has written there is none. */
function wordsIn(kept: string | null): string[] {
  try {
    const found: unknown = JSON.parse(kept ?? '[]')
    return Array.isArray(found) ? found.filter((it) => typeof it === 'string') : []
  } catch {
    return []
  }
}
