// Differences of documents between two revisions, one card for each.
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import type { Difference } from '../api/types'
import { placeOf } from '../documents'
import { DiffTable } from '../form/diff-table'
import { Button } from '../ui/button'
import { countText } from '../ui/time'

const FIRST = 20

/** `action`: what can be done with one of them. */
export function Differences({ items, action }: { items: Difference[]; action?: (it: Difference) => ReactNode }) {
  const [most, setMost] = useState(FIRST)
  if (items.length === 0) return <p className="muted">No document differs.</p>
  return (
    <div className="stack">
      <p className="muted">{countText(items.length, 'document differs', 'documents differ')}.</p>
      {items.slice(0, most).map((it) => {
        const place = placeOf(it.document)
        const change = it.before === null ? 'created' : it.after === null ? 'removed' : 'changed'
        return (
          <section className="card flush" key={it.document} aria-label={it.document}>
            <div className="head2">
              <h3 className="clip">{place.to ? <Link href={place.to}>{place.name}</Link> : place.name}</h3>
              <span className="row">
                <span className="badge">{place.namespace}</span>
                <span className="badge">{place.kind}</span>
                <span className={`badge ${change === 'created' ? 'good' : change === 'removed' ? 'bad' : 'accent'}`}>{change}</span>
                {action?.(it)}
              </span>
            </div>
            <DiffTable before={it.before ?? undefined} after={it.after ?? undefined} />
          </section>
        )
      })}
      {items.length > most && (
        <div>
          <Button onPress={() => setMost(most + 100)}>Show {Math.min(100, items.length - most)} more</Button>
        </div>
      )}
    </div>
  )
}
