// The calls of an application in the portal: their numbers, and why each refused one was refused. They are compared with
// what the caller has seen.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { duration } from '../src/ui/time'
import { join, portalTest, subscribed } from './shop'
import { expect, findings } from './weir'

const CALLS = 100
const LIMIT = 90
const SLOW_CALLS = 10
const SLOW_MS = 200
/** What percentiles of the analytics may be off by. */
const SKETCH = 0.031

/** A backend that answers at once, and after a while where the path says so. */
async function backend() {
  const server = createServer((request, response) => {
    setTimeout(() => response.end('{"orders":[]}'), request.url?.includes('slow') === true ? SLOW_MS : 0)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => new Promise<void>((resolve) => (server.closeAllConnections(), server.close(() => resolve()))) }
}

portalTest('33: a hundred calls, ten of them refused, are counted as the caller saw them', async ({ page, shop }) => {
  portalTest.setTimeout(180_000)
  const behind = await backend()
  await shop.publish('shop', behind.url)
  await shop.plan('shop', 'wide', { display_name: 'Wide', state: 'published', limits: [{ count: LIMIT, per: 'day' }] })
  await join(page, shop)
  const { app, key } = await subscribed(page, shop, 'wide')
  const call = async (path: string, method = 'GET') => {
    const begin = performance.now()
    const answer = await fetch(`${shop.weir.proxy}/shop${path}`, { method, headers: { 'x-api-key': key } })
    await answer.text()
    return { status: answer.status, left: answer.headers.get('ratelimit-remaining'), ms: performance.now() - begin }
  }
  // The first that is let in is the first of the hundred: those before belong to no application.
  await expect.poll(async () => (await call('/orders')).status).toBe(200)
  const seen: Awaited<ReturnType<typeof call>>[] = []
  for (let count = 1; count < CALLS; count += 1) {
    seen.push(await (count <= SLOW_CALLS ? call('/orders/slow/refunds', 'POST') : call('/orders')))
  }
  expect(seen.filter((it) => it.status === 429)).toHaveLength(CALLS - LIMIT)
  expect(seen.filter((it) => it.status === 200)).toHaveLength(LIMIT - 1)

  await page.goto(`${shop.portal}/apps/${app}/usage`)
  const figure = (name: string) => page.locator('.figure', { hasText: name }).locator('dd')
  await expect(async () => {
    await page.reload()
    await expect(figure('Calls')).toHaveText(String(CALLS), { timeout: 1_500 })
  }).toPass({ timeout: 60_000 })
  await expect(figure('Refused')).toHaveText(String(CALLS - LIMIT))
  const usage = (await (await page.request.get(`${shop.portal}/portal/v1/apps/${app}/usage`)).json()) as { p50_us: number; p95_us: number }
  // One call of nine was slow: the 95th percentile is one of these, the middle is none.
  const slowest = Math.max(...seen.map((it) => it.ms))
  expect(usage.p95_us / 1_000).toBeGreaterThanOrEqual(SLOW_MS * (1 - SKETCH))
  expect(usage.p95_us / 1_000).toBeLessThanOrEqual(slowest * (1 + SKETCH))
  expect(usage.p50_us).toBeLessThan(usage.p95_us)
  await expect(figure('p95')).toHaveText(duration(usage.p95_us / 1_000))
  const left = seen.filter((it) => it.status === 200).at(-1)?.left
  expect(left).toBe('0')
  await expect(page.getByRole('region', { name: 'Quota' })).toContainText(`${left} of ${LIMIT} left`)
  await behind.close()
})

portalTest('34: a refused call is listed with its time, its operation, the reason in words, and the id that the caller was told', async ({ page, shop }) => {
  portalTest.setTimeout(180_000)
  await join(page, shop)
  const { app, id, key } = await subscribed(page, shop)
  const call = (path: string, method = 'GET') => fetch(`${shop.weir.proxy}/shop${path}`, { method, headers: { 'x-api-key': key } })
  const begin = Date.now()
  const refused: { id: string; operation: string; status: number; reason: string }[] = []
  const refuse = async (method: string, path: string, status: number, reason: string) => {
    const answer = await call(path, method)
    expect(answer.status).toBe(status)
    refused.push({ id: ((await answer.json()) as { request_id: string }).request_id, operation: `${method} /shop${path}`, status, reason })
  }
  await expect.poll(async () => (await call('/orders')).status).toBe(200)
  await expect.poll(async () => (await call('/orders')).status).toBe(429)
  await refuse('POST', '/orders/7/refunds', 429, 'The limit of the plan is used up for now.')
  await refuse('GET', '/tree', 429, 'The limit of the plan is used up for now.')
  await shop.good('POST', `/api/v1/subscriptions/${id}/state`, { state: 'paused', reason: 'The invoice is open.' })
  await expect.poll(async () => (await call('/orders')).status).toBe(403)
  await refuse('GET', '/tree', 403, 'The provider has paused the subscription.')

  await page.goto(`${shop.portal}/apps/${app}/calls`)
  await page.getByRole('button', { name: 'Refused' }).click()
  for (const it of refused) {
    expect(it.id).toMatch(/^[0-9a-f]{32}$/)
    const row = page.getByRole('row').filter({ hasText: it.id })
    await expect(async () => {
      await page.getByRole('button', { name: 'Read again' }).click()
      await expect(row).toBeVisible({ timeout: 1_500 })
    }).toPass({ timeout: 60_000 })
    for (const part of [it.operation, String(it.status), it.reason]) await expect(row).toContainText(part)
    const time = Date.parse((await row.locator('time').getAttribute('datetime')) ?? '')
    expect(time).toBeGreaterThanOrEqual(begin - 1_000)
    expect(time).toBeLessThanOrEqual(Date.now() + 1_000)
    // The provider finds the very call by this id.
    const found = (await shop.good('GET', `/api/v1/analytics/calls?request_id=${it.id}`)) as { calls: { request_id: string; status: number; path: string }[] }
    expect(found.calls).toMatchObject([{ request_id: it.id, status: it.status, path: it.operation.split(' ')[1] }])
  }
  // Calls that were answered have an id, too.
  await page.getByRole('button', { name: 'All' }).click()
  const rows = page.getByRole('row').filter({ has: page.locator('td') })
  expect(await rows.count()).toBeGreaterThan(refused.length)
  for (const row of await rows.all()) await expect(row.locator('td').last()).toHaveText(/^[\w-]{8,}$/)
  expect(await findings(page)).toEqual([])
})
