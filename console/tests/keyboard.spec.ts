// Whole tasks by keyboard alone: no test here presses a mouse button. What stands in the way of one who has no mouse, such
// as an editor that keeps the focus, fails them.
import type { Page } from '@playwright/test'
import { choose, press, tick, typeInto } from './keys'
import { PASSWORD, expect, open, settled, tabTo, test, upstream } from './weir'

/** Looks over what is about to be saved, and saves it. */
async function save(page: Page, name: string) {
  await press(page, page.getByRole('button', { name: 'Review and save' }))
  await commit(page, name)
}

async function commit(page: Page, name: string) {
  const dialog = page.getByRole('dialog', { name: `Save ${name}?` })
  await expect(dialog.getByRole('row').nth(1)).toBeVisible()
  await press(page, dialog.getByRole('button', { name: 'Commit' }))
  await expect(page.getByText(`${name} is saved`)).toBeVisible()
}

test('53: from a fresh start to a protected route by keyboard alone', async ({ page, weir }) => {
  const backend = await upstream('hello from behind')
  await open(page, weir, '/')
  const form = page.getByRole('form', { name: 'Quick start' })
  await typeInto(page, form.getByLabel('Address of your API'), backend.url)
  await typeInto(page, form.getByLabel('Path that callers use'), '/greet')
  await press(page, form.getByRole('button', { name: 'Serve it' }))
  const line = await page.getByLabel('Call', { exact: true }).innerText()
  const [, key = ''] = /apikey: (\w+)'/.exec(line) ?? []
  await expect.poll(async () => (await fetch(`${weir.proxy}/greet`)).status).toBe(401)
  await expect.poll(async () => (await fetch(`${weir.proxy}/greet`, { headers: { apikey: key } })).text()).toBe('hello from behind')
  await press(page, page.getByRole('link', { name: 'Open the service' }))
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('greet')
  await backend.close()
})

test('53: a route is edited in form and text, merged with what came meanwhile, and saved by keyboard alone', async ({ page, filled }) => {
  test.setTimeout(180_000)
  await open(page, filled, '/routes/orders')
  const text = page.getByRole('textbox', { name: 'orders as text' })
  await typeInto(page, page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox'), '/by-keyboard')
  await choose(page, page.getByRole('group', { name: 'View' }), 'Text', 'Shift+Tab')
  await expect(text).toContainText('/by-keyboard')
  await tabTo(page, text)
  await page.keyboard.press('Control+End')
  await page.keyboard.insertText('preserve_host: true\n')
  // Another user stores something else in the meantime.
  const stored = (await filled.read('routes', 'orders')) as object
  await filled.put('routes', 'orders', { ...stored, hosts: ['other.example.com'] })
  await expect(page.getByText('A newer revision exists')).toBeVisible()
  // In the editor, Tab indents: after Escape it leads on.
  await page.keyboard.press('Escape')
  await press(page, page.getByRole('button', { name: 'Review and save' }))
  const conflict = page.getByRole('dialog', { name: 'This was changed meanwhile' })
  await press(page, conflict.getByRole('button', { name: 'Go on with the merged document' }))
  await commit(page, 'orders')
  expect(await filled.read('routes', 'orders')).toMatchObject({ paths: ['/by-keyboard'], hosts: ['other.example.com'], preserve_host: true })
})

test('53: a plugin is added to a route, and a refused call is explained and sent by keyboard alone', async ({ page, filled }) => {
  test.setTimeout(180_000)
  await open(page, filled, '/plugins')
  await expect(page.getByRole('link', { name: 'cors', exact: true })).toBeVisible()
  await page.keyboard.press('/')
  await expect(page.getByRole('searchbox', { name: 'Search plugins' })).toBeFocused()
  await page.keyboard.type('cors')
  await press(page, page.getByRole('link', { name: 'cors', exact: true }))
  const dialog = page.getByRole('dialog', { name: 'cors' })
  await expect(dialog.getByText('Weir accepts this configuration.')).toBeVisible()
  await typeInto(page, dialog.getByLabel('Add it to the route'), 'orders')
  await press(page, dialog.getByRole('button', { name: 'Add and review' }))
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('orders')
  await save(page, 'orders')
  expect(await filled.read('routes', 'orders')).toMatchObject({ plugins: [{ 'key-auth': {} }, {}, { cors: {} }] })

  await open(page, filled, '/explain')
  await typeInto(page, page.getByRole('textbox', { name: 'curl line, or a URL' }), "curl 'http://api.example.com/orders'")
  await expect(page.getByRole('status', { name: 'What comes of it' })).toContainText('The gateway answers 401')
  const card = page.getByRole('region', { name: 'Send it' })
  await press(page, card.getByRole('button', { name: 'Send for real' }))
  await expect(card.getByRole('status', { name: 'What came back' })).toContainText('The answer is 401')
})

test('53: a reader is told by keyboard alone why a button does nothing', async ({ page, filled }) => {
  await filled.addAdmin()
  await filled.addUser('rea', [{ role: 'read' }])
  await page.goto(`${filled.url}/ui/`)
  await typeInto(page, page.getByLabel('User name'), 'rea')
  await typeInto(page, page.getByLabel('Password', { exact: true }), PASSWORD)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible()
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await expect(page.getByRole('heading', { level: 1, name: 'Routes' })).toBeVisible()
  await settled(page)
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await expect(page.getByRole('link', { name: 'orders', exact: true }).first()).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'orders' })).toBeVisible()
  const revision = await filled.revision()
  await tabTo(page, page.getByRole('button', { name: 'Delete' }))
  await expect(page.getByRole('tooltip')).toContainText('rea may not do this')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('tooltip')).toContainText('rea may not do this')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  expect(await filled.revision()).toBe(revision)
})

test('53: an edit outlives a server that restarts, by keyboard alone', async ({ page, filled }) => {
  test.setTimeout(180_000)
  await open(page, filled, '/routes/orders')
  const path = page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox')
  await typeInto(page, path, '/kept')
  await filled.stop()
  await expect(page.getByText('Weir does not answer.', { exact: false }).first()).toBeVisible({ timeout: 30_000 })
  await press(page, page.getByRole('button', { name: 'Review and save' }), 'Shift+Tab')
  await expect(page.getByRole('alert')).toContainText('got no answer')
  await filled.restart()
  await expect(page.getByRole('status').filter({ hasText: 'Weir does not answer' })).toHaveCount(0, { timeout: 30_000 })
  await save(page, 'orders')
  expect(await filled.read('routes', 'orders')).toMatchObject({ paths: ['/kept'] })
})

test('53: a target that is unhealthy is found, and its upstream mended, by keyboard alone', async ({ page, weir }) => {
  test.setTimeout(180_000)
  const checks = { active: { path: '/', healthy: { interval_ms: 1000 }, unhealthy: { interval_ms: 1000, tcp_failures: 1 } } }
  await weir.fillOrders({ targets: [{ host: '127.0.0.1', port: 9 }], checks })
  await open(page, weir, '/')
  await page.keyboard.press('g')
  await page.keyboard.press('u')
  await expect(page.getByRole('heading', { level: 1, name: 'Upstreams' })).toBeVisible()
  await expect(page.getByRole('row', { name: /127.0.0.1:9/ }).first()).toContainText('unhealthy')
  await press(page, page.getByRole('link', { name: 'orders', exact: true }).last())
  await expect(page.getByRole('heading', { level: 1, name: 'orders' })).toBeVisible()
  const port = page.getByRole('textbox', { name: 'Port' }).first()
  const backend = await upstream('well')
  await typeInto(page, port, new URL(backend.url).port)
  await save(page, 'orders')
  await open(page, weir, '/upstreams')
  await expect(page.getByRole('row', { name: /127.0.0.1:\d+ .*healthy/ }).first()).not.toContainText('unhealthy')
  await backend.close()
})

test('53: the look of a portal: a colour without contrast is refused, a good one saved, by keyboard alone', async ({ page, managed }) => {
  test.setTimeout(180_000)
  await open(page, managed, '/portals/main')
  const accent = page.getByRole('textbox', { name: 'Accent', exact: true }).first()
  await typeInto(page, accent, '#cccccc')
  await expect(page.getByText(/needs 4\.5/)).toHaveCount(1)
  await typeInto(page, accent, '#7a1f5c')
  await expect(page.getByText(/needs 4\.5/)).toHaveCount(0)
  await tick(page, page.getByRole('checkbox', { name: 'prod' }), 'Shift+Tab')
  await press(page, page.getByRole('button', { name: 'Review and save' }), 'Shift+Tab')
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('#7a1f5c')
  await press(page, dialog.getByRole('button', { name: 'Commit' }))
  await expect(page.getByRole('dialog')).toHaveCount(0)
  expect(await managed.good('GET', '/api/v1/portals/main')).toMatchObject({ theme: { light: { accent: '#7a1f5c' } }, environments: ['prod'] })
})
