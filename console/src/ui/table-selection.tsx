// The selection of a table: it is kept over pages and searches, and says how many of it are out of sight.
import { useMemo, useState } from 'react'
import { Button } from './button'
import { countText } from './time'
import { toast } from './toast'

export interface BulkAction<Row> {
  text: string
  look?: 'danger'
  refused?: string | null | undefined
  /** Why it cannot be done with these rows. */
  refusedFor?: (rows: Row[]) => string | null
  /** `clear` ends the selection, once what was to be done with it is done. */
  run: (rows: Row[], clear: () => void) => void
}

export interface Selection<Row> {
  has: (key: string) => boolean
  rows: Row[]
  /** How many of them the search does not show. */
  hidden: number
  isWhole: boolean
  toggle: (row: Row) => void
  toggleShown: () => void
  add: (rows: Row[]) => void
  clear: () => void
}

/** `rows` are all that were read, `shown` those of the search. Rows that a server pages are kept by themselves. */
export function useSelection<Row>(rows: Row[], shown: Row[], rowKey: (row: Row) => string, isRemote: boolean): Selection<Row> {
  const [selected, setSelected] = useState<ReadonlyMap<string, Row>>(new Map())
  return useMemo(() => {
    const clear = () => setSelected(new Map())
    const add = (more: Row[]) => setSelected((old) => new Map([...old, ...more.map((row): [string, Row] => [rowKey(row), row])]))
    const toggle = (row: Row) =>
      setSelected((old) => {
        const next = new Map(old)
        if (!next.delete(rowKey(row))) next.set(rowKey(row), row)
        return next
      })
    const isWhole = shown.length > 0 && shown.every((row) => selected.has(rowKey(row)))
    const toggleShown = () => {
      if (!isWhole) return add(shown)
      const gone = new Set(shown.map(rowKey))
      setSelected((old) => new Map([...old].filter(([key]) => !gone.has(key))))
    }
    const current = selected.size === 0 ? new Map<string, Row>() : new Map(rows.map((row) => [rowKey(row), row]))
    const chosen = [...selected].flatMap(([key, row]) => current.get(key) ?? (isRemote ? [row] : []))
    const visible = selected.size === 0 ? 0 : shown.filter((row) => selected.has(rowKey(row))).length
    return { has: (key) => selected.has(key), rows: chosen, hidden: chosen.length - visible, isWhole, toggle, toggleShown, add, clear }
  }, [rows, shown, selected, rowKey, isRemote])
}

interface Props<Row> {
  selection: Selection<Row>
  bulk: BulkAction<Row>[]
  noun: [string, string]
  /** Rows that are found and not read yet: how many there are in all, and a way to read them. */
  rest?: { total: number; all: () => Promise<Row[]> } | undefined
}

/** What is selected, and what can be done with it. It stands below the rows, in sight: no row moves away from the pointer. */
export function SelectionBar<Row>({ selection, bulk, noun, rest }: Props<Row>) {
  const [isReading, setReading] = useState(false)
  const selectRest = async (all: () => Promise<Row[]>) => {
    setReading(true)
    try {
      selection.add(await all())
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), { isBad: true })
    }
    setReading(false)
  }
  return (
    <div className="note selection" role="group" aria-label="Selection">
      <div className="row">
        <strong>{countText(selection.rows.length, noun[0], noun[1])} selected</strong>
        {selection.hidden > 0 && <span className="muted">{selection.hidden.toLocaleString()} of them not in this search</span>}
        {rest && selection.isWhole && (
          <Button small isBusy={isReading} onPress={() => void selectRest(rest.all)}>
            Select all {rest.total.toLocaleString()}
          </Button>
        )}
        {bulk.map((action) => (
          <Button key={action.text} small look={action.look ?? 'plain'} refused={action.refused ?? action.refusedFor?.(selection.rows)} onPress={() => action.run(selection.rows, selection.clear)}>
            {action.text}
          </Button>
        ))}
        <Button small look="quiet" onPress={selection.clear}>
          Clear
        </Button>
      </div>
    </div>
  )
}
