// A list of documents of one kind: search, choice, deletion, and what an empty list teaches. The pages give the columns.
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { stringify } from '../yaml'
import { call } from '../api/client'
import { documentPath, useDocuments } from '../api/hooks'
import type { Fields } from '../api/types'
import { type Kind, kindOf, nameOf } from '../kinds'
import { Empty, Failure, Page } from '../shell/page'
import { Button, ButtonLink } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { type Column, Table } from '../ui/table'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'

/** A document in a list; `parent` is the service in whose document a route is written. */
export interface Row {
  kind: Kind
  name: string
  document: Fields
  parent: string | null
}

export const linkOf = (row: Row): string =>
  row.parent === null
    ? `/${row.kind.path}/${encodeURIComponent(row.name)}`
    : `/services/${encodeURIComponent(row.parent)}`

export function NameCell({ row }: { row: Row }) {
  return <Link href={linkOf(row)}>{row.name}</Link>
}

interface Props {
  path: string
  title: string
  columns: Column<Row>[]
  /** In place of the documents of the kind. */
  rows?: { rows: Row[]; isLoading: boolean; error: unknown; refetch: () => void }
  above?: ReactNode
}

export function toRows(kind: Kind, documents: Fields[]): Row[] {
  return documents.map((document) => ({ kind, name: nameOf(kind, document), document, parent: null }))
}

export function useRows(path: string) {
  const kind = kindOf(path) as Kind
  const documents = useDocuments(path)
  const rows = useMemo(() => toRows(kind, documents.data ?? []), [kind, documents.data])
  return { rows, isLoading: documents.isLoading, error: documents.error, refetch: () => void documents.refetch() }
}

export function ListPage({ path, title, columns, rows: given, above }: Props) {
  const kind = kindOf(path) as Kind
  const own = useRows(path)
  const { rows, isLoading, error, refetch } = given ?? own
  const [doomed, setDoomed] = useState<Row[]>([])
  const rowKey = useCallback((row: Row) => `${row.parent ?? ''}/${row.name}`, [])
  const version = useCallback((row: Row) => JSON.stringify(row.document), [])
  return (
    <Page
      title={title}
      about={kind.about}
      calls={[
        { about: `List ${kind.many}`, method: 'GET', path: `/api/v1/resources/${kind.path}` },
        { about: `Create a ${kind.one}`, method: 'POST', path: `/api/v1/resources/${kind.path}`, body: kind.example },
      ]}
      actions={
        <ButtonLink to={`/${kind.path}/new`} look="primary">
          New {kind.one}
        </ButtonLink>
      }
    >
      {above}
      {error ? (
        <Failure error={error} onRetry={refetch} />
      ) : (
        <Table
          label={title}
          rows={rows}
          columns={columns}
          rowKey={rowKey}
          version={version}
          isLoading={isLoading}
          noun={[kind.one, kind.many]}
          bulk={[
            {
              text: 'Delete',
              look: 'danger',
              run: (chosen) => {
                const own = chosen.filter((row) => row.parent === null)
                if (own.length === 0) toast('Routes that are written in a service are deleted there.', { isBad: true })
                else setDoomed(own)
              },
            },
          ]}
          empty={<EmptyList kind={kind} />}
        />
      )}
      <DeleteDialog kind={kind} rows={doomed} onClose={() => setDoomed([])} />
    </Page>
  )
}

function EmptyList({ kind }: { kind: Kind }) {
  return (
    <Empty
      title={`No ${kind.many} yet`}
      example={stringify(kind.example)}
      actions={
        <>
          <ButtonLink to={`/${kind.path}/new`} look="primary">
            New {kind.one}
          </ButtonLink>
          <ButtonLink to="/import">Import an OpenAPI document</ButtonLink>
        </>
      }
    >
      <p>{kind.about} This is one, as a document:</p>
    </Empty>
  )
}

/** What is deleted together, one after the other. */
function DeleteDialog({ kind, rows, onClose }: { kind: Kind; rows: Row[]; onClose: () => void }) {
  const client = useQueryClient()
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const close = () => {
    setError(null)
    onClose()
  }
  const remove = async () => {
    setBusy(true)
    setError(null)
    try {
      for (const row of rows) await call('DELETE', documentPath(kind.path, row.name))
      toast(`${countText(rows.length, kind.one, kind.many)} deleted`, { link: { to: '/history', text: 'History' } })
      close()
    } catch (refused) {
      setError(refused)
    }
    setBusy(false)
    await client.invalidateQueries({ queryKey: ['configuration'] })
  }
  return (
    <Dialog
      title={`Delete ${countText(rows.length, kind.one, kind.many)}?`}
      isOpen={rows.length > 0}
      onClose={close}
      actions={
        <>
          <Button onPress={close}>Keep</Button>
          <Button look="danger" isBusy={isBusy} onPress={() => void remove()}>
            Delete
          </Button>
        </>
      }
    >
      <p>Calls that need them are no longer answered. History keeps them: any revision can be brought back.</p>
      <ul className="code">
        {rows.slice(0, 12).map((row) => (
          <li key={row.name} className="clip">
            {row.name}
          </li>
        ))}
        {rows.length > 12 && <li>and {rows.length - 12} more</li>}
      </ul>
      {error !== null && <Failure error={error} />}
    </Dialog>
  )
}
