// What the portal's pages read and write, by name.
import { MutationCache, QueryCache, QueryClient, keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { ApiError, call, get } from '../api/client'
import type { components } from '../../generated/portal'

type Schemas = components['schemas']
export type Portal = Schemas['PortalInfo']
export type Card = Schemas['Card']
export type Cards = Schemas['Cards']
export type Hit = Schemas['Hit']
export type ApiDetail = Schemas['ApiDetail']
export type VersionDetail = Schemas['VersionDetail']
export type OperationLine = Schemas['OperationLine']
export type OperationDetail = Schemas['OperationDetail']
export type Plan = Schemas['PlanCard']
export type Place = Schemas['DeploymentLine']
export type TextNode = Schemas['TextNode']
export type PageDetail = Schemas['PageDetail']
export type PlaceStatus = Schemas['PlaceStatus']
export type VersionStatus = Schemas['VersionStatus']
export type VersionChanges = Schemas['VersionChanges']

export type Me = Schemas['ProfileResponse']
export type App = Schemas['AppLine']
export type AppDetail = Schemas['AppDetail']
export type Subscription = Schemas['SubscriptionLine']
export type ShownKey = Schemas['IssuedKey']
export type Usage = Schemas['Usage']
export type Calls = Schemas['CallList']
export type Team = Schemas['TeamLine']
export type TeamList = Schemas['TeamList']
export type SecondFactor = Schemas['SecondFactorState']
export type NewSecondFactor = Schemas['NewSecondFactor']
export type RecoveryCodes = Schemas['RecoveryCodes']
export type TrialKey = Schemas['TrialKey']
export type TrialSubscriptions = Schemas['TrialSubscriptions']
export type Token = Schemas['TokenLine']
export type Tokens = Schemas['TokenList']
export type Sessions = Schemas['SessionList']
export type Notices = Schemas['NoticeList']
export type Webhook = Schemas['WebhookLine']
export type Deliveries = Schemas['DeliveryList']

export const BASE = '/portal/v1'

/** Who is signed in, among what was read. */
const ME = ['portal', '/me', {}]
const NOBODY: Me = { id: null, mail: '', name: '', has_password: false, has_second_factor: false }

const listeners = new Set<() => void>()
let hasEnded = false

/** Whether a write found that the session has ended. What was typed stays: the sign-in lies above the page. */
export const sessionEnd = {
  subscribe: (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
  has: () => hasEnded,
  set: (ended: boolean) => {
    hasEnded = ended
    listeners.forEach((listener) => listener())
  },
}

/** Whether a call was refused since nobody is signed in. At the sign-in itself the password is wrong. */
export const asksToSignIn = (error: unknown): boolean => error instanceof ApiError && error.status === 401 && error.path !== `${BASE}/session`

export const queries: QueryClient = new QueryClient({
  // The frame shows that nobody is signed in any more. The page stays: something may be typed into it.
  queryCache: new QueryCache({ onError: (error) => asksToSignIn(error) && queries.setQueryData(ME, NOBODY) }),
  mutationCache: new MutationCache({ onError: (error) => asksToSignIn(error) && sessionEnd.set(true) }),
  defaultOptions: {
    queries: {
      staleTime: 20_000,
      retry: (count, error) => error instanceof ApiError && error.isAway && count < 2,
      retryDelay: 700,
      refetchOnWindowFocus: false,
    },
  },
})

/** Somebody has signed in or out: nothing that was read for somebody else is shown any more. */
export async function readAgain() {
  queries.removeQueries({ queryKey: ['portal'], type: 'inactive' })
  await queries.invalidateQueries()
}

const part = encodeURIComponent

export const versionPath = (api: string, version: string) => `${BASE}/apis/${part(api)}/versions/${part(version)}`

/** Reads a path of the portal's API. */
export function useRead<T>(path: string | null, query: Record<string, string> = {}) {
  return useQuery({
    queryKey: ['portal', path, query],
    queryFn: ({ signal }) => get<T>(`${BASE}${path}`, query, signal),
    enabled: path !== null,
  })
}

/** As above. What was shown for the query before stays until the answer is there: nothing jumps meanwhile. */
export function useSought<T>(path: string, query: Record<string, string>) {
  return useQuery({
    queryKey: ['portal', path, query],
    queryFn: ({ signal }) => get<T>(`${BASE}${path}`, query, signal),
    placeholderData: keepPreviousData,
  })
}

/** Reads a path with the version of what it says, which a write of it names. */
export function useVersioned<T>(path: string) {
  return useQuery({
    queryKey: ['portal', path, 'with its version'],
    queryFn: async ({ signal }) => {
      const { data, tag } = await call<T>('GET', `${BASE}${path}`, { signal })
      return { data, tag }
    },
  })
}

export const useMe = () => useRead<Me>('/me')
export const usePortal = () => useRead<Portal>('/portal')
export const useApi = (api: string) => useRead<ApiDetail>(`/apis/${part(api)}`)
export const useVersion = (api: string, version: string | null) =>
  useRead<VersionDetail>(version === null ? null : `/apis/${part(api)}/versions/${part(version)}`)
export const useOperation = (api: string, version: string | null, operation: string | null) =>
  useRead<OperationDetail>(version === null || operation === null ? null : `/apis/${part(api)}/versions/${part(version)}/operations/${part(operation)}`)

/** A write; what was read is read again afterwards. */
export function useWrite<T, B = void>(method: string, path: (body: B) => string, keepsReads = false) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async (body: B) => (await call<T>(method, `${BASE}${path(body)}`, body === undefined ? {} : { body })).data,
    // Not waited for: the page may be gone once it is read again, and what the caller does next would be lost with it.
    onSuccess: () => void (keepsReads || client.invalidateQueries({ queryKey: ['portal'] })),
  })
}
