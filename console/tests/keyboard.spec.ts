// Whole tasks by keyboard alone: no test here presses a mouse button. What stands in the way of one who has no mouse, such
// as an editor that keeps the focus, fails them.
import type { Locator, Page } from '@playwright/test'
import { expect, open, tabTo, test, upstream } from './weir'

/** Goes to a field by Tab and types a text in place of what is there. */
async function typeInto(page: Page, field: Locator, text: string) {
  await tabTo(page, field)
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(text)
}

/** Goes to a button or a link by Tab and presses Enter. */
async function press(page: Page, wanted: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab') {
  await tabTo(page, wanted, key)
  await page.keyboard.press('Enter')
}

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
  await press(page, page.getByRole('button', { name: 'Text', exact: true }), 'Shift+Tab')
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
