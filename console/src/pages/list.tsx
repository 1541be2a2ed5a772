// A list of resources of all dialects: search, choice, deletion, and what an empty list teaches. Pages give the columns.
import { type ReactNode, Suspense, lazy, useCallback, useMemo, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { kindIn } from '../api/dialects'
import { type ViewList, readView, useView, viewPath } from '../api/hooks'
import { authorOf } from '../api/changed'
import { useRight } from '../api/rights'
import type { ViewRow } from '../api/types'
import { placeOf } from '../documents'
import { type Kind, kindOf } from '../kinds'
import { DIALECTS } from './dialects'
import { Empty, Failure, Page } from '../shell/page'
import { ButtonLink, MenuPlace } from '../ui/button'
import { type BulkAction, type Column, Table } from '../ui/table'
import { stringify } from '../yaml'
import type { BulkKind } from './bulk'

const ActionMenu = lazy(() => import('../ui/menu'))
const BulkDialog = lazy(() => import('./bulk'))

/** The native document that a row stands for, if it is one of its own. */
export function ownDocument(row: ViewRow): { kind: string; name: string } | null {
  if (!row.document || row.dialect !== 'native' || (row.pointer ?? '') !== '') return null
  const { kind, name, to } = placeOf(row.document)
  return to === null ? null : { kind, name }
}

/** Where a row leads: to its own form, or to what is known of it. */
export function linkOf(list: string, row: ViewRow): string {
  const own = ownDocument(row)
  return own ? `/${own.kind}/${encodeURIComponent(own.name)}` : `/view/${list}/${encodeURIComponent(row.id)}`
}

export function DialectBadge({ row }: { row: ViewRow }) {
  return <span className={row.dialect === 'native' ? 'badge accent' : 'badge'}>{DIALECTS[row.dialect] ?? row.dialect}</span>
}

export function nameColumn(list: ViewList): Column<ViewRow> {
  return {
    id: 'name',
    title: 'Name',
    text: (row) => row.name,
    sortsAs: 'name',
    render: (row) => (
      <>
        <Link href={linkOf(list, row)}>{row.name}</Link>
        {row.is_disabled && <span className="badge warn">disabled</span>}
      </>
    ),
    width: 'minmax(8rem, 2.4fr)',
  }
}

export const dialectColumn: Column<ViewRow> = {
  id: 'dialect',
  title: 'From',
  text: (row) => row.dialect,
  sortsAs: 'dialect',
  render: (row) => <DialectBadge row={row} />,
  from: 2,
  width: '5rem',
}

export function badges(names: string[] | undefined): ReactNode {
  return (
    <span className="row" style={{ flexWrap: 'nowrap' }}>
      {(names ?? []).map((name, index) => (
        <span className="badge" key={`${name}${index}`}>
          {name}
        </span>
      ))}
    </span>
  )
}

export const pluginColumn: Column<ViewRow> = {
  id: 'plugin',
  title: 'Plugins',
  text: (row) => (row.plugins ?? []).join(', '),
  render: (row) => badges(row.plugins),
  from: 3,
  width: 'minmax(7rem, 1.2fr)',
}

interface Props {
  list: ViewList
  title: string
  columns: Column<ViewRow>[]
  above?: ReactNode
}

const rowKey = (row: ViewRow) => row.id
const version = (row: ViewRow) => JSON.stringify(row)
const changedBy = (row: ViewRow) => authorOf(row.document)

export function ListPage({ list, title, columns, above }: Props) {
  const kind = kindOf(list) as Kind
  const [parameters] = useSearchParams()
  const q = parameters.get('q') ?? ''
  const wanted = parameters.get('sort') ?? ''
  const column = columns.find((it) => it.id === wanted.replace(/^-/, ''))
  const sort = column?.sortsAs === undefined ? '' : `${wanted.startsWith('-') ? '-' : ''}${column.sortsAs}`
  const view = useView(list, q, sort)
  const rows = useMemo(() => view.data?.pages.flatMap((page) => page.items) ?? [], [view.data])
  const [bulk, setBulk] = useState<{ action: BulkKind; rows: ViewRow[]; onDone: () => void } | null>(null)
  const refused = useRight('configuration:write')
  const [, go] = useLocation()
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = view
  const loadMore = useCallback(() => {
    if (!isFetchingNextPage) void fetchNextPage()
  }, [isFetchingNextPage, fetchNextPage])
  const remote = useMemo(
    () => ({ total: view.data?.pages[0]?.total ?? 0, hasMore: hasNextPage, loadMore, all: () => readView(list, q, sort) }),
    [view.data, hasNextPage, loadMore, list, q, sort],
  )
  return (
    <Page
      title={title}
      about={kind.about}
      calls={[
        { about: `List ${kind.many} of all dialects`, method: 'GET', path: `${viewPath(list)}${q === '' ? '' : `?q=${encodeURIComponent(q)}`}` },
        { about: `Create a ${kind.one}`, method: 'POST', path: `/api/v1/resources/${kind.path}`, body: kind.example },
      ]}
      actions={
        <>
          <Suspense fallback={<MenuPlace label="Other dialects" />}>
            <ActionMenu label="Other dialects" actions={foreignKinds(list).map(({ dialect, to }) => ({ text: `New ${DIALECTS[dialect]} ${kind.one}`, refused, run: () => go(to) }))} />
          </Suspense>
          <ButtonLink to={`/${kind.path}/@new`} look="primary" refused={refused}>
            New {kind.one}
          </ButtonLink>
        </>
      }
    >
      {above}
      {view.error && view.data === undefined ? (
        <Failure error={view.error} onRetry={() => void view.refetch()} />
      ) : (
        <Table
          label={title}
          rows={rows}
          columns={columns}
          rowKey={rowKey}
          version={version}
          changedBy={changedBy}
          isLoading={view.isLoading}
          noun={[kind.one, kind.many]}
          remote={remote}
          bulk={[EXPORT, ...actionsOf(list).map(([action, text]) => ({ text, refused, ...(action === 'delete' ? { look: 'danger' as const } : {}), run: (chosen: ViewRow[], onDone: () => void) => setBulk({ action, rows: chosen, onDone }) }))]}
          empty={<EmptyList kind={kind} />}
        />
      )}
      <Suspense fallback={null}>{bulk && <BulkDialog {...bulk} kind={kind} onClose={() => setBulk(null)} />}</Suspense>
    </Page>
  )
}

/** Where a document of another dialect is made. */
export const foreignKinds = (list: ViewList): { dialect: 'kong' | 'apisix'; to: string }[] =>
  (['kong', 'apisix'] as const).flatMap((dialect) => {
    const kind = kindIn(dialect, list)
    return kind === null ? [] : [{ dialect, to: `/new/${dialect}/${kind}` }]
  })

/** The documents of a selection as a file: no right to write is needed. */
const EXPORT: BulkAction<ViewRow> = { text: 'Export YAML', run: (rows) => void import('./export-documents').then((it) => it.exportDocuments(rows)) }

/** What can be done with a selection. */
function actionsOf(list: ViewList): [BulkKind, string][] {
  const all: [BulkKind, string][] = [['delete', 'Delete']]
  if (list === 'routes' || list === 'services') all.unshift(['label', 'Label'])
  if (list === 'routes') all.unshift(['enable', 'Enable'], ['disable', 'Disable'])
  return all
}

export function EmptyList({ kind }: { kind: Kind }) {
  const refused = useRight('configuration:write')
  return (
    <Empty
      title={`No ${kind.many} yet`}
      example={stringify(kind.example)}
      actions={
        (kind.path === 'routes' || kind.path === 'services') && (
          <ButtonLink to="/import" refused={refused}>
            Import an OpenAPI document
          </ButtonLink>
        )
      }
    >
      <p>
        {kind.about} “New {kind.one}” has a form for it. As a document it is:
      </p>
    </Empty>
  )
}
