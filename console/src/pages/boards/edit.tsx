// A board that is made or changed: its title, its time, and its panels, each drawn as it will be.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { useDefinition } from '../../api/analytics'
import { type Board, type BoardPanel, boardPath, toBoard, useBoards } from '../../api/boards'
import { useRight } from '../../api/rights'
import type { Fields, Json } from '../../api/types'
import type { Begun } from '../../form/draft'
import { EntityEditor } from '../../form/entity-editor'
import { type SendOptions, readVersion, send } from '../../form/send'
import { Failure, Page } from '../../shell/page'
import { useIsNew, useSegments } from '../../shell/segments'
import { Button } from '../../ui/button'
import { SelectField, TextField } from '../../ui/field'
import { toast } from '../../ui/toast'
import { RANGES, lastText } from '../panel'
import { PanelForm } from './panel-form'

const CRUMBS = [{ to: '/analytics', text: 'Analytics' }]
const FRESH: Fields = { title: '', from: '-24h', panels: [{ title: 'Calls', kind: 'area', width: 12, query: { metrics: ['calls'], step: 'auto', group_by: ['class'] } }] }
export const MOST_PANELS = 30

/** What of a board is edited: not what the server knows of it. */
export function editable(board: Board): Fields {
  const { given: _, updated: __, updated_by: ___, etag: ____, ...rest } = board
  return rest as unknown as Fields
}

export default function EditBoard() {
  const [, , id = ''] = useSegments()
  const [parameters] = useSearchParams()
  const boards = useBoards()
  const isNew = useIsNew()
  const of = parameters.get('of')
  const known = boards.data?.find((it) => it.id === (isNew ? of : id))
  const refused = useRight('boards:write')
  const client = useQueryClient()
  const [, go] = useLocation()
  const base = useMemo((): Begun | null => {
    if (!isNew) return known ? { data: editable(known), tag: known.etag ?? null } : null
    if (!known) return { data: FRESH, tag: null }
    const { id: _, ...rest } = editable(known)
    return { data: { ...rest, title: `${known.title}, a copy` }, tag: null }
  }, [isNew, known])
  const store = async (value: Fields, options: SendOptions): Promise<Begun> => {
    const { data, tag } = await (isNew ? send<Board>('POST', '/api/v1/boards', value, options) : send<Board>('PUT', boardPath(id), value, options))
    return { data: editable(data), tag }
  }
  const title = isNew ? 'New board' : (known?.title ?? id)
  return (
    <Page
      title={title}
      about="A board is a list of panels that are looked at together. All who may see analytics see it."
      crumbs={CRUMBS}
      calls={[isNew ? { about: 'Make it', method: 'POST', path: '/api/v1/boards', body: base?.data } : { about: 'Save it', method: 'PUT', path: boardPath(id), body: base?.data }]}
    >
      {boards.error && boards.data === undefined ? (
        <Failure error={boards.error} onRetry={() => void boards.refetch()} />
      ) : boards.isLoading || (isNew && of !== null && boards.data === undefined) ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : base === null ? (
        <p className="note warn">There is no such board any more.</p>
      ) : (
        <EntityEditor
          key={`${id} ${of ?? ''}`}
          kept={`board/${id}/${of ?? ''}`}
          title={title.toLowerCase() === 'new board' ? 'the new board' : title}
          base={base}
          isNew={isNew}
          refused={refused ?? (known?.given && !isNew ? 'Weir comes with this board. Save a copy of it instead.' : null)}
          missing={(value) => (String(value['title'] ?? '').trim() === '' ? 'It needs a title.' : !Array.isArray(value['panels']) || value['panels'].length === 0 ? 'It needs a panel.' : null)}
          form={(value, onChange) => <BoardForm value={value} onChange={onChange} />}
          send={store}
          read={() => readVersion(boardPath(id), editable)}
          isDocument={false}
          onSaved={async (stored) => {
            await client.invalidateQueries({ queryKey: ['boards'] })
            toast(`${String(stored['title'])} is saved`)
            go(toBoard(String(stored['id'] ?? id)))
          }}
        />
      )}
    </Page>
  )
}

function BoardForm({ value, onChange }: { value: Fields; onChange: (value: Fields) => void }) {
  const definition = useDefinition()
  const board = value as unknown as Board
  const panels: BoardPanel[] = Array.isArray(value['panels']) ? (value['panels'] as unknown as BoardPanel[]) : []
  const set = (name: string, next: Json | undefined) => {
    const { [name]: _, ...rest } = value
    onChange(next === undefined || next === '' ? rest : { ...value, [name]: next })
  }
  const setPanels = (next: BoardPanel[]) => onChange({ ...value, panels: next as unknown as Json })
  return (
    <>
      <section className="card" aria-label="About it">
        <div className="grid">
          <TextField label="Title" value={String(value['title'] ?? '')} onChange={(text) => onChange({ ...value, title: text })} isRequired placeholder="The shop" />
          <TextField label="What it is for" value={String(value['description'] ?? '')} onChange={(text) => set('description', text)} />
          <SelectField
            label="Time"
            value={String(value['from'] ?? '')}
            onChange={(text) => set('from', text)}
            options={[['', 'each panel by itself'], ...RANGES.map(([it, text]) => [it, lastText(text)] as const), ...(typeof value['from'] === 'string' && !RANGES.some(([it]) => it === value['from']) ? [[value['from'], value['from']] as const] : [])]}
          />
          <SelectField
            label="Compared with"
            value={String(value['compare'] ?? '')}
            onChange={(text) => set('compare', text)}
            options={[
              ['', 'nothing'],
              ['1d', 'the day before'],
              ['1w', 'the week before'],
              ...(typeof value['compare'] === 'string' && !['1d', '1w'].includes(value['compare']) ? [[value['compare'], value['compare']] as const] : []),
            ]}
          />
        </div>
      </section>
      {panels.map((panel, index) => (
        <PanelForm
          key={index}
          index={index}
          count={panels.length}
          panel={panel}
          board={board}
          definition={definition.data}
          onChange={(next) => setPanels(panels.map((it, at) => (at === index ? next : it)))}
          onMove={(to) => setPanels(moved(panels, index, to))}
          onRemove={() => setPanels(panels.filter((_, at) => at !== index))}
        />
      ))}
      <div>
        <Button
          icon="plus"
          refused={panels.length >= MOST_PANELS ? `A board has at most ${MOST_PANELS} panels.` : null}
          onPress={() => setPanels([...panels, { title: 'Latency', kind: 'line', width: 6, query: { metrics: ['latency_p95'], step: 'auto' } as BoardPanel['query'] }])}
        >
          Add a panel
        </Button>
      </div>
    </>
  )
}

function moved(panels: BoardPanel[], from: number, to: number): BoardPanel[] {
  const next = [...panels]
  const [it] = next.splice(from, 1)
  if (it !== undefined) next.splice(to, 0, it)
  return next
}
