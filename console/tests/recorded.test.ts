// Documents of Kong and APISIX as the recorded cases have them: opening one and changing nothing is no change, in either
// format, and a change that is taken back leaves nothing behind.
import { readFileSync, readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Format, fresh, read, rewrite } from '../src/form/draft'
import { isMap, isSame } from '../src/form/path'
import type { Fields, Json } from '../src/api/types'

const FOLDER = '../tests/recorded'

/** The entities of a configuration: the maps in its lists. Those inside of them are edited with them. */
const entities = (value: Json): Fields[] => (isMap(value) ? Object.values(value).flatMap((it) => (Array.isArray(it) ? it.filter(isMap) : [])) : [])

function recorded(dialect: string): { name: string; document: Fields }[] {
  const found: { name: string; document: Fields }[] = []
  const seen = new Set<string>()
  for (const file of readdirSync(`${FOLDER}/${dialect}`).filter((it) => it.endsWith('.json'))) {
    for (const { name, config } of JSON.parse(readFileSync(`${FOLDER}/${dialect}/${file}`, 'utf8')) as { name: string; config?: string }[]) {
      if (typeof config !== 'string') continue
      let document: Json
      try {
        document = parse(config) as Json
      } catch {
        // Some cases are about texts that cannot be read.
        continue
      }
      for (const it of entities(document)) {
        const key = JSON.stringify(it)
        if (!seen.has(key)) found.push({ name, document: it })
        seen.add(key)
      }
    }
  }
  return found
}

for (const dialect of ['kong', 'apisix']) {
  test(`43: opening a recorded document of ${dialect} changes nothing`, () => {
    const documents = recorded(dialect)
    expect(documents.length).toBeGreaterThan(200)
    for (const { name, document } of documents) {
      for (const format of ['yaml', 'json'] as Format[]) {
        const draft = fresh(document, format)
        const again = read(draft.text, format)
        expect('value' in again && isSame(again.value, document), `${name} as ${format}: ${draft.text}`).toBe(true)
      }
      const { text } = fresh(document)
      expect(rewrite(text, document, document), name).toBe(text)
      const changed = { ...document, 'not in any form': [1] }
      const back = read(rewrite(rewrite(text, document, changed), changed, document), 'yaml')
      expect('value' in back && isSame(back.value, document), name).toBe(true)
    }
  }, 120_000)
}
