// Calls: those of the request log, and new ones as they end.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { type Call, follow, shown } from '../api/analytics'
import { ApiError, get, login } from '../api/client'
import { useGatewayAddress } from '../api/hooks'
import { Empty, Failure, Page } from '../shell/page'
import { Button } from '../ui/button'
import { LateInput } from '../ui/field'
import { type Column, Table } from '../ui/table'
import { Time } from '../ui/time'

const MOST = 2_000
/** After a stream has ended. */
const AGAIN_MS = 2_000
const FILTERS: [string, string, string][] = [
  ['status', 'Status', '404 or 5xx'],
  ['route', 'Route', ''],
  ['consumer', 'Consumer', ''],
  ['api', 'API', 'pets'],
  ['application', 'Application', ''],
  ['path', 'Path begins with', '/orders'],
  ['request_id', 'Request', ''],
]

const columns: Column<Call>[] = [
  { id: 'when', title: 'When', text: (it) => new Date(it.time).toISOString(), order: (it) => it.time, render: (it) => <Time at={it.time / 1000} />, width: 'minmax(6rem, 0.7fr)' },
  {
    id: 'status',
    title: 'Status',
    text: (it) => String(it.status),
    render: (it) => <span className={`badge ${it.status < 400 ? 'good' : it.status < 500 ? 'warn' : 'bad'}`}>{it.status}</span>,
    width: '4.5rem',
  },
  {
    id: 'call',
    title: 'Call',
    text: (it) => `${it.method} ${it.host}${it.path}`,
    render: (it) => (
      <Link href={`/explain?request_id=${encodeURIComponent(it.request_id)}`} aria-label={`Explain ${it.method} ${it.host}${it.path}`}>
        {it.method} {it.host}
        {it.path}
      </Link>
    ),
    width: 'minmax(9rem, 1.8fr)',
  },
  { id: 'why', title: 'Why refused', text: (it) => [it.refusal, it.plugin].filter(Boolean).join(' by '), from: 2, width: 'minmax(8rem, 1.3fr)' },
  { id: 'route', title: 'Route', text: (it) => it.route, from: 2, width: 'minmax(8rem, 1.3fr)' },
  { id: 'consumer', title: 'Consumer', text: (it) => it.consumer, from: 3, width: 'minmax(4rem, 0.6fr)' },
  { id: 'took', title: 'Took', text: (it) => shown(it.total_us, 'microseconds'), number: (it) => it.total_us, width: '6rem', from: 2 },
  { id: 'target', title: 'Target', text: (it) => it.target, from: 3 },
]

const key = (it: Call) => `${it.request_id} ${it.time} ${it.path}`

export default function Live() {
  const [parameters, setParameters] = useSearchParams()
  const address = useGatewayAddress()
  const [isFollowing, setFollowing] = useState(true)
  const [fresh, setFresh] = useState<Call[]>([])
  const [error, setError] = useState<unknown>(null)
  const text = FILTERS.map(([name]) => parameters.get(name) ?? '').join('\n')
  const filter = useMemo(() => Object.fromEntries(FILTERS.flatMap(([name]) => (parameters.get(name) ? [[name, parameters.get(name) as string]] : []))), [text])
  const known = useQuery({
    queryKey: ['calls', filter],
    queryFn: async ({ signal }) => (await get<{ calls: Call[] }>('/api/v1/analytics/calls', { ...filter, limit: 500 }, signal)).calls,
    staleTime: 0,
  })
  const waiting = useRef<Call[]>([])
  // Calls of another question are not answers to this one. A pause leaves what is shown.
  useEffect(() => {
    waiting.current = []
    setFresh([])
    setError(null)
  }, [filter])
  useEffect(() => {
    if (!isFollowing || known.error) return
    const abort = new AbortController()
    let again: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      const later = () => (again = setTimeout(open, AGAIN_MS))
      // Calls without a login would be refused again and again.
      if (login.isNeeded()) return later()
      return follow(filter, abort.signal, (call) => {
        setError(null)
        waiting.current.push(call)
      })
        // The server has ended it, as it does when it restarts.
        .then(() => !abort.signal.aborted && later())
        .catch((wrong: unknown) => {
          if (abort.signal.aborted) return
          // A server that is away, or that fails, comes back. What it refuses stays refused.
          if (wrong instanceof ApiError && wrong.status !== 401) setError(wrong)
          if (!(wrong instanceof ApiError) || wrong.status === 401 || wrong.status >= 500) later()
        })
    }
    void open()
    const timer = setInterval(() => {
      const [...arrived] = waiting.current
      if (arrived.length === 0) return
      waiting.current = []
      setFresh((old) => [...arrived.reverse(), ...old].slice(0, MOST))
    }, 300)
    return () => {
      abort.abort()
      clearTimeout(again)
      clearInterval(timer)
    }
  }, [filter, isFollowing, known.error])
  const rows = useMemo(() => {
    const seen = new Set(fresh.map(key))
    return [...fresh, ...(known.data ?? []).filter((it) => !seen.has(key(it)))]
  }, [fresh, known.data])
  const isOff = known.error instanceof ApiError && known.error.status === 404
  return (
    <Page
      title="Live calls"
      about="Calls as they end. Errors and slow calls are all kept for a day; of the others, one in many."
      calls={[
        { about: 'Calls of the log', method: 'GET', path: `/api/v1/analytics/calls?${new URLSearchParams(filter).toString()}` },
        { about: 'Calls as they end', method: 'GET', path: `/api/v1/analytics/live?${new URLSearchParams(filter).toString()}` },
      ]}
      actions={
        <Button look={isFollowing ? 'plain' : 'primary'} onPress={() => setFollowing(!isFollowing)}>
          {isFollowing ? 'Pause' : 'Follow'}
        </Button>
      }
    >
      {isOff ? (
        <div className="table">
          <Empty title="Analytics are off" example="weir run --data /var/lib/weir">
            <p>Weir keeps calls if it has a place for them. Give it a folder:</p>
          </Empty>
        </div>
      ) : (
        <>
          {known.error && <Failure error={known.error} onRetry={() => void known.refetch()} />}
          {error !== null && <Failure error={error} onRetry={() => {
            setError(null)
            setFollowing(false)
            setTimeout(() => setFollowing(true))
          }} />}
          <div className="figures">
            {FILTERS.map(([name, title, hint]) => (
              <div className="field" key={name}>
                <label htmlFor={`live-${name}`}>{title}</label>
                <LateInput id={`live-${name}`} placeholder={hint} value={parameters.get(name) ?? ''} onChange={(text) => setParameters((old) => (text === '' ? old.delete(name) : old.set(name, text), new URLSearchParams(old)), { replace: true })} />
              </div>
            ))}
          </div>
          <Table
            label="Calls"
            rows={rows}
            columns={columns}
            rowKey={key}
            isLoading={known.isLoading}
            noun={['call', 'calls']}
            empty={
              Object.keys(filter).length > 0 ? (
                <Empty title="No call fits" actions={<Button onPress={() => setParameters((old) => (FILTERS.forEach(([name]) => old.delete(name)), new URLSearchParams(old)), { replace: true })}>Clear the filters</Button>}>
                  <p>None of the calls that are kept. New ones appear here as they end.</p>
                </Empty>
              ) : (
                <Empty title="No calls yet" example={`curl -i http://${address}/`}>
                  <p>Make one, and it is here a moment later.</p>
                </Empty>
              )
            }
          />
        </>
      )}
    </Page>
  )
}
