// A button that opens a list of actions. What cannot be done now stays in the list and says why.
import { Button as AriaButton, Menu, MenuItem, MenuTrigger, Popover, Text } from 'react-aria-components'

export interface MenuAction {
  text: string
  about?: string
  refused?: string | null | undefined
  look?: 'danger'
  run: () => void
}

export default function ActionMenu({ label, actions }: { label: string; actions: MenuAction[] }) {
  return (
    <MenuTrigger>
      <AriaButton className="button">
        {label} <span aria-hidden="true">▾</span>
      </AriaButton>
      <Popover className="popover" placement="bottom end">
        <Menu aria-label={label} disabledKeys={actions.filter((it) => it.refused).map((it) => it.text)} onAction={(key) => actions.find((it) => it.text === key)?.run()}>
          {actions.map((it) => (
            <MenuItem key={it.text} id={it.text} textValue={it.text} className={it.look === 'danger' ? 'option danger' : 'option'}>
              <span>
                <Text slot="label">{it.text}</Text>
                {(it.refused ?? it.about) && (
                  <Text slot="description" className="muted small block">
                    {it.refused ?? it.about}
                  </Text>
                )}
              </span>
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  )
}
