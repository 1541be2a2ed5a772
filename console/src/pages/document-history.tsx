// The commits of one document. What it was after one of them goes into the form, where it is looked at and saved.
import { useState } from 'react'
import { call } from '../api/client'
import { useHistory } from '../api/hooks'
import type { Difference, Fields, Json } from '../api/types'
import { isMap } from '../form/path'
import type { Kind } from '../kinds'
import { Failure } from '../shell/page'
import { Button } from '../ui/button'
import { toast } from '../ui/toast'
import { CommitList } from './commit-list'

/** What the server writes in place of a secret that the reader may not see. It must not be saved. */
const REDACTED = /^\*\*\*( \(another\))?$/

/** Whether a document holds such a place. */
export const isRedacted = (value: Json): boolean =>
  typeof value === 'string' ? REDACTED.test(value) : typeof value === 'object' && value !== null && Object.values(value).some(isRedacted)

interface Props {
  kind: Kind
  name: string
  /** Why the document cannot be changed. */
  refused: string | null
  onTake: (value: Fields, revision: number) => void
}

export function DocumentHistory({ kind, name, refused, onTake }: Props) {
  const document = `native/${kind.path}/${name}`
  const history = useHistory({ prefix: document, limit: 100 })
  const [error, setError] = useState<unknown>(null)
  if (history.error) return <Failure error={history.error} onRetry={() => void history.refetch()} />
  const own = (history.data ?? []).filter((it) => it.changes.some((change) => change.document === document))
  const take = async (revision: number) => {
    setError(null)
    try {
      const { data } = await call<{ items: Difference[] }>('GET', '/api/v1/diff', { query: { from: revision } })
      const found = data.items.find((it) => it.document === document)
      if (found === undefined) toast(`It is what it was at revision ${revision}`)
      else if (!isMap(found.before)) toast(`It was not there at revision ${revision}`, { isBad: true })
      else if (isRedacted(found.before)) toast('It held secrets, which the history shows to administrators only. Take it back by hand, or ask one of them.', { isBad: true })
      else onTake(found.before, revision)
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <section className="card" aria-label="History">
      {error !== null && <Failure error={error} />}
      <CommitList
        commits={own}
        action={(it) =>
          it === own[0] ? (
            <span className="muted small">now</span>
          ) : (
            <Button small refused={refused} onPress={() => void take(it.revision)}>
              Take this<span className="sr"> of revision {it.revision}</span>
            </Button>
          )
        }
      />
    </section>
  )
}
