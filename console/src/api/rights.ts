// What the caller may do: buttons that may not be pressed stay visible and say why.
import { useQuery } from '@tanstack/react-query'
import { ApiError, get } from './client'

/** A call, and whether the caller may make it somewhere. */
interface Permitted {
  operation: string
  action: string
  allowed: boolean
  scopes: string[]
  reason?: string | null
}

interface State {
  read_only?: boolean
}

export const READ_ONLY = 'This Weir serves files and has no store: change the files, or start it with --data or --store.'

/** How the configuration stands, and whether it can be changed here. */
export function useConfigurationState() {
  return useQuery({ queryKey: ['state'], queryFn: ({ signal }) => get<State>('/api/v1/state', {}, signal), staleTime: 60_000 })
}

export function useCan() {
  return useQuery({
    queryKey: ['me', 'can'],
    queryFn: async ({ signal }) => {
      try {
        return (await get<{ items: Permitted[] }>('/api/v1/me/can', {}, signal)).items
      } catch (error) {
        // A server that does not tell refuses with its reason instead.
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
    staleTime: 60_000,
  })
}

/** Actions that change no store of the configuration. */
const ELSEWHERE = new Set(['alerts:write', 'boards:write', 'calls:send', 'own:use'])
const isChange = (action: string): boolean => !ELSEWHERE.has(action) && !/:(read|export)$/.test(action)

/** Why something that stands in the store cannot be changed by an action that otherwise needs none. */
export function useStoredRight(action: string): string | null {
  const state = useConfigurationState()
  const refused = useRight(action)
  return state.data?.read_only === true ? READ_ONLY : refused
}

/**
 * Why an action is refused; `null`: it is not, or that is not known. With a right in one part some calls of an action are
 * possible and others are not: `operation` names the one that is meant.
 */
export function useRight(action: string, operation?: string): string | null {
  const can = useCan()
  const state = useConfigurationState()
  if (state.data?.read_only === true && isChange(action)) return READ_ONLY
  const ofAction = can.data?.filter((it) => it.action === action) ?? []
  const ofOperation = ofAction.filter((it) => it.operation === operation)
  const known = ofOperation.length > 0 ? ofOperation : ofAction
  if (known.length === 0 || known.some((it) => it.allowed)) return null
  return known[0]?.reason ?? `Your roles do not allow this: it asks for ${action}.`
}
