// Boards: what is called, how fast it is, and what is refused. Commits and publications are marked on every chart. Boards
// that people have made stand beside those that Weir comes with.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { type Board, boardPath, queryOf, useBoards } from '../api/boards'
import { call } from '../api/client'
import { useParts, within } from '../api/parts'
import { useRight } from '../api/rights'
import { Empty, Failure, Page } from '../shell/page'
import { Act } from '../ui/act'
import { Button, ButtonLink } from '../ui/button'
import { copy } from '../ui/files'
import { Time } from '../ui/time'
import { toast } from '../ui/toast'
import { Panel, RANGES } from './panel'
import { PartsChoice } from './parts-choice'

export default function Analytics() {
  const [parameters] = useSearchParams()
  const boards = useBoards()
  const all = boards.data ?? []
  const board = all.find((it) => it.id === parameters.get('board')) ?? all[0]
  const isMissing = parameters.get('board') !== null && boards.data != null && board?.id !== parameters.get('board')
  const refused = useRight('boards:write')
  const parts = useParts()
  return (
    <Page
      title="Analytics"
      calls={[
        { about: 'List boards', method: 'GET', path: '/api/v1/boards' },
        { about: 'The numbers of a panel', method: 'POST', path: '/api/v1/analytics/query', body: within(board?.panels[0] ? queryOf(board, board.panels[0], '', true) : { metrics: ['calls'], from: '-1h' }, parts.current) },
      ]}
      actions={
        <>
          <ButtonLink to="/analytics/explore">Explorer</ButtonLink>
          <ButtonLink to="/analytics/boards/@new" look="primary" refused={refused}>
            New board
          </ButtonLink>
        </>
      }
    >
      {boards.data === null ? (
        <div className="table">
          <Empty title="Analytics are off" example="weir run --data /var/lib/weir">
            <p>Weir counts calls if it has a place for the counts. Give it a folder:</p>
          </Empty>
        </div>
      ) : boards.error && boards.data === undefined ? (
        <Failure error={boards.error} onRetry={() => void boards.refetch()} />
      ) : board === undefined ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : (
        <>
          {isMissing && <p className="note warn">There is no such board any more. This is the first one.</p>}
          <Tabs boards={all} current={board} />
          <PartsChoice />
          <Shown key={board.id} board={board} refused={refused} />
        </>
      )}
    </Page>
  )
}

/** The time that the address names, such as `-2h`. What is none means the board's own. */
function rangeIn(parameters: URLSearchParams): string {
  const named = parameters.get('range') ?? ''
  return /^-[1-9]\d{0,3}[mhd]$/.test(named) ? named : ''
}

/** Boards by name; those that people have made come after those that Weir comes with. */
function Tabs({ boards, current }: { boards: Board[]; current: Board }) {
  const [parameters] = useSearchParams()
  const to = (id: string) => {
    const next = new URLSearchParams(parameters)
    next.set('board', id)
    return `/analytics?${next.toString()}`
  }
  return (
    <nav className="tabs" aria-label="Boards">
      {[...boards].sort((a, b) => Number(b.given) - Number(a.given)).map((it) => (
        <Link key={it.id} href={to(it.id)} replace aria-current={it.id === current.id ? 'page' : undefined}>
          {it.title}
        </Link>
      ))}
    </nav>
  )
}

function Shown({ board, refused }: { board: Board; refused: string | null }) {
  const [parameters, setParameters] = useSearchParams()
  const range = rangeIn(parameters)
  const hasMarks = parameters.get('marks') !== 'off'
  const [isDoomed, setDoomed] = useState(false)
  const set = (name: string, value: string | null) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old)
        if (value === null) next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  const own = RANGES.find(([value]) => value === board.from)?.[1] ?? board.from
  return (
    <>
      <div className="row between">
        <p className="muted grow">
          {board.description}
          {board.updated_by && board.updated && (
            <>
              {' '}
              Saved <Time at={board.updated} /> by {board.updated_by}.
            </>
          )}
        </p>
        <div className="row">
          <label>
            <span className="sr">Time</span>
            <select className="select fit" value={range} onChange={(event) => set('range', event.target.value === '' ? null : event.target.value)}>
              <option value="">{own === undefined ? 'each panel by itself' : `last ${own.replace(/^-/, '')}`}</option>
              {range !== '' && RANGES.every(([value]) => value !== range) && <option value={range}>last {range.slice(1)}</option>}
              {RANGES.filter(([value]) => value !== board.from).map(([value, text]) => (
                <option key={value} value={value}>
                  last {text}
                </option>
              ))}
            </select>
          </label>
          <button className="button" aria-pressed={hasMarks} onClick={() => set('marks', hasMarks ? 'off' : null)}>
            Marks
          </button>
          <Button onPress={() => void copy(`${location.origin}/ui/analytics?${new URLSearchParams({ ...Object.fromEntries(parameters), board: board.id }).toString()}`, 'The address of this board is copied')}>Share</Button>
          {board.given ? (
            <ButtonLink to={`/analytics/boards/@new?of=${encodeURIComponent(board.id)}`} refused={refused}>
              Save a copy
            </ButtonLink>
          ) : (
            <>
              <Button look="quiet" icon="trash" refused={refused} onPress={() => setDoomed(true)}>
                Delete
              </Button>
              <ButtonLink isEdit to={`/analytics/boards/${encodeURIComponent(board.id)}`} refused={refused}>
                Edit
              </ButtonLink>
            </>
          )}
        </div>
      </div>
      <div className="board">
        {board.panels.map((panel, index) => (
          <Panel key={`${index} ${panel.title}`} title={panel.title} kind={panel.kind} width={panel.width} query={queryOf(board, panel, range, hasMarks)} />
        ))}
      </div>
      {isDoomed && <DeleteBoard board={board} onClose={() => setDoomed(false)} onDone={() => set('board', null)} />}
    </>
  )
}

function DeleteBoard({ board, onClose, onDone }: { board: Board; onClose: () => void; onDone: () => void }) {
  const client = useQueryClient()
  return (
    <Act
      title={`Delete ${board.title}?`}
      action="Delete"
      look="danger"
      onClose={onClose}
      run={async () => {
        await call('DELETE', boardPath(board.id))
        onDone()
        await client.invalidateQueries({ queryKey: ['boards'] })
        toast(`${board.title} is deleted`)
        onClose()
      }}
    >
      <p>Everybody who looks at it loses it. The numbers stay; this cannot be taken back.</p>
    </Act>
  )
}
