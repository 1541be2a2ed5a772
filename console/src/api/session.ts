// Who is logged in, and how people log in and out.
import { useQuery } from '@tanstack/react-query'
import { call, get, login } from './client'
import { claimDrafts } from '../form/kept'
import type { components } from '../../generated/api'

type Schemas = components['schemas']
export type Me = Schemas['CurrentUser']
export type LoginOptions = Schemas['LoginOptions']
export type LoginProvider = Schemas['LoginProvider']
export type SessionState = Schemas['SessionState']
export type TokenState = Schemas['TokenState']

/** The window that an identity provider is shown in if the page below must not be left. */
export const WINDOW = 'weir-login'
/** Tells the other tabs that somebody has logged in. */
const CHANNEL = 'weir-login'
/** Where somebody was going who logs in through an identity provider. */
const PLACE = 'weir-place'

export function useMe() {
  return useQuery({
    queryKey: ['me', 'self'],
    queryFn: async ({ signal }) => {
      const me = await get<Me>('/api/v1/me', {}, signal)
      login.setKnown(me.method !== 'none')
      // What the page shows may be what somebody else saw and typed before a session ended.
      if (me.method !== 'none' && claimDrafts(me.name)) location.reload()
      return me
    },
    staleTime: 60_000,
  })
}

export function useLoginOptions() {
  return useQuery({ queryKey: ['session', 'options'], queryFn: ({ signal }) => get<LoginOptions>('/api/v1/session/options', {}, signal), staleTime: 0 })
}

export type Secret = { name: string; password: string } | { token: string }

/** Begins a session. The cookie comes with the answer; no script sees it. */
export async function logIn(secret: Secret): Promise<void> {
  await call('POST', '/api/v1/session', { body: secret })
  tellLogin()
}

/** Ends the session; gives where to log out of the identity provider, if there is one. */
export async function logOut(): Promise<string | null> {
  const answer = await call<{ provider: string | null }>('DELETE', '/api/v1/session')
  return answer.data.provider
}

export function tellLogin() {
  const channel = new BroadcastChannel(CHANNEL)
  channel.postMessage('in')
  channel.close()
}

/** Calls when somebody has logged in in another tab or window. */
export function onLogin(act: () => void): () => void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.onmessage = act
  return () => channel.close()
}

/** The page that is shown, as an address below /ui/. */
function place(): string {
  const parameters = new URLSearchParams(location.search)
  parameters.delete('login_error')
  const query = parameters.toString()
  return `${location.pathname}${query === '' ? '' : `?${query}`}`
}

const toProvider = (name: string, returnTo: string) => `/api/v1/session/openid/${encodeURIComponent(name)}?return_to=${encodeURIComponent(returnTo)}`

/**
 * Goes to an identity provider. After a session has ended this happens in a window of its own: the page below keeps
 * what was typed into it.
 */
export function goToProvider(name: string) {
  if (login.wasIn() && window.open(toProvider(name, '/ui/login/done'), WINDOW, 'popup,width=520,height=720') !== null) return
  // A failed login leads to the overview. The next one that works leads on to here.
  sessionStorage.setItem(PLACE, place())
  location.assign(toProvider(name, place()))
}

/** Where somebody was going before a login that failed, once. */
export function placeBefore(): string | null {
  const kept = sessionStorage.getItem(PLACE)
  sessionStorage.removeItem(PLACE)
  return kept?.startsWith('/ui') === true ? kept.slice('/ui'.length) : null
}

/** Why the last login through an identity provider failed, in words. */
export function failureOf(code: string | null): string | null {
  if (code === null) return null
  const reasons: Record<string, string> = {
    'provider-unavailable': 'The identity provider does not answer as it should. Try again; the log of Weir says more.',
    refused: 'The identity provider has refused the login.',
    'not-begun-here': 'This login was not begun in this browser, or it took too long. Try again.',
    'token-not-accepted': 'Weir does not accept what the identity provider says about you. The log of Weir says why.',
    'no-rights': 'You are known, but none of your groups has rights here. Ask an administrator for a mapping.',
  }
  return reasons[code] ?? `The login has failed (${code}).`
}
