// What the page of developers asks: who signed up at a portal, and what was decided about them.
import { useQuery } from '@tanstack/react-query'
import { get } from './client'

export type DeveloperState = 'registered' | 'confirmed' | 'active' | 'suspended' | 'refused'

export interface Developer {
  id: string
  mail: string
  name: string
  state: DeveloperState
  has_second_factor: boolean
  groups: string[]
  created: number
  decided: { by: string; at: number; reason: string } | null
  teams: { id: string; name: string; role: 'viewer' | 'member' | 'owner' }[]
  applications: string[]
}

export interface Developers {
  items: Developer[]
  total: number
  waiting: number
}

export interface PortalEntity {
  name: string
  display_name?: string
  url?: string
}

/** The portal that there is without any document. */
const FIRST: PortalEntity = { name: 'default', display_name: 'Developer portal' }

export const developersPath = (portal: string) => `/api/v1/portals/${encodeURIComponent(portal)}/developers`
export const developerPath = (portal: string, id: string) => `${developersPath(portal)}/${encodeURIComponent(id)}`

export function usePortals(isWanted = true) {
  return useQuery({
    queryKey: ['configuration', 'portals'],
    queryFn: async ({ signal }) => {
      const { items } = await get<{ items: PortalEntity[] }>('/api/v1/portals', {}, signal)
      return items.length === 0 ? [FIRST] : items
    },
    enabled: isWanted,
  })
}

/** Developers sign up without a commit, so the list is read again from time to time. */
export function useDevelopers(portal: string | undefined) {
  return useQuery({
    queryKey: ['developers', portal],
    queryFn: ({ signal }) => get<Developers>(developersPath(portal ?? ''), {}, signal),
    enabled: portal !== undefined,
    refetchInterval: 5_000,
    staleTime: 0,
  })
}
