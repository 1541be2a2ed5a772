// The window of a dialog. Escape closes it, and focus returns to what opened it.
import type { ReactNode } from 'react'
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import { IconButton } from './button'

export interface Props {
  title: string
  isOpen: boolean
  onClose: () => void
  children: ReactNode
  wide?: boolean
  /** What stands below, at the end of the dialog. */
  actions?: ReactNode
}

export default function DialogWindow({ title, isOpen, onClose, children, wide, actions }: Props) {
  return (
    <ModalOverlay className="veil" isOpen={isOpen} isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={wide ? 'modal wide2' : 'modal'}>
        <AriaDialog className="dialog">
          <div className="row between">
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <IconButton icon="close" label="Close" onPress={onClose} />
          </div>
          {children}
          {actions && <div className="actions">{actions}</div>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}
