// The logic of the portal's reference: schemas, examples, calls and samples.
import { describe, expect, test } from 'vitest'
import { NOTHING, mergedDraft } from '../src/portal/pages/app-fields'
import { ownPath } from '../src/portal/pages/own-path'
import { contentsOf, formFields, parametersOf, partsOf, queryParts, wireOf } from '../src/portal/reference/request'
import { LANGUAGES, sample } from '../src/portal/reference/samples'
import { example, merged, others, resolve, rules, typeOf, variants } from '../src/portal/reference/schema'

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

test('an edit of an application is put together with what somebody else has stored', () => {
  const begun = { ...NOTHING, title: 'Till', description: 'Old' }
  const [theirs, mine] = [{ ...begun, title: 'Shop', description: 'New' }, { ...begun, title: 'Desk', client: 'till' }]
  expect(mergedDraft(begun, theirs, mine)).toEqual({ draft: { ...mine, description: 'New' }, both: ['title, which is “Shop” now'] })
  expect(mergedDraft(begun, theirs, begun)).toEqual({ draft: theirs, both: [] })
  expect(mergedDraft(begun, mine, mine)).toEqual({ draft: mine, both: [] })
})

test('a login leads back to pages of the portal only', () => {
  const origin = 'https://portal.test'
  for (const path of ['/apps', '/apps/shop/usage?from=day', '/apis#plans']) expect(ownPath(path, origin)).toBe(path)
  for (const path of ['//evil.test', '/\\evil.test', '/\t/evil.test', 'https://evil.test/', 'apps', '']) expect(ownPath(path, origin)).toBeNull()
})

describe('schemas', () => {
  const schemas = {
    Base: { type: 'object', required: ['a'], properties: { a: { type: 'integer', minimum: 3 } } },
    More: { allOf: [reference('Base'), { required: ['b'], properties: { b: { type: 'string', format: 'date' } } }], description: 'more' },
    Tree: { type: 'object', properties: { next: reference('Tree'), all: { type: 'array', items: reference('Tree') } } },
    Loop: { allOf: [reference('Loop')] },
    One: reference('Two'),
    Two: reference('One'),
    Choice: { oneOf: [reference('Base'), { title: 'Text', type: 'string' }], discriminator: { propertyName: 'kind', mapping: { base: '#/components/schemas/Base' } } },
  }
  test('parts are put together', () => {
    const { schema, name } = merged(reference('More'), schemas)
    expect(name).toBe('More')
    expect(schema).toMatchObject({ required: ['a', 'b'], description: 'more' })
    expect(Object.keys(schema['properties'] as object)).toEqual(['a', 'b'])
    expect('allOf' in schema).toBe(false)
  })
  test('what two parts say differently is kept', () => {
    const { schema } = merged({ allOf: [{ type: 'string', minLength: 2 }, { minLength: 5 }] }, {})
    expect(schema).toEqual({ type: 'string', minLength: 2, allOf: [{ minLength: 5 }] })
  })
  test('circles end', () => {
    expect(merged(reference('Loop'), schemas).schema).toMatchObject({ allOf: [reference('Loop')] })
    expect(resolve(reference('One'), schemas).missing).toBeNull()
    const tree = example(reference('Tree'), schemas, 'response')
    expect(JSON.stringify(tree).length).toBeLessThan(2_000)
  })
  test('what is not here is asked for', () => {
    expect(resolve(reference('Gone'), schemas)).toEqual({ schema: {}, name: 'Gone', missing: 'Gone' })
  })
  test('choices have names', () => {
    expect(variants(schemas.Choice, schemas).map((it) => it.title)).toEqual(['base', 'Text'])
  })
  test('examples fit', () => {
    expect(example(reference('More'), schemas, 'request')).toEqual({ a: 3, b: '2026-01-31' })
    expect(example({ properties: { id: { type: 'string', readOnly: true }, n: { default: 4 } } }, {}, 'request')).toEqual({ n: 4 })
    expect(example({ type: ['string', 'null'], enum: ['x'] }, {}, 'request')).toBe('x')
  })
  test('rules and types in words', () => {
    expect(typeOf({ type: ['string', 'null'], format: 'date' })).toBe('string or null (date)')
    expect(rules({ minimum: 1, maxLength: 4, pattern: '^a' })).toEqual(['≥ 1', 'at most this many characters: 4', 'matches ^a'])
    expect(others({ type: 'string', 'x-own': 1, if: {} })).toEqual({ 'x-own': 1, if: {} })
  })
})

describe('calls', () => {
  const operation = {
    parameters: [
      { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
      { name: 'ids', in: 'query', schema: { type: 'array', items: { type: 'integer' } } },
      { name: 'flat', in: 'query', explode: false, schema: { type: 'array' } },
      { name: 'deep', in: 'query', style: 'deepObject', schema: { type: 'object' } },
      { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
      { name: 'sid', in: 'cookie', schema: { type: 'string' } },
    ],
    requestBody: { content: { 'application/json': { schema: { type: 'object', properties: { a: { type: 'integer' } } } } } },
  }
  const parameters = parametersOf(operation, {})
  const typed = { parameters: { 'path:id': 'a/b', 'query:ids': '1, 2', 'query:flat': '["x","y"]', 'query:deep': '{"a":{"b":1}}', 'header:X-Trace': 't', 'cookie:sid': 's s' }, media: 'application/json', body: '{"a":1}', form: {} }
  test('parameters go where they belong', () => {
    expect(partsOf('/things/{id}', parameters, typed, {})).toEqual({
      path: '/things/a%2Fb',
      query: [['ids', '1'], ['ids', '2'], ['flat', 'x,y'], ['deep[a][b]', '1']],
      headers: [['X-Trace', 't'], ['Cookie', 'sid=s%20s']],
    })
    const first = parameters[1]
    if (first) expect(queryParts({ ...first, explode: false, style: 'pipeDelimited' }, '1,2', {})).toEqual([['ids', '1|2']])
  })
  test('samples carry all of it, quoted', () => {
    const wire = wireOf({ method: 'POST', path: "/th'ings/{id}", base: 'https://api.test/v1/', key: '$API_KEY' }, parameters, typed, {}, [])
    expect(wire.url).toBe("https://api.test/v1/th'ings/a%2Fb?ids=1&ids=2&flat=x%2Cy&deep%5Ba%5D%5Bb%5D=1")
    for (const language of LANGUAGES) {
      const text = sample(language, wire)
      for (const part of ['X-API-Key', 'X-Trace', 'POST']) expect(text, language).toContain(part)
    }
    expect(sample('Rust', wire)).toContain('.body("{\\"a\\":1}")')
    const lines = { ...wire, body: { media: 'application/json', text: '{\n  "a": "1"\n}' } }
    expect(sample('Rust', lines)).toContain('.body(r#"{\n  "a": "1"\n}"#)')
    const hostile = { ...wire, body: { media: 'text/plain', text: 'a\\"\u0007\n"#' } }
    expect(sample('Rust', hostile)).toContain('.body("a\\\\\\"\\u{7}\\n\\"#")')
    expect(sample('curl', wire)).toContain(`'https://api.test/v1/th'\\''ings/`)
  })
  test('forms have fields and files', () => {
    const schema = { type: 'object', required: ['file'], properties: { title: { type: 'string' }, file: { type: 'string', format: 'binary' } } }
    const fields = formFields(schema, {})
    expect(fields.map((it) => [it.name, it.isFile, it.isRequired])).toEqual([['title', false, false], ['file', true, true]])
    const wire = wireOf({ method: 'POST', path: '/f', base: '', key: null }, [], { parameters: {}, media: 'multipart/form-data', body: '', form: { title: 't', file: 'a.png' } }, {}, fields)
    expect(sample('curl', wire)).toContain(`-F 'file=@a.png'`)
    expect(sample('Go', wire)).toContain('CreateFormFile("file", "a.png")')
    expect(sample('Rust', wire)).toContain('.text("title", "t")\n        .file("file", "a.png")?;')
  })
  test('bodies have examples', () => {
    expect(contentsOf(operation.requestBody, {}, 'request')[0]?.examples[0]?.text).toBe('{\n  "a": 1\n}')
  })
})
