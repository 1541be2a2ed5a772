// Which calls other routes take once documents are changed, in the dialogs that save them: routes that win or lose calls, each
// with a call as an example. The server looks the calls up before and after; nothing is stored.
import { useQuery } from '@tanstack/react-query'
import type { components } from '../../generated/api'
import { ApiError, call } from '../api/client'
import type { Json } from '../api/types'
import { countText } from '../ui/time'
import { DIALECTS } from './dialects'

type EffectsResponse = components['schemas']['EffectsResponse']
type MovedCalls = components['schemas']['MovedCalls']
type RouteRef = components['schemas']['RouteRef']

/** Pairs of routes that are shown at once. */
const SHOWN = 10

/** Documents by their keys, such as `native/routes/shop`; `null`: they are to go. */
export type ChangedDocuments = Record<string, Json>

/** Documents of these kinds decide which route takes a call. */
export const movesCalls = (kind: string): boolean => kind === 'routes' || kind === 'services'

export function Effects({ documents }: { documents: ChangedDocuments }) {
  const found = useQuery({
    queryKey: ['configuration', 'effects', documents],
    queryFn: async ({ signal }) => (await call<EffectsResponse>('POST', '/api/v1/explain/changes', { body: { documents }, signal })).data,
    staleTime: 0,
    retry: false,
  })
  return (
    <section className="stack tight" aria-label="Calls that change their route" aria-busy={found.isLoading}>
      <h3>Which calls change their route</h3>
      {found.error ? (
        <p className="muted">{found.error instanceof ApiError && found.error.status === 403 ? 'Only who may read the whole configuration sees it.' : `It cannot be told: ${found.error.message}`}</p>
      ) : found.data === undefined ? (
        <p className="muted">Calls of all routes are looked up …</p>
      ) : (
        <Moved found={found.data} />
      )}
    </section>
  )
}

function Moved({ found }: { found: EffectsResponse }) {
  const { moved } = found
  const left = moved.length - SHOWN + found.not_shown
  const tried = countText(found.tried, 'call was', 'calls were')
  return (
    <>
      {moved.length === 0 ? (
        <p className="muted">None: {tried} looked up, and each goes where it goes now.</p>
      ) : (
        <ul className="changes">
          {moved.slice(0, SHOWN).map((it) => (
            <li key={`${nameOf(it.from)} ${nameOf(it.to)}`}>
              <Pair moved={it} />
            </li>
          ))}
          {left > 0 && <li className="muted">and {countText(left, 'more pair of routes', 'more pairs of routes')}</li>}
        </ul>
      )}
      {!found.is_complete && <p className="muted small">There are more routes than could be looked at: only calls of the changed ones, and of some others, are told.</p>}
    </>
  )
}

const nameOf = (route: RouteRef | null | undefined): string => (route ? `${route.dialect}/${route.name}` : '')

function Pair({ moved: { from, to, example, headers } }: { moved: MovedCalls }) {
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return (
    <>
      <span>
        {from && to ? (
          <>
            <Name route={to} /> takes calls from <Name route={from} />
          </>
        ) : to ? (
          <>
            <Name route={to} /> takes calls that no route takes now
          </>
        ) : (
          from && (
            <>
              <span className="badge warn">no route</span> takes calls that <Name route={from} /> takes now
            </>
          )
        )}
        {', such as '}
      </span>
      <code>{[example, ...more].join(', ')}</code>
    </>
  )
}

function Name({ route }: { route: RouteRef }) {
  return (
    <>
      <strong>{route.name}</strong>
      {route.dialect !== 'native' && <> <span className="badge">{DIALECTS[route.dialect] ?? route.dialect}</span></>}
    </>
  )
}
