// A key, a password or a secret that was made: shown once, with the user name that it belongs to and how calls carry it.
import type { Credential } from '../../api/apis'
import { wordsOf } from '../../ui/credentials'
import { ShownOnce } from '../../ui/once'
import { Pairs } from './shared'

export function CredentialShown({ title, made, onClose }: { title: string; made: Credential; onClose: () => void }) {
  return (
    <ShownOnce title={title} secret={made.key ?? ''} about={made.kind === 'hmac' ? 'Weir keeps it sealed.' : 'Weir keeps its hash.'} onClose={onClose}>
      {made.name && <Pairs pairs={[['User name', <code key="name">{made.name}</code>]]} />}
      <p className="muted">{wordsOf(made.kind).carried}</p>
    </ShownOnce>
  )
}
