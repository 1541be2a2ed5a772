// The palette: pages, objects and actions by a few letters.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Autocomplete, Dialog, Input, Menu, MenuItem, Modal, ModalOverlay, SearchField } from 'react-aria-components'
import { useLocation } from 'wouter'
import { toApi, toProduct, useApis, useApplications, useProducts } from '../api/apis'
import { get } from '../api/client'
import { type ViewList, viewPath } from '../api/hooks'
import { useRight } from '../api/rights'
import type { ViewPage } from '../api/types'
import { kindOf } from '../kinds'
import { linkOf } from '../pages/list'
import { useSettled } from '../ui/settled'
import { pages } from './pages'
import { setTheme, useIsDark } from './theme'

interface Entry {
  id: string
  text: string
  about: string
  run: () => void
  /** What else it is found by. */
  words?: string
}

const MOST = 40
const FOUND = 8
const LISTS: ViewList[] = ['routes', 'services', 'upstreams', 'consumers', 'certificates']

/** What is made on a page of its own, or begun there. */
const ACTIONS: [string, string][] = [
  ['New API', '/apis/@new'],
  ['New product', '/products/@new'],
  ['New portal', '/portals/@new'],
  ['New alert rule', '/alerts/@new'],
  ['New board', '/analytics/boards/@new'],
  ['New report', '/reports/@new'],
  ['New webhook', '/hooks/@new'],
  ['Explore the numbers', '/analytics/explore'],
]

/** What the lists of the gateway hold, searched by the server. */
function useFoundRows(text: string, isWanted: boolean) {
  return useQuery({
    queryKey: ['configuration', 'palette', text],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(LISTS.map((list) => get<ViewPage>(viewPath(list), { q: text, limit: FOUND }, signal)))
      return pages.flatMap((page, index) => page.items.map((row) => ({ list: LISTS[index] as ViewList, row })))
    },
    enabled: isWanted && text !== '',
    placeholderData: keepPreviousData,
  })
}

/** What is there of API management. Who may not see it does not ask for it. */
function useManaged(isWanted: boolean, go: (path: string) => void): Entry[] {
  const [seesApis, seesApplications] = [useRight('apis:read') === null, useRight('subscriptions:read') === null]
  const apis = useApis(isWanted && seesApis)
  const products = useProducts(isWanted && seesApis)
  const applications = useApplications(isWanted && seesApplications)
  return useMemo(() => {
    const entry = (about: string, name: string, title: string | undefined, to: string): Entry => ({ id: `${about} ${name}`, text: title || name, about, words: name, run: () => go(to) })
    return [
      ...(apis.data ?? []).map((it) => entry('API', it.name, it.display_name, toApi(it.name))),
      ...(products.data ?? []).map((it) => entry('product', it.name, it.display_name, toProduct(it.name))),
      ...(applications.data ?? []).map((it) => entry('application', it.name, it.display_name, `/applications/${encodeURIComponent(it.name)}`)),
    ]
  }, [apis.data, products.data, applications.data, go])
}

const holds = (wanted: string[], entry: Entry) => wanted.every((word) => `${entry.text} ${entry.words ?? ''} ${entry.about}`.toLowerCase().includes(word))

export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const [, go] = useLocation()
  const isDark = useIsDark()
  const asked = useSettled(text.trim())
  const objects = useFoundRows(asked, useRight('configuration:read') === null)
  const managed = useManaged(text.trim() !== '', go)
  const entries = useMemo(() => {
    const found: Entry[] = pages.map((it) => ({ id: it.path, text: it.title, about: 'page', run: () => go(it.path) }))
    for (const list of LISTS) {
      const kind = kindOf(list)
      if (kind) found.push({ id: `${list}/new`, text: `New ${kind.one}`, about: 'action', run: () => go(`/${list}/@new`) })
    }
    for (const [title, to] of ACTIONS) found.push({ id: to, text: title, about: 'action', run: () => go(to) })
    const other = isDark ? 'light' : 'dark'
    found.push({ id: 'theme', text: `Use the ${other} theme`, about: 'action', run: () => setTheme(other) })
    return found
  }, [go, isDark])
  const isSearching = text.trim() !== asked || objects.isFetching
  const shown = useMemo(() => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
    if (wanted.length === 0) return entries
    const rows = (objects.data ?? []).map(({ list, row }): Entry => {
      const to = linkOf(list, row)
      return { id: `${list} ${row.id}`, text: row.name, about: kindOf(list)?.one ?? list, run: () => go(to) }
    })
    // What an earlier text found stays until the next answer, if it is called what is typed now.
    const found = isSearching ? rows.filter((it) => holds(wanted, it)) : rows
    return [...entries.filter((it) => holds(wanted, it)), ...managed.filter((it) => holds(wanted, it)).slice(0, FOUND), ...found].slice(0, MOST)
  }, [entries, text, objects.data, isSearching, managed, go])
  return (
    <ModalOverlay className="backdrop" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className="modal">
        <Dialog className="dialog" aria-label="Find">
          <Autocomplete inputValue={text} onInputChange={setText}>
            <SearchField aria-label="Find a page, an object or an action" autoFocus>
              <Input className="input" placeholder="Find a page, an object or an action" />
            </SearchField>
            <Menu
              aria-label="Found"
              className="found"
              items={shown}
              onAction={(id) => {
                onClose()
                shown.find((it) => it.id === id)?.run()
              }}
              renderEmptyState={() => <p className="muted">{isSearching ? 'Searching' : 'Nothing is called that.'}</p>}
            >
              {(entry) => (
                <MenuItem id={entry.id} className="option" textValue={entry.text}>
                  <span className="grow clip">{entry.text}</span>
                  <span className="muted small">{entry.about}</span>
                </MenuItem>
              )}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}
