// What developers find in the catalogue and on the page of an API: their own APIs, how a version does, and a key to try a call
// with.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, portalTest, specification, subscribed } from './shop'
import { expect, findings } from './weir'

portalTest('the catalogue shows what my applications are subscribed to', async ({ page, shop }) => {
  await shop.api('stock', specification('Stock'))
  await page.goto(`${shop.portal}/apis`)
  await expect(page.getByRole('link', { name: 'Stock', exact: true })).toBeVisible()
  await expect(page.getByLabel('Mine only')).toHaveCount(0)
  await join(page, shop)
  await page.goto(`${shop.portal}/apis`)
  await page.getByLabel('Mine only').check()
  await expect(page.getByText('None of those that your applications are subscribed to.')).toBeVisible()
  await subscribed(page, shop)
  await page.reload()
  await expect(page.getByLabel('Mine only')).toBeChecked()
  await expect(page.getByRole('link', { name: 'Shop', exact: true })).toBeVisible()
  await expect(page.getByRole('link', { name: 'Stock', exact: true })).toHaveCount(0)
  expect(await findings(page)).toEqual([])
  await page.getByLabel('Mine only').uncheck()
  await expect(page.getByRole('link', { name: 'Stock', exact: true })).toBeVisible()
  // The address is kept, as every filter's is; without a login it asks for one.
  await page.context().clearCookies()
  await page.goto(`${shop.portal}/apis?mine=true`)
  await expect(page.getByRole('heading', { level: 1, name: 'Sign in first' })).toBeVisible()
})

portalTest('on a phone, an operation is in the first screen, and the others are one press away', async ({ page, shop }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto(`${shop.portal}/apis/shop/1.0.0/operations/addOrder`)
  await expect(page.getByRole('heading', { name: 'Adds an order' })).toBeInViewport({ ratio: 1 })
  const other = page.getByRole('navigation', { name: 'Operations' }).getByRole('link', { name: 'Lists orders' })
  await expect(other).toBeHidden()
  await page.getByRole('button', { name: 'Operations' }).click()
  await other.click()
  await expect(page.getByRole('heading', { name: 'Lists orders' })).toBeInViewport({ ratio: 1 })
  await expect(other).toBeHidden()
  expect(await findings(page)).toEqual([])
})

portalTest('the overview of a version tells how it does', async ({ page, shop }) => {
  portalTest.setTimeout(180_000)
  let isBroken = false
  const server = createServer((_, response) => {
    response.statusCode = isBroken ? 500 : 200
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const backend = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await shop.publish('shop', backend)
  await shop.plan('shop', 'open', { display_name: 'Open', state: 'published', security: 'keyless' })
  const place = page.getByRole('region', { name: 'Where to call' })
  const overview = `${shop.portal}/apis/shop/1.0.0`
  await page.goto(overview)
  await expect(place).toContainText('no calls lately')
  const call = () => fetch(`${shop.weir.proxy}/shop/orders`)
  await expect.poll(async () => (await call()).status).toBe(200)
  for (let count = 0; count < 9; count += 1) await call()
  isBroken = true
  for (let count = 0; count < 40; count += 1) await call()
  // An answer is good for a minute: this one was asked for before the calls.
  await expect(async () => {
    await page.goto(overview)
    await expect(place).toContainText('is down', { timeout: 2_000 })
  }).toPass({ timeout: 120_000 })
  await expect(place).toContainText(/\d+ % of calls answered in 30 days/)
  await expect(place.getByRole('img', { name: /The last 30 days: calls on \d, trouble on \d/ })).toBeVisible()
  expect(await findings(page)).toEqual([])
  server.close()
})

portalTest('a trial key is one click away where a call is tried', async ({ page, shop }) => {
  await join(page, shop)
  const path = `${shop.portal}/apis/shop/1.0.0/operations/listOrders`
  await page.goto(path)
  const tried = page.getByRole('region', { name: 'Try it' })
  await expect(tried.getByRole('link', { name: 'Get access' })).toHaveAttribute('href', '/apis/shop/1.0.0/plans')
  const { app } = await subscribed(page, shop)
  await page.reload()
  await expect(tried).toContainText('For 15 minutes, of Till.')
  expect(await findings(page)).toEqual([])
  await tried.getByRole('button', { name: 'Use a trial key' }).click()
  await expect(tried).toContainText('Good until')
  await expect(tried.getByLabel('API key')).toHaveValue(/^[0-9a-f]{64}$/)
  await expect(async () => {
    await tried.getByRole('button', { name: 'Send' }).click()
    await expect(tried.getByText('200', { exact: true })).toBeVisible({ timeout: 2_000 })
  }).toPass({ timeout: 30_000 })
  await page.goto(`${shop.portal}/apps/${app}`)
  const keys = page.getByRole('group', { name: 'Keys' })
  await expect(keys.getByRole('row').filter({ hasText: 'trial' })).toContainText('good until')
  await expect(keys.getByRole('button', { name: /^Rotate/ })).toHaveCount(1)
  expect(await findings(page)).toEqual([])
})
