// Kong's and APISIX's documents, in forms made from their own schemas, saved through their own Admin APIs without loss.
import { type Weir, expect, open, test } from './weir'

const kong = (path: string) => `/api/v1/dialects/kong${path}`
const apisix = (path: string) => `/api/v1/dialects/apisix/apisix/admin${path}`

async function rowOf(weir: Weir, list: string, name: string): Promise<string> {
  const { items } = await weir.good<{ items: { id: string; name: string }[] }>('GET', `/api/v1/view/${list}?q=${encodeURIComponent(name)}`)
  return items.find((it) => it.name === name)?.id ?? ''
}

/** Without what the original fills in with each write. */
const settled = ({ updated_at: _, update_time: __, ...rest }: Record<string, unknown>) => rest

test('a service of Kong: untouched it makes no commit; a change is shown, saved and undone; nothing else is lost', async ({ page, weir }) => {
  await weir.good('PUT', kong('/services/shop'), { url: 'http://127.0.0.1:9', tags: ['a', 'b'], retries: 7 })
  const before = await weir.good<Record<string, unknown>>('GET', kong('/services/shop'))
  const revision = await weir.revision()
  await open(page, weir, `/view/services/${encodeURIComponent(await rowOf(weir, 'services', 'shop'))}`)
  const save = page.getByRole('button', { name: 'Review and save' })
  await expect(page.getByRole('textbox', { name: 'Retries' })).toHaveValue('7')
  await expect(save).toHaveAttribute('aria-disabled', 'true')
  expect(await weir.revision()).toBe(revision)
  await page.getByRole('textbox', { name: 'Host', exact: true }).fill('bad host')
  await expect(page.getByRole('alert').filter({ hasText: 'invalid value' }).first()).toBeVisible()
  await page.getByRole('textbox', { name: 'Host', exact: true }).fill('example.com')
  await save.click()
  const dialog = page.getByRole('dialog', { name: 'Save shop?' })
  await expect(dialog.getByRole('row', { name: /^host/ })).toContainText('example.com')
  await dialog.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('shop is saved')).toBeVisible()
  const after = await weir.good<Record<string, unknown>>('GET', kong('/services/shop'))
  expect(settled(after)).toEqual({ ...settled(before), host: 'example.com' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByText('shop is what it was')).toBeVisible()
  expect(settled(await weir.good('GET', kong('/services/shop')))).toEqual(settled(before))
})

test('a plugin of Kong has the form of its schema', async ({ page, weir }) => {
  await weir.good('PUT', kong('/services/shop'), { url: 'http://127.0.0.1:9' })
  const { id } = await weir.good<{ id: string }>('POST', kong('/services/shop/plugins'), { name: 'rate-limiting', config: { minute: 5 } })
  await open(page, weir, `/view/plugins/${encodeURIComponent(await rowOf(weir, 'plugins', 'rate-limiting'))}`)
  await page.getByRole('textbox', { name: 'Minute' }).fill('9')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('rate-limiting is saved')).toBeVisible()
  expect(await weir.good('GET', kong(`/plugins/${id}`))).toMatchObject({ config: { minute: 9 } })
})

test('a route of APISIX with its plugins; two edits of it meet', async ({ page, weir }) => {
  const document = { uri: '/a', desc: 'ours', upstream: { type: 'roundrobin', nodes: { '127.0.0.1:9': 1 } }, plugins: { 'limit-count': { count: 1, time_window: 60 } } }
  await weir.good('PUT', apisix('/routes/1'), document)
  await open(page, weir, `/view/routes/${encodeURIComponent(await rowOf(weir, 'routes', '1'))}`)
  await page.getByRole('textbox', { name: 'Uri', exact: true }).fill('/b')
  await weir.good('PUT', apisix('/routes/1'), { ...document, desc: 'theirs' })
  await page.getByRole('button', { name: 'Review and save' }).click()
  const conflict = page.getByRole('dialog', { name: 'This was changed meanwhile' })
  await expect(conflict.getByText('desc', { exact: false }).first()).toBeVisible()
  for (const radio of await conflict.getByRole('radio', { name: 'Take theirs' }).all()) await radio.check()
  await conflict.getByRole('button', { name: 'Go on with the merged document' }).click()
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('1 is saved')).toBeVisible()
  const { value } = await weir.good<{ value: Record<string, unknown> }>('GET', apisix('/routes/1'))
  expect(value).toMatchObject({ ...document, uri: '/b', desc: 'theirs' })
})

test('a new route of APISIX, a new service and a new plugin of Kong: made in the console, read back by their Admin APIs', async ({ page, weir }) => {
  await open(page, weir, '/routes')
  await page.getByRole('button', { name: 'Other dialects' }).click()
  await page.getByRole('menuitem', { name: 'New APISIX route' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('New APISIX route')
  await page.getByRole('textbox', { name: 'Uri', exact: true }).fill('/made-here')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(page.getByRole('dialog')).toContainText('/made-here')
  expect(await weir.revision()).toBe(0)
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('APISIX', { exact: true }).first()).toBeVisible()
  await expect(page.getByRole('textbox', { name: 'Uri', exact: true })).toHaveValue('/made-here')
  const { list } = await weir.good<{ list: { value: { uri: string } }[] }>('GET', apisix('/routes'))
  expect(list.map((it) => it.value.uri)).toEqual(['/made-here'])

  await open(page, weir, '/new/kong/services')
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('shop')
  await page.getByRole('textbox', { name: 'Host', exact: true }).fill('bad host')
  await expect(page.getByRole('alert').filter({ hasText: 'invalid value' }).first()).toBeVisible()
  await page.getByRole('textbox', { name: 'Host', exact: true }).fill('example.com')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('shop')
  expect(await weir.good('GET', kong('/services/shop'))).toMatchObject({ host: 'example.com', retries: 5 })

  await open(page, weir, '/new/kong/plugins')
  await page.getByLabel('Plugin', { exact: true }).selectOption('rate-limiting')
  // The fields of the configuration come before those of the plugin itself.
  await page.getByRole('button', { name: 'Add a field' }).first().click()
  await page.getByRole('searchbox', { name: 'Add a field: search' }).fill('minute')
  await page.getByRole('menuitem', { name: /^Minute/ }).click()
  await page.getByRole('textbox', { name: 'Minute' }).fill('9')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('rate-limiting is saved')).toBeVisible()
  const { data } = await weir.good<{ data: { name: string; config: { minute: number } }[] }>('GET', kong('/plugins'))
  expect(data.map((it) => [it.name, it.config.minute])).toEqual([['rate-limiting', 9]])
})
