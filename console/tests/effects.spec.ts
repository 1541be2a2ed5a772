// What a change does beyond its document: which calls other routes take then, and what needs what is deleted.
import { expect, open, test } from './weir'

test('saving a route says which calls it takes from others, and which it gives up, with an example', async ({ page, filled }) => {
  await filled.put('routes', 'all', { name: 'all', paths: ['/'], service: 'hello' })
  await filled.put('routes', 'one', { name: 'one', paths: ['/one', '/two'], methods: ['GET'], service: 'hello' })
  await open(page, filled, '/routes/one?view=text')
  const text = page.getByRole('textbox', { name: 'one as text' })
  await text.press('Control+A')
  await page.keyboard.insertText("name: one\npaths: ['/two', '/hello/new']\nmethods: [GET]\nservice: hello\n")
  await page.getByRole('button', { name: 'Review and save' }).click()
  const dialog = page.getByRole('dialog', { name: 'Save one?' })
  const effects = dialog.getByRole('region', { name: 'Calls that change their route' })
  await expect(effects.getByRole('listitem')).toHaveCount(2)
  await expect(effects.getByRole('listitem').filter({ hasText: 'one takes calls from hello' })).toContainText('GET /hello/new')
  await expect(effects.getByRole('listitem').filter({ hasText: 'all takes calls from one' })).toContainText('GET /one')
  // It was looked up, not stored.
  expect(await filled.read('routes', 'one')).toMatchObject({ paths: ['/one', '/two'] })
  await dialog.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('one is saved')).toBeVisible()
  // A change of something else moves no calls.
  await text.press('Control+End')
  await page.keyboard.insertText('preserve_host: true\n')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(dialog.getByRole('region', { name: 'Calls that change their route' })).toContainText('None:')
})

test('a new route that takes calls of Kong’s is named with its dialect', async ({ page, weir }) => {
  await weir.good('PUT', '/api/v1/dialects/kong/services/old', { url: 'http://127.0.0.1:9' })
  await weir.good('PUT', '/api/v1/dialects/kong/routes/old', { service: { name: 'old' }, paths: ['/old'] })
  await weir.put('services', 'new', { name: 'new', url: 'http://127.0.0.1:9' })
  const answer = await weir.good<{ moved: { from: { dialect: string; name: string } | null; to: { name: string } | null; example: string }[] }>('POST', '/api/v1/explain/changes', {
    documents: { 'kong/default/routes/none': null, 'native/routes/new': { name: 'new', paths: ['/new'], service: 'new' } },
  })
  expect(answer.moved).toEqual([{ from: null, to: { dialect: 'native', name: 'new' }, example: 'GET /new', headers: {}, calls: 4 }])
  await open(page, weir, '/routes/@new')
  await page.getByRole('button', { name: 'Text', exact: true }).click()
  const text = page.getByRole('textbox', { name: 'New route as text' })
  await text.press('Control+A')
  await page.keyboard.insertText("name: new\npaths: ['/new']\nservice: new\n")
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(page.getByRole('region', { name: 'Calls that change their route' })).toContainText('new takes calls that no route takes now')
})

test('disabling routes in a selection says who takes their calls then', async ({ page, filled }) => {
  await filled.put('routes', 'all', { name: 'all', paths: ['/'], hosts: ['api.example.com'], service: 'hello' })
  await open(page, filled, '/routes')
  await page.getByRole('checkbox', { name: 'Select orders' }).check()
  await page.getByRole('button', { name: 'Disable', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Disable 1 route?' })
  await expect(dialog.getByRole('region', { name: 'Calls that change their route' })).toContainText('all takes calls from orders')
})

test('saving and deleting documents of Kong and APISIX says which calls change their route', async ({ page, weir }) => {
  const [kong, apisix] = ['/api/v1/dialects/kong', '/api/v1/dialects/apisix/apisix/admin']
  await weir.good('PUT', `${kong}/services/old`, { url: 'http://127.0.0.1:9' })
  await weir.good('PUT', `${kong}/routes/all`, { service: { name: 'old' }, hosts: ['old.example.com'], paths: ['/'] })
  await weir.good('PUT', `${kong}/routes/one`, { service: { name: 'old' }, hosts: ['old.example.com'], paths: ['/one'] })
  const nodes = { type: 'roundrobin', nodes: { '127.0.0.1:9': 1 } }
  await weir.good('PUT', `${apisix}/routes/two`, { name: 'two', uri: '/two', hosts: ['two.example.com'], upstream: nodes })
  const openRow = async (name: string) => {
    const { items } = await weir.good<{ items: { id: string; name: string }[] }>('GET', `/api/v1/view/routes?q=${name}`)
    await open(page, weir, `/view/routes/${encodeURIComponent(items.find((it) => it.name === name)?.id ?? '')}`)
  }
  const effects = page.getByRole('region', { name: 'Calls that change their route' })
  const textOf = async (name: string) => {
    await page.getByRole('button', { name: 'Text', exact: true }).click()
    return page.getByRole('textbox', { name: `${name} as text` })
  }
  await openRow('one')
  let text = await textOf('one')
  await expect(text).toContainText('/one')
  const whole = await weir.good<Record<string, unknown>>('GET', `${kong}/routes/one`)
  await text.press('Control+A')
  await page.keyboard.insertText(JSON.stringify({ ...whole, paths: ['/uno'] }))
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(effects.getByRole('listitem').filter({ hasText: /one.*takes calls from.*all/ })).toContainText('/uno')
  await expect(effects.getByRole('listitem').filter({ hasText: /all.*takes calls from.*one/ })).toContainText('/one')
  await page.getByRole('button', { name: 'Back' }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await expect(effects).toContainText(/all.*takes calls from.*one/)
  await openRow('two')
  text = await textOf('two')
  await text.press('Control+A')
  await page.keyboard.insertText(JSON.stringify({ name: 'two', uri: '/dos', hosts: ['two.example.com'], upstream: nodes }))
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(effects).toContainText(/two.*APISIX/)
  await expect(effects).toContainText('/dos')
  // A new one is named before it is there.
  await open(page, weir, '/new/kong/routes')
  text = await textOf('New Kong route')
  await text.press('Control+A')
  await page.keyboard.insertText(JSON.stringify({ name: 'three', hosts: ['old.example.com'], paths: ['/one/more'], service: { name: 'old' } }))
  await page.getByRole('button', { name: 'Review and save' }).click()
  await expect(effects).toContainText(/three.*takes calls from.*one/)
})
