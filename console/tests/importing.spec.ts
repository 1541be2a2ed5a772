// Import of a kong.yml and an apisix.yaml: what is wrong stands at its line, what would change is shown, and nothing is
// stored before somebody says so. APIs that begin with a document from an address, and logos.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PETS, Weir, expect, findings, open, pagesFromDist, test } from './weir'

const KONG = '/api/v1/dialects/kong'
const APISIX = '/api/v1/dialects/apisix/apisix/admin'

test('a kong.yml: findings by line, a diff, and one commit', async ({ page, filled }) => {
  await filled.good('PUT', `${KONG}/services/old`, { url: 'http://127.0.0.1:9' })
  await filled.good('PUT', `${KONG}/services/stays`, { url: 'http://127.0.0.1:9' })
  const commits = async () => (await filled.good<{ items: unknown[] }>('GET', '/api/v1/history')).items.length
  const before = await commits()
  await open(page, filled, '/import')
  const text = page.getByRole('textbox', { name: 'OpenAPI document, as YAML or JSON' })
  await text.fill('_format_version: "3.0"\nservices:\n- name: shop\n  url: "http://127.0.0.1:9"\n  routes:\n  - name: shop\n    paths: [shop]\n')
  await expect(page.getByText("A kong.yml: Kong's Admin API reads it.")).toBeVisible()
  await page.getByRole('button', { name: 'Preview' }).click()
  const wrong = page.getByRole('alert', { name: 'Findings' })
  await expect(wrong).toContainText('line 7')
  await expect(wrong).toContainText('services[0].routes[0].paths')
  await expect(page.getByRole('button', { name: 'Import', exact: true })).toHaveAttribute('aria-disabled', 'true')
  expect(await findings(page)).toEqual([])

  const { id } = await filled.good<{ id: string }>('GET', `${KONG}/services/stays`)
  await text.fill(`_format_version: "3.0"\nservices:\n- name: shop\n  url: "http://127.0.0.1:9"\n  routes:\n  - name: shop\n    paths: [/shop]\n- name: stays\n  id: ${id}\n  url: "http://127.0.0.1:10"\n`)
  await page.getByRole('button', { name: 'Preview' }).click()
  const preview = page.getByRole('status', { name: 'Preview' })
  await expect(preview).toContainText('2 created')
  await expect(preview).toContainText('1 changed')
  await expect(preview).toContainText('1 removed')
  await expect(preview).toContainText('What the file does not name is removed')
  const changed = preview.getByRole('region', { name: 'kong/services/stays' })
  await expect(changed.getByRole('row', { name: /^port/ })).toContainText('10')
  await expect(changed.getByRole('row')).toHaveCount(2)
  expect(await findings(page)).toEqual([])
  expect(await commits()).toBe(before)

  await page.getByRole('button', { name: 'Import', exact: true }).click()
  await expect(page.getByText('4 documents are imported')).toBeVisible()
  expect(await commits()).toBe(before + 1)
  expect((await filled.call('GET', `${KONG}/services/old`)).status).toBe(404)
  expect(await filled.good('GET', `${KONG}/routes/shop`)).toMatchObject({ paths: ['/shop'] })
  // What other dialects hold stays.
  expect(await filled.read('routes', 'orders')).toMatchObject({ name: 'orders' })
})

test('a kong.yml that was previewed does not replace what came since', async ({ page, weir }) => {
  await open(page, weir, '/import')
  await page.getByRole('textbox', { name: 'OpenAPI document, as YAML or JSON' }).fill('_format_version: "3.0"\nservices:\n- {name: shop, url: "http://127.0.0.1:9"}\n')
  await page.getByRole('button', { name: 'Preview' }).click()
  await expect(page.getByRole('status', { name: 'Preview' })).toContainText('1 created')
  await weir.good('PUT', `${KONG}/services/since`, { url: 'http://127.0.0.1:9' })
  await page.getByRole('button', { name: 'Import', exact: true }).click()
  await expect(page.getByRole('alert')).toContainText('412')
  expect((await weir.call('GET', `${KONG}/services/since`)).status).toBe(200)
})

test('an apisix.yaml: all findings by line, a diff, and one commit; a file is dropped', async ({ page, weir }) => {
  await weir.good('PUT', `${APISIX}/routes/1`, { uri: '/old', upstream: { type: 'roundrobin', nodes: { '127.0.0.1:9': 1 } } })
  const commits = async () => (await weir.good<{ items: unknown[] }>('GET', '/api/v1/history')).items.length
  const before = await commits()
  await open(page, weir, '/import')
  const text = page.getByRole('textbox', { name: 'OpenAPI document, as YAML or JSON' })
  await text.fill('routes:\n  - id: a\n    uri: 7\n    upstream: {type: roundrobin, nodes: {"127.0.0.1:9": 1}}\n  - id: b\n    uri: /b\n    plugins: {limit-count: {count: no}}\n#END\n')
  await expect(page.getByText("An apisix.yaml: APISIX's Admin API reads it.")).toBeVisible()
  await page.getByRole('button', { name: 'Preview' }).click()
  const wrong = page.getByRole('alert', { name: 'Findings' })
  await expect(wrong.getByRole('listitem')).toHaveCount(2)
  await expect(wrong.getByRole('listitem').first()).toContainText('line 2')
  await expect(wrong.getByRole('listitem').last()).toContainText('line 5')

  const good = 'routes:\n  - id: "1"\n    uri: /new\n    upstream: {type: roundrobin, nodes: {"127.0.0.1:9": 1}}\nconsumers:\n  - username: jack\n    plugins: {key-auth: {key: jack-key}}\n#END\n'
  const transfer = await page.evaluateHandle((content) => {
    const data = new DataTransfer()
    data.items.add(new File([content], 'apisix.yaml', { type: 'application/yaml' }))
    return data
  }, good)
  await text.dispatchEvent('drop', { dataTransfer: transfer })
  await expect(text).toHaveValue(good)
  await page.getByRole('button', { name: 'Preview' }).click()
  const preview = page.getByRole('status', { name: 'Preview' })
  await expect(preview).toContainText('1 created')
  await expect(preview).toContainText('1 changed')
  await expect(preview).toContainText('0 removed')
  await expect(preview.getByRole('region', { name: 'apisix/routes/1' }).getByRole('row', { name: /^uri/ })).toContainText('/new')
  expect(await commits()).toBe(before)
  await page.getByRole('button', { name: 'Import', exact: true }).click()
  await expect(page.getByText('2 documents are imported')).toBeVisible()
  expect(await commits()).toBe(before + 1)
  expect(await weir.good('GET', `${APISIX}/routes/1`)).toMatchObject({ value: { uri: '/new' } })
})

test('an API begins with a document from an address; no address of its own network is asked without a flag', async ({ page }) => {
  const weir = await new Weir().start()
  const server = createServer((request, response) => {
    if (request.url !== '/openapi.yaml') response.writeHead(302, { location: '/openapi.yaml' })
    response.end(PETS)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/openapi.yaml`
  const closed = await weir.call('POST', '/api/v1/documents/fetch', { url })
  expect(closed.status).toBe(400)
  expect(await closed.text()).toContain('its address is not public')
  for (const wrong of ['file:///etc/passwd', 'http://jack:secret@127.0.0.1/', 'a']) expect((await weir.call('POST', '/api/v1/documents/fetch', { url: wrong })).status, wrong).toBe(400)

  await weir.end()

  const other = new Weir()
  await other.start(['--data', other.folder, '--document-allow', '127.0.0.0/8'])
  await pagesFromDist(page)
  await open(page, other, '/apis/@new')
  await page.getByRole('button', { name: 'From an address' }).click()
  const dialog = page.getByRole('dialog', { name: 'A document from an address' })
  await dialog.getByRole('textbox', { name: 'Address' }).fill(url.replace('openapi.yaml', 'moved'))
  await dialog.getByRole('button', { name: 'Fetch' }).click()
  await expect(dialog.getByRole('alert')).toContainText('302')
  expect(await findings(page)).toEqual([])
  await dialog.getByRole('textbox', { name: 'Address' }).fill(url)
  await dialog.getByRole('button', { name: 'Fetch' }).click()
  await expect(page.getByRole('textbox', { name: 'OpenAPI document, as YAML or JSON' })).toHaveValue(PETS)
  expect(await other.revision()).toBe(0)
  await page.getByRole('button', { name: 'Create the API' }).click()
  await expect(page.getByText('pets 1.0.0 is there')).toBeVisible()
  await other.end()
  await new Promise<void>((resolve) => (server.closeAllConnections(), server.close(() => resolve())))
})

const DOT = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>'

test('logos are chosen as files, checked, and served so that they run nothing', async ({ page }) => {
  const weir = new Weir()
  await weir.start(['--data', weir.folder, '--environment', 'test', '--environment', 'prod', '--portal', '127.0.0.1:0'])
  await pagesFromDist(page)
  await weir.fillApis()
  await open(page, weir, '/portals/main')
  const choose = page.getByLabel('Choose a logo')
  await choose.setInputFiles({ name: 'notes.txt', mimeType: 'image/png', buffer: Buffer.from('no picture') })
  await expect(page.getByRole('alert').filter({ hasText: 'notes.txt is no SVG and no PNG' })).toBeVisible()
  await choose.setInputFiles({ name: 'large.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(`<svg>${' '.repeat(70_000)}</svg>`) })
  await expect(page.getByRole('alert').filter({ hasText: 'at most 64 KiB' })).toBeVisible()
  await choose.setInputFiles({ name: 'evil.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(SVG.replace('<path', '<script>alert(1)</script><path')) })
  await expect(page.getByRole('alert').filter({ hasText: '<script> is not allowed' })).toBeVisible()
  await choose.setInputFiles({ name: 'logo.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(SVG) })
  await expect(page.getByText(/^An SVG of \d+ B\.$/)).toBeVisible()
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('main is saved')).toBeVisible()
  await expect.poll(async () => (await fetch(`${weir.portal}/logos/portal`)).status).toBe(200)
  const served = await fetch(`${weir.portal}/logos/portal`)
  expect(served.headers.get('content-type')).toBe('image/svg+xml')
  expect(served.headers.get('content-security-policy')).toContain('sandbox')
  expect(served.headers.get('x-content-type-options')).toBe('nosniff')

  await open(page, weir, '/apis/pets')
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Choose a logo').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: DOT })
  await expect(dialog.getByText(/^A PNG of \d+ B\.$/)).toBeVisible()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByText('pets is saved')).toBeVisible()
  await expect.poll(async () => (await fetch(`${weir.portal}/logos/apis/pets`)).headers.get('content-type')).toBe('image/png')
  await weir.end()
})
