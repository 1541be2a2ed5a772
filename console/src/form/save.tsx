// Saving: what would be stored is shown field by field, then a note, then the commit.
import { type ReactNode, useState } from 'react'
import type { Json } from '../api/types'
import { Failure } from '../shell/page'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { DiffTable } from './diff-table'

interface Props {
  title: string
  before: Json | undefined
  after: Json | undefined
  /** What the server says about a document that it would accept. */
  warning: string | null
  error: unknown
  isBusy: boolean
  onClose: () => void
  onCommit: (note: string) => void
  /** Whether there is a history that keeps a note. */
  hasNote?: boolean
  /** What is lost by it; `null`: nothing. */
  loss?: string | null
  /** What else changes with it. */
  children?: ReactNode
}

export function SaveDialog({ title, before, after, warning, error, isBusy, onClose, onCommit, hasNote = true, loss = null, children }: Props) {
  const [note, setNote] = useState('')
  return (
    <Dialog
      title={title}
      isOpen
      wide
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Back</Button>
          <Button look={loss === null ? 'primary' : 'danger'} isBusy={isBusy} onPress={() => onCommit(note)}>
            {hasNote ? 'Commit' : 'Save'}
          </Button>
        </>
      }
    >
      <p className="muted">Weir has checked this without storing it. This is what would be stored:</p>
      <DiffTable before={before} after={after} />
      {children}
      {loss !== null && (
        <div className="note bad" role="alert">
          <strong>This takes something away</strong>
          <span>{loss}</span>
        </div>
      )}
      {warning !== null && (
        <div className="note warn">
          <strong>Weir would store it, but</strong>
          <span>{warning}</span>
        </div>
      )}
      {hasNote && (
        <div className="field">
          <label htmlFor="commit-note">Note</label>
          <input id="commit-note" className="input" value={note} placeholder="Why, for those who read the history" onChange={(event) => setNote(event.target.value)} onKeyDown={(event) => event.key === 'Enter' && !event.nativeEvent.isComposing && !isBusy && (event.preventDefault(), onCommit(note))} />
        </div>
      )}
      {error !== null && <Failure error={error} />}
    </Dialog>
  )
}
