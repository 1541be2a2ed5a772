// Applications in a browser: quota left as the limiter counts, the bell, and webhooks that are signed, tried again and logged.
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, portalTest, post, subscribed } from './shop'
import { expect, findings } from './weir'

portalTest('33: what is left of a quota is what the gateway tells in its headers', async ({ page, shop }) => {
  await join(page, shop)
  const { app, key } = await subscribed(page, shop)
  const call = () => fetch(`${shop.weir.proxy}/shop/orders`, { headers: { 'x-api-key': key } })
  await expect.poll(async () => (await call()).status).toBe(200)
  const second = await call()
  const left = Number(second.headers.get('ratelimit-remaining'))
  expect(left).toBeGreaterThan(0)
  // At once: analytics have not heard of these calls yet.
  const usage = (await (await page.request.get(`${shop.portal}/portal/v1/apps/${app}/usage`)).json()) as { quotas: { left: number; used: number; is_exact: boolean; resets: number }[] }
  expect(usage.quotas).toMatchObject([{ left, used: 5 - left, is_exact: true }])
  const reset = Number(second.headers.get('ratelimit-reset'))
  expect(Math.abs((usage.quotas[0]?.resets ?? 0) - (Date.now() / 1_000 + reset))).toBeLessThan(30)
  for (let count = 0; count < 8; count += 1) await call()
  await page.goto(`${shop.portal}/apps/${app}/usage`)
  await expect(page.getByRole('region', { name: 'Quota' })).toContainText('0 of 5 left')
  await expect(page.getByRole('region', { name: 'Quota' })).toContainText('The number is that of the limiter.')
})

portalTest('settings that somebody else has changed meanwhile are not overwritten: both are told and put together', async ({ page, shop }) => {
  await join(page, shop)
  const { name } = await post<{ name: string }>(page, shop, '/apps', { title: 'Till', description: 'Old' })
  await page.goto(`${shop.portal}/apps/${name}/settings`)
  const form = page.getByRole('form', { name: 'Application' })
  await form.getByLabel('Title').fill('Desk')
  const path = `${shop.portal}/portal/v1/apps/${name}`
  await page.request.put(path, { data: { title: 'Shop', description: 'New' }, headers: { origin: shop.portal } })
  await form.getByRole('button', { name: 'Save' }).click()
  await expect(form.getByRole('alert')).toContainText('title, which is “Shop” now')
  await expect(form.getByLabel('What it does')).toHaveValue('New')
  await form.getByRole('button', { name: 'Save' }).click()
  await expect(form.getByRole('status')).toHaveText('Saved.')
  await expect(form.getByRole('alert')).toHaveCount(0)
  expect((await (await page.request.get(path)).json()) as unknown).toMatchObject({ app: { title: 'Desk', description: 'New' } })
})

portalTest('the bell tells what has happened to an application', async ({ page, shop }) => {
  await join(page, shop)
  const { app, id } = await subscribed(page, shop)
  await shop.good('POST', `/api/v1/subscriptions/${id}/state`, { state: 'paused', reason: 'The invoice is open.' })
  await expect(async () => {
    await page.goto(`${shop.portal}/apps`)
    await expect(page.getByRole('link', { name: /Notifications: \d+ new/ })).toBeVisible({ timeout: 2_000 })
    await page.getByRole('link', { name: /Notifications: \d+ new/ }).click()
    await expect(page.getByRole('list', { name: 'Notifications' })).toContainText('Subscription to shop 1.0.0 paused', { timeout: 2_000 })
  }).toPass({ timeout: 60_000 })
  const list = page.getByRole('list', { name: 'Notifications' })
  await expect(list).toContainText('The invoice is open.')
  await expect(list).toContainText('A key was made')
  expect(await findings(page)).toEqual([])
  await expect(page.getByRole('link', { name: 'Notifications', exact: true })).toBeVisible()
  await list.getByRole('link', { name: 'Subscription to shop 1.0.0 paused' }).click()
  await expect(page).toHaveURL(`${shop.portal}/apps/${app}`)
})

interface Got {
  id: string
  time: string
  signature: string
  body: string
}

/** A server that takes webhooks, and refuses them while it is told to. */
async function receiver() {
  const got: Got[] = []
  const state = { isDown: false, calls: 0 }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (data: Buffer) => (body += data.toString()))
    request.on('end', () => {
      state.calls += 1
      const header = (name: string) => String(request.headers[name] ?? '')
      if (!state.isDown) got.push({ id: header('webhook-id'), time: header('webhook-timestamp'), signature: header('webhook-signature'), body })
      response.statusCode = state.isDown ? 500 : 204
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook`, got, state, close: () => server.close() }
}

portalTest('37: webhooks of an application are signed, tried again, and logged', async ({ page, shop }) => {
  const taken = await receiver()
  await join(page, shop)
  const { app, id } = await subscribed(page, shop)
  await page.goto(`${shop.portal}/apps/${app}/settings`)
  const hooks = page.getByRole('region', { name: 'Webhooks' })
  await hooks.getByLabel('URL').fill(taken.url)
  await hooks.getByRole('button', { name: 'Add the webhook' }).click()
  const dialog = page.getByRole('dialog', { name: 'The secret of the webhook' })
  const secret = await dialog.getByLabel('Secret').innerText()
  expect(secret).toMatch(/^whsec_/)
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  await page.reload()
  await expect(hooks.getByText(taken.url)).toBeVisible()
  await expect(page.locator('body')).not.toContainText(secret)
  taken.state.isDown = true
  await hooks.getByRole('button', { name: 'Send a test' }).click()
  await expect.poll(() => taken.state.calls, { timeout: 60_000 }).toBeGreaterThan(0)
  const log = hooks.getByRole('list', { name: 'Deliveries' })
  await expect(async () => {
    await hooks.getByRole('button', { name: 'Read again' }).click()
    await expect(log).toContainText('the receiver answered 500', { timeout: 1_500 })
  }).toPass({ timeout: 60_000 })
  expect(await findings(page)).toEqual([])
  taken.state.isDown = false
  await log.getByRole('button', { name: 'Try again' }).click()
  await expect.poll(() => taken.got.map((it) => (JSON.parse(it.body) as { type: string }).type), { timeout: 60_000 }).toContain('webhook.test')
  await shop.good('POST', `/api/v1/subscriptions/${id}/state`, { state: 'paused', reason: 'Too loud.' })
  await expect.poll(() => taken.got.map((it) => (JSON.parse(it.body) as { type: string }).type), { timeout: 60_000 }).toContain('subscription.paused')
  for (const it of taken.got) {
    const expected = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64')).update(`${it.id}.${it.time}.${it.body}`).digest('base64')
    expect(it.signature).toBe(`v1,${expected}`)
  }
  const paused = taken.got.find((it) => it.body.includes('subscription.paused'))
  expect(JSON.parse(paused?.body ?? '{}')).toMatchObject({ by: 'provider', data: { note: 'Too loud.', about: { application: app } } })
  taken.close()
})

portalTest('an application is renamed, given to a team, and removed', async ({ page, shop }) => {
  await join(page, shop)
  await post(page, shop, '/teams', { name: 'Retail' })
  const app = await post<{ name: string }>(page, shop, '/apps', { title: 'Till' })
  await page.goto(`${shop.portal}/apps/${app.name}/settings`)
  await page.getByLabel('Title').fill('Cash desk')
  await page.getByLabel('Belongs to').selectOption({ label: 'Team Retail' })
  await page.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Cash desk' })).toBeVisible()
  await expect(page.getByText('Team Retail').first()).toBeVisible()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByRole('dialog', { name: 'Remove Cash desk?' }).getByRole('button', { name: 'Remove it' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
  await expect(page.getByText('Cash desk')).toHaveCount(0)
})
