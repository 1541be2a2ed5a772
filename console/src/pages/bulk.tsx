// What is done with a selection: disabled, enabled, labelled or deleted, in one commit that one press takes back.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type Planned, canChange, commit, plan, undo } from '../api/changes'
import type { Fields, ViewRow } from '../api/types'
import { DiffTable } from '../form/diff-table'
import { type Kind, fields } from '../kinds'
import { Failure } from '../shell/page'
import { Act } from '../ui/act'
import { TextField } from '../ui/field'
import { Effects, movesCalls } from './effects'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'

export type BulkKind = 'delete' | 'disable' | 'enable' | 'label'

const WORDS: Record<BulkKind, { text: string; done: string }> = {
  delete: { text: 'Delete', done: 'deleted' },
  disable: { text: 'Disable', done: 'disabled' },
  enable: { text: 'Enable', done: 'enabled' },
  label: { text: 'Label', done: 'labelled' },
}

const SHOWN = 20

function changeOf(action: BulkKind, label: string): (part: Fields) => Fields | null {
  return (part) => {
    const { disabled: _, ...rest } = part
    switch (action) {
      case 'delete':
        return null
      case 'disable':
        return { ...part, disabled: true }
      case 'enable':
        return rest
      case 'label': {
        const at = label.indexOf('=')
        return { ...part, labels: { ...fields(part['labels']), [label.slice(0, at).trim()]: label.slice(at + 1).trim() } }
      }
    }
  }
}

interface Props {
  action: BulkKind
  kind: Kind
  rows: ViewRow[]
  onDone: () => void
  onClose: () => void
}

export default function BulkDialog({ action, kind, rows, onDone, onClose }: Props) {
  const { text, done } = WORDS[action]
  const able = rows.filter(canChange)
  const left = rows.length - able.length
  const [label, setLabel] = useState('')
  const [note, setNote] = useState('')
  const [planned, setPlanned] = useState<Planned[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  const client = useQueryClient()
  const count = countText(able.length, kind.one, kind.many)
  const isLabelMissing = action === 'label' && !/^[^=\s]+=\S/.test(label)
  useEffect(() => {
    // What was planned for an older label is not what would be committed.
    setPlanned(null)
    setError(null)
    if (isLabelMissing || able.length === 0) return
    let isWanted = true
    const timer = setTimeout(() => {
      const work = async () => {
        const found = await plan(able, changeOf(action, label))
        // Tried first: what Weir would refuse is said before anybody commits.
        await commit(found, '', true)
        if (isWanted) setPlanned(found)
      }
      work().catch((wrong: unknown) => isWanted && setError(wrong))
    }, 200)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
    // The rows stay the same while the dialog is open.
  }, [action, label, isLabelMissing])
  const run = async () => {
    const ready = planned ?? []
    const said = note === '' ? `${text} ${count}` : note
    const made = await commit(ready, said)
    await client.invalidateQueries({ queryKey: ['configuration'] })
    toast(`${count} ${done}`, {
      ...(made.revision === null ? {} : { link: { to: `/history/${made.revision}`, text: `r${made.revision}` } }),
      action: {
        text: 'Undo',
        run: () =>
          void undo(ready, made, `Undo: ${said}`)
            .then(async () => {
              await client.invalidateQueries({ queryKey: ['configuration'] })
              toast(`${count} as before`)
            })
            .catch((wrong: unknown) => toast(wrong instanceof Error ? wrong.message : String(wrong), { isBad: true })),
      },
    })
    onDone()
    onClose()
  }
  const refused = able.length === 0 ? 'None of them is a document of Weir itself.' : isLabelMissing ? 'Give the label as name=value.' : error !== null ? 'Weir refuses this.' : planned === null ? 'It is being checked.' : null
  return (
    <Act title={`${text} ${count}?`} action={text} look={action === 'delete' ? 'danger' : 'primary'} wide refused={refused} onClose={onClose} run={run}>
      <p>
        {action === 'delete' && 'Calls that need them are no longer answered. '}
        {action === 'disable' && 'They take no calls for the time being. '}
        All of it is one commit, and one press takes it back.
      </p>
      {left > 0 && <p className="muted">{countText(left, 'selected one belongs', 'selected ones belong')} to Kong, to APISIX or to a file and stays as it is: each is changed on its own page.</p>}
      {action === 'label' && <TextField label="Label" value={label} onChange={setLabel} placeholder="team=web" autoFocus />}
      {error !== null && <Failure error={error} />}
      {planned !== null && (
        <div className="stack tight scrolled" role="group" aria-label="What changes">
          {planned.slice(0, SHOWN).map((it) => (
            <details key={`${it.kind}/${it.name}`}>
              <summary>
                <code>
                  {it.kind}/{it.name}
                </code>
              </summary>
              <DiffTable before={it.before ?? undefined} after={it.after ?? undefined} />
            </details>
          ))}
          {planned.length > SHOWN && <p className="muted">and {countText(planned.length - SHOWN, 'more document', 'more documents')}</p>}
        </div>
      )}
      {planned !== null && action !== 'label' && movesCalls(kind.path) && <Effects documents={Object.fromEntries(planned.map((it) => [`native/${it.kind}/${it.name}`, it.after]))} />}
      <TextField label="Note" value={note} onChange={setNote} placeholder="Why, for those who read the history" />
    </Act>
  )
}
