// Deleting what others need: they are named, and go together in one commit that one press takes back, or it is refused.
import { type Weir, expect, open, test } from './weir'

/** How many commits there are. */
const commits = async (weir: Weir) => (await weir.good<{ items: unknown[] }>('GET', '/api/v1/history?limit=100')).items.length

test('an upstream goes with its services and their routes, in one commit, and comes back with one press', async ({ page, filled }) => {
  await open(page, filled, '/upstreams/orders')
  const before = await commits(filled)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete orders?' })
  const needs = dialog.getByRole('region', { name: 'What needs it' })
  await expect(needs.getByRole('listitem')).toHaveCount(2)
  await expect(needs).toContainText('service orders, in upstream')
  await expect(needs).toContainText('route orders, in service')
  await expect(dialog.getByRole('button', { name: 'Delete', exact: true })).toHaveAttribute('aria-disabled', 'true')
  await needs.getByRole('checkbox', { name: /^Delete these 2, too/ }).check()
  await expect(dialog.getByRole('region', { name: 'Calls that change their route' })).toContainText('no route takes calls that orders takes now')
  await dialog.getByRole('button', { name: 'Delete 3 documents' }).click()
  await expect(page.getByText('orders and 2 documents are deleted')).toBeVisible()
  expect(await commits(filled)).toBe(before + 1)
  for (const kind of ['upstreams', 'services', 'routes']) expect((await filled.call('GET', `/api/v1/resources/${kind}/orders`)).status).toBe(404)
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByText('orders and 2 documents are back')).toBeVisible()
  expect(await commits(filled)).toBe(before + 2)
  expect(await filled.read('routes', 'orders')).toMatchObject({ service: 'orders' })
})

test('a plugin that routes use is not deleted with them: they are named', async ({ page, filled }) => {
  await filled.put('plugins', 'open', { id: 'open', cors: {} })
  await filled.put('services', 'hello', { name: 'hello', url: 'http://127.0.0.1:1980', routes: [{ name: 'hello', paths: ['/hello'], plugins: [{ use: 'open' }] }] })
  await open(page, filled, '/plugins/open')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete open?' })
  await expect(dialog.getByRole('region', { name: 'What needs it' })).toContainText('service hello with its route hello, in plugins[0].use')
  await expect(dialog.getByRole('checkbox')).toHaveCount(0)
  await expect(dialog.getByRole('button', { name: 'Delete', exact: true })).toHaveAttribute('aria-disabled', 'true')
})

test('what is written in a document goes with it, and is named', async ({ page, filled }) => {
  await open(page, filled, '/consumers/alice')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete alice?' })
  await expect(dialog).toContainText('Nothing needs it.')
  await expect(dialog).toContainText('1 credential (key-auth)')
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
  await expect(page.getByText('alice is deleted')).toBeVisible()
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByText('alice is back')).toBeVisible()
  expect(await filled.read('consumers', 'alice')).toMatchObject({ name: 'alice' })
})

test('one document of a commit is taken back after a look, and the others stay', async ({ page, filled }) => {
  await filled.good('POST', '/api/v1/changes', {
    changes: [
      { kind: 'routes', name: 'orders', value: null },
      { kind: 'consumers', name: 'alice', value: { name: 'alice', group: 'staff', credentials: [] } },
    ],
  })
  const [revision, before] = [await filled.revision(), await commits(filled)]
  await open(page, filled, `/history/${revision}`)
  await page.getByRole('region', { name: 'native/routes/orders' }).getByRole('button', { name: 'Take back' }).click()
  const dialog = page.getByRole('dialog', { name: 'Take orders back?' })
  await expect(dialog.getByRole('region', { name: 'Calls that change their route' })).toContainText('orders takes calls that no route takes now')
  await dialog.getByRole('button', { name: 'Take back' }).click()
  await expect(page.getByText(`orders is what it was before revision ${revision}`)).toBeVisible()
  expect(await commits(filled)).toBe(before + 1)
  expect(await filled.read('routes', 'orders')).toMatchObject({ service: 'orders' })
  expect(await filled.read('consumers', 'alice')).toMatchObject({ group: 'staff' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect.poll(async () => (await filled.call('GET', '/api/v1/resources/routes/orders')).status).toBe(404)
})
