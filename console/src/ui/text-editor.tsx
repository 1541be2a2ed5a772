// The text editor, loaded when it is needed first. Until then its text stands where it will stand.
import { Suspense, lazy } from 'react'
import type { Props } from './editor'

const Editor = lazy(() => import('./editor'))

export function TextEditor(props: Props) {
  return (
    <Suspense
      fallback={
        <pre className="editor coming" aria-busy="true">
          {props.text}
        </pre>
      }
    >
      <Editor {...props} />
    </Suspense>
  )
}
