// Each point of what has to hold (acceptance.ts) has its tests. It says that the tests are there, not that they pass.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { POINTS, browserTests } from './acceptance'

const FIRST = 28
const LAST = 56

/** The text of a file, and what a test of a name looks like in it. */
function sought(named: string): { path: string; marks: string[] } {
  const at = named.indexOf(': ')
  const [file, name] = [named.slice(0, at), named.slice(at + 2)]
  if (file.endsWith('.rs')) return { path: join('..', file), marks: [`fn ${name}(`] }
  if (file === 'weir.ts') return { path: join('tests', file), marks: [`function ${name}(`] }
  const path = join('tests', file.includes('.') ? file : `${file}.spec.ts`)
  return { path, marks: ["test('", "portalTest('", 'test(`', 'portalTest(`', 'test("'].map((start) => `${start}${name}${start.at(-1)}`) }
}

test.each(POINTS)('%i: %s', (_, __, tests) => {
  for (const named of tests) {
    const { path, marks } = sought(named)
    const text = readFileSync(path, 'utf8')
    expect(marks.some((mark) => text.includes(mark)), `no test in ${path}: ${named}`).toBe(true)
  }
  expect(tests.some((named) => sought(named).path.endsWith('.spec.ts')), 'a test in a browser').toBe(true)
})

test('no point is left out', () => {
  expect(POINTS.map(([number]) => number)).toEqual(Array.from({ length: LAST - FIRST + 1 }, (_, index) => FIRST + index))
})

test('the browser tests of all points are chosen, and no others', () => {
  const chosen = browserTests()
  expect(chosen.test('operating.spec.ts a rollback is previewed, committed, and served')).toBe(true)
  expect(chosen.test('pages.spec.ts pages have no serious findings in both themes: empty')).toBe(true)
  expect(chosen.test('editing.spec.ts a rollback is previewed, committed, and served')).toBe(false)
  expect(chosen.test('operating.spec.ts a rollback')).toBe(false)
})
