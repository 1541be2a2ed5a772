// From explanations to tests of APIs: paths behind base paths, calls without keys, expectations and names.
import { describe, expect, test } from 'vitest'
import type { Publication } from '../src/api/apis'
import type { components } from '../generated/api'
import { expectedOf, inWords, nameOf, pathBehind, requestOf } from '../src/explain/keep'

type Explained = components['schemas']['ExplainResponse']

const publication = { runtime: { base_path: '/v1', hosts: ['api.example.com', 'b.example.com'], backends: {} } } as unknown as Publication

function explained(more: Partial<Explained>): Explained {
  return { call: '', client: '127.0.0.1', route: null, answer: null, others: [], plugins: [], response_order: [], consumer: null, end: { kind: 'forwarded' }, revision: 1, plans: [], skipped: [], ...more } as Explained
}

describe('kept calls', () => {
  test.each([
    ['http://a/v1/pets?x=1#y', '/v1', '/pets?x=1'],
    ['http://a/v1', '/v1/', '/'],
    ['http://a/v1?x', '/v1', '/?x'],
    ['http://a/v10/pets', '/v1', '/v10/pets'],
    ['http://a', '', '/'],
    ['/pets', '', '/pets'],
  ])('%s behind %s', (url, base, path) => expect(pathBehind(url, base)).toBe(path))

  test('have no keys, and say who calls', () => {
    const asked = { method: 'POST', url: 'http://b.example.com/v1/pets', headers: [['X-API-Key', 'k'], ['Accept', 'a/b'], ['authorization', 'x']] as [string, string][], body: 'x=1' }
    const good = explained({ plans: [{ plan: 'gold', verdict: 'good', reason: '', application: 'shop' }] })
    expect(requestOf(asked, good, publication, { client: '', consumer: 'c' })).toEqual({ method: 'POST', path: '/pets', host: 'b.example.com', headers: { Accept: 'a/b' }, body: 'x=1', application: 'shop' })
    expect(requestOf({ ...asked, method: 'GET', headers: [], body: '' }, explained({}), undefined, { client: '10.0.0.1', consumer: 'c' })).toEqual({ path: '/v1/pets', client: '10.0.0.1', consumer: 'c' })
  })

  test('expect what came of them', () => {
    const step = { plugin: { name: 'key-auth', id: null, when: null, is_shared: false, at: null }, response_only: false, exceptions: [], exceptions_not_shown: 0, verdict: { verdict: 'refuses' } } as Explained['plugins'][number]
    const refused = explained({ operation: 'listPets', plugins: [step], end: { kind: 'answered', status: 401, step: 1 } })
    expect(expectedOf(refused)).toEqual({ operation: 'listPets', consumer: '', end: 'answered', status: 401, plugin: 'key-auth' })
    expect(nameOf({ path: '/pets' }, expectedOf(refused))).toBe('list-pets-401')
    const route = { name: 'r', dialect: 'native', at: null, by: '', to: '', service: 's', url: 'https://pets.internal/x', upstream: null } as unknown as Explained['route']
    const forwarded = explained({ route, plans: [{ plan: 'gold', verdict: 'good', reason: '', application: 'shop' }] })
    expect(expectedOf(forwarded)).toEqual({ operation: '', application: 'shop', end: 'forwarded', target: 'pets.internal:443' })
    expect(inWords(expectedOf(forwarded))).toEqual(['no operation of this API takes it', 'it is taken for the application shop', 'it is forwarded', 'it may go to pets.internal:443'])
    expect(nameOf({ method: 'DELETE', path: '/pets/{id}?x' }, { end: 'forwarded' })).toBe('delete-pets-id-forwarded')
  })
})
