// What is typed into a list's search: words that any column may hold, and `column:text` for one of them.

export interface Chip {
  column: string
  text: string
}

export interface Search {
  words: string[]
  chips: Chip[]
}

/** Reads a search. `column:"two words"` keeps words together; a name that is no column is a word like any other. */
export function parseSearch(text: string, columns: string[]): Search {
  const search: Search = { words: [], chips: [] }
  for (const [whole, name, quoted, plain] of text.matchAll(/(?:([\w-]+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const value = quoted ?? plain ?? ''
    if (value === '') continue
    if (name !== undefined && columns.includes(name)) search.chips.push({ column: name, text: value })
    else search.words.push((name === undefined ? value : whole).toLowerCase())
  }
  return search
}

/** A search for a text in one column. */
export const chipText = (column: string, text: string): string => `${column}:${/\s/.test(text) ? `"${text}"` : text}`

/** The search without one of its chips. */
export function withoutChip(text: string, chip: Chip): string {
  const quoted = `${chip.column}:"${chip.text}"`
  const plain = `${chip.column}:${chip.text}`
  return text.replace(text.includes(quoted) ? quoted : plain, '').replace(/\s+/g, ' ').trim()
}

/** `*` stands for anything. */
function pattern(text: string): (value: string) => boolean {
  const wanted = text.toLowerCase()
  if (!wanted.includes('*')) return (value) => value.includes(wanted)
  const parts = wanted.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  const expression = new RegExp(parts.join('.*'))
  return (value) => expression.test(value)
}

const haystacks = new WeakMap<object, WeakMap<object, string>>()

/** Whether a row is found. What a row holds is put together once. */
export function matcher<Row>(search: Search, texts: Map<string, (row: Row) => string>): (row: Row) => boolean {
  if (search.words.length === 0 && search.chips.length === 0) return () => true
  const chips = search.chips.map((chip) => ({ text: texts.get(chip.column), holds: pattern(chip.text) }))
  const words = search.words.map(pattern)
  let known = haystacks.get(texts)
  if (known === undefined) haystacks.set(texts, (known = new WeakMap()))
  const all = known
  const haystack = (row: Row): string => {
    const key = row as object
    let text = all.get(key)
    if (text === undefined) {
      text = [...texts.values()].map((of) => of(row)).join('\n').toLowerCase()
      all.set(key, text)
    }
    return text
  }
  return (row) =>
    words.every((holds) => holds(haystack(row))) &&
    chips.every(({ text, holds }) => text !== undefined && holds(text(row).toLowerCase()))
}
