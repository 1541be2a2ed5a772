// What was explored, kept as a panel of a board: of one that there is, or of a new one.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Query, groupName, metricTitle } from '../../api/analytics'
import { type Board, type BoardPanel, type PanelKind, boardPath, toBoard, useBoards } from '../../api/boards'
import type { Fields } from '../../api/types'
import { readVersion, send } from '../../form/send'
import { Act } from '../../ui/act'
import { SelectField, TextField } from '../../ui/field'
import { toast } from '../../ui/toast'
import { MOST_PANELS, editable } from './edit'
import { PANEL_KINDS, PANEL_WIDTHS } from './panel-form'

/** In the choice of boards: one that is made with the panel. */
const NEW = ''

/** A title that says what is asked. */
function titleOf(query: Query): string {
  const by = (query.group_by ?? []).join(' and ')
  const only = groupName(Object.fromEntries(Object.entries(query.filter ?? {}).map(([name, values]) => [name, [values].flat().join(', ')])))
  return [query.metrics.map(metricTitle).join(', '), by && ` by ${by}`, query.filter && Object.keys(query.filter).length > 0 ? `, ${only}` : ''].join('')
}

export function SavePanel({ query, onClose }: { query: Query; onClose: () => void }) {
  const boards = useBoards()
  const own = (boards.data ?? []).filter((it) => !it.given)
  const [chosen, setChosen] = useState<string | null>(null)
  const id = chosen ?? own[0]?.id ?? NEW
  const board = own.find((it) => it.id === id)
  const [name, setName] = useState('')
  const [title, setTitle] = useState(() => titleOf(query))
  const isSeries = query.step !== undefined
  const kinds = PANEL_KINDS.filter(([it]) => isSeries === (it === 'line' || it === 'area'))
  const [kind, setKind] = useState<PanelKind>(isSeries ? 'line' : 'table')
  const [width, setWidth] = useState('6')
  const client = useQueryClient()
  const panel: BoardPanel = { title: title.trim(), kind, width: Number(width), query }
  const run = async () => {
    let stored: Board
    if (id === NEW) {
      const fresh = { title: name.trim(), panels: [panel] } as unknown as Fields
      stored = (await send<Board>('POST', '/api/v1/boards', fresh, { isDry: false })).data
    } else {
      // The board as it is now, not as the list has it.
      const now = await readVersion<Board>(boardPath(id), editable)
      const panels = [...((now.data['panels'] as unknown as BoardPanel[] | undefined) ?? []), panel]
      stored = (await send<Board>('PUT', boardPath(id), { ...now.data, panels } as unknown as Fields, { isDry: false, tag: now.tag })).data
    }
    await client.invalidateQueries({ queryKey: ['boards'] })
    toast(`${panel.title} is a panel of ${stored.title}`, { link: { to: toBoard(stored.id), text: 'Open the board' } })
    onClose()
  }
  const refused =
    boards.data == null
      ? 'The boards are being read.'
      : panel.title === ''
        ? 'The panel needs a title.'
        : id === NEW && name.trim() === ''
          ? 'The board needs a title.'
          : (board?.panels.length ?? 0) >= MOST_PANELS
            ? `A board has at most ${MOST_PANELS} panels.`
            : null
  return (
    <Act title="Save as a panel" action="Save" refused={refused} onClose={onClose} run={run}>
      <SelectField label="Board" value={id} onChange={setChosen} options={[...own.map((it) => [it.id, it.title] as const), [NEW, 'a new board']]} />
      {id === NEW && <TextField label="Title of the board" value={name} onChange={setName} isRequired placeholder="The shop" />}
      <TextField label="Title of the panel" value={title} onChange={setTitle} isRequired />
      <div className="figures">
        <SelectField label="Drawn as" value={kind} onChange={setKind} options={kinds} />
        <SelectField label="Width" value={width} onChange={setWidth} options={PANEL_WIDTHS} />
      </div>
      {board?.from && <p className="muted small">All panels of {board.title} show the same time: that of the board.</p>}
    </Act>
  )
}
