// A dialog that does one thing: it says what will happen, asks for what it needs, and shows why it was refused.
import { type ReactNode, useState } from 'react'
import { Failure } from '../shell/page'
import { Button } from './button'
import { Dialog } from './dialog'

interface Props {
  title: string
  /** What the button that does it says. */
  action: string
  look?: 'primary' | 'danger'
  wide?: boolean
  children: ReactNode
  refused?: string | null | undefined
  onClose: () => void
  /** Does it; what it throws is shown, and the dialog stays. */
  run: () => Promise<unknown>
}

export function Act({ title, action, look = 'primary', wide, children, refused, onClose, run }: Props) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const act = async () => {
    setBusy(true)
    setError(null)
    try {
      await run()
    } catch (wrong) {
      setError(wrong)
    }
    setBusy(false)
  }
  return (
    <Dialog
      title={title}
      isOpen
      wide={wide === true}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button look={look} isBusy={isBusy} refused={refused} onPress={() => void act()}>
            {action}
          </Button>
        </>
      }
    >
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (!refused && !isBusy) void act()
        }}
      >
        {children}
        {/* Enter in a field does it, too. */}
        <button type="submit" className="sr" tabIndex={-1} aria-hidden="true" />
      </form>
      {error !== null && <Failure error={error} />}
    </Dialog>
  )
}
