// Alternatives of which one holds, as buttons side by side: one stop for Tab, and arrow keys move between them. Moving
// chooses nothing, because a choice may replace what was written. Many alternatives, or such with words below, are a
// select or a ChoiceField.
import { type KeyboardEvent, useState } from 'react'

interface Props<V extends string> {
  label: string
  chosen: V | null
  options: readonly { value: V; text: string }[]
  onChoose: (value: V) => void
  /** Classes of the group, and of each button. */
  look: string
  buttonLook?: string
  isDisabled?: boolean
}

export function Choices<V extends string>({ label, chosen, options, onChoose, look, buttonLook, isDisabled = false }: Props<V>) {
  const [focused, setFocused] = useState<number | null>(null)
  const stop = focused ?? Math.max(0, options.findIndex((it) => it.value === chosen))
  return (
    <div className={look} role="group" aria-label={label} onKeyDown={moveFocus}>
      {options.map((it, index) => (
        <button
          key={it.value}
          type="button"
          className={buttonLook}
          aria-pressed={it.value === chosen}
          disabled={isDisabled}
          tabIndex={index === stop ? 0 : -1}
          onFocus={() => setFocused(index)}
          onBlur={() => setFocused(null)}
          onClick={() => onChoose(it.value)}
        >
          {it.text}
        </button>
      ))}
    </div>
  )
}

/** To the next or the previous button, around the ends; to the first and the last. */
function moveFocus(event: KeyboardEvent<HTMLElement>) {
  if (event.altKey || event.ctrlKey || event.metaKey) return
  const group = event.currentTarget
  const buttons = [...group.querySelectorAll('button')]
  const at = buttons.findIndex((it) => it === event.target)
  const forward = getComputedStyle(group).direction === 'rtl' ? -1 : 1
  const steps: Record<string, number> = { ArrowRight: at + forward, ArrowLeft: at - forward, ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }
  const next = steps[event.key]
  if (at === -1 || next === undefined) return
  event.preventDefault()
  buttons[(next + buttons.length) % buttons.length]?.focus()
}
