// What happens is shown without a reload; a server that is away, fails or is slow is named, and no edit is lost.
import { expect, open, test } from './weir'

test('the change of another user is shown at once, with its author', async ({ page, filled }) => {
  await open(page, filled, '/routes')
  const row = page.getByRole('table', { name: 'Routes' }).getByRole('row', { name: /api\.example\.com/ })
  await expect(row).toBeVisible()
  const stored = (await filled.read('routes', 'orders')) as object
  await filled.put('routes', 'orders', { ...stored, hosts: ['new.example.com'] })
  const changed = page.getByRole('table', { name: 'Routes' }).getByRole('row', { name: /new\.example\.com/ })
  await expect(changed).toBeVisible()
  await expect(changed).toContainText('changed by')
})

test('rows that a search brings are not marked as changed', async ({ page, filled }) => {
  await open(page, filled, '/routes')
  const search = page.getByRole('searchbox', { name: 'Search Routes' })
  await search.fill('hello')
  await expect(page.getByRole('row')).toHaveCount(2)
  await search.fill('orders')
  await expect(page.getByRole('row', { name: /api\.example\.com/ })).toBeVisible()
  await expect(page.locator('[data-changed=true]')).toHaveCount(0)
  await filled.put('routes', 'orders', { ...((await filled.read('routes', 'orders')) as object), hosts: ['new.example.com'] })
  await expect(page.locator('[data-changed=true]')).toHaveCount(1)
})

test('without the stream of events, pages ask by themselves', async ({ page, filled }) => {
  await page.route('**/api/v1/events', (route) => route.abort())
  await open(page, filled, '/routes')
  await expect(page.getByRole('row', { name: /api\.example\.com/ })).toBeVisible()
  await filled.put('routes', 'orders', { ...((await filled.read('routes', 'orders')) as object), hosts: ['new.example.com'] })
  await expect(page.getByRole('row', { name: /new\.example\.com/ })).toBeVisible()
})

test('two tabs share one stream of events', async ({ page, filled }) => {
  const streams: string[] = []
  page.context().on('request', (request) => request.url().endsWith('/api/v1/events') && streams.push(request.url()))
  await open(page, filled, '/routes')
  await expect.poll(() => streams.length).toBe(1)
  const second = await page.context().newPage()
  await open(second, filled, '/routes')
  await expect(second.getByRole('row', { name: /api\.example\.com/ })).toBeVisible()
  await filled.put('routes', 'orders', { ...((await filled.read('routes', 'orders')) as object), hosts: ['new.example.com'] })
  for (const it of [page, second]) await expect(it.getByRole('row', { name: /new\.example\.com/ })).toContainText('changed by')
  expect(streams.length).toBe(1)
  // The tab that held it goes; the other takes over.
  await page.close()
  await expect.poll(() => streams.length).toBe(2)
})

test('an answer of 500 is named with its call and request, and keeps the edit', async ({ page, filled }) => {
  await open(page, filled, '/routes/orders')
  const path = page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox')
  await path.fill('/kept')
  const broken = (url: URL) => url.pathname === '/api/v1/history' || url.pathname.startsWith('/api/v1/resources/')
  await page.route(broken, (route) => route.fulfill({ status: 500, contentType: 'application/problem+json', headers: { 'x-request-id': 'abc123' }, body: '{"title":"Internal Server Error","detail":"the disk is full"}' }))
  await filled.put('consumers', 'bob', { name: 'bob' })
  const banner = page.getByRole('status').filter({ hasText: 'Weir answers 500' })
  await expect(banner).toContainText('GET /api/v1/history')
  await expect(banner).toContainText('abc123')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(page.getByRole('alert')).toContainText('the disk is full')
  await page.unroute(broken)
  await expect(banner).toHaveCount(0)
  await expect(path).toHaveValue('/kept')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('orders is saved')).toBeVisible()
})

test('a server that is slow is named as slow, and goes on', async ({ page, filled }) => {
  await open(page, filled, '/routes/orders')
  const path = page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox')
  await path.fill('/kept')
  await expect(page.getByText('Weir accepts', { exact: false }).or(page.getByRole('button', { name: 'Review and save' }))).toBeVisible()
  filled.freeze()
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(page.getByRole('status').filter({ hasText: 'Weir is slow' })).toContainText('/api/v1/resources/routes/orders')
  filled.thaw()
  await expect(page.getByRole('status').filter({ hasText: 'Weir is slow' })).toHaveCount(0)
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('orders is saved')).toBeVisible()
})

test('deliveries: nothing was sent yet', async ({ page, weir }) => {
  await open(page, weir, '/deliveries')
  await expect(page.getByRole('heading', { name: 'Nothing was sent yet' })).toBeVisible()
})
