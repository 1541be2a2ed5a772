// Webhooks: servers that get events by a POST, and the kinds of events that there are.
import { useQuery } from '@tanstack/react-query'
import type { Begun } from '../form/draft'
import { readVersion } from '../form/send'
import { get } from './client'
import type { Fields } from './types'

export interface Hook {
  name: string
  description?: string
  url: string
  /** Whether there is one; it is shown when the webhook is made, and never again. */
  secret?: boolean
  events?: string[]
  apis?: string[]
  disabled?: boolean
}

/** What is told, by what it is about. */
export const EVENTS: Record<string, string[]> = {
  publication: ['published', 'rolled-back', 'deprecated', 'undeprecated', 'retired', 'canary-started', 'canary-step', 'canary-aborted', 'canary-taken-back', 'disabled', 'enabled', 'removed'],
  subscription: ['requested', 'accepted', 'rejected', 'paused', 'resumed', 'stopped', 'moved', 'ending', 'expired', 'closed'],
  credential: ['created', 'rotated', 'revoked'],
  approval: ['requested', 'granted', 'refused', 'withdrawn', 'outdated'],
  developer: ['registered', 'confirmed', 'created', 'approved', 'refused', 'suspended', 'resumed', 'removed'],
  plan: ['staging', 'published', 'deprecated', 'closed'],
  quota: ['near', 'reached'],
}

const HOOKS = '/api/v1/hooks'

export const hookPath = (name: string) => `${HOOKS}/${encodeURIComponent(name)}`
export const toHook = (name: string) => `/hooks/${encodeURIComponent(name)}`

export function useHooks() {
  return useQuery({ queryKey: ['configuration', 'hooks'], queryFn: async ({ signal }) => (await get<{ items: Hook[] }>(HOOKS, {}, signal)).items })
}

/** One webhook, as it is edited: its secret is no part of that. */
export const readHook = (name: string): Promise<Begun> => readVersion<Hook>(hookPath(name), ({ secret: _, ...rest }) => rest as unknown as Fields)

/** The host that a webhook goes to: what deliveries name. */
export function hostOf(hook: Hook): string {
  try {
    return new URL(hook.url).host
  } catch {
    return hook.url
  }
}
