// Explain: the cause of each answer that callers ask about, by logged calls and by pasted ones; and selections.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PETS, Weir, expect, open, pagesFromDist, test, upstream } from './weir'

test('the cause of 404, 401, 429 and 502 is named, from the live calls', async ({ page, weir }) => {
  test.setTimeout(120_000)
  const backend = await upstream('there')
  await weir.put('services', 's', { name: 's', url: backend.url })
  await weir.put('services', 'gone', { name: 'gone', url: 'http://127.0.0.1:9', retries: 0 })
  await weir.put('routes', 'keyed', { name: 'keyed', paths: ['/keyed'], methods: ['GET'], service: 's', plugins: [{ 'key-auth': {} }] })
  await weir.put('routes', 'few', { name: 'few', paths: ['/few'], service: 's', plugins: [{ 'rate-limit': { limits: [{ count: 1, per: 'hour' }] } }] })
  await weir.put('routes', 'gone', { name: 'gone', paths: ['/gone'], service: 'gone' })
  const status = async (path: string) => (await fetch(`${weir.proxy}${path}`)).status
  await expect.poll(() => status('/gone')).toBe(502)
  await status('/few')
  expect(await status('/few')).toBe(429)
  expect(await status('/keyed')).toBe(401)
  expect(await status('/nowhere')).toBe(404)
  const causes: [string, string, RegExp, RegExp][] = [
    ['/nowhere', '404', /no route/i, /The gateway answers 404/],
    ['/keyed', '401', /key-auth/, /The gateway answers 401\s+by key-auth/],
    ['/few', '429', /rate limited/, /It goes to|429/],
    ['/gone', '502', /502/, /It goes to/],
  ]
  for (const [path, status, logged, end] of causes) {
    await open(page, weir, `/live?path=${encodeURIComponent(path)}`)
    // Calls appear one by one: an earlier one with another status is not meant.
    const row = page.getByRole('row').filter({ hasText: status })
    await row.getByRole('link', { name: new RegExp(`^Explain GET .*${path}$`) }).first().click()
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Explain')
    await expect(page.getByRole('region', { name: 'What happened' }), path).toContainText(logged)
    await expect(page.getByRole('status', { name: 'What comes of it' }), path).toContainText(end)
  }
  await backend.close()
})

test('a pasted line of curl: route, near misses and why, plugins, against now and an earlier revision', async ({ page, filled }) => {
  const before = await filled.revision()
  await filled.put('routes', 'near', { name: 'near', paths: ['/orders'], methods: ['DELETE'], hosts: ['api.example.com'], service: 'orders' })
  await open(page, filled, '/explain')
  await page.getByRole('textbox', { name: 'curl line, or a URL' }).fill("curl -X POST 'http://api.example.com/orders' \\\n  -H 'apikey: alice-key' -d 'x=1'")
  const route = page.getByRole('region', { name: 'Route' })
  await expect(route.getByRole('link', { name: 'orders', exact: true })).toBeVisible()
  await expect(route).toContainText('alice')
  const plugins = page.getByRole('region', { name: 'Plugins' })
  await expect(plugins.getByRole('listitem').filter({ hasText: 'key-auth' })).toContainText('goes on')
  await expect(page.getByRole('region', { name: 'Near misses' })).toContainText('near')
  await expect(page.getByRole('region', { name: 'Near misses' })).toContainText(/method/i)
  await page.getByLabel('Configuration').selectOption('revision')
  await page.getByRole('spinbutton', { name: 'Revision' }).fill(String(before))
  await expect(page.getByRole('region', { name: 'Near misses' }).getByRole('link', { name: 'near' })).toHaveCount(0)
  await page.getByRole('button', { name: 'Show as call' }).click()
  await expect(page.getByRole('dialog', { name: 'This page as calls' })).toContainText("weir explain 'POST http://api.example.com/orders'")
})

test('against a draft that is not published', async ({ page, managed }) => {
  await managed.good('PUT', '/api/v1/apis/pets/versions/1.0.0', {
    spec: `openapi: 3.1.0\ninfo: {title: Pets, version: 1.0.0}\npaths:\n  /toys:\n    get: {operationId: toys, responses: {"200": {description: Toys}}}\n`,
  })
  await open(page, managed, '/explain?url=http://localhost/v1/toys')
  const end = page.getByRole('status', { name: 'What comes of it' })
  await expect(end).toContainText('404')
  await page.getByLabel('Configuration').selectOption('draft')
  await expect(page.getByRole('region', { name: 'Route' }).getByRole('link', { name: 'pets 1.0.0 in test' })).toBeVisible()
})

test('an explained call is kept as a test, which stops a publish that breaks it', async ({ page, managed }) => {
  test.setTimeout(120_000)
  await open(page, managed, '/explain?url=http://localhost/v1/pets')
  await page.getByLabel('Configuration').selectOption('draft')
  await expect(page.getByRole('status', { name: 'What comes of it' })).toBeVisible()
  await page.getByRole('button', { name: 'Keep as a test' }).click()
  const dialog = page.getByRole('dialog', { name: 'Keep as a test' })
  await expect(dialog.getByLabel('Version')).toHaveValue('pets/1.0.0')
  await dialog.getByRole('textbox', { name: 'Name' }).fill('lists-pets')
  await dialog.getByRole('checkbox', { name: 'it is taken for no consumer' }).uncheck()
  await dialog.getByRole('button', { name: 'Keep' }).click()
  await expect(page.getByText('lists-pets is kept.')).toBeVisible()

  await open(page, managed, '/apis/pets/1.0.0/tests')
  const row = page.getByRole('table', { name: 'Tests' }).getByRole('row', { name: /lists-pets/ })
  await expect(row).toContainText('/pets')
  await page.getByRole('button', { name: 'Run all tests' }).click()
  await expect(page.getByRole('status', { name: 'What came of the run' })).toContainText('all passed')
  await row.getByRole('button', { name: 'Edit lists-pets' }).click()
  const edit = page.getByRole('dialog', { name: 'Edit the test lists-pets' })
  await edit.getByLabel('Operation').selectOption('')
  await edit.getByRole('button', { name: 'Save' }).click()
  await expect(row).toContainText('no operation of this API takes it')
  await page.getByRole('button', { name: 'Run all tests' }).click()
  await expect(row).toContainText('failed')

  // A publish of what is published already changes nothing, and overrides no test.
  await managed.good('PUT', '/api/v1/apis/pets/versions/1.0.0', { spec: `${PETS}  /toys:\n    get: {operationId: toys, responses: {"200": {description: Toys}}}\n` })
  await open(page, managed, '/apis/pets/1.0.0/publish?to=test')
  const steps = page.getByRole('list', { name: 'Steps' })
  await expect(steps.getByRole('listitem').filter({ hasText: 'lists-pets: operation: expected none' }).first()).toBeVisible()
  const publish = page.getByRole('button', { name: 'Publish to test' })
  await expect(publish).toHaveAttribute('aria-disabled', 'true')
  await page.getByRole('textbox', { name: 'Why tests may fail' }).fill('it is another API now')
  await expect(publish).not.toHaveAttribute('aria-disabled', 'true')
  await publish.click()
  await expect(page.getByRole('heading', { name: /is published to test/ })).toBeVisible()
  const known = await managed.good<{ history: { forced?: string[] }[] }>('GET', '/api/v1/publications/pets/1.0.0/test')
  expect(known.history.at(-1)?.forced).toEqual(['tests were overridden: it is another API now'])
})

test('five hundred routes are disabled in one commit, and one press takes it back', async ({ page, weir }) => {
  test.setTimeout(180_000)
  const routes = Array.from({ length: 500 }, (_, index) => ({ kind: 'routes', name: `r${index}`, value: { name: `r${index}`, paths: [`/p${index}`], service: 's' } }))
  await weir.good('POST', '/api/v1/changes', { changes: [{ kind: 'services', name: 's', value: { name: 's', url: 'http://127.0.0.1:9' } }, ...routes] })
  const notes = async (count: number) => (await weir.good<{ items: { note: string }[] }>('GET', `/api/v1/history?limit=${count}`)).items.map((it) => it.note)
  await open(page, weir, '/routes')
  await expect(page.getByRole('status').filter({ hasText: '500 routes' })).toBeVisible()
  // The list reads in pages; the selection holds over them.
  const table = page.getByRole('table', { name: 'Routes' })
  await expect(async () => {
    await page.locator('.table .scroll').evaluate((it) => it.scrollTo(0, it.scrollHeight))
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    await expect(page.getByText('500 routes selected')).toBeVisible({ timeout: 1000 })
  }).toPass()
  await page.getByRole('button', { name: 'Disable' }).click()
  const dialog = page.getByRole('dialog', { name: 'Disable 500 routes?' })
  await dialog.getByRole('button', { name: 'Disable' }).click()
  await expect(page.getByText('500 routes disabled')).toBeVisible({ timeout: 60_000 })
  expect(await notes(2)).toEqual(['Disable 500 routes', '501 resources'])
  await expect(table.getByText('disabled').first()).toBeVisible()
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByText('500 routes as before')).toBeVisible({ timeout: 60_000 })
  expect(await notes(2)).toEqual(['Undo: Disable 500 routes', 'Disable 500 routes'])
  expect(await weir.read('routes', 'r7')).toEqual({ name: 'r7', paths: ['/p7'], service: 's' })
})

test('a label that is changed while it is checked is not committed as it was', async ({ page, filled }) => {
  const held: (() => void)[] = []
  let isHeld = true
  await open(page, filled, '/routes')
  await page.getByRole('checkbox', { name: 'Select orders' }).check()
  await page.getByRole('group', { name: 'Selection' }).getByRole('button', { name: 'Label' }).click()
  const dialog = page.getByRole('dialog', { name: /^Label 1/ })
  const act = dialog.getByRole('button', { name: 'Label', exact: true })
  await dialog.getByLabel('Label', { exact: true }).fill('team=a')
  await expect(act).not.toHaveAttribute('aria-disabled', 'true')
  await page.route('**/api/v1/changes', async (route) => {
    if (isHeld) await new Promise<void>((resolve) => held.push(resolve))
    await route.continue()
  })
  await dialog.getByLabel('Label', { exact: true }).fill('team=b=c')
  await expect.poll(() => held.length).toBe(1)
  await expect(act).toHaveAttribute('aria-disabled', 'true')
  isHeld = false
  held.forEach((release) => release())
  await expect(act).not.toHaveAttribute('aria-disabled', 'true')
  await act.click()
  await expect(page.getByText('1 route labelled')).toBeVisible()
  expect(await filled.read('routes', 'orders')).toMatchObject({ labels: { team: 'b=c' } })
})

test('over a kong.yml without a store: everything is shown, explained, and not changed', async ({ page }) => {
  const weir = new Weir()
  const file = join(weir.folder, 'kong.yml')
  writeFileSync(file, "_format_version: '3.0'\nservices:\n- name: shop\n  url: http://127.0.0.1:9\n  routes: [{name: shop, paths: [/shop]}]\n")
  await weir.start(['-c', file])
  await pagesFromDist(page)
  await open(page, weir, '/routes')
  await expect(page.getByRole('status').filter({ hasText: 'Read-only' })).toContainText('--data')
  await expect(page.getByRole('link', { name: 'shop', exact: true }).first()).toBeVisible()
  const button = page.getByRole('button', { name: 'New route' })
  await expect(button).toHaveAttribute('aria-disabled', 'true')
  await expect(button).toHaveAccessibleDescription(/no store/)
  expect((await weir.call('PUT', '/api/v1/resources/services/x', { url: 'http://h' })).status).toBe(409)
  await open(page, weir, '/explain?url=http://localhost/shop')
  await expect(page.getByRole('region', { name: 'Route' }).getByRole('link', { name: 'shop' })).toBeVisible()
  await open(page, weir, '/history')
  await expect(page.getByRole('heading', { name: 'Files have no history here' })).toBeVisible()
  await weir.end()
})
