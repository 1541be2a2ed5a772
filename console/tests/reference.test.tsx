// What the portal's reference shows of a value, and what it says of an answer to a call that was tried.
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { SchemaTree } from '../src/portal/reference/schema-tree'
import { hintOf } from '../src/portal/reference/try'

const shown = (schema: unknown, said = '') => renderToStaticMarkup(<SchemaTree schema={schema} schemas={{}} said={said} onMissing={() => undefined} />)

test('the limits of a parameter and of a field are shown', () => {
  const limited = { type: 'integer', description: 'How many', minimum: 1, maximum: 100, default: 20 }
  for (const schema of [limited, { type: 'object', properties: { limit: limited } }]) {
    const markup = shown(schema)
    for (const part of ['How many', '≥ 1', '≤ 100', 'default 20']) expect(markup, JSON.stringify(schema)).toContain(part)
  }
  const text = shown({ type: 'string', enum: ['a', 'b'], pattern: '^[ab]$', minLength: 1, maxLength: 3 })
  for (const part of ['&quot;a&quot;', '&quot;b&quot;', 'matches ^[ab]$', 'at least this many characters: 1', 'at most this many characters: 3']) expect(text).toContain(part)
  // What stands above already is not said again.
  expect(shown(limited, 'How many')).not.toContain('How many')
})

test('an answer that is no success says what to do', () => {
  expect(hintOf(401, true, false)).toContain('put yours above')
  expect(hintOf(401, true, true)).toContain('does not know this key')
  expect(hintOf(429, true, true)).toContain('limit')
  expect(hintOf(503, false, false)).toContain('behind it')
  for (const status of [200, 201, 400, 422]) expect(hintOf(status, true, true)).toBeNull()
})
