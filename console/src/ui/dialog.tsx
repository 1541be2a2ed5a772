// Dialogs. Their window is loaded when the first one opens: the first view needs none.
import { Suspense, lazy } from 'react'
import type { Props } from './dialog-window'

const DialogWindow = lazy(() => import('./dialog-window'))

export function Dialog(props: Props) {
  return props.isOpen ? (
    <Suspense fallback={null}>
      <DialogWindow {...props} />
    </Suspense>
  ) : null
}
