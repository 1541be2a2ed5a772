// Keys that work on every page: `g r` leads to the routes, `/` to the search, `j` and `k` move through rows, `e` edits, `?` tells.
import { useEffect } from 'react'
import { pages } from './pages'

/** For how long the key after `g` is waited for. */
const SECOND_KEY_MS = 1200

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName)) &&
  !(target instanceof HTMLInputElement && target.type === 'checkbox')

/** Moves the focus to the next or previous row's link. */
function moveRow(step: 1 | -1) {
  const links = [...document.querySelectorAll<HTMLElement>('[role=row].line [role=cell] a')].filter(
    (link, index, all) => link.closest('[role=row]') !== all[index - 1]?.closest('[role=row]'),
  )
  links.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
  const at = links.findIndex((link) => link === document.activeElement)
  links[at === -1 ? 0 : Math.min(links.length - 1, Math.max(0, at + step))]?.focus()
}

/** Leads to where what is shown is edited: the row that has the focus, a button that edits, or the first field of the form. */
function edit() {
  const row = document.activeElement?.closest('[role=row].line')
  const target = row?.querySelector<HTMLElement>('[role=cell] a') ?? document.querySelector<HTMLElement>('main [data-edit]')
  if (target) return target.click()
  document.querySelector<HTMLElement>('main fieldset :is(input, textarea, select):enabled')?.focus()
}

export function useKeyboard(open: { palette: () => void; help: () => void }, go: (path: string) => void) {
  useEffect(() => {
    let waiting = 0
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        open.palette()
        return
      }
      // The text editor lives in a shadow root, for which the event's target is only its host.
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.composedPath()[0] ?? null)) return
      if (document.querySelector('[role=dialog]') !== null) return
      if (Date.now() - waiting < SECOND_KEY_MS) {
        waiting = 0
        const page = pages.find((it) => it.key === event.key)
        if (page) {
          event.preventDefault()
          go(page.path)
        }
        return
      }
      const actions: Record<string, () => void> = {
        g: () => (waiting = Date.now()),
        '/': () => document.querySelector<HTMLElement>('[data-filter]')?.focus(),
        j: () => moveRow(1),
        k: () => moveRow(-1),
        e: edit,
        '?': open.help,
      }
      const action = actions[event.key]
      if (action) {
        event.preventDefault()
        action()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [open, go])
}
