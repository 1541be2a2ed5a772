// A logo that is chosen as a file: an SVG or a PNG. The server checks what is in it; here it is only read.
import { useId, useState } from 'react'
import { Button } from './button'

/** As it is written in documents, in bytes. */
const MAX = 65_536
const PNG = 'data:image/png;base64,'
const SIGNATURE = [0x89, 0x50, 0x4e, 0x47]

/** The text of a logo. Throws what is wrong with the file. */
export async function logoOf(file: File): Promise<string> {
  // Base64 makes three bytes four.
  if (file.size > MAX) throw new Error(`${file.name} has ${sizeText(file.size)}: a logo has at most 64 KiB, as a PNG 48 KiB.`)
  const bytes = new Uint8Array(await file.arrayBuffer())
  const isPng = SIGNATURE.every((byte, index) => bytes[index] === byte)
  const text = isPng ? PNG + btoa(String.fromCharCode(...bytes)) : new TextDecoder().decode(bytes).trim()
  if (!isPng && !text.startsWith('<')) throw new Error(`${file.name} is no SVG and no PNG.`)
  if (text.length > MAX) throw new Error(`${file.name} has ${sizeText(file.size)}: a logo has at most 64 KiB, as a PNG 48 KiB.`)
  return text
}

const sizeText = (bytes: number): string => (bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`)

function described(value: string): string {
  if (value === '') return 'None: its first letter stands in its place.'
  if (value.startsWith(PNG)) return `A PNG of ${sizeText(Math.floor(((value.length - PNG.length) * 3) / 4))}.`
  return `An SVG of ${sizeText(value.length)}.`
}

export function LogoField({ value, onChange, isDisabled = false }: { value: string; onChange: (value: string) => void; isDisabled?: boolean }) {
  const id = useId()
  const [wrong, setWrong] = useState<string | null>(null)
  const take = async (file: File) => {
    setWrong(null)
    try {
      onChange(await logoOf(file))
    } catch (error) {
      setWrong((error as Error).message)
    }
  }
  return (
    <div className="field">
      <div className="label" id={id}>
        Logo
      </div>
      <div className="row" role="group" aria-labelledby={id}>
        <label className="button small">
          Choose a logo
          <input
            className="sr"
            type="file"
            accept=".png,.svg,image/png,image/svg+xml"
            disabled={isDisabled}
            onChange={(event) => {
              const [file] = event.target.files ?? []
              // The same file can be chosen again after it was changed.
              event.target.value = ''
              if (file) void take(file)
            }}
          />
        </label>
        {value !== '' && (
          <Button small look="quiet" onPress={() => (setWrong(null), onChange(''))}>
            Remove the logo
          </Button>
        )}
        <span className="muted">{described(value)}</span>
      </div>
      <p className="about">An SVG without scripts, or a PNG; at most 64 KiB. The portal serves it so that it can run nothing.</p>
      {wrong && (
        <p className="wrong" role="alert">
          {wrong}
        </p>
      )}
    </div>
  )
}
