// Saved views of a table: a search and an order under a name, kept in the browser. Each is an address as well.
import { type FormEvent, useState } from 'react'
import { Button as AriaButton, Dialog as AriaDialog, DialogTrigger, Popover } from 'react-aria-components'
import { Button, IconButton } from './button'
import { Icon } from './icons'

export interface View {
  q: string
  sort: string
}

interface Named extends View {
  name: string
}

const isNamed = (it: unknown): it is Named => {
  const view = it as Partial<Named> | null
  return typeof view === 'object' && [view?.name, view?.q, view?.sort].every((part) => typeof part === 'string')
}

/** What was kept; what somebody else has written there is none. */
function readViews(key: string): Named[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    return Array.isArray(found) ? found.filter(isNamed) : []
  } catch {
    return []
  }
}

const aboutView = (it: View): string => [it.q, it.sort && `by ${it.sort.replace(/^-/, '')}${it.sort.startsWith('-') ? ', downwards' : ''}`].filter(Boolean).join(' · ')

export function SavedViews({ label, current, onChoose }: { label: string; current: View; onChoose: (view: View) => void }) {
  const key = `weir-views-${label}`
  const [views, setViews] = useState(() => readViews(key))
  const [name, setName] = useState('')
  const set = (next: Named[]) => {
    localStorage.setItem(key, JSON.stringify(next))
    setViews(next)
  }
  const isPlain = current.q === '' && current.sort === ''
  const refused = isPlain ? 'Search or sort first.' : name.trim() === '' ? 'Give it a name.' : null
  const save = () => {
    if (refused !== null) return
    set([...views.filter((it) => it.name !== name.trim()), { name: name.trim(), ...current }])
    setName('')
  }
  return (
    <DialogTrigger>
      <AriaButton className="button quiet" aria-label="Views">
        <Icon name="list" /> <span className="word">Views</span>
      </AriaButton>
      <Popover className="popover" placement="bottom end">
        <AriaDialog aria-label="Saved views" className="stack tight views">
          {({ close }) => (
            <>
              {views.length === 0 && <p className="muted small">Keep a search and an order under a name. They stay in this browser.</p>}
              <ul>
                {views.map((it) => (
                  <li key={it.name} className="row nowrap">
                    <button
                      type="button"
                      className="option grow"
                      onClick={() => {
                        onChoose(it)
                        close()
                      }}
                    >
                      <span className="clip">{it.name}</span>
                      <span className="muted small clip">{aboutView(it)}</span>
                    </button>
                    <IconButton small icon="trash" label={`Forget the view ${it.name}`} onPress={() => set(views.filter((one) => one !== it))} />
                  </li>
                ))}
              </ul>
              <form
                className="row nowrap"
                onSubmit={(event: FormEvent) => {
                  event.preventDefault()
                  save()
                }}
              >
                <input className="input" aria-label="Name of the view" placeholder="Name of what is shown" value={name} onChange={(event) => setName(event.target.value)} />
                <Button small refused={refused} onPress={save}>
                  Save
                </Button>
              </form>
            </>
          )}
        </AriaDialog>
      </Popover>
    </DialogTrigger>
  )
}
