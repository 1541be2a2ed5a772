// Logging in: passwords, an identity provider, tokens; sessions that end; and what readers may not do.
import type { Page } from '@playwright/test'
import { IdentityProvider } from './identity'
import { PASSWORD, type Weir, expect, logIn, open, test } from './weir'

const loginOf = (page: Page) => page.getByRole('heading', { level: 1, name: 'Log in to Weir' })

/** Ends the sessions of a user from elsewhere. */
const endSessions = (weir: Weir, name: string) => weir.good('DELETE', `/api/v1/users/${name}/sessions`)

test('the first user is made in the console, which goes on as that user; the token logs in again', async ({ page, weir }) => {
  await weir.fill()
  await open(page, weir, '/users')
  await page.getByRole('button', { name: 'New user' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New user' })
  await dialog.getByLabel('Name', { exact: true }).fill('root')
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  const token = await page.getByRole('dialog', { name: 'root has a token' }).getByLabel('Secret').innerText()
  await page.getByRole('button', { name: 'I have kept it' }).click()
  await expect(page.getByRole('link', { name: 'root: your account' })).toBeVisible()
  await open(page, weir, '/account')
  await page.getByRole('button', { name: 'Log out' }).click()
  await expect(loginOf(page)).toBeVisible()
  await page.goto(`${weir.url}/ui/routes/orders`)
  await page.getByLabel('Token').fill('wrong')
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page.getByRole('alert').filter({ hasText: 'does not know this token' })).toBeVisible()
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'orders' })).toBeVisible()
  await expect(page.getByRole('textbox', { name: 'Name', exact: true }).first()).toHaveValue('orders')
  expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]))).not.toContain(token)
})

test('a right in an API that does not exist yet is stored, and the page says so', async ({ page, weir }) => {
  await weir.addAdmin()
  await page.goto(`${weir.url}/ui/users`)
  await logIn(page, 'root')
  await page.getByRole('button', { name: 'New user' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New user' })
  await dialog.getByLabel('Name', { exact: true }).fill('ann')
  await dialog.getByLabel('Role 1').selectOption('api-owner')
  await dialog.getByLabel('Scope 1').selectOption('api')
  await dialog.getByLabel('Name of the scope 1').fill('ordesr')
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await expect(page.getByText("Check the rights: the API 'ordesr' does not exist yet.")).toBeVisible()
})

test('a session that ends: the page, the edit and the open dialog are there again after the login', async ({ page, weir }) => {
  await weir.fill()
  await weir.addAdmin()
  await page.goto(`${weir.url}/ui/routes/orders?view=both`)
  await page.getByLabel('User name').fill('root')
  await page.getByLabel('Password', { exact: true }).fill('not the password')
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page.getByRole('alert')).toContainText('The name or the password is wrong')
  await logIn(page, 'root')
  const path = page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox')
  await path.fill('/kept')
  await page.getByRole('button', { name: 'Review and save' }).click()
  const dialog = page.getByRole('dialog', { name: 'Save orders?' })
  await dialog.getByLabel('Note').fill('a long note')
  await endSessions(weir, 'root')
  await expect(loginOf(page)).toBeVisible()
  await expect(page.getByText('Your session has ended')).toBeVisible()
  await logIn(page, 'root')
  await expect(dialog.getByLabel('Note')).toHaveValue('a long note')
  await dialog.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('orders is saved')).toBeVisible()
  expect(page.url()).toContain('/ui/routes/orders?view=both')
  expect(await weir.read('routes', 'orders')).toMatchObject({ paths: ['/kept'] })
})

test('an identity provider: set up here, groups give rights, a session that ends keeps the page, logout', async ({ page, weir }) => {
  test.setTimeout(180_000)
  test.skip(!IdentityProvider.isInstalled() && process.env.WEIR_REQUIRE_TOOLS !== '1', 'make deps FOR=browser installs the provider')
  // The provider is another host, on purpose.
  page.removeAllListeners('request')
  await weir.fill()
  await weir.addAdmin()
  const provider = await IdentityProvider.start(weir.url, 'corp', { ada: ['weir-admins'] })
  await page.goto(`${weir.url}/ui/identity-providers`)
  await logIn(page, 'root')
  await page.getByRole('button', { name: 'New identity provider' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New identity provider' })
  await dialog.getByLabel('Name', { exact: true }).fill('corp')
  await dialog.getByLabel('Name for people').fill('Example Corp')
  await dialog.getByLabel('Issuer').fill(provider.issuer)
  await dialog.getByLabel('Client', { exact: true }).fill('weir')
  await dialog.getByLabel('Secret of the client').fill('secret')
  await dialog.getByLabel('Group', { exact: true }).fill('weir-admins')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByRole('table', { name: 'Identity providers' }).getByRole('row', { name: /Example Corp/ })).toContainText('weir-admins')
  await open(page, weir, '/account')
  await page.getByRole('button', { name: 'Log out' }).click()
  await expect(loginOf(page)).toBeVisible()

  // A first login goes there and comes back to the page that was asked for.
  await page.goto(`${weir.url}/ui/routes/orders?view=both`)
  await page.getByRole('button', { name: 'Log in with Example Corp' }).click()
  await expect(page.getByRole('link', { name: 'corp/ada: your account' })).toBeVisible()
  await expect(page.getByRole('heading', { level: 1, name: 'orders' })).toBeVisible()
  expect(page.url()).toContain('/ui/routes/orders?view=both')

  // A session that ends does not leave the page: the provider is in a window of its own.
  const path = page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox')
  await path.fill('/kept')
  const { items } = (await (await page.request.get(`${weir.url}/api/v1/me/sessions`)).json()) as { items: { id: string; is_own: boolean }[] }
  const own = items.find((it) => it.is_own)
  await page.request.delete(`${weir.url}/api/v1/me/sessions/${own?.id}`, { headers: { origin: weir.url } })
  await expect(loginOf(page)).toBeVisible()
  await page.getByRole('button', { name: 'Log in with Example Corp' }).click()
  await expect(loginOf(page)).toHaveCount(0)
  await expect(path).toHaveValue('/kept')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog', { name: 'Save orders?' }).getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('orders is saved')).toBeVisible()

  // Logging out ends it here, and leads to the provider. Other groups count with the next login.
  await provider.setGroups('ada', ['others'])
  await open(page, weir, '/account')
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.waitForURL((url) => url.origin === provider.issuer)
  await page.goto(`${weir.url}/ui/routes`)
  await page.getByRole('button', { name: 'Log in with Example Corp' }).click()
  await expect(page.getByRole('alert')).toContainText('none of your groups has rights here')
  // The next login that works leads to where the one before was going.
  await logIn(page, 'root')
  await expect(page.getByRole('heading', { level: 1, name: 'Routes' })).toBeVisible()
  provider.end()
})

test('personal tokens: shown once, they work, may be less, and are removed', async ({ page, weir }) => {
  await weir.addAdmin()
  await page.goto(`${weir.url}/ui/account`)
  await logIn(page, 'root')
  await page.getByRole('button', { name: 'New token' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New personal token' })
  await dialog.getByLabel('For').fill('the pipeline')
  await dialog.getByRole('spinbutton', { name: 'Days' }).fill('7')
  await dialog.getByRole('radio', { name: /Only some of it/ }).check()
  await dialog.getByLabel('Role 1').selectOption('analyst')
  await dialog.getByLabel('Your password').fill('a wrong password')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await expect(dialog.getByRole('alert')).toContainText('password is wrong')
  await dialog.getByLabel('Your password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Create' }).click()
  const token = await page.getByRole('dialog', { name: 'The token' }).getByLabel('Secret').innerText()
  await page.getByRole('button', { name: 'I have kept it' }).click()
  const table = page.getByRole('table', { name: 'Personal tokens' })
  await expect(table.getByRole('row', { name: /the pipeline/ })).toContainText('analyst everywhere')
  expect(await page.content()).not.toContain(token)
  const status = async (path: string) => (await weir.call('GET', path, undefined, { authorization: `Bearer ${token}` })).status
  expect(await status('/api/v1/me')).toBe(200)
  expect(await status('/api/v1/users')).toBe(403)
  await table.getByRole('checkbox', { name: 'Select the pipeline' }).check()
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('dialog', { name: /Remove the pipeline/ }).getByRole('button', { name: 'Remove' }).click()
  await expect(page.getByRole('heading', { name: 'No personal tokens' })).toBeVisible()
  expect(await status('/api/v1/me')).toBe(401)
})

test('a password is changed, and other sessions end', async ({ page, weir }) => {
  await weir.addAdmin()
  await page.goto(`${weir.url}/ui/account`)
  await logIn(page, 'root')
  await page.getByLabel('Current password').fill('wrong')
  await page.getByLabel('New password').fill('a better password')
  await page.getByRole('button', { name: 'Change the password' }).click()
  await expect(page.getByRole('alert')).toContainText('the current password is wrong')
  await page.getByLabel('Current password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Change the password' }).click()
  await expect(page.getByText('The password is changed', { exact: false })).toBeVisible()
  const answer = await weir.call('POST', '/api/v1/session', { name: 'root', password: 'a better password' })
  expect(answer.status).toBe(201)
})

test('rights: an administrator gives a user rights in one API only', async ({ page, weir }) => {
  await weir.addAdmin()
  await weir.addUser('ann', [{ role: 'viewer' }])
  await page.goto(`${weir.url}/ui/users`)
  await logIn(page, 'root')
  await page.getByRole('button', { name: 'ann', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'ann' })
  await dialog.getByLabel('Role 1').selectOption('api-owner')
  await dialog.getByLabel('Scope 1').selectOption('api')
  await dialog.getByLabel('Name of the scope 1').fill('orders')
  await dialog.getByRole('button', { name: 'Save the rights' }).click()
  await expect(page.getByRole('row', { name: /ann/ })).toContainText('api-owner in API orders')
})

/** Pages on which somebody changes something, and the buttons that do it. */
const WRITES: [string, RegExp][] = [
  ['/routes', /^New route$/],
  ['/routes/orders', /^(Delete|Duplicate)$/],
  ['/services', /^New service$/],
  ['/upstreams', /^New upstream$/],
  ['/consumers', /^New consumer$/],
  ['/certificates', /^New certificate/],
  ['/stream_routes', /^New stream route$/],
  ['/apis', /^New API$/],
  ['/apis/pets/1.0.0/plans', /^(New plan|Close gold)$/],
  ['/applications', /^New application$/],
  ['/environments', /^New environment$/],
  ['/apis/pets/1.0.0', /^Publish$/],
  ['/apis/pets/1.0.0/tests', /^New test$/],
  ['/products', /^New product$/],
  ['/products/bundle', /^Offer it$/],
  ['/portals', /^New portal$/],
  ['/portals/main', /^Delete$/],
  ['/developers', /^New developer$/],
  ['/analytics', /^New board$/],
  ['/reports', /^New report$/],
  ['/alerts', /^New rule$/],
  ['/history/1', /^Roll back to this$/],
]

test('48: for a reader every button is visible, disabled, and says why; every write by URL is refused', async ({ page, managed }) => {
  test.setTimeout(240_000)
  await managed.fill()
  await managed.addAdmin()
  await managed.addUser('rea', [{ role: 'read' }])
  await page.goto(`${managed.url}/ui/`)
  await logIn(page, 'rea')
  for (const [path, name] of WRITES) {
    await open(page, managed, path)
    const buttons = page.getByRole('button', { name })
    await expect(buttons.first(), path).toBeVisible()
    await expect(buttons.first(), path).toHaveAttribute('aria-disabled', 'true')
    await expect(buttons.first(), path).toHaveAccessibleDescription(/may not do this: it asks for .*, which these roles allow/)
  }
  await open(page, managed, '/users')
  await expect(page.getByRole('heading', { name: 'This page is not for you' })).toBeVisible()
  await expect(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Audit, not for you' })).toBeVisible()

  const can = (await (await page.request.get(`${managed.url}/api/v1/me/can`)).json()) as { items: { operation: string; allowed: boolean }[] }
  const refused = new Set(can.items.filter((it) => !it.allowed).map((it) => it.operation))
  const document = await managed.good<{ paths: Record<string, Record<string, { operationId: string }>> }>('GET', '/api/v1/openapi.json')
  const answers: string[] = []
  let count = 0
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { operationId }] of Object.entries(methods)) {
      if (!refused.has(operationId)) continue
      count += 1
      const answer = await page.request.fetch(`${managed.url}${path.replaceAll(/\{[^}]+\}/g, 'x')}`, { method, data: {}, headers: { origin: managed.url } })
      if (answer.status() !== 403) answers.push(`${method} ${path}: ${answer.status()}`)
    }
  }
  expect(answers).toEqual([])
  expect(count).toBeGreaterThan(30)
})

test('a login forgets the edits of the user before', async ({ page, weir }) => {
  await weir.fill()
  await weir.addAdmin()
  await weir.addUser('ann', [{ role: 'admin' }])
  await page.goto(`${weir.url}/ui/routes/orders`)
  await logIn(page, 'ann')
  const path = page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox')
  await path.fill('/secret-of-ann')
  await expect(page.getByRole('button', { name: 'Discard' })).toBeVisible()
  await endSessions(weir, 'ann')
  await expect(loginOf(page)).toBeVisible()
  await logIn(page, 'root')
  await expect(page.getByRole('link', { name: 'root: your account' })).toBeVisible()
  await expect(path).toHaveValue('/orders')
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain('secret-of-ann')
})
