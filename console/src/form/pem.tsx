// A certificate or a key in PEM: lines that a field of one line would put together. It is pasted, or chosen as a file; a
// private key is masked until somebody asks.
import { useState } from 'react'
import type { Json, Schema } from '../api/types'
import { IconButton } from '../ui/button'
import type { Ids } from './fields'
import { isReference } from './secret-reference'

/** As large as chains of certificates are, in bytes; a file beyond is something else. */
const MOST = 262_144

/** Whether a field holds PEM as it is, and not the name of a header with it. */
export const isPem = (schema: Schema): boolean => /\bPEM\b/.test(schema.description ?? '') && !/header|escapes/i.test(schema.description ?? '')

interface Props {
  ids: Ids
  title: string
  value: Json | undefined
  isSecret: boolean
  isDisabled: boolean
  isBare: boolean
  onChange: (value: string) => void
}

export function PemInput({ ids, title, value, isSecret, isDisabled, isBare, onChange }: Props) {
  const [isRevealed, setRevealed] = useState(false)
  const [wrong, setWrong] = useState<string | null>(null)
  const text = typeof value === 'string' ? value : ''
  // A reference to a vault is no secret itself.
  const isMasked = isSecret && !isRevealed && text !== '' && !isReference(text)
  const take = async (file: File) => {
    setWrong(null)
    if (file.size > MOST) return setWrong(`${file.name} is too large to be a certificate or a key.`)
    const content = await file.text()
    if (!content.includes('-----BEGIN ')) return setWrong(`${file.name} is not in PEM: it has no line with -----BEGIN.`)
    onChange(content)
  }
  return (
    <>
      <textarea
        id={ids.input}
        className={isMasked ? 'input mono pem masked' : 'input mono pem'}
        rows={text === '' ? 3 : 6}
        value={text}
        disabled={isDisabled}
        placeholder={'-----BEGIN …'}
        aria-describedby={ids.about}
        aria-label={isBare ? title : undefined}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
      <div className="row">
        {!isDisabled && (
          <label className="button small">
            Choose a file
            <input
              className="sr"
              aria-label={`Choose a file for ${title}`}
              type="file"
              accept=".pem,.crt,.cer,.key,.txt"
              onChange={(event) => {
                const [file] = event.target.files ?? []
                // The same file can be chosen again after it was changed.
                event.target.value = ''
                if (file) void take(file)
              }}
            />
          </label>
        )}
        {isSecret && text !== '' && <IconButton small icon="eye" label={isRevealed ? `Hide ${title}` : `Show ${title}`} onPress={() => setRevealed(!isRevealed)} />}
      </div>
      {wrong && (
        <p className="wrong" role="alert">
          {wrong}
        </p>
      )}
    </>
  )
}
