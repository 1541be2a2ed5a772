// The session of a developer ends while the portal is open: the portal asks to sign in, without a reload, and goes on at
// the same place.
import type { Page } from '@playwright/test'
import { type Shop, join, portalTest, post } from './shop'
import { PASSWORD, expect } from './weir'

/** Ends the session at the server, as another browser of the developer may do. The cookie stays. */
async function endSession(page: Page, shop: Shop) {
  const path = `${shop.portal}/portal/v1/account/sessions`
  const { items } = (await (await page.request.get(path)).json()) as { items: { id: string; is_current: boolean }[] }
  const own = items.find((it) => it.is_current)
  const ended = await page.request.delete(`${path}/${own?.id}`, { headers: { origin: shop.portal } })
  expect(ended.ok()).toBe(true)
}

/** Loses the cookie, as a browser does that is told to forget. */
const forgetSession = (page: Page) => page.context().clearCookies({ name: 'weir-portal' })

async function signIn(page: Page) {
  const form = page.getByRole('form', { name: 'Sign in' })
  await form.getByLabel('Mail address').fill('ann@example.com')
  await form.getByLabel('Password').fill(PASSWORD)
  await form.getByRole('button', { name: 'Sign in' }).click()
}

/** Marks the document, which a reload would lose. */
const mark = (page: Page) => page.evaluate(() => void (document.documentElement.dataset['kept'] = 'yes'))

for (const [how, end] of [
  ['ends at the server', endSession],
  ['is forgotten by the browser', forgetSession],
] as const) {
  portalTest(`a session that ${how}: the next page asks to sign in, and is shown then, without a reload`, async ({ page, shop }) => {
    await join(page, shop)
    const app = await post<{ name: string }>(page, shop, '/apps', { title: 'Till' })
    await page.goto(`${shop.portal}/apps/${app.name}`)
    await mark(page)
    // What the page still reads would find the session's end before the click does.
    await page.waitForLoadState('networkidle')
    await end(page, shop)
    await page.getByRole('link', { name: 'Teams' }).click()
    await expect(page.getByRole('heading', { level: 1, name: 'Sign in first' })).toBeVisible()
    await expect(page.getByRole('banner').getByRole('link', { name: 'Sign in' })).toBeVisible()
    await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click()
    await signIn(page)
    await expect(page.getByRole('heading', { level: 1, name: 'Teams' })).toBeVisible()
    await expect(page).toHaveURL(`${shop.portal}/teams`)
    await expect(page.getByRole('banner').getByRole('link', { name: 'Ann' })).toBeVisible()
    await expect(page.locator('html')).toHaveAttribute('data-kept', 'yes')
  })
}

portalTest('a session that ends below a tab of an application: its part asks to sign in, and is shown then', async ({ page, shop }) => {
  await join(page, shop)
  const app = await post<{ name: string }>(page, shop, '/apps', { title: 'Till' })
  await page.goto(`${shop.portal}/apps/${app.name}/calls?x=1`)
  await expect(page.getByRole('button', { name: 'Read again' })).toBeVisible()
  await mark(page)
  await endSession(page, shop)
  await page.getByRole('button', { name: 'Read again' }).click()
  await page.getByRole('alert').filter({ hasText: 'Your session has ended' }).getByRole('link', { name: 'Sign in' }).click()
  await signIn(page)
  await expect(page).toHaveURL(`${shop.portal}/apps/${app.name}/calls?x=1`)
  await expect(page.getByRole('button', { name: 'Read again' })).toBeVisible()
  await expect(page.locator('html')).toHaveAttribute('data-kept', 'yes')
})

portalTest('a session that ends while a form is filled in: the sign-in lies above it, and what was typed is sent then', async ({ page, shop }) => {
  await join(page, shop)
  await page.getByRole('button', { name: 'New application' }).click()
  const form = page.getByRole('form', { name: 'New application' })
  await form.getByLabel('Title').fill('Typed before')
  await mark(page)
  await endSession(page, shop)
  await form.getByRole('button', { name: 'Make it' }).click()
  const ended = page.getByRole('dialog', { name: 'Your session has ended' })
  await expect(ended).toContainText('What you typed is still there.')
  // A wrong password says so, and can be tried again.
  await ended.getByLabel('Mail address').fill('ann@example.com')
  await ended.getByLabel('Password').fill('a wrong password')
  await ended.getByRole('button', { name: 'Sign in' }).click()
  await expect(ended.getByRole('alert')).toContainText('password is wrong')
  await signIn(page)
  await expect(ended).toHaveCount(0)
  await expect(form.getByLabel('Title')).toHaveValue('Typed before')
  await form.getByRole('button', { name: 'Make it' }).click()
  await expect(page.getByRole('link', { name: 'Typed before' })).toBeVisible()
  await expect(page.locator('html')).toHaveAttribute('data-kept', 'yes')
})

portalTest('a link of a mail that is cut says so, and one that is opened in the same tab counts', async ({ page, shop }) => {
  for (const place of ['confirm', 'invitation']) {
    await page.goto(`${shop.portal}/${place}`)
    await expect(page.getByText('The link is not whole.')).toBeVisible()
    await expect(page.getByRole('main').getByRole('button')).toHaveCount(0)
  }
  await page.goto(`${shop.portal}/reset`)
  await page.getByLabel('Mail address').fill('unknown@example.com')
  await page.getByRole('button', { name: 'Send the link' }).click()
  await expect(page.getByRole('status')).toBeVisible()
  // Only the fragment differs: the browser loads nothing.
  await page.goto(`${shop.portal}/reset#a-secret`)
  await expect(page.getByRole('textbox', { name: /^New password/ })).toBeVisible()
  await page.keyboard.press('Tab')
  await page.getByRole('link', { name: 'Skip to the page' }).press('Enter')
  await expect(page.getByRole('textbox', { name: /^New password/ })).toBeVisible()
})
