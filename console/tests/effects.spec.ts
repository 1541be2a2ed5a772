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
  await open(page, weir, '/routes/new')
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
