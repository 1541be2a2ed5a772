// Whole tasks of developers in the portal by keyboard alone: no test here presses a mouse button.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from '@playwright/test'
import { choose, press, select, tick, typeInto } from './keys'
import { type Shop, join, linkFor, portalTest, subscribed } from './shop'
import { PASSWORD, expect, tabTo } from './weir'

/** From no account to one that is signed in. */
async function joinByKeyboard(page: Page, shop: Shop, name: string) {
  await press(page, page.getByRole('link', { name: 'Sign in' }).first())
  await press(page, page.getByRole('link', { name: 'Make an account' }))
  await typeInto(page, page.getByLabel('Mail address'), `${name}@example.com`)
  await typeInto(page, page.getByLabel('Name', { exact: true }), name)
  await typeInto(page, page.getByLabel('Password'), PASSWORD)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('status')).toContainText('a mail is on its way')
  await page.goto(await linkFor(shop, `${name}@example.com`))
  await press(page, page.getByRole('button', { name: 'Confirm' }))
  await expect(page.getByRole('status').first()).toContainText('You can sign in now.')
  await press(page, page.getByRole('main').getByRole('link', { name: 'Sign in' }))
  await typeInto(page, page.getByLabel('Mail address'), `${name}@example.com`)
  await typeInto(page, page.getByLabel('Password'), PASSWORD)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
}

portalTest('53: from a search to a key, a call that is tried, usage and refusals by keyboard alone', async ({ page, shop }) => {
  portalTest.setTimeout(240_000)
  await page.goto(shop.portal)
  await joinByKeyboard(page, shop, 'ann')

  // A search finds what is mistyped, and leads to the operation.
  await typeInto(page, page.getByRole('searchbox').first(), 'refnud', 'Shift+Tab')
  await page.keyboard.press('Enter')
  await press(page, page.getByRole('main').getByRole('link', { name: /refunds/ }))
  await expect(page.getByRole('heading', { name: 'Pays an order back' })).toBeVisible()
  await choose(page, page.getByRole('group', { name: 'Language' }), 'Python')
  await expect(page.getByLabel('Call in Python')).toContainText('refunds')

  await press(page, page.getByRole('navigation', { name: 'API', exact: true }).getByRole('link', { name: 'Plans' }), 'Shift+Tab')
  await press(page, page.getByRole('link', { name: 'Subscribe to Gold' }))
  await typeInto(page, page.getByLabel('Title'), 'Till')
  await page.keyboard.press('Enter')
  await tick(page, page.getByLabel('I agree to these conditions'))
  await press(page, page.getByRole('button', { name: 'Subscribe' }))
  const dialog = page.getByRole('dialog', { name: 'Your key' })
  const key = await dialog.getByLabel('Key').innerText()
  await press(page, dialog.getByRole('button', { name: 'I have kept it' }))
  const call = () => fetch(`${shop.weir.proxy}/shop/orders`, { headers: { 'x-api-key': key } })
  await expect.poll(async () => (await call()).status).toBe(200)
  for (let count = 0; count < 8; count += 1) await call()

  await press(page, page.getByRole('link', { name: 'To the application' }))
  await press(page, page.getByRole('link', { name: 'Usage' }))
  await expect(page.getByRole('region', { name: 'Quota' })).toContainText('0 of 5 left')
  await press(page, page.getByRole('link', { name: 'Calls', exact: true }), 'Shift+Tab')
  await choose(page, page.getByRole('group', { name: 'Which calls' }), 'Refused')
  await expect(async () => {
    await press(page, page.getByRole('button', { name: 'Read again' }))
    await expect(page.getByRole('row', { name: /The limit of the plan is used up/ }).first()).toBeVisible({ timeout: 1_500 })
  }).toPass({ timeout: 60_000 })

  await page.goto(`${shop.portal}/apis/shop/1.0.0/operations/addRefund`)
  await typeInto(page, page.getByRole('region', { name: 'Values' }).getByRole('textbox', { name: 'id path required' }), '7')
  const tried = page.getByRole('region', { name: 'Try it' })
  await press(page, tried.getByRole('button', { name: 'Send' }))
  await expect(tried.getByRole('status')).toContainText(/Request [\w-]{8,}/)
})

portalTest('53: a team with an application, an invitation and its end by keyboard alone', async ({ page, shop, browser }) => {
  portalTest.setTimeout(240_000)
  await join(page, shop)
  await press(page, page.getByRole('link', { name: 'Teams' }).first())
  await typeInto(page, page.getByLabel('Name'), 'Retail')
  await page.keyboard.press('Enter')
  await typeInto(page, page.getByLabel('Invite by mail'), 'bob@example.com')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('status').filter({ hasText: 'on its way' })).toBeVisible()
  const invitation = await linkFor(shop, 'bob@example.com', 'invitation')
  const other = await (await browser.newContext()).newPage()
  await other.goto(shop.portal)
  await joinByKeyboard(other, shop, 'bob')
  await other.goto(invitation)
  await press(other, other.getByRole('button', { name: 'Join the team' }))
  await expect(other.getByText('Retail').first()).toBeVisible()
  await press(other, other.getByRole('link', { name: 'Applications' }).first(), 'Shift+Tab')
  await press(other, other.getByRole('button', { name: 'New application' }))
  await typeInto(other, other.getByLabel('Title'), 'Till')
  await select(other, other.getByLabel('Belongs to'), 'Team')
  await press(other, other.getByRole('button', { name: 'Make it' }))
  await press(other, other.getByRole('link', { name: 'Till' }))
  await expect(other.getByText('Team Retail').first()).toBeVisible()
  await press(other, other.getByRole('link', { name: 'Teams' }).first(), 'Shift+Tab')
  await press(other, other.getByRole('button', { name: 'Leave' }))
  await press(other, other.getByRole('dialog', { name: 'Leave Retail?' }).getByRole('button', { name: 'Leave the team' }))
  await expect(other.getByRole('button', { name: 'Leave' })).toHaveCount(0)
  await press(page, page.getByRole('link', { name: 'Applications' }).first(), 'Shift+Tab')
  await expect(page.getByRole('link', { name: 'Till' })).toBeVisible()
})

portalTest('53: a webhook is added and tested, and a key rotated, by keyboard alone', async ({ page, shop }) => {
  portalTest.setTimeout(240_000)
  let calls = 0
  const receiver = createServer((_, response) => {
    calls += 1
    response.statusCode = 204
    response.end()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  await join(page, shop)
  const { app, key } = await subscribed(page, shop)
  await page.goto(`${shop.portal}/apps/${app}`)
  await press(page, page.getByRole('button', { name: 'Rotate' }))
  await press(page, page.getByRole('dialog', { name: /^Rotate/ }).getByRole('button', { name: 'Make the new key' }))
  const dialog = page.getByRole('dialog', { name: 'Your key' })
  expect(await dialog.getByLabel('Key').innerText()).not.toBe(key)
  await press(page, dialog.getByRole('button', { name: 'I have kept it' }))
  // The button that was pressed is gone; the focus is near to where it was.
  await expect(page.getByRole('row').filter({ hasText: 'good until' })).toBeFocused()
  await press(page, page.getByRole('link', { name: 'Settings' }), 'Shift+Tab')
  const hooks = page.getByRole('region', { name: 'Webhooks' })
  await typeInto(page, hooks.getByLabel('URL'), `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`)
  await page.keyboard.press('Enter')
  await press(page, page.getByRole('dialog', { name: 'The secret of the webhook' }).getByRole('button', { name: 'I have kept it' }))
  await tabTo(page, hooks.getByRole('button', { name: 'Send a test' }))
  await page.keyboard.press('Enter')
  await expect.poll(() => calls, { timeout: 60_000 }).toBeGreaterThan(0)
  receiver.close()
})
