// The document was changed meanwhile: what it was, what it is now, what is yours. What does not overlap is put
// together; the rest is chosen one by one. Nothing is lost.
import { useMemo, useState } from 'react'
import type { LastChange } from '../api/client'
import type { Fields } from '../api/types'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { Time } from '../ui/time'
import { decided, merge } from './merge'
import { isMap, pathText } from './path'
import { Shown } from './show'

interface Props {
  base: Fields
  theirs: Fields
  mine: Fields
  /** Who stored it, and when, if that is known. */
  by: Pick<LastChange, 'author' | 'time'> | null
  onClose: () => void
  onMerged: (value: Fields) => void
}

export function ConflictDialog({ base, theirs, mine, by, onClose, onMerged }: Props) {
  const merged = useMemo(() => merge(base, theirs, mine), [base, theirs, mine])
  const [choices, setChoices] = useState<ReadonlyMap<number, 'mine' | 'theirs'>>(new Map())
  const isDecided = merged.conflicts.every((_, index) => choices.has(index))
  const finish = () => {
    const chosen = new Set([...choices].filter(([, side]) => side === 'theirs').map(([index]) => index))
    const value = decided(merged, chosen)
    if (isMap(value)) onMerged(value)
  }
  return (
    <Dialog
      title="This was changed meanwhile"
      isOpen
      wide
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Back to your edit</Button>
          <Button look="primary" refused={isDecided ? null : 'Choose a side for each field first.'} onPress={finish}>
            Go on with the merged document
          </Button>
        </>
      }
    >
      <p>
        {by ? (
          <>
            <strong>{by.author}</strong> changed it <Time at={by.time} />. Your edit is kept.
          </>
        ) : (
          'Another person changed it. Your edit is kept.'
        )}
      </p>
      {merged.taken.length > 0 && (
        <div className="note">
          <strong>Taken over from there</strong>
          <span>
            You did not touch these: <code>{merged.taken.map(pathText).join(', ')}</code>
          </span>
        </div>
      )}
      {merged.conflicts.length === 0 ? (
        <p>Your changes do not overlap with theirs. The merged document holds both.</p>
      ) : (
        <div className="wide">
          <table className="diff three">
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">You started from</th>
                <th scope="col">It is now</th>
                <th scope="col">Yours</th>
              </tr>
            </thead>
            <tbody>
              {merged.conflicts.map((it, index) => (
                <tr key={pathText(it.path)}>
                  <th scope="row">
                    <code>{pathText(it.path)}</code>
                  </th>
                  <td>
                    <Shown value={it.base} />
                  </td>
                  {(['theirs', 'mine'] as const).map((side) => (
                    <td key={side} className={choices.get(index) === side ? 'is' : ''}>
                      <label className="choice">
                        <input
                          type="radio"
                          name={`conflict-${index}`}
                          checked={choices.get(index) === side}
                          onChange={() => setChoices(new Map(choices).set(index, side))}
                        />
                        {side === 'theirs' ? 'Take theirs' : 'Keep mine'}
                      </label>
                      <Shown value={it[side]} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Dialog>
  )
}
