// Developers in a browser: from signing up to a key that works, usage, refused calls, and teams.
import { expect, findings, findingsInBothThemes } from './weir'
import { ownPages } from './list'
import { type Shop, linkFor, portalTest } from './shop'
import type { Page } from '@playwright/test'

async function join(page: Page, shop: Shop, name: string) {
  await page.goto(`${shop.portal}/sign-up`)
  await page.getByLabel('Mail address').fill(`${name}@example.com`)
  await page.getByLabel('Name', { exact: true }).fill(name)
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Make an account' }).click()
  await expect(page.getByRole('status')).toContainText('a mail is on its way')
  const link = await linkFor(shop, `${name}@example.com`, 'confirm')
  await page.goto(link)
  await page.getByRole('button', { name: 'Confirm' }).click()
  await expect(page.getByRole('status')).toContainText('You can sign in now.')
  await page.goto('about:blank')
  await page.goto(link)
  await page.getByRole('button', { name: 'Confirm' }).click()
  await expect(page.getByRole('alert')).toContainText('already used')
  await signIn(page, shop, name)
}

async function signIn(page: Page, shop: Shop, name: string) {
  await page.goto(`${shop.portal}/login`)
  await page.getByLabel('Mail address').fill(`${name}@example.com`)
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
}

portalTest('29, 33, 34: from signing up to calls, usage and refusals', async ({ page, shop }) => {
  portalTest.setTimeout(120_000)
  await join(page, shop, 'ann')
  await page.goto(`${shop.portal}/apis/shop/1.0.0/plans`)
  await page.getByRole('link', { name: 'Subscribe to Gold' }).click()
  await page.getByLabel('Title').fill('Till')
  await page.getByRole('button', { name: 'Make it' }).click()
  await page.getByRole('button', { name: 'Subscribe' }).click()
  await expect(page.getByRole('alert')).toContainText('conditions')
  await page.getByLabel('I agree to these conditions').check()
  await page.getByRole('button', { name: 'Subscribe' }).click()
  const dialog = page.getByRole('dialog', { name: 'Your key' })
  const key = await dialog.getByLabel('Key').innerText()
  expect(key).toMatch(/^[0-9a-f]{64}$/)
  // A stray click beside the dialog, or Escape, does not lose the key.
  await page.mouse.click(5, 5)
  await expect(dialog.getByRole('alert')).toContainText('not shown again')
  await page.keyboard.press('Escape')
  await expect(dialog.getByLabel('Key')).toHaveText(key)
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  await expect(dialog).toHaveCount(0)
  const call = (with_: string) => fetch(`${shop.weir.proxy}/shop/orders`, { headers: { 'x-api-key': with_ } })
  await expect.poll(async () => (await call(key)).status).toBe(200)
  let passed = 1
  let limited = 0
  for (let count = 0; count < 8; count += 1) {
    const { status } = await call(key)
    if (status === 200) passed += 1
    if (status === 429) limited += 1
  }
  expect([passed, limited]).toEqual([5, 4])
  await page.getByRole('link', { name: 'To the application' }).click()
  await page.getByRole('link', { name: 'Usage' }).click()
  const figure = (name: string) => page.locator('.figure', { hasText: name }).locator('dd')
  await expect(async () => {
    await page.reload()
    await expect(figure('Calls')).toHaveText('9', { timeout: 1_500 })
  }).toPass({ timeout: 40_000 })
  await expect(figure('Refused')).toHaveText('4')
  await expect(page.getByRole('region', { name: 'Quota' })).toContainText('0 of 5 left')
  expect(await findings(page)).toEqual([])
  await page.getByRole('link', { name: 'Calls', exact: true }).click()
  await page.getByRole('button', { name: 'Refused' }).click()
  const row = page.getByRole('row', { name: /The limit of the plan is used up/ }).first()
  await expect(async () => {
    await page.getByRole('button', { name: 'Read again' }).click()
    await expect(row).toBeVisible({ timeout: 1_500 })
  }).toPass({ timeout: 30_000 })
  await expect(row).toContainText('GET /shop/orders')
  await expect(row).toContainText('429')
  // Rotation: the old key goes on for a while, a revoked one does not.
  await page.getByRole('link', { name: 'Subscriptions' }).click()
  await page.getByRole('button', { name: 'Rotate' }).click()
  const rotate = page.getByRole('dialog', { name: /^Rotate/ })
  await rotate.getByLabel('The old key stays good').selectOption('1 day')
  await rotate.getByRole('button', { name: 'Make the new key' }).click()
  const second = await dialog.getByLabel('Key').innerText()
  expect(second).not.toBe(key)
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  const old = page.getByRole('row', { name: new RegExp(key.slice(0, 8)) })
  await expect(old).toContainText(/good until \w+ \d+, \d{4}, \d+:\d+/)
  await expect(page.locator('body')).not.toContainText(key)
  expect(await findings(page)).toEqual([])
  // What cannot be taken back is asked first.
  await old.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog', { name: /^Revoke/ }).getByRole('button', { name: 'Cancel' }).click()
  await expect(old).toContainText('good until')
  await old.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog', { name: /^Revoke/ }).getByRole('button', { name: 'Revoke' }).click()
  await expect(old).toContainText('revoked')
  await page.getByRole('button', { name: 'Close', exact: true }).click()
  await page.getByRole('dialog', { name: 'Close the subscription to shop 1.0.0?' }).getByRole('button', { name: 'Close it' }).click()
  await expect(page.getByText('closed', { exact: true })).toBeVisible()
  await expect(page.getByRole('button', { name: 'New key' })).toHaveCount(0)
})

portalTest('29: wrong passwords slow down, and no answer tells whether an address is known', async ({ page, shop }) => {
  await join(page, shop, 'ann')
  await page.context().clearCookies()
  // An account that is there, and one that is not, are answered alike.
  const said: string[][] = []
  for (const mail of ['ann@example.com', 'nothing@example.com']) {
    await page.goto(`${shop.portal}/login`)
    await page.getByLabel('Mail address').fill(mail)
    await page.getByLabel('Password').fill('a wrong password')
    const answers: string[] = []
    // Five are free. On a slow machine the first waits are over before the next try, and they double.
    for (let count = 0; count < 12 && !answers.at(-1)?.startsWith('429'); count += 1) {
      const answer = page.waitForResponse((it) => it.url().endsWith('/portal/v1/session') && it.request().method() === 'POST')
      await page.getByRole('button', { name: 'Sign in' }).click()
      const status = (await answer).status()
      await expect(page.getByRole('alert')).toContainText(status === 429 ? /too many wrong passwords; try again in \d+ seconds/ : /password/)
      answers.push(`${status} ${(await page.getByRole('alert').innerText()).replaceAll(/\d+ seconds/g, 'some seconds')}`)
    }
    expect(answers.at(-1)).toContain('429')
    expect(answers.length).toBeGreaterThan(5)
    said.push([...new Set(answers)])
  }
  expect(said[0]).toEqual(said[1])
  const told: string[] = []
  for (const mail of ['ann@example.com', 'nothing@example.com']) {
    await page.goto(`${shop.portal}/sign-up`)
    await page.getByLabel('Mail address').fill(mail)
    await page.getByLabel('Name', { exact: true }).fill('Ann')
    await page.getByLabel('Password').fill('correct horse battery')
    await page.getByRole('button', { name: 'Make an account' }).click()
    told.push(await page.getByRole('status').innerText())
  }
  expect(told[0]).toBe(told[1])
})

portalTest('38: the session of the portal is worth nothing to the console, and the other way round', async ({ page, shop }) => {
  await join(page, shop, 'ann')
  const [cookie] = (await page.context().cookies()).filter((it) => it.name === 'weir-portal')
  expect(cookie?.httpOnly).toBe(true)
  await shop.good('POST', '/api/v1/users/root', { rights: [{ role: 'admin', workspace: '*' }] })
  const asConsole = await fetch(`${shop.weir.url}/api/v1/users`, { headers: { cookie: `weir=${cookie?.value}; weir-portal=${cookie?.value}` } })
  expect(asConsole.status).toBe(401)
  const asPortal = await fetch(`${shop.portal}/portal/v1/apps`, { headers: { cookie: `weir=${cookie?.value}` } })
  expect(asPortal.status).toBe(401)
})

portalTest('35: who leaves a team loses its applications', async ({ page, shop, browser }) => {
  portalTest.setTimeout(120_000)
  await join(page, shop, 'ann')
  await page.goto(`${shop.portal}/teams`)
  await page.getByLabel('Name').fill('Shop')
  await page.getByRole('button', { name: 'Make a team' }).click()
  await page.getByLabel('Invite by mail').fill('bob@example.com')
  await page.getByRole('button', { name: 'Invite' }).click()
  await expect(page.getByRole('status').filter({ hasText: 'on its way' })).toBeVisible()
  const invitation = await linkFor(shop, 'bob@example.com', 'invitation')
  const other = await (await browser.newContext()).newPage()
  await join(other, shop, 'bob')
  await other.goto(invitation)
  await other.getByRole('button', { name: 'Join the team' }).click()
  await other.goto(`${shop.portal}/apps`)
  await other.getByRole('button', { name: 'New application' }).click()
  await other.getByLabel('Title').fill('Till')
  await other.getByLabel('Belongs to').selectOption({ label: 'Team Shop' })
  await other.getByRole('button', { name: 'Make it' }).click()
  await other.getByRole('link', { name: 'Till' }).click()
  await expect(other.getByRole('heading', { level: 1, name: 'Till' })).toBeVisible()
  const address = other.url()
  await other.goto(`${shop.portal}/teams`)
  await other.getByRole('button', { name: 'Leave' }).click()
  await other.getByRole('dialog', { name: 'Leave Shop?' }).getByRole('button', { name: 'Leave the team' }).click()
  await expect(other.getByRole('button', { name: 'Leave' })).toHaveCount(0)
  await other.goto(address)
  await expect(other.getByRole('heading', { level: 1, name: 'Nothing here' })).toBeVisible()
  await page.goto(`${shop.portal}/apps`)
  await expect(page.getByRole('link', { name: 'Till' })).toBeVisible()
  await other.context().close()
})

portalTest('pages of those who are signed in are accessible in both themes', async ({ page, shop }) => {
  portalTest.setTimeout(480_000)
  await join(page, shop, 'ann')
  const post = async (path: string, data: unknown) => {
    const answer = await page.request.post(`${shop.portal}/portal/v1${path}`, { data, headers: { origin: shop.portal } })
    expect(answer.status(), path).toBe(201)
    return (await answer.json()) as { name: string }
  }
  const { name } = await post('/apps', { title: 'Till' })
  await post('/teams', { name: 'Retail' })
  await post(`/apps/${name}/subscriptions`, { publication: 'shop/1.0.0/default', plan: 'gold', conditions_revision: 1 })
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 })
    for (const path of ownPages(name)) {
      await page.goto(`${shop.portal}${path}`)
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
      await page.waitForLoadState('networkidle')
      expect(await findingsInBothThemes(page), `${path} at ${width}`).toEqual([])
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      expect(wide, `${path} at ${width} is wider than its window`).toBeLessThanOrEqual(0)
    }
  }
})

portalTest('one changes the name, takes the own data, changes roles, and removes the account', async ({ page, shop }) => {
  portalTest.setTimeout(480_000)
  await join(page, shop, 'ann')
  await page.goto(`${shop.portal}/account`)
  await page.getByLabel('Your name').fill('Ann Other')
  await page.getByRole('button', { name: 'Change the name' }).click()
  await expect(page.getByRole('status').filter({ hasText: 'The name is changed.' })).toBeVisible()
  const data = (await (await page.request.get(`${shop.portal}/portal/v1/account/data`)).json()) as { account: { name: string; mail: string }; sessions: unknown[] }
  expect(data.account).toMatchObject({ name: 'Ann Other', mail: 'ann@example.com' })
  expect(data.sessions).toHaveLength(1)
  await expect(page.getByRole('link', { name: 'Download my data' })).toHaveAttribute('href', '/portal/v1/account/data')
  await page.getByRole('button', { name: 'Remove my account' }).click()
  await page.getByRole('dialog', { name: 'Remove your account?' }).getByRole('button', { name: 'Remove it' }).click()
  await expect(page).toHaveURL(`${shop.portal}/`)
  await page.goto(`${shop.portal}/apps`)
  await expect(page.getByRole('heading', { level: 1, name: 'Sign in' })).toBeVisible()
  const yaml = await fetch(`${shop.portal}/portal/v1/apis/shop/versions/1.0.0/openapi.yaml`)
  expect(yaml.headers.get('content-type')).toBe('application/openapi+yaml')
  expect(await yaml.text()).toContain('operationId: listOrders')
})
