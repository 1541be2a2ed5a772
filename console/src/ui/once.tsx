// A secret that is shown once. Nothing keeps it.
import { Button } from './button'
import { Dialog } from './dialog'
import { copy, saveFile } from './files'

interface Props {
  title: string
  secret: string
  /** What is kept of it. */
  about?: string
  /** What to do with it. */
  children?: React.ReactNode
  onClose: () => void
}

export function ShownOnce({ title, secret, about = 'Weir keeps its hash.', children, onClose }: Props) {
  return (
    <Dialog
      title={title}
      isOpen
      loses="It is not shown again"
      onClose={onClose}
      actions={
        <>
          <Button onPress={() => void copy(secret)}>Copy</Button>
          <Button onPress={() => saveFile('key.txt', 'text/plain', [secret, '\n'])}>Download</Button>
          <Button look="primary" onPress={onClose}>
            I have kept it
          </Button>
        </>
      }
    >
      <p>This is the only time that it is shown. {about}</p>
      <pre className="code" tabIndex={0} aria-label="Secret">
        {secret}
      </pre>
      {children}
    </Dialog>
  )
}
