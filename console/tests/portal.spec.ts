// The developer portal in a browser: who sees what, search, the reference, and that nothing of people's texts runs.
import { expect, findings, findingsInBothThemes, test } from './weir'
import { PORTAL_PAGES } from './list'
import { type Shop, portalTest, specification } from './shop'

const axeOn = async (page: Parameters<typeof findings>[0]) => expect(await findings(page)).toEqual([])

portalTest('28: somebody who is not signed in sees public APIs only, everywhere', async ({ page, shop }) => {
  await shop.api('hidden', specification('Hidden ledger'), { visibility: { groups: ['staff'] } })
  await page.goto(`${shop.portal}/apis`)
  await expect(page.getByRole('link', { name: 'Shop', exact: true })).toBeVisible()
  await expect(page.getByText('Hidden ledger')).toHaveCount(0)
  await page.goto(`${shop.portal}/search?q=ledger`)
  await expect(page.getByRole('status').first()).toContainText('Nothing found')
  await page.goto(`${shop.portal}/apis/hidden`)
  await expect(page.getByRole('heading', { level: 1, name: 'Nothing here' })).toBeVisible()
  for (const path of ['/.well-known/api-catalog', '/sitemap.xml', '/portal/v1/apis', '/apis', '/']) {
    const answer = await fetch(`${shop.portal}${path}`)
    const text = await answer.text()
    expect(text, path).not.toContain('hidden')
    if (path !== '/') expect(text, path).toContain('shop')
  }
  expect((await fetch(`${shop.portal}/apis/hidden`)).status).toBe(404)
  expect((await fetch(`${shop.portal}/portal/v1/apis/hidden/versions/1.0.0/openapi.json`)).status).toBe(404)
})

portalTest('32: search forgives typing errors', async ({ page, shop }) => {
  await page.goto(shop.portal)
  const box = page.getByRole('searchbox', { name: 'Search APIs and operations' })
  for (const words of ['refund', 'refnud']) {
    await box.fill(words)
    await box.press('Enter')
    await expect(page.getByRole('list', { name: 'Found' })).toContainText('Pays an order back')
  }
  await page.getByRole('link', { name: 'POST /orders/{id}/refunds' }).click()
  await expect(page.getByRole('heading', { name: 'Pays an order back' })).toBeVisible()
})

portalTest('31: choices, recursion, forms with files, and the same call in five languages', async ({ page, shop }) => {
  await page.goto(`${shop.portal}/apis/shop/1.0.0/operations/addOrder`)
  const body = page.getByRole('region', { name: 'Request body' })
  await expect(body.getByRole('group', { name: 'One of' })).toBeVisible()
  await body.getByRole('button', { name: 'card', exact: true }).click()
  await expect(body).toContainText('number')
  await body.getByRole('button', { name: 'transfer', exact: true }).click()
  await expect(body).toContainText('iban')
  const samples = page.getByRole('region', { name: 'Code samples' })
  for (const [language, part] of [['curl', 'curl -X POST'], ['JavaScript', 'await fetch('], ['Python', 'import requests'], ['Go', 'http.NewRequest'], ['Rust', 'reqwest::blocking']] as const) {
    await samples.getByRole('button', { name: language }).click()
    await expect(samples).toContainText(part)
  }
  await page.goto(`${shop.portal}/apis/shop/1.0.0/operations/getTree`)
  const answers = page.getByRole('region', { name: 'Answers' })
  await expect(answers.getByText('refers back').first()).toBeVisible()
  await page.goto(`${shop.portal}/apis/shop/1.0.0/operations/addPicture`)
  await samples.getByRole('button', { name: 'curl' }).click()
  await expect(samples).toContainText("-F 'picture=@file.bin'")
  await axeOn(page)
})

portalTest('operations are found by whatever they are called', async ({ page, shop }) => {
  const ids = ['100%', '50%off', 'a/b', 'what?#']
  const paths = Object.fromEntries(ids.map((operationId, index) => [`/odd/${index}`, { get: { operationId, summary: `Odd number ${index}`, responses: { 200: { description: 'ok' } } } }]))
  await shop.api('odd', { openapi: '3.1.0', info: { title: 'Odd', version: '1' }, paths })
  await page.goto(`${shop.portal}/apis/odd/1.0.0`)
  for (const index of ids.keys()) {
    await page.getByRole('navigation', { name: 'Operations' }).getByRole('link', { name: `Odd number ${index}` }).click()
    await expect(page.getByRole('heading', { level: 2, name: `Odd number ${index}` })).toBeVisible()
    await page.reload()
    await expect(page.getByRole('heading', { level: 2, name: `Odd number ${index}` })).toBeVisible()
  }
  // An address that says nothing is a page that is not there, and the portal goes on.
  await page.goto(`${shop.portal}/apis/odd/1.0.0/operations/%E0%A4%A`)
  await expect(page.getByRole('link', { name: 'APIs', exact: true }).first()).toBeVisible()
})

/** How long something takes, in milliseconds: the best of a few tries, because the machine does other work, too. */
async function best(tries: number, work: (number: number) => Promise<void>): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let number = 0; number < tries; number += 1) {
    const begin = performance.now()
    await work(number)
    least = Math.min(least, performance.now() - begin)
  }
  return Math.round(least)
}

// The bars are those of a quiet machine with a release: `STRICT=1` holds a debug build to them, too.
const SLACK = process.env.STRICT === '1' ? 1 : 4

portalTest('31: an API with 2,000 operations opens within a second, and search answers within 200 ms', async ({ page, shop }) => {
  portalTest.setTimeout(240_000)
  const paths = Object.fromEntries(Array.from({ length: 2_000 }, (_, it) => [`/things/${it}`, { get: { operationId: `op${it}`, summary: `Reads thing ${it}`, tags: [`part ${it % 20}`], responses: { 200: { description: 'ok' } } } }]))
  await shop.api('large', { openapi: '3.1.0', info: { title: 'Large', version: '1' }, paths })
  await page.goto(`${shop.portal}/apis/large`)
  await expect(page.getByRole('heading', { level: 1, name: 'Large' })).toBeVisible()
  const opened = await best(5, async (number) => {
    await page.goto(`${shop.portal}/apis/large/1.0.0/operations/op${number}`)
    await page.getByRole('heading', { name: `Reads thing ${number}`, exact: true }).waitFor()
  })
  const filter = page.getByRole('searchbox', { name: 'Filter operations' })
  const filtered = await best(5, async (number) => {
    await filter.fill(`thing 199${number}`)
    await page.getByRole('link', { name: `Reads thing 199${number}` }).waitFor()
  })
  await page.goto(`${shop.portal}/search`)
  const box = page.getByRole('searchbox', { name: 'Search for' })
  const found = page.getByRole('list', { name: 'Found' })
  await box.fill('raeds thing')
  await expect(found).toContainText('Reads thing')
  const searched = await best(5, async (number) => {
    await box.fill(`thing 187${number}`)
    await found.getByText(`Reads thing 187${number}`).first().waitFor()
  })
  console.log(`2,000 operations: opened after ${opened} ms, filtered after ${filtered} ms, searched after ${searched} ms`)
  expect(opened, 'an operation of 2,000 is there').toBeLessThanOrEqual(1_000 * SLACK)
  expect(filtered, 'the list of operations is filtered').toBeLessThanOrEqual(200 * SLACK)
  expect(searched, 'the search has answered').toBeLessThanOrEqual(200 * SLACK)
  await page.getByRole('link', { name: 'GET /things/1874' }).click()
  await expect(page.getByRole('heading', { name: 'Reads thing 1874' })).toBeVisible()
})

portalTest('30: a call is tried through the portal, and leads nowhere else', async ({ page, shop }) => {
  await page.goto(`${shop.portal}/apis/shop/1.0.0/operations/addRefund`)
  const values = page.getByRole('region', { name: 'Values' })
  await values.getByRole('textbox', { name: 'id path required' }).fill('7')
  const tried = page.getByRole('region', { name: 'Try it' })
  await tried.getByRole('button', { name: 'Send' }).click()
  await expect(tried.getByRole('status')).toContainText('401')
  await expect(tried.getByRole('status')).toContainText(/Request [\w-]{8,}/)
  const forged = await fetch(`${shop.portal}/portal/v1/try/shop/1.0.0/default/addRefund`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: shop.portal },
    body: JSON.stringify({ path: '/orders/../admin/refunds' }),
  })
  expect(forged.status).toBe(400)
  const elsewhere = await fetch(`${shop.portal}/portal/v1/try/shop/1.0.0/default/addRefund`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'https://evil.test' },
    body: JSON.stringify({ path: '/orders/7/refunds' }),
  })
  expect(elsewhere.status).toBe(403)
})

portalTest('36: what people write does not run', async ({ page, shop }) => {
  const hostile = '<script>window.hit=1</script> [link](javascript:window.hit=2) <img src=x onerror="window.hit=3"> <svg onload="window.hit=4"></svg>'
  await shop.call('PUT', '/api/v1/portals/main', { display_name: '<b>Shop</b>', description: '</title><script>window.hit=5</script>', home: hostile })
  await shop.call('PUT', '/api/v1/portals/main/pages/about', { title: '"><script>window.hit=6</script>', body: hostile, menu: true, published: true })
  const spec = specification('<img src=x onerror=window.hit=7>') as { info: { description: string }; paths: Record<string, Record<string, { summary: string; description: string }>> }
  spec.info.description = hostile
  const operation = spec.paths['/orders']?.['get']
  if (operation) Object.assign(operation, { summary: '<script>window.hit=8</script>', description: hostile })
  await shop.api('hostile', spec)
  for (const path of ['/', '/pages/about', '/apis', '/apis/hostile', '/apis/hostile/1.0.0/operations/listOrders', '/search?q=script']) {
    await page.goto(`${shop.portal}${path}`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await page.waitForLoadState('networkidle')
    expect(await page.evaluate(() => (window as { hit?: number }).hit), path).toBeUndefined()
    expect(await page.locator('main a[href^="javascript" i], main script, main svg[onload], main img[onerror]').count(), path).toBe(0)
  }
})

portalTest('38: the portal answers nothing of the console and of its API', async ({ shop }) => {
  for (const path of ['/api/v1/users', '/api/v1/openapi.json', '/gateways', '/audit', '/ui/index.html', '/portal/v1/users']) {
    const answer = await fetch(`${shop.portal}${path}`)
    expect(answer.status, path).toBe(404)
  }
  expect((await fetch(`${shop.weir.url}/portal/v1/portal`)).status).toBe(404)
})

portalTest('40: colours with too little contrast are refused with their ratio; good ones are used', async ({ page, shop }) => {
  const answer = await shop.call('PUT', '/api/v1/portals/main', { theme: { light: { accent: '#cccccc' } } })
  expect(answer.status).toBe(422)
  expect(await answer.text()).toContain('1.61')
  expect((await shop.call('PUT', '/api/v1/portals/main', { theme: { light: { accent: '#7a1f5c' } } })).status).toBe(200)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(`${shop.portal}/`)
  await expect(page.getByRole('link', { name: 'All APIs' })).toHaveCSS('background-color', 'rgb(122, 31, 92)')
})

portalTest('56: the first view of the portal is small, and no script in the page runs', async ({ page, shop }) => {
  portalTest.skip(process.env.CONSOLE_DIST === '1', 'files of dist are not compressed')
  // The policy says so, and this time it should.
  page.removeAllListeners('console')
  let scripts = 0
  let styles = 0
  page.on('response', (response) => {
    const size = Number(response.headers()['content-length'] ?? 0)
    if (response.url().endsWith('.js')) scripts += size
    if (response.url().endsWith('.css')) styles += size
  })
  await page.goto(`${shop.portal}/`)
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await page.waitForLoadState('networkidle')
  expect(scripts).toBeGreaterThan(10_000)
  expect(scripts).toBeLessThanOrEqual(150_000)
  expect(styles).toBeLessThanOrEqual(20_000)
  const ran = await page.evaluate(() => {
    const script = document.createElement('script')
    script.textContent = 'globalThis.injected = true'
    document.body.append(script)
    return 'injected' in globalThis
  })
  expect(ran).toBe(false)
})

portalTest('several portals answer by host', async ({ shop }) => {
  const main = await shop.call('PUT', '/api/v1/portals/partners', { hosts: ['partners.test'], display_name: 'Partners', apis: [] })
  expect(main.status).toBe(201)
  const clash = await shop.call('PUT', '/api/v1/portals/third', { hosts: ['partners.test'] })
  expect(await clash.text()).toContain("the portal 'partners' answers 'partners.test'")
})

portalTest('each page is accessible in both themes', async ({ page, shop }) => {
  for (const path of PORTAL_PAGES) {
    await page.goto(`${shop.portal}${path}`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await page.waitForLoadState('networkidle')
    expect(await findingsInBothThemes(page), path).toEqual([])
  }
  await page.setViewportSize({ width: 390, height: 844 })
  for (const path of PORTAL_PAGES) {
    await page.goto(`${shop.portal}${path}`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    expect(wide, `${path} is wider than a phone`).toBeLessThanOrEqual(0)
  }
})

test('a portal without APIs says what to do', async ({ page, weir }) => {
  await weir.stop()
  await weir.start(['--data', weir.folder, '--portal', '127.0.0.1:0'])
  await page.goto(weir.portal)
  await expect(page.getByText('Nothing is published here yet.')).toBeVisible()
})

export type { Shop }
