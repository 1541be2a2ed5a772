// The pieces without a browser: places and differences, merging, drafts, searching, and that the kinds match the schema.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { read, rewrite, storedNow, toYaml } from '../src/form/draft'
import { decided, merge } from '../src/form/merge'
import { differences, parsePath, pathText, withAt } from '../src/form/path'
import { blank, fits, shapeOf } from '../src/form/schema'
import { kindOf } from '../src/kinds'
import { dashOf, grouped, tokenOf } from '../src/ui/chart-marks'
import { chipText, matcher, parseSearch, withoutChip } from '../src/ui/search'
import { ago, duration, isoTime } from '../src/ui/time'
import { stringify } from '../src/yaml'
import { canaryOf, conditionText, lengthText, ruleValues } from '../src/api/analytics'
import { partsOf, partsText, within } from '../src/api/parts'
import { contrast } from '../src/api/portals'
import { EVENTS } from '../src/api/webhooks'
import { placeOf } from '../src/documents'
import { nameFault, writeHeaders } from '../src/form/send'
import { servedRevision } from '../src/api/hooks'
import { nameFor } from '../src/pages/quick-start'
import { failureText } from '../src/shell/page'
import type { Json, Schema } from '../src/api/types'

const schema = JSON.parse(readFileSync('../docs/schema/weir.schema.json', 'utf8')) as Schema

test('places are written and read', () => {
  for (const text of ['', 'a', 'a.b', 'a[0].b', 'a[0][1]']) expect(pathText(parsePath(text))).toBe(text)
})

test('a change at a place leaves the rest as it is', () => {
  const before = { a: [{ b: 1 }, { b: 2 }], c: 3 }
  expect(withAt(before, ['a', 1, 'b'], 5)).toEqual({ a: [{ b: 1 }, { b: 5 }], c: 3 })
  expect(withAt(before, ['a', 0], undefined)).toEqual({ a: [{ b: 2 }], c: 3 })
  expect(withAt(before, ['d', 'e'], 1)).toEqual({ ...before, d: { e: 1 } })
  expect(before).toEqual({ a: [{ b: 1 }, { b: 2 }], c: 3 })
})

test('differences are told field by field', () => {
  const told = (a: Json, b: Json) => differences(a, b).map((it) => pathText(it.path))
  expect(told({ a: 1, b: { c: [1, 2] } }, { a: 2, b: { c: [1, 3] } })).toEqual(['a', 'b.c[1]'])
  expect(told({ a: [1] }, { a: [1, 2] })).toEqual(['a'])
  expect(told({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual([])
})

describe('merging', () => {
  const base = { a: 1, b: 2, list: ['x', 'y'], map: { p: 1 } }
  test('what does not overlap is put together', () => {
    const merged = merge(base, { ...base, a: 9, map: { p: 1, q: 2 } }, { ...base, b: 8, list: ['x', 'z'] })
    expect(merged.conflicts).toEqual([])
    expect(merged.value).toEqual({ a: 9, b: 8, list: ['x', 'z'], map: { p: 1, q: 2 } })
  })
  test('what overlaps is asked', () => {
    const merged = merge(base, { ...base, a: 9, b: 5 }, { ...base, a: 7 })
    expect(merged.conflicts.map((it) => pathText(it.path))).toEqual(['a'])
    expect(decided(merged, new Set([0]))).toEqual({ ...base, a: 9, b: 5 })
    expect(decided(merged, new Set())).toEqual({ ...base, a: 7, b: 5 })
  })
  test('a removal counts as a change', () => {
    const { b: _, ...without } = base
    expect(merge(base, without, { ...base, a: 5 }).value).toEqual({ ...without, a: 5 })
    expect(merge(base, without, { ...base, b: 3 }).conflicts).toHaveLength(1)
  })
})

describe('a draft', () => {
  test('keeps comments, order and what the form does not know', () => {
    const text = '# top\nb: 1 # one\na:\n  # inside\n  - x\n  - y\nunknown: {deep: [1]}\n'
    const value = { b: 1, a: ['x', 'y'], unknown: { deep: [1] } }
    expect(read(text, 'yaml')).toEqual({ value })
    const after = rewrite(text, value, { b: 2, a: ['x', 'z', 'w'], unknown: { deep: [1] } })
    expect(after).toBe('# top\nb: 2 # one\na:\n  # inside\n  - x\n  - z\n  - w\nunknown: {deep: [1]}\n')
    expect(read(rewrite(text, value, { a: ['y'] }), 'yaml')).toEqual({ value: { a: ['y'] } })
  })
  test('says where a text is broken', () => {
    for (const [text, as] of [['a: [', 'yaml'], ['a: 1\na: 2', 'yaml'], ['[1]', 'yaml'], ['', 'yaml'], ['{"a":', 'json'], ['a: 1', 'json']] as const) {
      expect(read(text, as), text).toHaveProperty('error')
    }
  })
  test('gives back any value', () => {
    for (const value of [{ a: 'yes' }, { a: '1' }, { a: '' }, { a: 'x: y' }, { a: null, b: [], c: {} }, { a: 'line\nline\n' }, { 'odd key': '#x' }] as Json[]) {
      expect(read(toYaml(value), 'yaml')).toEqual({ value })
      expect(read(stringify(value), 'yaml')).toEqual({ value })
    }
  })
})

test('a search has words and columns', () => {
  const search = parseSearch('two words name:r1 path:"a b" other:x', ['name', 'path'])
  expect(search).toEqual({ words: ['two', 'words', 'other:x'], chips: [{ column: 'name', text: 'r1' }, { column: 'path', text: 'a b' }] })
  expect(withoutChip('x name:r1 y', { column: 'name', text: 'r1' })).toBe('x y')
  const rows = [{ name: 'r1', path: '/a b' }, { name: 'r2', path: '/c' }]
  const texts = new Map([['name', (row: { name: string; path: string }) => row.name], ['path', (row: { name: string; path: string }) => row.path]])
  const found = (text: string) => rows.filter(matcher(parseSearch(text, ['name', 'path']), texts)).map((row) => row.name)
  expect(found('')).toEqual(['r1', 'r2'])
  expect(found('name:r2')).toEqual(['r2'])
  expect(found('R path:/a*')).toEqual(['r1'])
  expect(found('path:[')).toEqual([])
})

test('a search for a name with spaces keeps it together', () => {
  for (const name of ['orders', 'orders of today']) expect(parseSearch(chipText('name', name), ['name']).chips).toEqual([{ column: 'name', text: name }])
})

test('times are said in the units that fit', () => {
  const said = [0.2, 12, 999, 59_940, 59_960, 90_000, 3_599_700, 5_400_000, 86_400_000, 691_200_000, 694_800_000].map(duration)
  expect(said).toEqual(['200 µs', '12 ms', '999 ms', '59.9 s', '1 min', '1 min 30 s', '1 h', '1 h 30 min', '24 h', '8 d', '8 d 1 h'])
  const at = (seconds: number) => ago(0, seconds * 1000)
  expect(at(3_569)).toContain('59')
  expect(at(3_580)).toBe(at(3_600))
  expect(at(86_000)).not.toContain('24')
  expect([isoTime(null), isoTime(1)]).toEqual(['', '1970-01-01T00:00:01Z'])
})

describe('forms', () => {
  test('every kind begins with fields of its type', () => {
    for (const path of ['routes', 'services', 'upstreams', 'consumers', 'plugins', 'certificates', 'acme', 'stream_routes', 'consumer_tables']) {
      const kind = kindOf(path)
      const properties = schema.$defs?.[kind?.type ?? '']?.properties ?? {}
      for (const name of [...(kind?.first ?? []), ...Object.keys(kind?.example ?? {})]) {
        if (name === 'name' && path === 'certificates') continue
        expect(Object.keys(properties), `${path}: ${name}`).toContain(name)
      }
    }
  })
  test('every definition has a shape, and what a form begins with fits it', () => {
    for (const name of Object.keys(schema.$defs ?? {})) {
      const reference: Schema = { $ref: `#/$defs/${name}` }
      const shape = shapeOf(reference, schema)
      if (shape.kind === 'object') expect(fits(reference, blank(reference, schema), schema), name).toBe(true)
      if (shape.kind === 'variants') {
        const value = blank(reference, schema)
        expect(shape.variants.some((it) => fits(it.schema, value, schema)), `${name} ${JSON.stringify(value)}`).toBe(true)
      }
    }
  })
})

test('the events that a webhook can choose are those of the documentation', () => {
  const page = readFileSync('../docs/mails-and-webhooks.md', 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)\.` \| (.+) \|$/gm)].map(([, kind = '', events = '']) => [kind, [...events.matchAll(/`([\w-]+)`/g)].map((it) => it[1])])
  expect(rows.length).toBeGreaterThan(0)
  expect(Object.fromEntries(rows)).toEqual(EVENTS)
})

test('documents are named as people know them, and lead to their pages', () => {
  const told = (key: string) => {
    const { kind, name, to } = placeOf(key)
    return [kind, name, to]
  }
  expect(told('native/routes/a%20b')).toEqual(['routes', 'a%20b', '/routes/a%2520b'])
  expect(told('apis/versions/pets/1.0.0')).toEqual(['versions', 'pets 1.0.0', '/apis/pets/1.0.0'])
  expect(told('apis/publications/pets/1.0.0/test')).toEqual(['publications', 'pets 1.0.0 test', '/apis/pets/1.0.0/in/test'])
  expect(told('apis/pages/main/terms')).toEqual(['pages', 'main terms', '/portals/main/pages/terms'])
  expect(told('apis/specs/e9312cb1b0e8/0000')).toEqual(['specs', 'e9312cb1', null])
  expect(told('apis/credentials/070794')).toEqual(['credentials', '070794', null])
  expect(told('env/test/native/services/test.pets')).toEqual(['services', 'test.pets', null])
  expect(told('kong/default/routes/7')).toEqual(['routes', '7', null])
})

test('the contrast of colours is that of the guidelines', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21)
  expect(contrast('#777777', '#ffffff')).toBeCloseTo(4.48, 2)
  expect(contrast('red', '#ffffff')).toBeNull()
})

test('what answers at a path is named by it', () => {
  for (const [path, name] of [['/orders', 'orders'], ['/Orders/v1/', 'orders-v1'], ['/', 'first'], ['/ä%20', '20']]) expect(nameFor(path ?? '')).toBe(name)
})

test('a write names the version that it changes', () => {
  const sent = (options: Parameters<typeof writeHeaders>[0]) => Object.fromEntries(Object.entries(writeHeaders(options)).filter(([, value]) => value !== undefined))
  expect(sent({ isDry: false })).toEqual({})
  expect(sent({ isDry: true, tag: '"7"' })).toEqual({ 'weir-dry-run': 'true', 'if-match': '"7"' })
  expect(sent({ isDry: false, tag: null, note: 'für alle' })).toEqual({ 'if-none-match': '*', 'weir-note': 'f%C3%BCr%20alle' })
})

test('after a save, what was read before it does not come back', () => {
  const old = { data: { title: 'old' }, tag: '"1"' }
  const theirs = { data: { title: 'theirs' }, tag: '"2"' }
  const stored = { data: { title: 'new' }, tag: '"3"' }
  const replaced = [old, theirs]
  // The cache still has it, or has read it a moment too early.
  for (const base of [old, theirs, structuredClone(old)]) expect(storedNow(base, stored, replaced)).toBe(stored)
  // Read again, or stored once more by somebody else, with the old text too.
  for (const base of [structuredClone(stored), { ...old, tag: '"4"' }]) expect(storedNow(base, stored, replaced)).toBe(base)
  // Documents without versions are told apart by what they say.
  expect(storedNow({ data: { title: 'old' }, tag: null }, stored, [{ data: { title: 'old' }, tag: null }])).toBe(stored)
  expect(storedNow(old, stored, [])).toBe(old)
})

test('a new document has a name of its own', () => {
  const known = [{ name: 'main' }]
  expect(nameFault({ name: ' ' }, known, 'A portal')).toBe('It needs a name.')
  expect(nameFault({ name: ' main ' }, known, 'A portal')).toBe('A portal of this name exists.')
  expect(nameFault({ name: 'other' }, known, 'A portal')).toBeNull()
  expect(nameFault({ name: 'other' }, undefined, 'A portal')).toBeNull()
})

test('rules over two numbers are told as such, and times have a unit', () => {
  const rule = { metric: 'share_4xx', operator: '>', threshold: 2, period: 120 }
  expect(conditionText(rule, 'share')).toContain('over 2m')
  const burning = conditionText({ ...rule, burn_rate: { objective: 0.99, short: '5m' } }, 'share')
  expect(burning).toContain('error budget of 1.0 % used up > 2 times as fast as allowed, over 2m and 5m')
  expect(conditionText({ ...rule, over: 'calls', threshold: 0.3 }, 'share')).toContain('> 0.3 over')
  expect(conditionText({ ...rule, compare: '1w', threshold: 0.5 }, 'count')).toContain('> 0.5 times that of 1w earlier')
  expect([0, 90, 3600, '604800', '1w'].map(lengthText)).toEqual(['0s', '90s', '1h', '1w', '1w'])
})

test('the chart of a rule has the values that the rule is over', () => {
  const frame = { group: {}, total: {}, values: { errors_5xx: [1, null, 4], calls: [10, 10, 0] }, compare: { total: {}, values: { errors_5xx: [2, 2, 2] } } }
  const rule = { metric: 'errors_5xx' }
  expect(ruleValues(rule, frame)).toEqual([1, null, 4])
  expect(ruleValues({ ...rule, over: 'calls' }, frame)).toEqual([0.1, null, null])
  expect(ruleValues({ ...rule, compare: '1w' }, frame)).toEqual([0.5, null, 2])
  expect(ruleValues({ ...rule, burn_rate: { objective: 0.5, short: '5m' } }, frame)).toEqual([2, null, 8])
})

test('an alert of a canary names its publication', () => {
  expect(canaryOf({ id: 'canary:pets/1.0.0/prod' })).toEqual(['pets', '1.0.0', 'prod'])
  expect([canaryOf({ id: 'errors' }), canaryOf({ id: 'canary:' })]).toEqual([null, null])
})

test('who sees some parts only asks about these, and not about more', () => {
  expect(partsOf(['everything', 'api:pets'])).toBeNull()
  const all = partsOf(['workspace:a', 'api:pets', 'api:orders', 'portal:main'])
  expect(all).toEqual([
    { kind: 'api', names: ['orders', 'pets'] },
    { kind: 'api', names: ['orders'] },
    { kind: 'api', names: ['pets'] },
    { kind: 'workspace', names: ['a'] },
  ])
  expect((all ?? []).map(partsText)).toEqual(['the APIs orders and pets', 'the API orders', 'the API pets', 'the workspace a'])
  const [both = null] = all ?? []
  const query = { metrics: ['calls'], from: '-1h' }
  expect(within(query, both)).toEqual({ ...query, filter: { api: ['orders', 'pets'] } })
  expect(within({ ...query, filter: { service: 'x' } }, both).filter).toEqual({ service: 'x', api: ['orders', 'pets'] })
  expect(within({ ...query, filter: { workspace: 'a' } }, both).filter).toEqual({ workspace: 'a' })
  expect(within(query, null)).toBe(query)
})

test('no two lines of a chart look the same', () => {
  const looks = Array.from({ length: 30 }, (_, index) => `${tokenOf('', index)} ${dashOf(index).join()}`)
  expect(new Set(looks).size).toBe(looks.length)
})

test('marks that are close are drawn as one', () => {
  const placed = [50, 0, 8, 16, 22].map((x) => ({ x, kind: x === 8 ? ('publication' as const) : ('commit' as const) }))
  expect(grouped(placed, 20)).toEqual([
    { x: 8, kind: 'publication', count: 3 },
    { x: 22, kind: 'commit', count: 1 },
    { x: 50, kind: 'commit', count: 1 },
  ])
  expect(grouped([], 20)).toEqual([])
})

test('a part of the application that cannot be loaded says what to do', () => {
  for (const said of ['Failed to fetch dynamically imported module: http://x/ui/a.js', 'error loading dynamically imported module: http://x', 'Importing a module script failed.']) {
    const told = failureText(new TypeError(said))
    expect(told).toContain('try again')
    expect(told).not.toContain('http')
  }
  expect(failureText(new Error('no'))).toBe('no')
})

test('a gateway that is in step serves the newest change', () => {
  expect([servedRevision({ revision: 169 }, 163), servedRevision({ revision: 150 }, 163), servedRevision({ revision: 5 }, undefined)]).toEqual([163, 150, 5])
})
