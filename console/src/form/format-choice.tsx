// Whether the text of a draft is YAML or JSON. A text that cannot be read stays as it is until it is mended.
import { Choices } from '../ui/choices'
import type { Draft, Format } from './draft'

const FORMATS = [
  { value: 'yaml', text: 'YAML' },
  { value: 'json', text: 'JSON' },
] as const

export function FormatChoice({ draft, onFormat }: { draft: Pick<Draft, 'format' | 'error'>; onFormat: (format: Format) => void }) {
  return <Choices label="Format of the text" look="row" buttonLook="button small" chosen={draft.format} options={FORMATS} isDisabled={draft.error !== null} onChoose={onFormat} />
}
