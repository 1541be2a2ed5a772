// What pages read, by name. Everything that depends on configuration is read again when its revision changes.
import { QueryClient, keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { noteCommit } from './changed'
import { ApiError, call, get, login } from './client'
import { every, followEvents } from './events'
import { useRight } from './rights'
import type {
  AuditEntry,
  CataloguePlugin,
  Commit,
  Difference,
  Fields,
  Gateway,
  Schema,
  UpstreamHealth,
  User,
  ViewPage,
  ViewRow,
} from './types'

/** How often the newest revision is asked for if no events tell it. */
const PULSE_MS = 3_000
/** How often health is asked for. */
const HEALTH_MS = 5_000
/** As often where somebody watches targets that are checked: one that stops is shown within a second of its check. */
const WATCHED_HEALTH_MS = 800
/** Rows of a page, and of a page when all are read. */
const PAGE = 250
const MOST = 1000

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // A server that is away comes back; a refusal stays one.
      retry: (count, error) => error instanceof ApiError && error.isAway && count < 2,
      retryDelay: 700,
      refetchOnWindowFocus: false,
    },
  },
})

/** The newest commit. Its revision is the pulse of the application: when it moves, what is shown is read again. */
export function useHead() {
  return useQuery({
    queryKey: ['head'],
    queryFn: async ({ signal }) => (await get<{ items: Commit[] }>('/api/v1/history', { limit: 1 }, signal)).items[0] ?? null,
    refetchInterval: every(PULSE_MS),
    retry: false,
    staleTime: 0,
  })
}

/**
 * The revision of the newest change that a gateway serves. Gateways and the audit log write to the store too, and what they
 * write is no change in the history: a gateway in step is past the newest one.
 */
export const servedRevision = (gateway: Pick<Gateway, 'revision'>, head: number | undefined): number => Math.min(gateway.revision, head ?? gateway.revision)

/** Where gateways take calls, as far as one of them says it. */
export function useGatewayAddress(): string {
  const gateways = useGateways(useRight('gateways:read') === null)
  return gateways.data?.items.map((it) => it.address).find((it) => it !== '') ?? 'GATEWAY:8000'
}

/** What the server tells is read again by those who show it. */
function useEvents(client: QueryClient) {
  useEffect(
    () =>
      followEvents(
        (event) => {
          const reread = (...queryKey: string[]) => void client.invalidateQueries(queryKey.length === 0 ? {} : { queryKey })
          switch (event.kind) {
            case 'commit':
              noteCommit(event.data)
              return reread('head')
            case 'publication':
              return reread('configuration')
            case 'gateway':
              return reread('gateways')
            case 'alert':
              return reread('alerts')
            case 'missed':
              return reread()
          }
        },
        // A stream that broke: whether the server is away, or wants a login, is asked at once.
        (isOpen) => !isOpen && !login.isNeeded() && void client.invalidateQueries({ queryKey: ['head'] }),
      ),
    [client],
  )
}

/** Reads configuration again when somebody changed it. */
export function useFollowing() {
  const client = useQueryClient()
  useEvents(client)
  const head = useHead()
  const known = useRef<number | null>(null)
  const revision = head.data?.revision ?? null
  useEffect(() => {
    if (revision === null) return
    if (known.current !== null && known.current !== revision) {
      void client.invalidateQueries({ queryKey: ['configuration'] })
    }
    known.current = revision
  }, [client, revision])
  return head
}

/** The lists that hold resources of all dialects. */
export type ViewList = 'routes' | 'services' | 'upstreams' | 'consumers' | 'certificates' | 'plugins'

export const viewPath = (list: ViewList) => `/api/v1/view/${list}`

/** Resources of all dialects, searched, sorted and paged by the server. */
export function useView(list: ViewList, q: string, sort: string) {
  return useInfiniteQuery({
    queryKey: ['configuration', 'view', list, q, sort],
    queryFn: ({ pageParam, signal }) => get<ViewPage>(viewPath(list), { q, sort, limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
  })
}

/** All rows that a search finds. */
export async function readView(list: ViewList, q: string, sort: string): Promise<ViewRow[]> {
  const rows: ViewRow[] = []
  let cursor: string | null = null
  do {
    const page: ViewPage = await get<ViewPage>(viewPath(list), { q, sort, limit: MOST, cursor })
    rows.push(...page.items)
    cursor = page.next
  } while (cursor !== null)
  return rows
}

/** How many there are, without reading them. */
export function useTotal(list: ViewList) {
  return useQuery({
    queryKey: ['configuration', 'total', list],
    queryFn: async ({ signal }) => (await get<ViewPage>(viewPath(list), { limit: 1 }, signal)).total,
  })
}

/** Whether the health of one of them can move by itself: targets that nothing checks stay as they are. */
export const isChecked = (upstreams: readonly UpstreamHealth[]): boolean => upstreams.some((it) => it.targets.some((target) => /^(un)?healthy$/i.test(target.status)))

/**
 * The health of upstreams, as the gateway of this process sees it. It moves without anybody's change, and no event tells it.
 * `isWatched`: the page is about it.
 */
export function useHealth(isWatched = false) {
  return useQuery({
    queryKey: ['health'],
    queryFn: async ({ signal }) => (await get<{ items: UpstreamHealth[] }>('/api/v1/health/upstreams', {}, signal)).items,
    refetchInterval: (query) => (isWatched && isChecked(query.state.data ?? []) ? WATCHED_HEALTH_MS : HEALTH_MS),
    staleTime: 0,
  })
}

export function useCatalogue() {
  return useQuery({
    queryKey: ['catalogue'],
    queryFn: async ({ signal }) => (await get<{ items: CataloguePlugin[] }>('/api/v1/plugins', {}, signal)).items,
    staleTime: Infinity,
  })
}

/** The native documents of a kind that no list of all dialects holds. */
export function useDocuments(kind: string) {
  return useQuery({
    queryKey: ['configuration', 'documents', kind],
    queryFn: async ({ signal }) => (await get<{ items: Fields[] }>(`/api/v1/resources/${kind}`, { size: MOST }, signal)).items,
  })
}

export interface Document {
  data: Fields
  tag: string | null
}

/** One document with its version. */
export function useDocument(kind: string, name: string) {
  return useQuery({
    queryKey: ['document', kind, name],
    queryFn: async ({ signal }): Promise<Document> => {
      const answer = await call<Fields>('GET', documentPath(kind, name), { signal })
      return { data: answer.data, tag: answer.tag }
    },
    staleTime: 0,
    refetchOnMount: 'always',
  })
}

export const documentPath = (kind: string, name: string) => `/api/v1/resources/${kind}/${encodeURIComponent(name)}`

export function useSchema() {
  return useQuery({
    queryKey: ['schema'],
    queryFn: ({ signal }) => get<Schema>('/api/v1/schema', {}, signal),
    staleTime: Infinity,
  })
}

export function useHistory(query: { prefix?: string; limit?: number; before?: number } = {}, isWanted = true) {
  return useQuery({
    queryKey: ['configuration', 'history', query],
    queryFn: async ({ signal }) => (await get<{ items: Commit[] }>('/api/v1/history', query, signal)).items,
    enabled: isWanted,
  })
}

export function useDiff(from: number, to: number | null) {
  return useQuery({
    queryKey: ['diff', from, to],
    queryFn: async ({ signal }) => (await get<{ items: Difference[] }>('/api/v1/diff', { from, to }, signal)).items,
  })
}

export function useGateways(isWanted = true) {
  return useQuery({
    queryKey: ['gateways'],
    queryFn: ({ signal }) => get<{ revision: number; hash: string; items: Gateway[] }>('/api/v1/gateways', {}, signal),
    refetchInterval: every(PULSE_MS),
    staleTime: 0,
    enabled: isWanted,
  })
}

export function useUsers() {
  return useQuery({
    queryKey: ['users'],
    queryFn: async ({ signal }) => (await get<{ items: User[] }>('/api/v1/users', {}, signal)).items,
  })
}

export function useAudit(limit: number) {
  return useQuery({
    queryKey: ['audit', limit],
    queryFn: async ({ signal }) => (await get<{ items: AuditEntry[] }>('/api/v1/audit', { limit }, signal)).items,
    refetchInterval: 10_000,
    staleTime: 0,
  })
}
