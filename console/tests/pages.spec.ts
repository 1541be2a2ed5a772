// Every page: usable with nothing and with something, in both themes, without serious findings of axe, from this host
// only.
import { API_PAGES, PAGES, pagesWithIds } from './list'
import { type Weir, expect, findingsInBothThemes, open, settled, tabTo, test } from './weir'

test('pages of API management have no serious findings in both themes', async ({ page, managed }) => {
  test.setTimeout(480_000)
  const found: string[] = []
  for (const path of [...API_PAGES, ...(await pagesWithIds(managed))]) {
    await open(page, managed, path)
    await settled(page)
    for (const finding of await findingsInBothThemes(page)) found.push(`${path} ${finding}`)
  }
  expect(found).toEqual([])
})

/** Gives one long word as a name and a description to what pages of API management show. */
async function nameLong(weir: Weir) {
  const word = 'überlang'.repeat(25)
  for (const path of ['apis/pets', 'apis/pets/versions/1.0.0/plans/gold', 'environments/test', 'environments/prod', 'products/bundle', 'applications/shop', 'portals/main']) {
    const known = await weir.good<object>('GET', `/api/v1/${path}`)
    await weir.good('PUT', `/api/v1/${path}`, { ...known, display_name: word, description: word })
  }
  await weir.good('PUT', '/api/v1/portals/main/pages/terms', { title: word, body: word, menu: true, published: true })
}

test('no page of API management is wider than a phone, whatever things are called', async ({ page, managed }) => {
  test.setTimeout(120_000)
  await nameLong(managed)
  await page.setViewportSize({ width: 390, height: 844 })
  for (const path of [...API_PAGES, `/routes/${'none'.repeat(40)}`, ...(await pagesWithIds(managed))]) {
    await open(page, managed, path)
    await settled(page)
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect(excess, path).toBeLessThanOrEqual(0)
  }
})

test('what saves a document stands at the head of its page, and the address says which view is shown', async ({ page, managed }) => {
  await managed.fill()
  const foreign = await pagesWithIds(managed)
  for (const path of ['/routes/orders', '/hooks/ci', '/hooks/@new', '/portals/main', '/portals/main/pages/terms', '/products/bundle/edit', '/alerts/@new', '/reports/@new', '/analytics/boards/@new', '/new/kong/services', foreign.at(-1) ?? '', '/apis/pets/1.0.0']) {
    await open(page, managed, path)
    await expect(page.locator('.head').getByRole('button', { name: 'Review and save' }), path).toBeVisible()
  }
  await open(page, managed, '/hooks/ci?view=text')
  await expect(page.getByRole('textbox', { name: 'ci as text' })).toBeVisible()
  await open(page, managed, '/analytics?range=word')
  await expect(page.getByRole('combobox', { name: 'Time' })).toHaveValue('')
  await expect(page.getByRole('alert')).toHaveCount(0)
  await open(page, managed, '/history/word')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('There is no such page')
})

for (const isFilled of [true, false]) {
  test(`pages have no serious findings in both themes: ${isFilled ? 'filled' : 'empty'}`, async ({ page, weir }) => {
    test.setTimeout(480_000)
    if (isFilled) await weir.fill()
    const found: string[] = []
    for (const path of isFilled ? PAGES : PAGES.filter((it) => !/\/(orders|alice|3|compare)/.test(it))) {
      await open(page, weir, path)
      await settled(page)
      for (const finding of await findingsInBothThemes(page)) found.push(`${path} ${finding}`)
    }
    expect(found).toEqual([])
  })
}

test('no page is wider than a phone', async ({ page, filled }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  for (const path of PAGES) {
    await open(page, filled, path)
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect(excess, path).toBeLessThanOrEqual(0)
  }
})

test('on a phone, the page as calls is at the same place on every page', async ({ page, filled }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  const seen: Record<string, string> = {}
  for (const path of ['/routes', '/certificates', '/roles', '/settings', '/explain', '/audit']) {
    await open(page, filled, path)
    await settled(page)
    const button = await page.getByRole('button', { name: 'Show as call' }).boundingBox()
    const head = await page.locator('.head').boundingBox()
    seen[path] = `${button?.x} ${(button?.y ?? 0) - (head?.y ?? 0)}`
  }
  expect(new Set(Object.values(seen)).size, JSON.stringify(seen)).toBe(1)
})

test('an empty list offers its first object once', async ({ page, weir }) => {
  for (const path of ['/routes', '/apis', '/hooks', '/products', '/stream_routes', '/environments']) {
    await open(page, weir, path)
    await settled(page)
    await expect(page.getByRole('main').getByRole('link', { name: /^New / }).or(page.getByRole('main').getByRole('button', { name: /^New / })), path).toHaveCount(1)
  }
})

test('a script in the page does not run', async ({ page, weir }) => {
  // The policy says so, and this time it should.
  page.removeAllListeners('console')
  await page.goto(`${weir.url}/ui/`)
  const ran = await page.evaluate(() => {
    const script = document.createElement('script')
    script.textContent = 'globalThis.injected = true'
    document.body.append(script)
    return 'injected' in globalThis
  })
  expect(ran).toBe(false)
})

test('the first view is small', async ({ page, weir }) => {
  test.skip(process.env.CONSOLE_DIST === '1', 'files of dist are not compressed')
  let scripts = 0
  let styles = 0
  page.on('response', (response) => {
    const size = Number(response.headers()['content-length'] ?? 0)
    if (response.url().endsWith('.js')) scripts += size
    if (response.url().endsWith('.css')) styles += size
  })
  await open(page, weir, '/')
  await expect(page.getByRole('region', { name: 'First steps' })).toBeVisible()
  expect(scripts).toBeLessThanOrEqual(150_000)
  expect(styles).toBeLessThanOrEqual(20_000)
})

test('everything is reached by keyboard', async ({ page, filled }) => {
  await open(page, filled, '/')
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Routes')
  await expect(page.getByRole('link', { name: 'orders', exact: true }).first()).toBeVisible()
  await page.keyboard.press('/')
  await expect(page.getByRole('searchbox', { name: 'Search Routes' })).toBeFocused()
  await page.keyboard.type('orders')
  await expect(page.getByRole('row')).toHaveCount(2)
  await page.keyboard.press('Tab')
  await page.getByRole('heading', { level: 1 }).click()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('orders')
  await page.keyboard.press('Control+k')
  await expect(page.getByRole('dialog', { name: 'Find' })).toBeVisible()
  await page.keyboard.type('alice')
  await expect(page.getByRole('menuitem', { name: 'alice' })).toBeVisible()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('alice')
  await page.keyboard.press('?')
  await expect(page.getByRole('dialog', { name: 'Keys' })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('dialog', { name: 'Keys' })).toHaveCount(0)
})

test('e opens the row that has the focus, leads into a form, and presses Edit', async ({ page, managed }) => {
  await managed.fill()
  await open(page, managed, '/routes')
  await expect(page.getByRole('link', { name: 'hello', exact: true }).first()).toBeVisible()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  const row = page.locator('[role=row]:has(a:focus)')
  const name = (await row.getByRole('link').first().innerText()).trim()
  await page.keyboard.press('e')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(name)
  await open(page, managed, '/routes/orders')
  await expect(page.getByRole('textbox', { name: 'Name', exact: true }).first()).toBeVisible()
  await page.keyboard.press('e')
  await expect(page.getByRole('textbox', { name: 'Name', exact: true }).first()).toBeFocused()
  await open(page, managed, '/apis/pets')
  await page.keyboard.press('e')
  await expect(page.getByRole('dialog', { name: 'Edit pets' })).toBeVisible()
})

test('a rollback and a selection by keyboard alone', async ({ page, filled }) => {
  await open(page, filled, '/routes')
  await tabTo(page, page.getByRole('checkbox', { name: 'Select orders' }))
  await page.keyboard.press('Space')
  await tabTo(page, page.getByRole('button', { name: 'Disable' }))
  await page.keyboard.press('Enter')
  const disable = page.getByRole('dialog', { name: 'Disable 1 route?' })
  await expect(disable.getByRole('button', { name: 'Disable' })).not.toHaveAttribute('aria-disabled', 'true')
  await tabTo(page, disable.getByRole('button', { name: 'Disable' }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('row', { name: /orders/ })).toContainText('disabled')
  const revision = await filled.revision()
  await open(page, filled, `/history/${revision - 1}`)
  await tabTo(page, page.getByRole('button', { name: 'Roll back to this' }))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: `Roll back to revision ${revision - 1}` })
  await tabTo(page, dialog.getByRole('button', { name: 'Preview' }))
  await page.keyboard.press('Enter')
  await tabTo(page, dialog.getByRole('button', { name: 'Roll back' }))
  await page.keyboard.press('Enter')
  await expect(page.getByText(`Everything is what it was at revision ${revision - 1}`)).toBeVisible()
  expect(await filled.read('routes', 'orders')).not.toHaveProperty('disabled')
})

test('each page says its calls', async ({ page, filled }) => {
  await open(page, filled, '/routes/orders')
  await page.getByRole('button', { name: 'Show as call' }).click()
  const dialog = page.getByRole('dialog', { name: 'This page as calls' })
  await expect(dialog).toContainText(`curl '${filled.url}/api/v1/resources/routes/orders'`)
  await expect(dialog).toContainText('Weir-Dry-Run: true')
})

test('pages made of plugins: each has a form that Weir accepts or that says what is missing', async ({ page, weir }) => {
  test.setTimeout(480_000)
  const { items } = (await (await weir.call('GET', '/api/v1/plugins')).json()) as { items: { name: string }[] }
  expect(items.length).toBeGreaterThan(40)
  const silent: string[] = []
  for (const { name } of items) {
    await page.goto(`${weir.url}/ui/plugins?plugin=${name}`)
    const dialog = page.getByRole('dialog', { name, exact: true })
    const status = dialog.getByRole('status')
    await expect(status).not.toBeEmpty()
    const text = await status.innerText()
    if (text !== 'Weir accepts this configuration.' && !/expected|required|missing|must|needs|empty|at least|invalid|give/i.test(text)) silent.push(`${name}: ${text}`)
  }
  expect(silent).toEqual([])
})
