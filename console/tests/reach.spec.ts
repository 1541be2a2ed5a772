// What may this consumer call: its routes, and why not the others. And what is done with single targets and gateways.
import { type Weir, expect, open, test, upstream } from './weir'

/** How many commits there are. */
const commits = async (weir: Weir) => (await weir.good<{ items: unknown[] }>('GET', '/api/v1/history?limit=100')).items.length

test('a consumer’s page says which routes it may call, and why not the others', async ({ page, filled }) => {
  await filled.put('routes', 'signed', { name: 'signed', paths: ['/signed'], service: 'hello', plugins: [{ jwt: {} }] })
  await filled.put('routes', 'staff', { name: 'staff', paths: ['/staff'], service: 'hello', plugins: [{ 'key-auth': {} }, { acl: { allow: [{ of: 'consumer-group', values: ['staff'] }] } }] })
  await open(page, filled, '/consumers/alice')
  await page.getByRole('button', { name: 'May call' }).click()
  const card = page.getByRole('region', { name: 'What it may call' })
  const row = (name: string) => card.getByRole('row').filter({ hasText: name })
  await expect(row('orders')).toContainText('may call')
  await expect(row('orders')).toContainText('accepted')
  await expect(row('hello')).toContainText('open to all')
  await expect(row('signed')).toContainText('the consumer has no jwt credential')
  await expect(row('staff')).toContainText('acl (403)')
  await card.getByRole('button', { name: 'May not 2' }).click()
  await expect(row('signed')).toBeVisible()
  await expect(row('orders')).toHaveCount(0)
  // The same consumer in the group.
  await filled.put('consumers', 'alice', { name: 'alice', group: 'staff', credentials: [{ 'key-auth': { key: 'alice-key' } }] })
  await expect(card.getByRole('button', { name: 'May not 1' })).toBeVisible()
  // A route leads to its explanation.
  await card.getByRole('button', { name: /^All/ }).click()
  await row('staff').getByRole('link', { name: 'GET /staff' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Explain')
})

test('a consumer of Kong: the same, on its page', async ({ page, weir }) => {
  await weir.good('PUT', '/api/v1/dialects/kong/services/shop', { url: 'http://127.0.0.1:9' })
  await weir.good('PUT', '/api/v1/dialects/kong/routes/shop', { service: { name: 'shop' }, paths: ['/shop'] })
  await weir.good('POST', '/api/v1/dialects/kong/plugins', { name: 'key-auth', route: { name: 'shop' } })
  const { id } = await weir.good<{ id: string }>('PUT', '/api/v1/dialects/kong/consumers/bob', {})
  const verdict = async () => (await weir.good<{ items: { verdict: string; reason?: string }[] }>('GET', '/api/v1/consumers/bob/routes')).items
  expect(await verdict()).toMatchObject([{ route: 'shop', dialect: 'kong', verdict: 'may-not', reason: 'the consumer has no key-auth credential' }])
  await weir.good('POST', '/api/v1/dialects/kong/consumers/bob/key-auth', { key: 'bobs-key' })
  expect(await verdict()).toMatchObject([{ route: 'shop', verdict: 'may', is_open: false }])
  await open(page, weir, `/view/consumers/${encodeURIComponent(`kong/default/consumers/${id}`)}`)
  await expect(page.getByRole('region', { name: 'What it may call' }).getByRole('row').filter({ hasText: 'shop' })).toContainText('may call')
  expect((await weir.call('GET', '/api/v1/consumers/nobody/routes')).status).toBe(404)
})

test('one target is drained, weighed, set back and taken out, each in one commit with a way back', async ({ page, weir }) => {
  const [one, two] = [await upstream('one'), await upstream('two')]
  const targets = [one, two].map((it) => ({ host: '127.0.0.1', port: Number(new URL(it.url).port) }))
  const address = `127.0.0.1:${targets[0]?.port}`
  await weir.put('upstreams', 'pair', { name: 'pair', targets: [address, targets[1]] })
  await weir.put('services', 'pair', { name: 'pair', upstream: 'pair', routes: [{ name: 'pair', paths: ['/'] }] })
  await open(page, weir, '/upstreams/pair')
  const target = page.getByRole('region', { name: 'Targets' }).getByRole('listitem', { name: address })
  await expect(target).toContainText('weight 100, 50 % of calls')
  const before = await commits(weir)
  await target.getByRole('button', { name: 'Drain' }).click()
  await page.getByRole('dialog', { name: `Drain ${address}?` }).getByRole('button', { name: 'Drain' }).click()
  await expect(target).toContainText('drained')
  expect(await commits(weir)).toBe(before + 1)
  const answers = async () => new Set(await Promise.all(Array.from({ length: 6 }, async () => (await fetch(`${weir.proxy}/`)).text())))
  await expect.poll(async () => [...(await answers())]).toEqual(['two'])
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(target).toContainText('weight 100, 50 % of calls')
  await target.getByRole('button', { name: 'Weight' }).click()
  const weight = page.getByRole('dialog', { name: `Weight of ${address}` })
  await weight.getByRole('spinbutton', { name: 'Weight' }).fill('300')
  await weight.getByRole('button', { name: 'Set the weight' }).click()
  await expect(target).toContainText('weight 300, 75 % of calls')
  await target.getByRole('button', { name: 'Take out' }).click()
  await page.getByRole('dialog', { name: `Take ${address} out?` }).getByRole('button', { name: 'Take out' }).click()
  await expect(target).toHaveCount(0)
  expect(await weir.read('upstreams', 'pair')).toEqual({ name: 'pair', targets: [targets[1]] })
  // The last one is not taken out, and draining it says what comes of it.
  const last = page.getByRole('region', { name: 'Targets' }).getByRole('listitem')
  await expect(last.getByRole('button', { name: 'Take out' })).toHaveAttribute('aria-disabled', 'true')
  await last.getByRole('button', { name: 'Drain' }).click()
  await expect(page.getByRole('dialog')).toContainText('all calls of pair will be answered 503')
  await one.close()
  await two.close()
})

test('gateways tell their processor time, memory, version and how long they run', async ({ page, weir }) => {
  await weir.good('POST', '/api/v1/gateways/edge-1', { state: 'serving', revision: 1, version: '0.1.0', address: '127.0.0.1:9', time: 3_700_000, started: 100_000, cpu_permille: 125, memory_bytes: 64 * 1024 * 1024 })
  await weir.good('POST', '/api/v1/gateways/edge-0', { state: 'serving', revision: 1, version: '0.0.9', address: '127.0.0.1:8' })
  await open(page, weir, '/gateways')
  const row = (name: string) => page.getByRole('table', { name: 'Gateways' }).getByRole('row').filter({ hasText: name })
  await expect(row('edge-1')).toContainText('13 %')
  await expect(row('edge-1')).toContainText('64.0 MiB')
  await expect(row('edge-1')).toContainText('1 h')
  await expect(row('edge-0')).toContainText('not told')
  // The gateway of this process tells its own.
  const own = async () => (await weir.good<{ items: { name: string; memory_bytes: number | null; cpu_permille: number | null; uptime_s: number | null }[] }>('GET', '/api/v1/gateways')).items.find((it) => it.name !== 'edge-1' && it.name !== 'edge-0')
  await expect.poll(async () => (await own())?.memory_bytes ?? 0).toBeGreaterThan(1 << 20)
  expect((await own())?.cpu_permille).not.toBeNull()
  expect((await own())?.uptime_s).not.toBeNull()
})
