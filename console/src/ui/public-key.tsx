// The public key of a subscriber who signs tokens. It is no secret: it is shown as it is kept.
import { useState } from 'react'
import { Act } from './act'
import { AreaField, SelectField, TextField } from './field'

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const

export interface TokenKey {
  algorithm: string
  public_key: string
  /** Left out: Weir makes one. */
  issuer?: string
}

export function AddPublicKey({ onClose, onAdd }: { onClose: () => void; onAdd: (key: TokenKey) => Promise<unknown> }) {
  const [algorithm, setAlgorithm] = useState<string>('RS256')
  const [issuer, setIssuer] = useState('')
  const [text, setText] = useState('')
  const isPrivate = /PRIVATE KEY/.test(text)
  return (
    <Act
      title="Add a public key"
      action="Add"
      refused={text.trim() === '' ? 'Paste the public key first.' : isPrivate ? 'This is a private key. Give Weir the public half only.' : null}
      onClose={onClose}
      run={() => onAdd({ algorithm, public_key: text, ...(issuer.trim() === '' ? {} : { issuer: issuer.trim() }) })}
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
