// A resource that is no native document of its own: one of Kong's or APISIX's, with its form; or one that stands in a file
// or inside of another document, with what is known of it.
import { useQuery } from '@tanstack/react-query'
import { Suspense, lazy, useMemo } from 'react'
import { Link } from 'wouter'
import { foreignOf } from '../api/dialects'
import { type ViewList, readView } from '../api/hooks'
import type { Json, ViewRow } from '../api/types'
import { placeOf } from '../documents'
import { tryLink } from '../explain/example'
import { Failure, Page } from '../shell/page'
import { useSegments } from '../shell/segments'
import { ButtonLink } from '../ui/button'
import { label } from '../form/schema'
import { DialectBadge } from './list'

const ForeignEditor = lazy(() => import('./foreign'))
const ConsumerReach = lazy(() => import('./consumer-reach'))

const HIDDEN = new Set(['id', 'name', 'dialect', 'document', 'file', 'pointer'])

export default function RowPage() {
  const [, list = 'routes', id = ''] = useSegments() as [string, ViewList, string]
  const found = useQuery({
    queryKey: ['configuration', 'row', list, id],
    queryFn: async () => (await readView(list, '', '')).find((row) => row.id === id) ?? null,
  })
  const row = found.data
  return (
    <Page title={row?.name ?? id} crumbs={[{ to: `/${list}`, text: label(list) }]} calls={[{ about: 'The list that it is in', method: 'GET', path: `/api/v1/view/${list}` }]}
      actions={list === 'routes' && row && !row.is_stream ? <ButtonLink to={tryLink(row.hosts ?? [], row.paths ?? [], row.methods ?? [])}>Try</ButtonLink> : null}
    >
      {found.error && <Failure error={found.error} onRetry={() => void found.refetch()} />}
      {row === null && <p className="muted">It is not there any more.</p>}
      {row && <About row={row} list={list} />}
    </Page>
  )
}

function About({ row, list }: { row: ViewRow; list: string }) {
  const foreign = useMemo(() => foreignOf(row), [row])
  const place = !row.document ? null : placeOf(row.document)
  const isInside = (row.pointer ?? '') !== ''
  const entries = Object.entries(row as unknown as Record<string, Json>).filter(([name]) => !HIDDEN.has(name))
  return (
    <>
      <div className="note">
        <div className="row">
          <DialectBadge row={row} />
          {row.file ? (
            <span>
              It stands in the file <code>{row.file}</code>
              {isInside && (
                <>
                  {' '}
                  at <code>{row.pointer}</code>
                </>
              )}
              . Change it there: Weir reads the file again by itself.
            </span>
          ) : place?.to && isInside ? (
            <span>
              It is written in <Link href={place.to}>{place.name}</Link> at <code>{row.pointer}</code>.
            </span>
          ) : row.dialect === 'kong' ? (
            <span>It is changed through Kong's Admin API: here, there, or with decK.</span>
          ) : (
            <span>It is changed through APISIX's Admin API: here, there, or with ADC.</span>
          )}
          {place?.to && isInside && (
            <ButtonLink small isEdit to={place.to}>
              Edit {place.name}
            </ButtonLink>
          )}
        </div>
      </div>
      {foreign && (
        <Suspense fallback={<div className="skeleton tall" />}>
          <ForeignEditor foreign={foreign} name={row.name} list={list} />
        </Suspense>
      )}
      {list === 'consumers' && (
        <Suspense fallback={<div className="skeleton tall" />}>
          <ConsumerReach name={row.name} />
        </Suspense>
      )}
      <section className="card" aria-label="What it says">
        <dl className="pairs">
          {entries.map(([name, value]) => [
            <dt key={name}>{label(name)}</dt>,
            <dd key={`${name} value`}>{Array.isArray(value) ? value.map(String).join(', ') : typeof value === 'object' ? JSON.stringify(value) : String(value)}</dd>,
          ])}
          <dt>Identifier</dt>
          <dd>
            <code>{row.id}</code>
          </dd>
        </dl>
      </section>
    </>
  )
}
