// The palette: pages, objects and actions by a few letters.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Autocomplete, Dialog, Input, Menu, MenuItem, Modal, ModalOverlay, SearchField } from 'react-aria-components'
import { useLocation } from 'wouter'
import { get } from '../api/client'
import { type ViewList, viewPath } from '../api/hooks'
import type { ViewPage } from '../api/types'
import { kindOf } from '../kinds'
import { linkOf } from '../pages/list'
import { pages } from './pages'
import { setTheme, useIsDark } from './theme'

interface Entry {
  id: string
  text: string
  about: string
  run: () => void
}

const MOST = 40
const FOUND = 8
const LISTS: ViewList[] = ['routes', 'services', 'upstreams', 'consumers', 'certificates']

export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const [, go] = useLocation()
  const isDark = useIsDark()
  const objects = useQuery({
    queryKey: ['configuration', 'palette', text],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(LISTS.map((list) => get<ViewPage>(viewPath(list), { q: text, limit: FOUND }, signal)))
      return pages.flatMap((page, index) => page.items.map((row) => ({ list: LISTS[index] as ViewList, row })))
    },
    enabled: text.trim() !== '',
  })
  const entries = useMemo(() => {
    const found: Entry[] = pages.map((it) => ({ id: it.path, text: it.title, about: 'page', run: () => go(it.path) }))
    for (const list of LISTS) {
      const kind = kindOf(list)
      if (kind) found.push({ id: `${list}/new`, text: `New ${kind.one}`, about: 'action', run: () => go(`/${list}/@new`) })
    }
    const other = isDark ? 'light' : 'dark'
    found.push({ id: 'theme', text: `Use the ${other} theme`, about: 'action', run: () => setTheme(other) })
    return found
  }, [go, isDark])
  const shown = useMemo(() => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
    const holds = (entry: Entry) => wanted.every((word) => `${entry.text} ${entry.about}`.toLowerCase().includes(word))
    const rows = (text.trim() === '' ? [] : (objects.data ?? [])).map(({ list, row }): Entry => {
      const to = linkOf(list, row)
      return { id: `${list} ${row.id}`, text: row.name, about: kindOf(list)?.one ?? list, run: () => go(to) }
    })
    return [...entries.filter(holds), ...rows].slice(0, MOST)
  }, [entries, text, objects.data, go])
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
              className="stack tight"
              items={shown}
              onAction={(id) => {
                onClose()
                shown.find((it) => it.id === id)?.run()
              }}
              renderEmptyState={() => <p className="muted">Nothing is called that.</p>}
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
