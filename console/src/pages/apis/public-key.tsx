// The public key of a subscriber who signs tokens. It is no secret: it is shown as it is kept.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Credential, subscriptionPath } from '../../api/apis'
import { call } from '../../api/client'
import { Act } from '../../ui/act'
import { AreaField, SelectField, TextField } from '../../ui/field'
import { toast } from '../../ui/toast'

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const

export function AddPublicKey({ id, onClose }: { id: string; onClose: () => void }) {
  const [algorithm, setAlgorithm] = useState<string>('RS256')
  const [issuer, setIssuer] = useState('')
  const [text, setText] = useState('')
  const client = useQueryClient()
  const isPrivate = /PRIVATE KEY/.test(text)
  return (
    <Act
      title="Add a public key"
      action="Add"
      refused={text.trim() === '' ? 'Paste the public key first.' : isPrivate ? 'This is a private key. Give Weir the public half only.' : null}
      onClose={onClose}
      run={async () => {
        const made = await call<Credential>('POST', `${subscriptionPath(id)}/credentials`, { body: { jwt: { algorithm, public_key: text, ...(issuer.trim() === '' ? {} : { issuer: issuer.trim() }) } } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`Tokens of ${made.data.jwt?.issuer ?? issuer} are good`)
        onClose()
      }}
    >
      <p className="muted">Calls carry a token in Authorization: Bearer. It says the issuer in iss, has an end in exp, and is signed with the private half of this key.</p>
      <AreaField label="Public key, in PEM" value={text} onChange={setText} rows={6} isMono placeholder="-----BEGIN PUBLIC KEY-----" wrong={isPrivate ? 'This is a private key. Give Weir the public half only.' : null} />
      <div className="grid">
        <SelectField label="Algorithm" value={algorithm} onChange={setAlgorithm} options={ALGORITHMS.map((it) => [it, it] as const)} />
        <TextField label="Issuer" value={issuer} onChange={setIssuer} placeholder="made by Weir" about="What tokens say in iss." />
      </div>
    </Act>
  )
}
