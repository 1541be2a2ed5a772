// Typing: numbers and filters stay as they are typed, what is looked for is found without a flicker, and what was refused can
// be tried again.
import { portalTest } from './shop'
import { PETS, expect, open, test } from './weir'

test('numbers: what is on its way to a small one, and an empty field, are not written over', async ({ page, managed }) => {
  await open(page, managed, '/alerts/@new')
  const threshold = page.getByRole('spinbutton', { name: 'Threshold, percent' })
  await threshold.press('Control+a')
  await threshold.pressSequentially('0.05')
  await expect(threshold).toHaveValue('0.05')
  await expect(page.getByRole('heading', { name: /> 0\.05 % over 5m/ })).toBeVisible()
  await open(page, managed, '/apis/pets/1.0.0/plans')
  await page.getByRole('button', { name: 'New plan' }).first().click()
  const count = page.getByRole('spinbutton', { name: 'Calls of limit 1' })
  await count.press('Control+a')
  await count.press('Delete')
  await expect(count).toHaveValue('')
  const plan = page.getByRole('dialog', { name: 'New plan' })
  await plan.getByRole('textbox', { name: 'Name', exact: true }).fill('silver')
  await expect(plan.getByRole('alert')).toHaveText('Limit 1 needs a number of calls.')
  await expect(plan.getByRole('button', { name: 'Create' })).toHaveAccessibleDescription('Limit 1 needs a number of calls.')
  await count.pressSequentially('25')
  await expect(count).toHaveValue('25')
})

test('the palette finds an API and an application by their names, and keeps its field in sight', async ({ page, managed }) => {
  await open(page, managed, '/routes')
  await page.keyboard.press('Control+k')
  const field = page.getByRole('searchbox', { name: 'Find a page, an object or an action' })
  for (let press = 0; press < 30; press += 1) await page.keyboard.press('ArrowDown')
  await expect(field).toBeInViewport({ ratio: 1 })
  await field.fill('shop')
  await expect(page.getByRole('menuitem', { name: /^shop.*application/ })).toBeVisible()
  await field.fill('pets')
  await expect(page.getByRole('menuitem', { name: /^Pets.*API/ })).toBeVisible()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Pets')
  await page.keyboard.press('Control+k')
  await page.getByRole('searchbox', { name: 'Find a page, an object or an action' }).fill('zzz')
  await expect(page.getByText('Nothing is called that.')).toBeVisible()
})

test('a new API whose document is refused: it is mended and created on the same page', async ({ page, managed }) => {
  await open(page, managed, '/apis/@new')
  const document = page.getByRole('textbox', { name: 'OpenAPI document, as YAML or JSON' })
  await document.fill('openapi: 3.1.0\ninfo: {title: Toys}\npaths: 7\n')
  await page.getByRole('button', { name: 'Create the API' }).click()
  await expect(page.getByRole('alert').first()).toBeVisible()
  await document.fill(PETS.replace('title: Pets', 'title: Toys'))
  await page.getByRole('button', { name: 'Create the API' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('toys 1.0.0')
})

test('a note is committed by Enter', async ({ page, filled }) => {
  await open(page, filled, '/routes/orders')
  await page.getByRole('group', { name: 'Paths 1' }).getByRole('textbox').fill('/typed')
  await page.getByRole('button', { name: 'Review and save' }).click()
  const note = page.getByRole('dialog', { name: 'Save orders?' }).getByRole('textbox', { name: 'Note' })
  await note.fill('As it is typed')
  await note.press('Enter')
  await expect(page.getByText('orders is saved').first()).toBeVisible()
  const { items } = await filled.good<{ items: { note: string }[] }>('GET', '/api/v1/history?limit=1')
  expect(items[0]?.note).toBe('As it is typed')
})

test('live calls: a filter keeps the focus, says that nothing fits, and calls come again after a restart', async ({ page, filled }) => {
  await fetch(`${filled.proxy}/nothing`)
  await open(page, filled, '/live')
  await expect(page.getByRole('table', { name: 'Calls' }).getByRole('row')).toHaveCount(2)
  const path = page.getByLabel('Path begins with')
  await path.fill('/elsewhere')
  await path.press('Enter')
  await expect(page.getByRole('heading', { name: 'No call fits' })).toBeVisible()
  await expect(path).toBeFocused()
  await filled.stop()
  await expect(page.getByText('Weir does not answer.').first()).toBeVisible()
  await filled.restart()
  await expect
    .poll(async () => {
      await fetch(`${filled.proxy}/elsewhere`).catch(() => undefined)
      return page.getByRole('link', { name: /^Explain GET .*\/elsewhere$/ }).count()
    })
    .toBeGreaterThan(0)
  await expect(page.getByText('This did not work')).toHaveCount(0)
})

test('the explorer: a link to a group is in the field of the filter', async ({ page, filled }) => {
  // The gateway serves the routes a moment after they were written.
  await expect.poll(async () => (await fetch(`${filled.proxy}/hello`)).status).not.toBe(404)
  const counted = async () => (await filled.good<{ frames: { group: Record<string, string> }[] }>('POST', '/api/v1/analytics/query', { metrics: ['calls'], from: '-1h', group_by: ['route'] })).frames.map((it) => it.group['route'])
  await expect.poll(counted).toContain('hello')
  await open(page, filled, '/analytics/explore?by=route&as=table')
  await page.getByRole('link', { name: 'hello', exact: true }).click()
  const only = page.getByLabel('Only')
  await expect(only).toHaveValue('route:hello')
  await only.focus()
  await only.blur()
  await expect(page).toHaveURL(/filter=route/)
})

portalTest('the portal: what was found stays until the next answer, and a choice keeps the focus', async ({ page, shop }) => {
  await page.goto(`${shop.portal}/apis`)
  await expect(page.getByRole('link', { name: 'Shop', exact: true })).toBeVisible()
  let isHeld = true
  await page.route(/\/portal\/v1\/apis\?/, async (route) => {
    while (isHeld) await new Promise((resolve) => setTimeout(resolve, 50))
    await route.continue()
  })
  const filter = page.getByRole('searchbox', { name: 'Filter' })
  await filter.fill('sho')
  await page.waitForTimeout(500)
  await expect(page.getByRole('link', { name: 'Shop', exact: true })).toBeVisible()
  await expect(page.getByRole('main')).toHaveCount(1)
  isHeld = false
  await filter.fill('zzz')
  await expect(page.getByRole('heading', { name: 'Nothing fits' })).toBeVisible()
})
