// What the pages of API management share: badges of states, the words of a limit, and what a page shows before its data
// is there.
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { type OperationChange, type Plan, type Publication, type Subscription, partsOf, toProduct, toPublication, toneOf } from '../../api/apis'
import { Failure, Page } from '../../shell/page'
import { countText } from '../../ui/time'

export function State({ state }: { state: string }) {
  return <span className={`badge ${toneOf(state)}`}>{state.replaceAll('-', ' ')}</span>
}

/** The first characters of a hash: enough to compare by eye; all of it on hover. */
export function Hash({ value }: { value: string }) {
  return (
    <code title={value} className="hash">
      {value.slice(0, 8)}
    </code>
  )
}

export function PublicationLink({ id }: { id: string }) {
  const [api, version, environment] = partsOf(id)
  return (
    <Link href={toPublication(api, version, environment)}>
      {api} {version} <span className="muted">in {environment}</span>
    </Link>
  )
}

/** What a subscription is to, as a text. */
export const targetText = (it: Subscription): string => it.publication || `the product ${it.product ?? ''}`

/** What a subscription is to: a publication, or a product. */
export function TargetLink({ of }: { of: Subscription }) {
  if (of.publication !== '') return <PublicationLink id={of.publication} />
  return (
    <Link href={toProduct(of.product ?? '')}>
      {of.product} <span className="muted">product</span>
    </Link>
  )
}

export const limitText = (plan: Plan): string =>
  (plan.limits ?? []).map((it) => `${it.count.toLocaleString()} per ${it.per}`).join(', ') || 'no limit'

/** What is to be said of a publication at a glance. */
export function notesOf(it: Publication): { text: string; tone: string }[] {
  const notes = []
  if (it.retired) notes.push({ text: 'retired', tone: 'bad' })
  if (it.state === 'disabled') notes.push({ text: 'disabled', tone: 'warn' })
  if (it.deprecation && !it.retired) notes.push({ text: 'deprecated', tone: 'warn' })
  if (it.canary) notes.push({ text: `canary r${it.canary.revision} ${it.canary.share / 100} %`, tone: 'accent' })
  return notes
}

interface Query {
  error: unknown
  data: unknown
  refetch: () => unknown
}

/** A page of one thing while that is read, or if it cannot be. */
export function Waiting({ title, crumbs, queries }: { title: string; crumbs?: { to: string; text: string }[]; queries: Query[] }) {
  const failed = queries.find((it) => it.error !== null && it.data === undefined)
  return (
    <Page title={title} calls={[]} {...(crumbs ? { crumbs } : {})}>
      {failed ? <Failure error={failed.error} onRetry={() => queries.forEach((it) => void it.refetch())} /> : <div className="skeleton tall" aria-busy="true" />}
    </Page>
  )
}

const KINDS: Record<string, string> = { added: 'good', removed: 'bad', changed: 'accent' }

/** Operations that were added, removed or changed, and what of it breaks callers. */
export function OperationChanges({ operations }: { operations: OperationChange[] }) {
  if (operations.length === 0) return <p className="muted">No operation differs.</p>
  const breaking = operations.filter((it) => it.changes.some((change) => change.breaking)).length
  return (
    <div className="stack tight">
      <p className="muted">
        {countText(operations.length, 'operation differs', 'operations differ')}
        {breaking > 0 && <>, {countText(breaking, 'of them breaks', 'of them break')} callers</>}.
      </p>
      <ul className="changes">
        {operations.map((it) => (
          <li key={it.id}>
            <div className="row">
              <span className={`badge ${KINDS[it.kind] ?? ''}`}>{it.kind}</span>
              <Method name={it.method} />
              <code>{it.path}</code>
            </div>
            {it.changes.length > 0 && (
              <ul>
                {it.changes.map((change) => (
                  <li key={`${change.place}${change.message}`} className={change.breaking ? 'breaking' : ''}>
                    {change.breaking && <span className="badge bad">breaking</span>} <code>{change.place}</code> {change.message}
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}

export function Method({ name }: { name: string }) {
  return <span className={`method ${name.toLowerCase()}`}>{name.toUpperCase()}</span>
}

export function Pairs({ pairs }: { pairs: [string, ReactNode][] }) {
  return (
    <dl className="pairs">
      {pairs
        .filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0))
        .map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
    </dl>
  )
}
