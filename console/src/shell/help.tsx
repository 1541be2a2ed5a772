// The keys, on one sheet.
import { Dialog } from '../ui/dialog'
import { pages } from './pages'

const keys: [string, string][] = [
  ['Ctrl K', 'Find a page, an object or an action'],
  ['/', 'Search in the list'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['e', 'Edit what is shown'],
  ['Escape', 'Close what is open'],
  ['Escape Tab', 'Leave the text editor, where Tab indents'],
  ['?', 'This sheet'],
]

export default function Help({ onClose }: { onClose: () => void }) {
  const all = [...keys, ...pages.filter((it) => it.key).map((it): [string, string] => [`g ${it.key}`, `Go to ${it.title}`])]
  return (
    <Dialog title="Keys" isOpen onClose={onClose}>
      <dl className="pairs">
        {all.map(([key, about]) => [
          <dt key={key}>
            {key.split(' ').map((it) => (
              <kbd key={it}>{it}</kbd>
            ))}
          </dt>,
          <dd key={about}>{about}</dd>,
        ])}
      </dl>
    </Dialog>
  )
}
