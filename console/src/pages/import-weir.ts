// A `weir.yaml` as changes of documents, for the page that imports: each entry of each list is one document.
import type { Fields, Json } from '../api/types'
import { read } from '../form/draft'
import { kindOf, nameOf } from '../kinds'

export interface WeirChange {
  kind: string
  name: string
  value: Json
}

/** What belongs to the file and is no list of documents. */
const HEAD = new Set(['weir'])

/** The documents of a file. Throws what is wrong with it. */
export function changesOf(text: string): WeirChange[] {
  const found = read(text, text.trimStart().startsWith('{') ? 'json' : 'yaml')
  if ('error' in found) throw new Error(found.error.message)
  const changes: WeirChange[] = []
  for (const [section, entries] of Object.entries(found.value)) {
    if (HEAD.has(section)) continue
    const kind = kindOf(section)
    if (kind === undefined || !Array.isArray(entries)) throw new Error(`${section}: it cannot be imported here. Leave it out, or serve the file with weir run -c.`)
    entries.forEach((entry, index) => {
      const name = typeof entry === 'object' && entry !== null && !Array.isArray(entry) ? nameOf(kind, entry as Fields) : ''
      if (name === '') throw new Error(`${section}[${index}].${kind.name}: a document of the store needs a name.`)
      changes.push({ kind: section, name, value: entry })
    })
  }
  if (changes.length === 0) throw new Error('There is no document in it.')
  return changes
}
