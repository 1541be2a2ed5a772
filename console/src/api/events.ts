// What happens, as the server tells it: one stream for all tabs of the browser, since a browser opens few connections to
// one server. One tab holds it and tells the others. As long as there is no stream, pages ask again by themselves.

import { login } from './client'

export interface WeirEvent {
  kind: 'commit' | 'publication' | 'gateway' | 'alert' | 'missed'
  data: Record<string, unknown>
}

type Message = { about: 'event'; event: WeirEvent } | { about: 'state'; isOpen: boolean } | { about: 'question' }

const KINDS: WeirEvent['kind'][] = ['commit', 'publication', 'gateway', 'alert', 'missed']
const NAME = 'weir-events'
/** When the server refused the stream. A connection that broke is made again by the browser. */
const AGAIN_MS = 5_000

let isOpen = false

/** Whether changes are told: asking often is not needed then. */
export const isTold = (): boolean => isOpen

/** How often to ask again for what events tell: seldom, unless they are not told, or the last answer was an error. */
export const every = (milliseconds: number) => (query: { state: { error: unknown } }) => (isOpen && query.state.error === null ? Math.max(milliseconds, 30_000) : milliseconds)

/** Follows the events until it is told to stop. */
export function followEvents(onEvent: (event: WeirEvent) => void, onState: (isOpen: boolean) => void): () => void {
  const end = new AbortController()
  const channel = new BroadcastChannel(NAME)
  const setOpen = (next: boolean) => {
    if (next === isOpen) return
    isOpen = next
    onState(next)
  }
  let isLeader = false
  const tell = (message: Message) => {
    channel.postMessage(message)
    take(message)
  }
  const take = (message: Message) => {
    if (message.about === 'event') onEvent(message.event)
    else if (message.about === 'state') setOpen(message.isOpen)
    else if (isLeader) channel.postMessage({ about: 'state', isOpen } satisfies Message)
  }
  channel.onmessage = (message: MessageEvent<Message>) => take(message.data)
  channel.postMessage({ about: 'question' } satisfies Message)

  const lead = () =>
    new Promise<void>((resolve) => {
      isLeader = true
      const close = stream(tell)
      end.signal.addEventListener('abort', () => {
        close()
        resolve()
      })
    })
  // Without locks (over cleartext from elsewhere), pages ask again by themselves.
  const locks = navigator.locks as LockManager | undefined
  locks?.request(NAME, { signal: end.signal }, lead).catch(() => undefined)
  return () => {
    end.abort()
    setOpen(false)
    channel.close()
  }
}

function stream(tell: (message: Message) => void): () => void {
  let source: EventSource | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  const open = () => {
    if (login.isNeeded()) {
      timer = setTimeout(open, AGAIN_MS)
      return
    }
    const opened = new EventSource('/api/v1/events')
    source = opened
    opened.onopen = () => tell({ about: 'state', isOpen: true })
    for (const kind of KINDS) {
      opened.addEventListener(kind, (event) => tell({ about: 'event', event: { kind, data: JSON.parse(event.data as string) as WeirEvent['data'] } }))
    }
    opened.onerror = () => {
      tell({ about: 'state', isOpen: false })
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN_MS)
    }
  }
  open()
  return () => {
    clearTimeout(timer)
    source?.close()
  }
}
