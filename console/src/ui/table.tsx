// The one table: virtual rows, search with chips, sorting, choice of columns, selection, export. What it shows is in the
// page's address.
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useDeferredValue, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useSearchParams } from 'wouter'
import { keepTop, topBefore } from '../shell/place'
import { Button } from './button'
import { Icon } from './icons'
import { countText } from './time'
import { type Column, ColumnChoice, useHidden } from './table-columns'
import { exportRows, sortRows } from './table-rows'
import { type BulkAction, type Selection, SelectionBar, useSelection } from './table-selection'
import { SavedViews } from './table-views'
import { matcher, parseSearch, withoutChip } from './search'

export type { Column } from './table-columns'
export type { BulkAction } from './table-selection'

/** Rows that the server searches, sorts and pages. */
export interface Remote<Row> {
  total: number
  hasMore: boolean
  loadMore: () => void
  /** All rows that are found, for the export. */
  all: () => Promise<Row[]>
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
  /** Its name in the address, if the page has another table, whose names are `q` and `sort`. */
  place?: string
}

const ROW_HEIGHT = 44
/** Rows whose former versions are remembered, at most. */
const KNOWN = 2_000
const VIRTUAL_FROM = 60
/** A second table of a page with no more rows than these needs no search. */
const FEW = 12

export function Table<Row>(props: Props<Row>) {
  const { rows, columns, label, rowKey, remote, noun = ['row', 'rows'], place } = props
  const [parameters, setParameters] = useSearchParams()
  const [ofSearch, ofSort] = place === undefined ? ['q', 'sort'] : [`${place}-q`, `${place}-sort`]
  const [text, setText] = useState(parameters.get(ofSearch) ?? '')
  const [hidden, setHidden] = useHidden(label)
  const box = useRef<HTMLInputElement>(null)
  const width = useWidth()

  // The address follows the field, a moment later: typing is never held up. The field follows the address only if
  // somebody else has changed that, as a link does.
  const address = parameters.get(ofSearch) ?? ''
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
      setParameters((old) => changed(old, ofSearch, text), { replace: true })
    }, remote ? 120 : 250)
    return () => clearTimeout(timer)
  }, [text, setParameters, remote, ofSearch])

  const shown = columns.filter((column) => !hidden.includes(column.id) && (column.from ?? 1) <= width)
  const search = useDeferredValue(text)
  const parsed = useMemo(() => parseSearch(search, columns.map((column) => column.id)), [search, columns])
  const texts = useMemo(() => new Map(columns.map((column) => [column.id, column.text])), [columns])
  const isRemote = remote !== undefined
  const found = useMemo(() => (isRemote ? rows : rows.filter(matcher(parsed, texts))), [isRemote, rows, parsed, texts])
  const sort = parameters.get(ofSort) ?? ''
  const sorted = useMemo(() => (isRemote ? found : sortRows(found, columns, sort)), [isRemote, found, columns, sort])
  const selection = useSelection(rows, sorted, rowKey, isRemote)

  if (!props.isLoading && rows.length === 0 && (!isRemote || (text === '' && address === ''))) return <div className="table">{props.empty}</div>
  const template = [props.bulk ? '1.5rem' : '', ...shown.map((column) => column.width ?? 'minmax(6rem, 1fr)')].join(' ')

  return (
    <div className="stack tight listing">
      {(place === undefined || rows.length > FEW || text !== '') && (
        <div className="tools">
          <input
            ref={box}
            className="input search"
            type="search"
            aria-label={`Search ${label}`}
            placeholder={`Search, or ${columns[0]?.id ?? 'name'}:text`}
            value={text}
            data-filter={place === undefined || undefined}
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
          {place === undefined && (
            <SavedViews
              label={label}
              current={{ q: text, sort }}
              onChoose={(view) => {
                setText(view.q)
                setParameters((old) => changed(changed(old, ofSearch, view.q), ofSort, view.sort), { replace: true })
              }}
            />
          )}
          <ColumnChoice columns={columns} hidden={hidden} onChange={setHidden} />
          <Button look="quiet" onPress={() => void exportRows(label, columns, () => (remote ? remote.all() : Promise.resolve(sorted)))}>
            <Icon name="download" /> <span className="word">Export CSV</span>
          </Button>
          {props.actions}
        </div>
      )}
      <div className="table" style={{ '--columns': template } as React.CSSProperties}>
        <Lines
          {...props}
          sorted={sorted}
          shown={shown}
          sort={sort}
          onSort={(id) => setParameters((old) => changed(old, ofSort, sort === id ? `-${id}` : id), { replace: true })}
          selection={selection}
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
          {place === undefined && (
            <span className="hints">
              <kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> rows
            </span>
          )}
        </div>
      </div>
      {props.bulk && selection.rows.length > 0 && <SelectionBar selection={selection} bulk={props.bulk} noun={noun} rest={remote?.hasMore ? remote : undefined} />}
    </div>
  )
}

interface LinesProps<Row> extends Props<Row> {
  sorted: Row[]
  shown: Column<Row>[]
  sort: string
  onSort: (id: string) => void
  selection: Selection<Row>
}

function Lines<Row>({ sorted, shown, sort, onSort, selection, ...props }: LinesProps<Row>) {
  const frame = useRef<HTMLDivElement>(null)
  const isVirtual = sorted.length > VIRTUAL_FROM
  const virtual = useVirtualizer({
    count: isVirtual ? sorted.length : 0,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    initialOffset: () => topBefore(props.label),
  })
  const { remote } = props
  const items = isVirtual ? virtual.getVirtualItems() : []
  const lastShown = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (remote?.hasMore && lastShown > sorted.length - 100) remote.loadMore()
  }, [remote, lastShown, sorted.length])
  // After the way back, the list is where it was.
  const hasRows = sorted.length > 0
  useLayoutEffect(() => {
    if (hasRows && frame.current !== null) frame.current.scrollTop = topBefore(props.label)
  }, [hasRows, props.label])
  const versions = useVersions(props.rows, props.rowKey, props.version)
  const line = (row: Row, index: number, offset: number | null) => {
    const key = props.rowKey(row)
    return (
      <div
        key={key}
        role="row"
        aria-rowindex={index + 2}
        className="tr line"
        data-selected={selection.has(key)}
        data-changed={versions.has(key)}
        style={offset === null ? undefined : { transform: `translateY(${offset}px)` }}
      >
        {props.bulk && (
          <span role="cell">
            <input type="checkbox" aria-label={`Select ${shown[0]?.text(row) ?? key}`} checked={selection.has(key)} onChange={() => selection.toggle(row)} />
          </span>
        )}
        {shown.map((column, place) => {
          const text = column.text(row)
          const drawn = column.render ? column.render(row) : text
          const look = column.number ? 'td number' : typeof drawn === 'string' ? 'td text' : 'td'
          return (
            <span key={column.id} role="cell" className={look} title={text.slice(0, 400)}>
              {drawn}
              {place === 0 && versions.has(key) && props.changedBy?.(row) !== undefined && <span className="muted small"> changed by {props.changedBy(row)}</span>}
            </span>
          )
        })}
      </div>
    )
  }
  return (
    <div className="scroll" ref={frame} tabIndex={-1} onScroll={(event) => keepTop(props.label, event.currentTarget.scrollTop)}>
      <div role="table" aria-label={props.label} aria-rowcount={(remote?.total ?? sorted.length) + 1} aria-colcount={shown.length}>
        <div role="rowgroup">
          <div role="row" className="tr top" aria-rowindex={1}>
            {props.bulk && (
              <span role="columnheader">
                <input type="checkbox" aria-label="Select all" checked={selection.isWhole} onChange={selection.toggleShown} />
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

/** The rows that changed since they were shown first. Rows that a search or a further page brings are not among them. */
function useVersions<Row>(rows: Row[], rowKey: (row: Row) => string, version?: (row: Row) => string): ReadonlySet<string> {
  const known = useRef<ReadonlyMap<string, string>>(new Map())
  const [differing, setDiffering] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => {
    if (version === undefined || rows.length === 0) return
    const next = new Map(rows.map((row) => [rowKey(row), version(row)]))
    const before = known.current
    known.current = new Map([...before, ...next].slice(-KNOWN))
    const moved = [...next].filter(([key, value]) => before.has(key) && before.get(key) !== value).map(([key]) => key)
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
