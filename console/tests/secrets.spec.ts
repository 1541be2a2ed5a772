// Secrets: what refers to them, whether each resolves, and no value anywhere. Calls that are sent for real.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Weir, expect, findings, open, pagesFromDist, settled, test, upstream } from './weir'

const KONG = '/api/v1/dialects/kong'
const SECRET = 'this-is-the-value-of-the-secret'

/** A vault as HashiCorp's, with one secret; `isShut`: it refuses. */
async function vault() {
  const state = { isShut: false }
  const server = createServer((request, response) => {
    const isThere = request.url === '/v1/secret/data/partner' && request.headers['x-vault-token'] === 'the-token'
    response.statusCode = state.isShut ? 503 : isThere ? 200 : 404
    response.end(isThere && !state.isShut ? JSON.stringify({ data: { data: { key: SECRET }, metadata: { version: 1 } } }) : '{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { port, state, close: () => new Promise<void>((resolve) => (server.closeAllConnections(), server.close(() => resolve()))) }
}

test('secrets: each reference with its state and its uses, a failing one named, tested by hand, and no value', async ({ page, weir }) => {
  const kept = await vault()
  const seen: string[] = []
  page.on('response', (response) => void response.text().then((text) => seen.push(text), () => undefined))
  await weir.good('POST', `${KONG}/vaults`, { prefix: 'partners', name: 'hcv', config: { host: '127.0.0.1', port: kept.port, protocol: 'http', mount: 'secret', kv: 'v2', token: 'the-token' } })
  await weir.good('PUT', `${KONG}/consumers/alice`, { username: 'alice' })
  await weir.put('services', 's', { name: 's', url: 'http://127.0.0.1:9' })
  await weir.put('consumers', 'good', { name: 'good', credentials: [{ 'key-auth': { key: '{vault://partners/partner/key}' } }] })
  await weir.put('consumers', 'bad', { name: 'bad', credentials: [{ 'key-auth': { key: '{vault://env/not-there}' } }] })

  await open(page, weir, '/secrets')
  const row = (text: string) => page.getByRole('row').filter({ hasText: text })
  await expect(row('partners/partner')).toContainText('resolves')
  await expect(row('env/not-there')).toContainText('missing')
  await expect(page.getByRole('status').filter({ hasText: '1 secret cannot be read' })).toContainText('NOT_THERE')
  const stores = page.getByRole('region', { name: 'Stores' })
  await expect(stores).toContainText(`http://127.0.0.1:${kept.port}`)
  await expect(stores.getByRole('listitem').filter({ hasText: 'partners' })).toContainText('1 reference')
  await settled(page)
  expect(await findings(page)).toEqual([])

  await page.getByRole('button', { name: '{vault://partners/partner/key}' }).click()
  const dialog = page.getByRole('dialog', { name: 'Reference' })
  await expect(dialog.getByRole('link', { name: 'consumer good' })).toHaveAttribute('href', /\/consumers\/good$/)
  await expect(dialog).toContainText('/credentials/0/key-auth/key')
  await expect(dialog).toContainText('Last read')
  await dialog.getByRole('button', { name: 'Ask for it now' }).click()
  await expect(dialog.getByRole('status')).toContainText('It resolves')
  expect(await findings(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Close', exact: true }).first().click()

  // The vault goes away: the value from before serves on, and the page says why it is not renewed.
  kept.state.isShut = true
  await weir.good('POST', '/api/v1/secrets/test', { reference: '{vault://partners/partner/key}' })
  await expect(async () => {
    await page.reload()
    await expect(row('partners/partner')).toContainText('not renewed', { timeout: 1000 })
  }).toPass()
  await page.getByRole('button', { name: '{vault://partners/partner/key}' }).click()
  await expect(dialog).toContainText("{vault://partners/partner/key}: its vault does not return it; see Weir's log")
  await dialog.getByRole('button', { name: 'Close', exact: true }).first().click()

  await page.getByRole('button', { name: 'Test a reference' }).click()
  const tested = page.getByRole('dialog', { name: 'Test a reference' })
  await tested.getByRole('textbox', { name: 'Reference' }).fill('{vault://env/path}')
  await tested.getByRole('button', { name: 'Ask for it now' }).click()
  await expect(tested.getByRole('status')).toContainText('It resolves')
  await tested.getByRole('textbox', { name: 'Reference' }).fill('a text')
  await tested.getByRole('button', { name: 'Ask for it now' }).click()
  await expect(tested.getByRole('alert')).toContainText('reference: expected')
  await tested.getByRole('button', { name: 'Close', exact: true }).first().click()

  await stores.getByRole('link', { name: 'partners' }).click()
  await expect(page.getByRole('textbox', { name: 'Prefix', exact: true })).toHaveValue('partners')
  expect(seen.filter((text) => text.includes(SECRET))).toEqual([])
  expect(seen.some((text) => text.includes('partners/partner'))).toBe(true)
  await kept.close()
})

test('a call is sent for real from a route, and its answer stands beside what was foretold', async ({ page, weir }) => {
  const backend = await upstream('from the backend')
  await weir.put('services', 's', { name: 's', url: backend.url })
  await weir.put('routes', 'keyed', { name: 'keyed', hosts: ['api.example.com'], paths: ['/keyed'], methods: ['GET'], service: 's', plugins: [{ 'key-auth': {} }] })
  await weir.put('consumers', 'alice', { name: 'alice', credentials: [{ 'key-auth': { key: 'alice-key' } }] })
  await open(page, weir, '/routes/keyed')
  await page.getByRole('link', { name: 'Try' }).click()
  await expect(page.getByRole('status', { name: 'What comes of it' })).toContainText('The gateway answers 401')
  const card = page.getByRole('region', { name: 'Send it' })
  const send = card.getByRole('button', { name: 'Send for real' })
  await expect(async () => {
    await send.click()
    await expect(card.getByRole('status', { name: 'What came back' })).toContainText('The answer is 401', { timeout: 2000 })
  }).toPass()
  await expect(card.getByRole('status', { name: 'What came back' })).toContainText('As foretold.')
  await expect(card).toContainText('Request id')
  await page.getByRole('textbox', { name: 'curl line, or a URL' }).fill("curl 'http://api.example.com/keyed?a=b' -H 'apikey: alice-key'")
  await expect(page.getByRole('status', { name: 'What comes of it' })).toContainText('It goes to')
  await expect(card.getByRole('status', { name: 'What came back' })).toHaveCount(0)
  await send.click()
  await expect(card.getByRole('status', { name: 'What came back' })).toContainText('The answer is 200')
  await expect(card.getByLabel('Body of the answer')).toContainText('from the backend')
  await expect(card).toContainText('All of it after')
  expect(await findings(page)).toEqual([])
  // No address leads elsewhere: the host is only asked for.
  await page.getByRole('textbox', { name: 'curl line, or a URL' }).fill(`curl '${backend.url}/keyed'`)
  await send.click()
  await expect(card.getByRole('status', { name: 'What came back' })).toContainText('The answer is 404')
  // A header that says who calls is refused: the usual ones, and those that the gateway is configured to read.
  await expect(card).toContainText('The gateway sees its own address as the client.')
  await weir.put('routes', 'edge', { name: 'edge', paths: ['/edge'], service: 's', plugins: [{ 'real-ip': { from: 'http_x_from_the_edge', trusted: ['127.0.0.1'] } }] })
  for (const [header, reason] of [
    ['X-Forwarded-For', "it sets the caller's address"],
    ['X-Real-IP', "it sets the caller's address"],
    ['X-From-The-Edge', "it sets the caller's address"],
    ['X-Request-Id', 'the gateway gives the call its own id'],
  ]) {
    await page.getByRole('textbox', { name: 'curl line, or a URL' }).fill(`curl 'http://api.example.com/keyed' -H '${header}: 10.0.0.1'`)
    await send.click()
    await expect(card.getByRole('alert')).toContainText(`the header '${header}' cannot be set: ${reason}`)
  }
  await backend.close()
})

test('who may only read sends no call and tests no secret', async ({ weir }) => {
  await weir.addAdmin()
  const { token } = await weir.good<{ token: string }>('POST', '/api/v1/users/rita', { rights: [{ role: 'read' }] })
  weir.token = token
  expect((await weir.call('POST', '/api/v1/try', { url: '/' })).status).toBe(403)
  expect((await weir.call('POST', '/api/v1/secrets/test', { reference: '{vault://env/path}' })).status).toBe(403)
  expect((await weir.call('GET', '/api/v1/secrets')).status).toBe(200)
})

test('the button of the theme follows the theme of the system', async ({ page, weir }) => {
  await page.emulateMedia({ colorScheme: 'light' })
  await open(page, weir, '/')
  await expect(page.getByRole('button', { name: 'Use the dark theme' })).toBeVisible()
  await page.emulateMedia({ colorScheme: 'dark' })
  await expect(page.getByRole('button', { name: 'Use the light theme' })).toBeVisible()
  await page.getByRole('button', { name: 'Use the light theme' }).click()
  await expect(page.getByRole('button', { name: 'Use the dark theme' })).toBeVisible()
})

test('a gateway is drained from its page, answers on, and is taken back', async ({ page }) => {
  test.setTimeout(120_000)
  const filled = new Weir()
  await filled.start(['--data', filled.folder, '--name', 'edge-1'])
  await pagesFromDist(page)
  await filled.fill()
  const isOut = async () => (await filled.good<{ items: { draining: boolean }[] }>('GET', '/api/v1/gateways')).items[0]?.draining
  await open(page, filled, '/gateways')
  await expect(page.getByRole('row').filter({ hasText: 'serving' })).toBeVisible()
  await page.getByRole('checkbox').last().check()
  await page.getByRole('button', { name: 'Drain', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: /^Drain / })
  expect(await findings(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
  await expect(page.getByText('to be taken out').or(page.getByText('draining')).first()).toBeVisible()
  await expect.poll(isOut, { timeout: 25_000 }).toBe(true)
  expect((await fetch(`${filled.status}/status/ready`)).status).toBe(503)
  expect((await fetch(`${filled.proxy}/nowhere`)).status).toBe(404)
  await expect(page.getByRole('row').filter({ hasText: 'draining' })).toBeVisible()
  // It is out after a restart, too.
  await filled.stop()
  await filled.restart()
  await expect.poll(isOut, { timeout: 25_000 }).toBe(true)
  await page.reload()
  await page.getByRole('checkbox').last().check()
  await page.getByRole('button', { name: 'Take back', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Take back', exact: true }).click()
  await expect.poll(isOut, { timeout: 25_000 }).toBe(false)
  expect((await fetch(`${filled.status}/status/ready`)).status).toBe(200)
  await filled.end()
})

test('a field with a secret takes a reference to one, in the way of the document’s dialect', async ({ page, weir }) => {
  const kept = await vault()
  await weir.good('POST', `${KONG}/vaults`, { prefix: 'partners', name: 'hcv', config: { host: '127.0.0.1', port: kept.port, protocol: 'http', mount: 'secret', kv: 'v2', token: 'the-token' } })
  await weir.put('consumers', 'alice', { name: 'alice', credentials: [{ 'key-auth': { key: 'a-plain-key' } }] })
  await open(page, weir, '/consumers/alice')
  await page.getByRole('button', { name: /^Reference a secret/ }).click()
  const group = page.getByRole('group', { name: /^A secret for Key/ })
  await group.getByLabel('Store').selectOption({ label: `partners, http://127.0.0.1:${kept.port} (Kong’s form)` })
  await expect(group.getByRole('button', { name: 'Use this reference' })).toHaveAttribute('aria-disabled', 'true')
  await group.getByLabel('Path and field').fill('partner/key')
  await expect(group).toContainText('{vault://partners/partner/key}')
  expect(await findings(page)).toEqual([])
  await group.getByRole('button', { name: 'Use this reference' }).click()
  await expect(page.getByRole('textbox', { name: 'Key', exact: true })).toHaveValue('{vault://partners/partner/key}')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('alice is saved')).toBeVisible()
  expect(await weir.read('consumers', 'alice')).toMatchObject({ credentials: [{ 'key-auth': { key: '{vault://partners/partner/key}' } }] })
  // APISIX's documents know its own way only.
  await open(page, weir, '/new/apisix/consumers')
  await page.getByRole('button', { name: 'Text', exact: true }).click()
  const text = page.getByRole('textbox', { name: 'New APISIX consumer as text' })
  await text.press('Control+A')
  await page.keyboard.insertText(JSON.stringify({ username: 'bob', plugins: { 'key-auth': { key: 'bobs-key' } } }))
  await page.getByRole('button', { name: 'Form', exact: true }).click()
  await page.getByRole('button', { name: /^Reference a secret/ }).click()
  await expect(group.getByLabel('Store').getByRole('option')).toHaveCount(1)
  await group.getByLabel('Variable').fill('BOBS_KEY')
  await group.getByRole('button', { name: 'Use this reference' }).click()
  await expect(page.getByRole('textbox', { name: 'Key', exact: true })).toHaveValue('$env://BOBS_KEY')
})
