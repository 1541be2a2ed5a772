// Boards of the analytics: those that Weir comes with, and those that people have saved.
import { useQuery } from '@tanstack/react-query'
import type { components } from '../../generated/api'
import type { Query } from './analytics'
import { ApiError, get } from './client'

export type PanelKind = components['schemas']['PanelKind']

export interface BoardPanel {
  title: string
  kind: PanelKind
  /** In columns of 12. */
  width: number
  query: Query
}

export interface Board {
  id: string
  title: string
  description?: string
  from?: string
  to?: string
  compare?: string
  filter?: Query['filter']
  panels: BoardPanel[]
  /** Weir comes with it; it cannot be changed. */
  given: boolean
  updated?: number | null
  updated_by?: string | null
  /** Its version; Weir's own boards have none. */
  etag?: string
}

export const boardPath = (id: string) => `/api/v1/boards/${encodeURIComponent(id)}`
export const toBoard = (id: string) => `/analytics?board=${encodeURIComponent(id)}`

/** All boards; `null`: analytics are off. */
export function useBoards() {
  return useQuery({
    queryKey: ['boards'],
    queryFn: async ({ signal }): Promise<Board[] | null> => {
      try {
        return (await get<{ items: Board[] }>('/api/v1/boards', {}, signal)).items
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
    staleTime: 0,
  })
}

/** What a panel of a board asks. A time that somebody has chosen goes before that of the board. */
export function queryOf(board: Pick<Board, 'from' | 'to' | 'compare' | 'filter'>, panel: BoardPanel, range: string, marks: boolean): Query {
  const { to: ownTo, ...rest } = panel.query
  const time = range !== '' ? { from: range } : board.from !== undefined ? { from: board.from, ...(board.to === undefined ? {} : { to: board.to }) } : { from: panel.query.from ?? '-24h', ...(ownTo === undefined ? {} : { to: ownTo }) }
  const filter = { ...rest.filter, ...board.filter }
  return {
    ...rest,
    ...time,
    ...(board.compare === undefined || board.compare === null ? {} : { compare: board.compare }),
    ...(Object.keys(filter).length > 0 ? { filter } : {}),
    ...(marks ? {} : { marks: false }),
  }
}
