// Lines of curl as people paste them.
import { expect, test } from 'vitest'
import { asCurl, parseCall } from '../src/explain/curl'

test.each([
  ['http://h/a', { method: 'GET', url: 'http://h/a', headers: [], body: '' }],
  ['post http://h/a', { method: 'POST', url: 'http://h/a', headers: [], body: '' }],
  ["curl 'http://h/a?x=1&y=2'", { method: 'GET', url: 'http://h/a?x=1&y=2', headers: [], body: '' }],
  ["curl -XPUT http://h -H 'A: b: c' --header=\"D: \\\"e\\\"\"", { method: 'PUT', url: 'http://h', headers: [['A', 'b: c'], ['D', '"e"']], body: '' }],
  ['curl http://h \\\n  -d a=1 \\\n  -d b=2', { method: 'POST', url: 'http://h', headers: [['Content-Type', 'application/x-www-form-urlencoded']], body: 'a=1&b=2' }],
  ["curl http://h --json '{\"a\": 1}'", { method: 'POST', url: 'http://h', headers: [['Content-Type', 'application/json']], body: '{"a": 1}' }],
  ['curl -sS -o /dev/null -u a:b -I http://h', { method: 'HEAD', url: 'http://h', headers: [['Authorization', 'Basic YTpi']], body: '' }],
  ["curl --compressed -b 's=1' -A me http://h", { method: 'GET', url: 'http://h', headers: [['Cookie', 's=1'], ['User-Agent', 'me']], body: '' }],
  ['', { method: 'GET', url: '', headers: [], body: '' }],
])('%s', (text, expected) => {
  expect(parseCall(text)).toEqual(expected)
})

test('a call that is written as curl is read as the same', () => {
  const call = { method: 'POST', url: "http://h/it's", headers: [['A', "b'c"] as [string, string], ['Content-Type', 'text/plain'] as [string, string]], body: 'x\ny' }
  expect(parseCall(asCurl(call))).toEqual(call)
})
