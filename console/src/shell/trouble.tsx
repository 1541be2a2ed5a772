// The line above every page that says what is wrong with the server.
import { useEffect, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { queries } from '../api/hooks'
import { trouble } from '../api/trouble'

export function TroubleBanner() {
  const known = useSyncExternalStore(trouble.subscribe, trouble.get)
  const [location] = useLocation()
  useEffect(() => trouble.leavePage(), [location])
  const isAway = known?.kind === 'away'
  useEffect(() => {
    if (!isAway) return
    // What failed meanwhile is read again as soon as the server is back.
    return () => void queries.refetchQueries({ type: 'active', predicate: (query) => query.state.status === 'error' })
  }, [isAway])
  if (known === null) return null
  return (
    <div className={known.kind === 'slow' ? 'banner' : 'banner bad'} role="status">
      {known.kind === 'away' && 'Weir does not answer. What you typed is kept; the console goes on as soon as Weir is back.'}
      {known.kind === 'failing' && (
        <>
          Weir answers {known.status} to <code>{known.method} {known.path}</code>. What is shown may be out of date; what you typed is kept.
          {known.requestId !== null && ` Request ${known.requestId}.`}
        </>
      )}
      {known.kind === 'slow' && (
        <>
          Weir is slow: <code>{known.method} {known.path}</code> has waited for more than five seconds. What you typed is kept.
        </>
      )}
    </div>
  )
}
