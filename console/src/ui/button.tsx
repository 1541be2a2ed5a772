// Buttons, and links that look like them. A button that may not be pressed stays visible and says why.
import { type ReactNode, useId } from 'react'
import { Button as AriaButton, Tooltip, TooltipTrigger } from 'react-aria-components'
import { Link } from 'wouter'
import { Icon, type IconName } from './icons'

type Look = 'plain' | 'primary' | 'danger' | 'quiet'

interface Props {
  children: ReactNode
  onPress: () => void
  look?: Look
  small?: boolean
  /** Why it cannot be pressed now; it stays reachable, so that the reason can be read. */
  refused?: string | null | undefined
  isBusy?: boolean
  icon?: IconName
  /** The key `e` presses it. */
  isEdit?: boolean
}

/** The place of a button with a menu that is being loaded: nothing moves when it comes. */
export const MenuPlace = ({ label }: { label: string }) => (
  <span className="button place" aria-hidden="true">
    {label} ▾
  </span>
)

const classes = (look: Look, small?: boolean, icon?: boolean) =>
  ['button', look, small ? 'small' : '', icon ? 'icon' : ''].filter(Boolean).join(' ')

export function Button({ children, onPress, look = 'plain', small, refused, isBusy, icon, isEdit }: Props) {
  const id = useId()
  const inner = (
    <>
      {icon && <Icon name={icon} />}
      {children}
    </>
  )
  if (refused) {
    return (
      <>
        {/* Who presses it all the same reads on. */}
        <TooltipTrigger delay={200} shouldCloseOnPress={false}>
          <AriaButton className={classes(look, small)} aria-disabled="true" aria-describedby={id}>
            {inner}
          </AriaButton>
          <Tooltip className="popover option" offset={6}>
            {refused}
          </Tooltip>
        </TooltipTrigger>
        <span id={id} hidden>
          {refused}
        </span>
      </>
    )
  }
  // The library's own `isPending` announces an element that is not there once the work is done.
  return (
    <AriaButton
      className={classes(look, small)}
      onPress={() => {
        if (!isBusy) onPress()
      }}
      aria-disabled={isBusy ? 'true' : undefined}
      data-pending={isBusy || undefined}
      data-edit={isEdit || undefined}
    >
      {inner}
    </AriaButton>
  )
}

/** A button that shows only an icon: its name is spoken and shown on hover. */
export function IconButton({ icon, label, onPress, small }: { icon: IconName; label: string; onPress: () => void; small?: boolean }) {
  return (
    <TooltipTrigger delay={500}>
      <AriaButton className={classes('quiet', small, true)} aria-label={label} onPress={onPress}>
        <Icon name={icon} />
      </AriaButton>
      <Tooltip className="popover option" offset={6}>
        {label}
      </Tooltip>
    </TooltipTrigger>
  )
}

interface LinkProps {
  to: string
  children: ReactNode
  look?: Look
  small?: boolean
  /** Why it may not be followed; it stays visible. */
  refused?: string | null | undefined
  /** The key `e` follows it. */
  isEdit?: boolean
}

export function ButtonLink({ to, children, look = 'plain', small, refused, isEdit }: LinkProps) {
  if (refused) {
    return (
      <Button look={look} small={small === true} refused={refused} onPress={() => undefined}>
        {children}
      </Button>
    )
  }
  return (
    <Link href={to} className={classes(look, small)} data-edit={isEdit || undefined}>
      {children}
    </Link>
  )
}
