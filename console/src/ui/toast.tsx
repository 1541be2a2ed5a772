// Short messages at the corner. They are spoken, stay long enough to be read, and can hold one action.
import { useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import { IconButton } from './button'

interface Toast {
  id: number
  text: string
  isBad?: boolean
  link?: { to: string; text: string }
  action?: { text: string; run: () => void }
}

const LIFETIME_MS = 12_000
let toasts: Toast[] = []
let last = 0
const listeners = new Set<() => void>()

function change(next: Toast[]) {
  toasts = next
  listeners.forEach((listener) => listener())
}

const dismiss = (id: number) => change(toasts.filter((it) => it.id !== id))

/** Shows a message. */
export function toast(text: string, more: Omit<Toast, 'id' | 'text'> = {}) {
  const id = ++last
  change([...toasts.slice(-3), { id, text, ...more }])
  setTimeout(() => dismiss(id), LIFETIME_MS)
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => toasts,
  )
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((it) => (
        <div key={it.id} className={it.isBad ? 'toast bad' : 'toast'}>
          <span className="grow">{it.text}</span>
          {it.link && <Link href={it.link.to}>{it.link.text}</Link>}
          {it.action && (
            <button
              className="button small"
              onClick={() => {
                dismiss(it.id)
                it.action?.run()
              }}
            >
              {it.action.text}
            </button>
          )}
          <IconButton icon="close" label="Dismiss" small onPress={() => dismiss(it.id)} />
        </div>
      ))}
    </div>
  )
}
