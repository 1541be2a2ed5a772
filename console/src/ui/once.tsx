// A secret that is shown once. Nothing keeps it.
import { Button } from './button'
import { Dialog } from './dialog'
import { toast } from './toast'

interface Props {
  title: string
  secret: string
  /** What to do with it. */
  children?: React.ReactNode
  onClose: () => void
}

export function ShownOnce({ title, secret, children, onClose }: Props) {
  const download = () => {
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([secret, '\n'], { type: 'text/plain' }))
    link.download = 'key.txt'
    link.click()
    URL.revokeObjectURL(link.href)
  }
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      actions={
        <>
          <Button onPress={() => void navigator.clipboard.writeText(secret).then(() => toast('Copied'))}>Copy</Button>
          <Button onPress={download}>Download</Button>
          <Button look="primary" onPress={onClose}>
            I have kept it
          </Button>
        </>
      }
    >
      <p>This is the only time that it is shown. Weir keeps its hash.</p>
      <pre className="code" tabIndex={0} aria-label="Secret">
        {secret}
      </pre>
      {children}
    </Dialog>
  )
}
