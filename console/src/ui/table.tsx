// The one table: virtual rows, search with chips, sorting, choice of columns, selection, export. What it shows is in the
// page's address.
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import { useSearchParams } from 'wouter'
import { Button } from './button'
import { Icon } from './icons'
import { countText } from './time'
import { type Column, ColumnChoice, useHidden } from './table-columns'
import { exportRows, sortRows } from './table-rows'
import { matcher, parseSearch, withoutChip } from './search'

export type { Column } from './table-columns'

/** Rows that the server searches, sorts and pages. */
export interface Remote<Row> {
  total: number
  hasMore: boolean
  loadMore: () => void
  /** All rows that are found, for the export. */
  all: () => Promise<Row[]>
}

export interface BulkAction<Row> {
  text: string
  look?: 'danger'
  refused?: string | null | undefined
  run: (rows: Row[]) => void
}

interface Props<Row> {
  label: string
  rows: Row[]
  columns: Column<Row>[]
  rowKey: (row: Row) => string
  isLoading?: boolean
  /** In place of an empty table. */
  empty: ReactNode
  bulk?: BulkAction<Row>[]
  actions?: ReactNode
  /** Marks a row for which this differs from the last time. */
  version?: (row: Row) => string
  /** Who changed a row, which is said when it differs. */
  changedBy?: (row: Row) => string | undefined
  noun?: [string, string]
  remote?: Remote<Row>
}

const ROW_HEIGHT = 44
const VIRTUAL_FROM = 60

export function Table<Row>(props: Props<Row>) {
  const { rows, columns, label, rowKey, remote, noun = ['row', 'rows'] } = props
  const [parameters, setParameters] = useSearchParams()
  const [text, setText] = useState(parameters.get('q') ?? '')
  const [hidden, setHidden] = useHidden(label)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const box = useRef<HTMLInputElement>(null)
  const width = useWidth()

  // The address follows the field, a moment later: typing is never held up. The field follows the address only if
  // somebody else has changed that, as a link does.
  const address = parameters.get('q') ?? ''
  const written = useRef(address)
  useEffect(() => {
    if (address === written.current) return
    written.current = address
    setText(address)
  }, [address])
  useEffect(() => {
    const timer = setTimeout(() => {
      if (written.current === text) return
      written.current = text
      setParameters((old) => changed(old, 'q', text), { replace: true })
    }, remote ? 120 : 250)
    return () => clearTimeout(timer)
  }, [text, setParameters, remote])

  const shown = columns.filter((column) => !hidden.includes(column.id) && (column.from ?? 1) <= width)
  const search = useDeferredValue(text)
  const parsed = useMemo(() => parseSearch(search, columns.map((column) => column.id)), [search, columns])
  const texts = useMemo(() => new Map(columns.map((column) => [column.id, column.text])), [columns])
  const isRemote = remote !== undefined
  const found = useMemo(() => (isRemote ? rows : rows.filter(matcher(parsed, texts))), [isRemote, rows, parsed, texts])
  const sort = parameters.get('sort') ?? ''
  const sorted = useMemo(() => (isRemote ? found : sortRows(found, columns, sort)), [isRemote, found, columns, sort])

  if (!props.isLoading && rows.length === 0 && (!isRemote || (text === '' && !parameters.get('q')))) return <div className="table">{props.empty}</div>
  const chosen = rows.filter((row) => selected.has(rowKey(row)))
  const toggle = (key: string) => {
    const next = new Set(selected)
    if (!next.delete(key)) next.add(key)
    setSelected(next)
  }
  const isAllSelected = sorted.length > 0 && sorted.every((row) => selected.has(rowKey(row)))
  const selectAll = () => setSelected(isAllSelected ? new Set() : new Set(sorted.map(rowKey)))
  const template = [props.bulk ? '1.5rem' : '', ...shown.map((column) => column.width ?? 'minmax(6rem, 1fr)')].join(' ')

  return (
    <div className="stack tight">
      <div className="tools">
        <input
          ref={box}
          className="input search"
          type="search"
          aria-label={`Search ${label}`}
          placeholder={`Search, or ${columns[0]?.id ?? 'name'}:text`}
          value={text}
          data-filter
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === 'Escape' && text !== '' && (event.preventDefault(), setText(''))}
        />
        {parsed.chips.map((chip) => (
          <span className="chip" key={`${chip.column}:${chip.text}`}>
            {chip.column}: {chip.text}
            <button aria-label={`Remove the filter ${chip.column}: ${chip.text}`} onClick={() => setText(withoutChip(text, chip))}>
              <Icon name="close" />
            </button>
          </span>
        ))}
        <span className="grow" />
        <ColumnChoice columns={columns} hidden={hidden} onChange={setHidden} />
        <Button look="quiet" onPress={() => void exportRows(label, columns, () => (remote ? remote.all() : Promise.resolve(sorted)))}>
          <Icon name="download" /> <span className="word">Export CSV</span>
        </Button>
        {props.actions}
      </div>
      {props.bulk && chosen.length > 0 && (
        <div className="note" role="group" aria-label="Selection">
          <div className="row">
            <strong>{countText(chosen.length, noun[0], noun[1])} selected</strong>
            {props.bulk.map((action) => (
              <Button key={action.text} small look={action.look ?? 'plain'} refused={action.refused} onPress={() => action.run(chosen)}>
                {action.text}
              </Button>
            ))}
            <Button small look="quiet" onPress={() => setSelected(new Set())}>
              Clear
            </Button>
          </div>
        </div>
      )}
      <div className="table" style={{ '--columns': template } as React.CSSProperties}>
        <Lines
          {...props}
          sorted={sorted}
          shown={shown}
          sort={sort}
          onSort={(id) => setParameters((old) => changed(old, 'sort', sort === id ? `-${id}` : id), { replace: true })}
          selected={selected}
          onToggle={toggle}
          isAllSelected={isAllSelected}
          onSelectAll={selectAll}
        />
        <div className="foot">
          <span role="status">
            {props.isLoading && rows.length === 0
              ? 'Loading'
              : remote
                ? countText(remote.total, noun[0], noun[1])
                : sorted.length === rows.length
                ? countText(rows.length, noun[0], noun[1])
                : `${countText(sorted.length, noun[0], noun[1])} of ${rows.length.toLocaleString()}`}
          </span>
          <span>
            <kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> rows
          </span>
        </div>
      </div>
    </div>
  )
}

interface LinesProps<Row> extends Props<Row> {
  sorted: Row[]
  shown: Column<Row>[]
  sort: string
  onSort: (id: string) => void
  selected: ReadonlySet<string>
  onToggle: (key: string) => void
  isAllSelected: boolean
  onSelectAll: () => void
}

function Lines<Row>({ sorted, shown, sort, onSort, selected, onToggle, isAllSelected, onSelectAll, ...props }: LinesProps<Row>) {
  const frame = useRef<HTMLDivElement>(null)
  const isVirtual = sorted.length > VIRTUAL_FROM
  const virtual = useVirtualizer({
    count: isVirtual ? sorted.length : 0,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  })
  const { remote } = props
  const items = isVirtual ? virtual.getVirtualItems() : []
  const lastShown = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (remote?.hasMore && lastShown > sorted.length - 100) remote.loadMore()
  }, [remote, lastShown, sorted.length])
  const versions = useVersions(props.rows, props.rowKey, props.version)
  const line = (row: Row, index: number, offset: number | null) => {
    const key = props.rowKey(row)
    return (
      <div
        key={key}
        role="row"
        aria-rowindex={index + 2}
        className="tr line"
        data-selected={selected.has(key)}
        data-changed={versions.has(key)}
        style={offset === null ? undefined : { transform: `translateY(${offset}px)` }}
      >
        {props.bulk && (
          <span role="cell">
            <input type="checkbox" aria-label={`Select ${shown[0]?.text(row) ?? key}`} checked={selected.has(key)} onChange={() => onToggle(key)} />
          </span>
        )}
        {shown.map((column, place) => (
          <span key={column.id} role="cell" className={column.number ? 'td number' : 'td'} title={column.text(row).slice(0, 400)}>
            {column.render ? column.render(row) : column.text(row)}
            {place === 0 && versions.has(key) && props.changedBy?.(row) !== undefined && <span className="muted small"> changed by {props.changedBy(row)}</span>}
          </span>
        ))}
      </div>
    )
  }
  return (
    <div className="scroll" ref={frame} tabIndex={-1}>
      <div role="table" aria-label={props.label} aria-rowcount={(remote?.total ?? sorted.length) + 1} aria-colcount={shown.length}>
        <div role="rowgroup">
          <div role="row" className="tr top" aria-rowindex={1}>
            {props.bulk && (
              <span role="columnheader">
                <input type="checkbox" aria-label="Select all" checked={isAllSelected} onChange={onSelectAll} />
              </span>
            )}
            {shown.map((column) => (
              <span
                key={column.id}
                role="columnheader"
                className={column.number ? 'th number' : 'th'}
                aria-sort={sort === column.id ? 'ascending' : sort === `-${column.id}` ? 'descending' : 'none'}
              >
                {remote && column.sortsAs === undefined ? (
                  column.title
                ) : (
                  <button onClick={() => onSort(column.id)}>
                    {column.title}
                    <span aria-hidden="true">{sort === column.id ? '↑' : sort === `-${column.id}` ? '↓' : ''}</span>
                  </button>
                )}
              </span>
            ))}
          </div>
        </div>
        <div
          role="rowgroup"
          className={isVirtual ? 'lines virtual' : 'lines'}
          style={isVirtual ? { height: virtual.getTotalSize() } : undefined}
        >
          {props.isLoading && props.rows.length === 0 && <div className="skeleton" />}
          {isVirtual
            ? items.map((item) => line(sorted[item.index] as Row, item.index, item.start))
            : sorted.map((row, index) => line(row, index, null))}
        </div>
      </div>
      {!props.isLoading && sorted.length === 0 && <p className="empty muted">Nothing matches this search.</p>}
    </div>
  )
}

/** The rows that changed since they were shown first. */
function useVersions<Row>(rows: Row[], rowKey: (row: Row) => string, version?: (row: Row) => string): ReadonlySet<string> {
  const known = useRef<Map<string, string> | null>(null)
  const [differing, setDiffering] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => {
    if (version === undefined || rows.length === 0) return
    const next = new Map(rows.map((row) => [rowKey(row), version(row)]))
    const before = known.current
    known.current = next
    if (before === null) return
    const moved = [...next].filter(([key, value]) => before.get(key) !== value).map(([key]) => key)
    if (moved.length > 0) setDiffering(new Set(moved))
  }, [rows, rowKey, version])
  return differing
}

/** 1: phones, 2: tablets, 3: wider. */
export function useWidth(): 1 | 2 | 3 {
  const measure = () => (innerWidth < 640 ? 1 : innerWidth < 1100 ? 2 : 3)
  const [width, setWidth] = useState<1 | 2 | 3>(measure)
  useEffect(() => {
    const update = () => setWidth(measure())
    addEventListener('resize', update)
    return () => removeEventListener('resize', update)
  }, [])
  return width
}

function changed(old: URLSearchParams, name: string, value: string): URLSearchParams {
  const next = new URLSearchParams(old)
  if (value === '') next.delete(name)
  else next.set(name, value)
  return next
}
