// The pictures of the developers' tour: `PICTURES=1 npx playwright test portal-pictures` writes them to docs/pictures.
import { type Page } from '@playwright/test'
import { expect } from './weir'
import { type Shop, linkFor, portalTest } from './shop'

portalTest.skip(process.env.PICTURES !== '1', 'written on demand')

async function picture(page: Page, name: string, colorScheme: 'light' | 'dark') {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await page.waitForLoadState('networkidle')
  await page.screenshot({ path: `../docs/pictures/portal-${name}.jpg`, type: 'jpeg', quality: 78 })
}

/** Signs ann up and in. */
async function join(page: Page, shop: Shop) {
  await page.goto(`${shop.portal}/sign-up`)
  await page.getByLabel('Mail address').fill('ann@example.com')
  await page.getByLabel('Name', { exact: true }).fill('Ann')
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Make an account' }).click()
  await page.goto(await linkFor(shop, 'ann@example.com'))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await expect(page.getByRole('status')).toContainText('You can sign in now.')
  await page.goto(`${shop.portal}/login`)
  await page.getByLabel('Mail address').fill('ann@example.com')
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
}

portalTest('pictures of the portal', async ({ page, shop }) => {
  portalTest.setTimeout(300_000)
  await shop.good('PUT', '/api/v1/apis/shop', { display_name: 'Shop', description: 'Orders, refunds and **pictures** of a shop.', category: 'Commerce' })
  await page.setViewportSize({ width: 1200, height: 750 })
  await page.goto(shop.portal)
  await picture(page, 'home', 'light')
  await page.goto(`${shop.portal}/apis/shop/1.0.0/operations/addOrder`)
  await picture(page, 'reference', 'dark')
  await join(page, shop)
  await page.goto(`${shop.portal}/apis/shop/1.0.0/plans`)
  await picture(page, 'plans', 'light')
  await page.getByRole('link', { name: 'Subscribe to Gold' }).click()
  await page.getByLabel('Title').fill('Till')
  await page.getByRole('button', { name: 'Make it' }).click()
  await page.getByLabel('I agree to these conditions').check()
  await page.getByRole('button', { name: 'Subscribe' }).click()
  const dialog = page.getByRole('dialog', { name: 'Your key' })
  const key = await dialog.getByLabel('Key').innerText()
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  const call = () => fetch(`${shop.weir.proxy}/shop/orders`, { headers: { 'x-api-key': key } })
  await expect.poll(async () => (await call()).status).toBe(200)
  for (let count = 0; count < 8; count += 1) await call()
  await page.getByRole('link', { name: 'To the application' }).click()
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await page.getByRole('link', { name: 'Usage' }).click()
  await expect(async () => {
    await page.reload()
    await expect(page.locator('.figure', { hasText: 'Calls' }).locator('dd')).toHaveText('9', { timeout: 1_500 })
  }).toPass({ timeout: 60_000 })
  await picture(page, 'usage', 'dark')
  await page.getByRole('link', { name: 'Calls', exact: true }).click()
  await expect(async () => {
    await page.getByRole('button', { name: 'Read again' }).click()
    await expect(page.getByRole('row', { name: /The limit of the plan is used up/ }).first()).toBeVisible({ timeout: 1_500 })
  }).toPass({ timeout: 60_000 })
  await picture(page, 'calls', 'light')
})
