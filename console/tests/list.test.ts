// No page is forgotten: each pattern of the routers of the console and of the portal is the first that fits some page of
// list.ts, which the tests in a browser visit. It opens no page.
import { parse } from 'regexparam'
import { expect, test } from 'vitest'
import { matchRoute } from 'wouter'
import { routes } from '../src/portal/routes'
import { pages } from '../src/shell/pages'
import { singles } from '../src/shell/singles'
import { API_PAGES, PAGES, PORTAL_PAGES, ownPages, rowPage, subscriptionPage } from './list'

/** Patterns that no page of a list reaches. */
function missed(patterns: string[], visited: string[]): string[] {
  const paths = visited.map((it) => it.split('?')[0] ?? it)
  const reached = paths.map((path) => patterns.find((pattern) => matchRoute(parse, pattern, path)[0]))
  return patterns.filter((it) => !reached.includes(it))
}

test('every page of the console is visited', () => {
  const patterns = [...pages.map((it) => it.path), ...singles.map(([path]) => path)]
  expect(missed(patterns, [...PAGES, ...API_PAGES, subscriptionPage('s1'), rowPage('services', 'kong/billing')])).toEqual([])
})

test('every page of the portal is visited', () => {
  expect(missed(routes.map(([path]) => path), [...PORTAL_PAGES, ...ownPages('till')])).toEqual([])
})

test('a page that is not visited is found', () => {
  expect(missed(['/', '/apis/@new', '/apis/:api'], ['/', '/apis/@new?dialect=kong'])).toEqual(['/apis/:api'])
})
