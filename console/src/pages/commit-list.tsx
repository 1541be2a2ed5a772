// Commits as a short list, for pages that show a few.
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import type { Commit } from '../api/types'
import { placeOf } from '../documents'
import { Button } from '../ui/button'
import { Time, countText } from '../ui/time'

/** What a commit did, in a few words. */
export function summary(commit: Commit): string {
  // A note that only repeats the call says less than what was changed.
  if (commit.note !== '' && (commit.changes.length === 0 || !/^(GET|PUT|POST|PATCH|DELETE) /.test(commit.note))) return commit.note
  const [first] = commit.changes
  if (commit.changes.length === 1 && first !== undefined) {
    const { kind, name } = placeOf(first.document)
    return `${name} in ${kind} ${first.change}`
  }
  const counts = ['created', 'changed', 'removed'].map((it): [string, number] => [it, commit.changes.filter((change) => change.change === it).length])
  const told = counts.filter(([, count]) => count > 0).map(([change, count]) => `${count} ${change}`)
  return `${countText(commit.changes.length, 'document', 'documents')}: ${told.join(', ')}`
}

export function CommitList({ commits, action }: { commits: Commit[]; action?: (commit: Commit) => ReactNode }) {
  const [most, setMost] = useState(10)
  if (commits.length === 0) return <p className="muted">No commits yet.</p>
  return (
    <>
      <ul className="checklist">
        {commits.slice(0, most).map((it) => (
          <li key={it.revision} style={{ gridTemplateColumns: action ? '4rem minmax(0, 1fr) auto auto' : '4rem minmax(0, 1fr) auto' }}>
            <Link href={`/history/${it.revision}`}>r{it.revision}</Link>
            <span className="clip" title={it.note}>
              {summary(it)} <span className="muted">by {it.author}</span>
            </span>
            <span className="muted small">
              <Time at={it.time} />
            </span>
            {action?.(it)}
          </li>
        ))}
      </ul>
      {commits.length > most && (
        <div>
          <Button small onPress={() => setMost(most + 40)}>
            More
          </Button>
        </div>
      )}
    </>
  )
}
