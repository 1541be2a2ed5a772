// The window of a dialog. Escape closes it, and focus returns to what opened it. What was typed into a form of it, and a
// secret that is shown once, are not lost by a stray click: it asks first.
import { type ReactNode, useState } from 'react'
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import { Button, IconButton } from './button'

export interface Props {
  title: string
  isOpen: boolean
  onClose: () => void
  children: ReactNode
  wide?: boolean
  /** What stands below, at the end of the dialog. */
  actions?: ReactNode
  /** What is lost by closing it other than by its actions. */
  loses?: string
}

export default function DialogWindow({ title, isOpen, onClose, children, wide, actions, loses }: Props) {
  const [isTyped, setTyped] = useState(false)
  const [isAsking, setAsking] = useState(false)
  const leave = () => {
    if (!isAsking && (isTyped || loses !== undefined)) setAsking(true)
    // A second click beside it is as stray as the first one.
    else if (loses === undefined) onClose()
  }
  return (
    <ModalOverlay className="backdrop" isOpen={isOpen} isDismissable onOpenChange={(open) => !open && leave()}>
      <Modal className={wide ? 'modal wide2' : 'modal'}>
        <AriaDialog className="dialog">
          <div className="row between">
            <Heading slot="title" level={2} className="grow">
              {title}
            </Heading>
            <IconButton icon="close" label="Close" onPress={leave} />
          </div>
          <div className="stack" onInput={(event) => (event.target as HTMLElement).closest('form') !== null && setTyped(true)}>
            {children}
          </div>
          {isAsking && (
            <div className="note warn" role="alert">
              <strong>{loses ?? 'What you typed is not stored'}</strong>
              <div className="row">
                <Button small look="primary" onPress={() => setAsking(false)}>
                  Go on with it
                </Button>
                <Button small onPress={onClose}>
                  {loses === undefined ? 'Throw it away' : 'Close it all the same'}
                </Button>
              </div>
            </div>
          )}
          {actions && <div className="actions">{actions}</div>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}
