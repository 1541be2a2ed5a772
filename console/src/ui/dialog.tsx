// Dialogs. Their window is loaded when the first one opens: the first view needs none. The window gives the focus back to
// the button that opened it; this gives it to what is around the button, if the button is gone by then. A dialog that
// follows another, as the key that was made follows its question, gives it to what is around the first one's button.
import { Suspense, lazy, useEffect, useState } from 'react'
import type { Props } from './dialog-window'
import { focusPlace, placesAround } from './focus'

const DialogWindow = lazy(() => import('./dialog-window'))

export function Dialog(props: Props) {
  return props.isOpen ? <Opened {...props} /> : null
}

/** What is around the buttons of the dialogs that are open, the latest last. */
const open: HTMLElement[][] = []

function Opened(props: Props) {
  const [places] = useState(() => [...placesAround(document.activeElement), ...(open.at(-1) ?? [])])
  useEffect(() => {
    open.push(places)
    return () => void open.splice(open.indexOf(places), 1)
  }, [places])
  // After the frame in which the window gives the focus back.
  useEffect(() => () => void requestAnimationFrame(() => requestAnimationFrame(() => focusPlace(places))), [places])
  return (
    <Suspense fallback={null}>
      <DialogWindow {...props} />
    </Suspense>
  )
}
