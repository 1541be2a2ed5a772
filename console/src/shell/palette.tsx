// The palette: pages, objects and actions by a few letters.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Autocomplete, Dialog, Input, Menu, MenuItem, Modal, ModalOverlay, SearchField } from 'react-aria-components'
import { useLocation } from 'wouter'
import type { Fields } from '../api/types'
import { kindOf, nameOf } from '../kinds'
import { pages } from './pages'
import { isDark, setTheme, useTheme } from './theme'

interface Entry {
  id: string
  text: string
  about: string
  run: () => void
}

const MOST = 40
const KINDS = ['routes', 'services', 'upstreams', 'consumers']

export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const [, go] = useLocation()
  const theme = useTheme()
  const client = useQueryClient()
  const entries = useMemo(() => {
    const found: Entry[] = pages.map((it) => ({ id: it.path, text: it.title, about: 'page', run: () => go(it.path) }))
    for (const path of KINDS) {
      const kind = kindOf(path)
      if (kind === undefined) continue
      found.push({ id: `${path}/new`, text: `New ${kind.one}`, about: 'action', run: () => go(`/${path}/new`) })
      for (const document of client.getQueryData<Fields[]>(['configuration', 'documents', path]) ?? []) {
        const name = nameOf(kind, document)
        const to = `/${path}/${encodeURIComponent(name)}`
        found.push({ id: to, text: name, about: kind.one, run: () => go(to) })
      }
    }
    const other = isDark(theme) ? 'light' : 'dark'
    found.push({ id: 'theme', text: `Use the ${other} theme`, about: 'action', run: () => setTheme(other) })
    return found
  }, [client, go, theme])
  const shown = useMemo(() => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
    const holds = (entry: Entry) => wanted.every((word) => `${entry.text} ${entry.about}`.toLowerCase().includes(word))
    return entries.filter(holds).slice(0, MOST)
  }, [entries, text])
  return (
    <ModalOverlay className="veil" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
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
                entries.find((it) => it.id === id)?.run()
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
