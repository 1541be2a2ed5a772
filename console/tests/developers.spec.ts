// Developers in the console: who waits is approved or refused, and notices it in the portal.
import { expect, findings, open } from './weir'
import { type Shop, linkFor, portalTest } from './shop'
import type { Page } from '@playwright/test'

const LONG = { timeout: 30_000 }

async function signUp(page: Page, shop: Shop, name: string) {
  await page.goto(`${shop.portal}/sign-up`)
  await page.getByLabel('Mail address').fill(`${name}@example.com`)
  await page.getByLabel('Name', { exact: true }).fill(name)
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Make an account' }).click()
  await expect(page.getByRole('status')).toContainText('a mail is on its way', LONG)
  await page.goto(await linkFor(shop, `${name}@example.com`))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await expect(page.getByRole('status')).toContainText('as soon as somebody has approved', LONG)
}

async function tryToSignIn(page: Page, shop: Shop, name: string) {
  await page.goto(`${shop.portal}/login`)
  await page.getByLabel('Mail address').fill(`${name}@example.com`)
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Sign in' }).click()
}

portalTest('accounts that wait are approved and refused in the console', async ({ page, shop }) => {
  portalTest.setTimeout(180_000)
  await shop.good('PUT', '/api/v1/portals/main', { display_name: 'Shop developers', url: shop.portal, sign_up: { approval: true, notify: ['ops@example.com'] } })
  for (const name of ['ann', 'eve']) await signUp(page, shop, name)
  await tryToSignIn(page, shop, 'ann')
  await expect(page.getByRole('alert')).toContainText('waiting for approval', LONG)
  await expect.poll(() => shop.mail?.mails.filter((it) => it.to === 'ops@example.com').length, LONG).toBe(2)

  await open(page, shop.weir, '/developers')
  const waiting = page.getByRole('region', { name: 'Waiting' })
  await expect(waiting.getByRole('heading', { name: '2 accounts wait for approval' })).toBeVisible(LONG)
  expect(await findings(page)).toEqual([])
  await waiting.getByRole('button', { name: 'Approve ann' }).click()
  await page.getByRole('dialog', { name: 'Approve ann?' }).getByRole('button', { name: 'Approve', exact: true }).click()
  await expect(waiting.getByRole('button', { name: 'Approve ann' })).toHaveCount(0, LONG)
  await waiting.getByRole('button', { name: 'Refuse eve' }).click()
  const refusal = page.getByRole('dialog', { name: 'Refuse eve?' })
  await refusal.getByLabel('Reason').fill('no contract')
  await refusal.getByRole('button', { name: 'Refuse', exact: true }).click()
  await expect(waiting).toHaveCount(0, LONG)
  await expect(page.getByRole('row', { name: /ann@example.com/ })).toContainText('active', LONG)
  await expect(page.getByRole('row', { name: /eve@example.com/ })).toContainText('refused', LONG)

  await tryToSignIn(page, shop, 'eve')
  await expect(page.getByRole('alert')).toContainText('no contract', LONG)
  await tryToSignIn(page, shop, 'ann')
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible(LONG)
  await expect.poll(() => shop.mail?.mails.filter((it) => it.to === 'ann@example.com' && it.text.includes('is approved')).length, LONG).toBe(1)
})

portalTest('an administrator makes, changes and removes a developer', async ({ page, shop }) => {
  portalTest.setTimeout(180_000)
  await shop.good('PUT', '/api/v1/portals/main', { display_name: 'Shop developers', url: shop.portal, sign_up: { mode: 'closed' } })
  await open(page, shop.weir, '/developers')
  await page.getByRole('button', { name: 'New developer' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New developer' })
  await dialog.getByLabel('Mail address').fill('bob@example.com')
  await dialog.getByLabel('Name', { exact: true }).fill('bob')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await expect(page.getByRole('row', { name: /bob@example.com/ })).toContainText('not confirmed', LONG)
  await page.goto(await linkFor(shop, 'bob@example.com', 'reset'))
  await page.getByRole('textbox', { name: /New password/ }).fill('correct horse battery')
  await page.getByRole('button', { name: 'Set the password' }).click()
  await expect(page.getByRole('status')).toContainText('You can sign in now', LONG)
  await tryToSignIn(page, shop, 'bob')
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible(LONG)

  await open(page, shop.weir, '/developers')
  await page.getByRole('button', { name: 'bob, change' }).click()
  const edit = page.getByRole('dialog', { name: 'bob' })
  await edit.getByLabel('Groups').fill('partners, beta')
  expect(await findings(page)).toEqual([])
  await edit.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByRole('row', { name: /bob@example.com/ })).toContainText('beta, partners', LONG)
  await page.getByRole('button', { name: 'bob, change' }).click()
  await edit.getByRole('button', { name: 'Remove this developer' }).click()
  await page.getByRole('dialog', { name: 'Remove bob?' }).getByRole('button', { name: 'Remove', exact: true }).click()
  await expect(page.getByRole('heading', { name: 'No developers yet' })).toBeVisible(LONG)
  await page.goto(`${shop.portal}/apps`)
  await expect(page.getByRole('heading', { level: 1, name: 'Sign in' })).toBeVisible(LONG)
})
