// A way to add one of the fields that are not set: a button that opens a list to search in.
import { useState } from 'react'
import { Autocomplete, Button, Dialog, DialogTrigger, Input, Menu, MenuItem, Popover, SearchField, useFilter } from 'react-aria-components'
import { Icon } from '../ui/icons'
import { label } from './schema'

interface Props {
  options: { name: string; about: string }[]
  onAdd: (name: string) => void
  text?: string
}

export function AddField({ options, onAdd, text = 'Add a field' }: Props) {
  const [isOpen, setOpen] = useState(false)
  const { contains } = useFilter({ sensitivity: 'base' })
  return (
    <div>
      <DialogTrigger isOpen={isOpen} onOpenChange={setOpen}>
        <Button className="button small">
          <Icon name="plus" /> {text}
        </Button>
        <Popover className="popover" placement="bottom start">
          <Dialog aria-label={text} className="stack tight">
            <Autocomplete filter={contains}>
              <SearchField aria-label={`${text}: search`} autoFocus>
                <Input className="input" placeholder="Search" />
              </SearchField>
              <Menu
                aria-label={text}
                items={options}
                onAction={(name) => {
                  onAdd(String(name))
                  setOpen(false)
                }}
              >
                {(option) => (
                  <MenuItem id={option.name} className="option" textValue={`${label(option.name)} ${option.name}`}>
                    <span>
                      {label(option.name)}
                      <span className="about muted small" style={{ display: 'block' }}>
                        {option.about.split('\n')[0]}
                      </span>
                    </span>
                  </MenuItem>
                )}
              </Menu>
            </Autocomplete>
          </Dialog>
        </Popover>
      </DialogTrigger>
    </div>
  )
}
