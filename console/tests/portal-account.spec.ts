// The account of a developer in a browser: two-factor login from the QR code to the day on which it is turned off, and
// personal tokens.
import { createHmac } from 'node:crypto'
import type { Page } from '@playwright/test'
import { type Shop, join, portalTest, post } from './shop'
import { PASSWORD, expect, findings } from './weir'

/** The code of an authenticator app (RFC 6238), some steps from now. */
function codeOf(secret: string, steps = 0): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const bits = [...secret].map((it) => digits.indexOf(it).toString(2).padStart(5, '0')).join('')
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((it) => Number.parseInt(it, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps))
  const tag = createHmac('sha1', key).update(counter).digest()
  const at = (tag.at(-1) ?? 0) & 15
  return String((tag.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

async function signIn(page: Page, shop: Shop) {
  await page.goto(`${shop.portal}/login`)
  await page.getByLabel('Mail address').fill('ann@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

portalTest('two-factor login is set up with a QR code, asked for at the login, and turned off', async ({ page, shop }) => {
  await join(page, shop)
  await page.goto(`${shop.portal}/account`)
  const section = page.getByRole('region', { name: 'Two-factor login' })
  await section.getByRole('button', { name: 'Turn on two-factor login' }).click()
  const first = page.getByRole('dialog', { name: 'Turn on two-factor login' })
  await first.getByLabel('Password').fill('a wrong password')
  await first.getByRole('button', { name: 'Go on' }).click()
  await expect(first.getByRole('alert')).toContainText('this is not your password')
  await first.getByLabel('Password').fill(PASSWORD)
  await first.getByRole('button', { name: 'Go on' }).click()

  const app = page.getByRole('dialog', { name: 'Add it to your app' })
  await expect(app.getByRole('img', { name: 'QR code of the secret' })).toBeVisible()
  expect(await findings(page)).toEqual([])
  const secret = (await app.getByLabel('Secret', { exact: true }).innerText()).replaceAll(/\s/g, '')
  expect(secret).toMatch(/^[A-Z2-7]{32}$/)
  await expect(app.getByRole('link', { name: 'Open in an app here' })).toHaveAttribute('href', new RegExp(`^otpauth://totp/.*secret=${secret}`))
  await app.getByLabel('Code', { exact: true }).fill(codeOf(secret))
  await app.getByRole('button', { name: 'Turn it on' }).click()
  const shown = page.getByRole('dialog', { name: 'Your recovery codes' })
  const codes = (await shown.getByLabel('Recovery codes').innerText()).split('\n').filter((it) => it !== '')
  expect(codes).toHaveLength(10)
  expect(await findings(page)).toEqual([])
  await shown.getByRole('button', { name: 'I have kept them' }).click()
  await expect(section).toContainText('10 recovery codes left')
  await page.reload()
  await expect(section.getByText('on', { exact: true })).toBeVisible()
  await expect(page.locator('body')).not.toContainText(codes[0] ?? 'codes')
  await page.getByRole('button', { name: 'Sign out' }).click()

  await signIn(page, shop)
  const code = page.getByLabel('Code')
  await expect(code).toBeFocused()
  await expect(page.getByRole('alert')).toHaveCount(0)
  await code.fill('12')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('alert')).toContainText('this code is wrong')
  expect(await findings(page)).toEqual([])
  await code.fill(codeOf(secret, 1))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()

  await page.goto(`${shop.portal}/account`)
  await section.getByRole('button', { name: 'Turn it off' }).click()
  const off = page.getByRole('dialog', { name: 'Turn off two-factor login?' })
  await off.getByLabel('Password').fill(PASSWORD)
  await off.getByLabel('Code').fill(codes[0] ?? '')
  await off.getByRole('button', { name: 'Turn it off' }).click()
  await expect(section.getByRole('button', { name: 'Turn on two-factor login' })).toBeVisible()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await signIn(page, shop)
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
  await expect.poll(() => shop.mail?.mails.filter((it) => it.text.includes('two-factor login is')).length).toBe(2)
})

portalTest('a personal token is shown once, works for a program, and is revoked', async ({ page, shop }) => {
  await join(page, shop)
  await page.goto(`${shop.portal}/account`)
  const section = page.getByRole('region', { name: 'Personal tokens' })
  await section.getByRole('button', { name: 'New token' }).click()
  const make = page.getByRole('dialog', { name: 'New personal token' })
  await make.getByLabel('What it is for').fill('nightly report')
  await make.getByLabel('Good for').selectOption({ label: '90 days' })
  // Who has only found the browser open makes none.
  await expect(make.getByRole('button', { name: 'Make it' })).toHaveAttribute('aria-disabled', 'true')
  await make.getByLabel('Your password').fill('a wrong password')
  await make.getByRole('button', { name: 'Make it' }).click()
  await expect(make.getByRole('alert')).toContainText('this is not your password')
  await make.getByLabel('Your password').fill(PASSWORD)
  await make.getByRole('button', { name: 'Make it' }).click()
  const shown = page.getByRole('dialog', { name: 'Your token' })
  const token = await shown.getByLabel('Token').innerText()
  expect(token).toMatch(/^weir_[0-9a-f]{16}_[0-9a-f]{64}$/)
  expect(await findings(page)).toEqual([])
  await shown.getByRole('button', { name: 'I have kept it' }).click()
  const tokens = section.getByRole('list', { name: 'Tokens' })
  await expect(tokens).toContainText('nightly report')
  await expect(tokens).toContainText('not used yet')

  const program = (method: string, path: string, body?: unknown) => fetch(`${shop.portal}/portal/v1${path}`, { method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  expect((await program('POST', '/apps', { title: 'By night' })).status).toBe(201)
  expect((await program('PUT', '/account', { name: 'Eve' })).status).toBe(403)
  await page.reload()
  await expect(tokens).toContainText('last used')
  await expect(page.locator('body')).not.toContainText(token)
  expect(await findings(page)).toEqual([])
  await section.getByRole('button', { name: 'Revoke nightly report' }).click()
  await page.getByRole('dialog', { name: 'Revoke nightly report?' }).getByRole('button', { name: 'Revoke', exact: true }).click()
  await expect(tokens).toHaveCount(0)
  expect((await program('GET', '/apps')).status).toBe(401)
})

portalTest('a new password ends personal tokens, unless the tick is taken away', async ({ page, shop }) => {
  await join(page, shop)
  const token = () => post<{ token: string }>(page, shop, '/account/tokens', { name: 'report', days: 7, password: PASSWORD })
  const status = async (it: string) => (await fetch(`${shop.portal}/portal/v1/apps`, { headers: { authorization: `Bearer ${it}` } })).status
  const kept = await token()
  await page.goto(`${shop.portal}/account`)
  const change = async (from: string, to: string) => {
    const form = page.getByRole('form', { name: 'Password' })
    await form.getByLabel('Password now').fill(from)
    await form.getByLabel('New password').fill(to)
    await form.getByRole('button', { name: 'Change the password' }).click()
  }
  const tick = page.getByLabel('End my personal tokens, too')
  await expect(tick).toBeChecked()
  await tick.uncheck()
  await change(PASSWORD, 'a second sentence')
  await expect(page.getByText('your other sessions are ended.')).toBeVisible()
  expect(await status(kept.token)).toBe(200)
  await page.reload()
  await change('a second sentence', 'a third sentence')
  await expect(page.getByText('and so are your personal tokens')).toBeVisible()
  expect(await status(kept.token)).toBe(401)
  await expect(page.getByRole('list', { name: 'Tokens' })).toHaveCount(0)
})
