// Webhooks, portals with their pages and their look, and versions as documents for callers.
import { readFileSync } from 'node:fs'
import { expect, logIn, open, test } from './weir'

test('a webhook: made in the form, its secret is shown once, changed in the text, deleted', async ({ page, managed }) => {
  await open(page, managed, '/hooks')
  await page.getByRole('link', { name: 'New webhook' }).first().click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('chat')
  await expect(page.getByRole('button', { name: 'Review and save' })).toHaveAttribute('aria-disabled', 'true')
  const url = page.getByRole('textbox', { name: 'URL' })
  await url.fill('ftp://chat.example.com')
  await expect(page.getByRole('alert')).toContainText('expected a URL')
  await url.fill('https://chat.example.com/weir')
  await page.getByRole('checkbox', { name: 'subscription: all' }).check()
  await page.getByRole('group', { name: 'Events of a plan' }).getByText('single ones').click()
  await page.getByRole('checkbox', { name: 'closed' }).last().check()
  await page.getByRole('checkbox', { name: 'pets', exact: true }).check()
  await page.getByRole('button', { name: 'Review and save' }).click()
  const dialog = page.getByRole('dialog', { name: 'Create the new webhook?' })
  await expect(dialog).toContainText('subscription.*')
  // The secret of a dry run is none.
  await expect(dialog).not.toContainText('whsec_')
  await dialog.getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByRole('dialog', { name: 'The secret of chat' }).getByLabel('Secret')).toContainText('whsec_')
  await page.getByRole('button', { name: 'I have kept it' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('chat')
  expect(await managed.good('GET', '/api/v1/hooks/chat')).toEqual({ name: 'chat', url: 'https://chat.example.com/weir', secret: true, events: ['subscription.*', 'plan.closed'], apis: ['pets'] })
  await expect(page.getByText('whsec_')).toHaveCount(0)
  await expect(page.getByRole('button', { name: 'Review and save' })).toHaveAttribute('aria-disabled', 'true')
  await page.getByRole('checkbox', { name: 'It is called' }).uncheck()
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog', { name: 'Save chat?' }).getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('chat is saved').last()).toBeVisible()
  await open(page, managed, '/hooks')
  await expect(page.getByRole('row', { name: /chat/ })).toContainText('off')
  await page.getByRole('link', { name: 'chat', exact: true }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog', { name: 'Delete chat?' }).getByRole('button', { name: 'Delete' }).click()
  await expect(page.getByRole('row', { name: /ci\.example\.com/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /chat/ })).toHaveCount(0)
})

test('a portal: its look shows the contrast, unreadable colours are refused, and a page is written with a preview', async ({ page, managed }) => {
  await open(page, managed, '/portals')
  await page.getByRole('link', { name: 'Example developers' }).click()
  const light = page.getByRole('group', { name: 'Light theme' })
  await light.getByRole('textbox', { name: 'Accent', exact: true }).fill('#cccccc')
  await expect(light.getByText(/contrast 1\.\d : 1, needs 4.5/)).toBeVisible()
  await expect(page.getByRole('alert').filter({ hasText: 'theme.light.accent' })).toBeVisible()
  await light.getByRole('textbox', { name: 'Accent', exact: true }).fill('#0f5f59')
  await expect(page.getByRole('alert').filter({ hasText: 'theme.light.accent' })).toHaveCount(0)
  await page.getByRole('checkbox', { name: 'test', exact: true }).check()
  await page.getByRole('textbox', { name: 'Text, in Markdown' }).fill('# Hello\n\n**Build** with <img src=x onerror=alert(1)> and [this](javascript:alert(1)).')
  await expect(page.getByRole('heading', { name: 'Hello' })).toBeVisible()
  await expect(page.getByText('<img src=x onerror=alert(1)>').first()).toBeVisible()
  await expect(page.getByRole('link', { name: 'this' })).toHaveCount(0)
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog', { name: 'Save main?' }).getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('main is saved')).toBeVisible()
  expect(await managed.good('GET', '/api/v1/portals/main')).toMatchObject({ theme: { light: { accent: '#0f5f59' } }, environments: ['test'], featured: ['pets'] })

  await page.getByRole('link', { name: 'New page' }).click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('start')
  await page.getByRole('textbox', { name: 'Title', exact: true }).fill('Getting started')
  await page.getByRole('textbox', { name: 'Text, in Markdown' }).fill('- one\n- two\n\n```\ncurl x\n```')
  await expect(page.getByRole('listitem').filter({ hasText: /^two$/ })).toBeVisible()
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog', { name: 'Create the new page?' }).getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Getting started')
  expect(await managed.good('GET', '/api/v1/portals/main/pages/start')).toMatchObject({ title: 'Getting started', visibility: 'public', menu: true, published: true })
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog', { name: 'Delete start?' }).getByRole('button', { name: 'Delete' }).click()
  await expect(page.getByRole('region', { name: 'Pages' })).toContainText('Terms of use')
  await expect(page.getByRole('region', { name: 'Pages' })).not.toContainText('Getting started')
})

test('two edits of one portal: what does not overlap is put together, the rest is chosen, nothing is lost', async ({ page, managed }) => {
  await open(page, managed, '/portals/main')
  await page.getByRole('textbox', { name: 'What it is for' }).fill('For everybody')
  await page.getByRole('textbox', { name: 'Name for people' }).fill('Mine')
  await managed.good('PUT', '/api/v1/portals/main', { display_name: 'Theirs', url: 'https://developers.example.com', hosts: ['d.example.com'], featured: ['pets'] })
  await expect(page.getByText('A newer version exists')).toBeVisible()
  await page.getByRole('button', { name: 'Review and save' }).click()
  const conflict = page.getByRole('dialog', { name: 'This was changed meanwhile' })
  await expect(conflict).toContainText('Theirs')
  await expect(conflict).toContainText(/\S+ changed it/)
  await conflict.getByRole('radio').first().check()
  await conflict.getByRole('button', { name: 'Go on with the merged document' }).click()
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog', { name: 'Save main?' }).getByRole('button', { name: 'Commit' }).click()
  await expect(page.getByText('main is saved')).toBeVisible()
  expect(await managed.good('GET', '/api/v1/portals/main')).toMatchObject({ description: 'For everybody', hosts: ['d.example.com'], featured: ['pets'] })
})

test('a form without an edit shows what another user has stored', async ({ page, managed }) => {
  await open(page, managed, '/products/bundle/edit')
  await expect(page.getByRole('textbox', { name: 'What it is for' })).toHaveValue('Reading pets, for partners.')
  await managed.good('PUT', '/api/v1/products/bundle', { description: 'Changed elsewhere.', publications: { 'pets/1.0.0/test': ['listPets'] } })
  await expect(page.getByRole('textbox', { name: 'What it is for' })).toHaveValue('Changed elsewhere.')
  await expect(page.getByRole('button', { name: 'Review and save' })).toHaveAttribute('aria-disabled', 'true')
})

test('a version is exported with the servers and the security of the gateway', async ({ page, managed }) => {
  await open(page, managed, '/apis/pets/1.0.0')
  await page.getByRole('button', { name: 'Export' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Export pets 1.0.0' })
  await dialog.getByLabel('As served in').selectOption('test')
  await expect(dialog.getByLabel('Document')).toContainText('securitySchemes')
  await dialog.getByRole('radio', { name: 'JSON' }).check()
  const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('button', { name: 'Download' }).click()])
  expect(download.suggestedFilename()).toBe('pets-1.0.0.json')
  const document = JSON.parse(readFileSync(await download.path(), 'utf8')) as unknown
  expect(document).toEqual(await managed.good('GET', '/api/v1/apis/pets/versions/1.0.0/openapi?environment=test'))
})

test('a role that may not see webhooks is told so, and one that may only read portals has nothing to write with', async ({ page, managed }) => {
  await managed.addAdmin()
  await managed.addUser('bob', [{ role: 'read' }])
  await page.goto(`${managed.url}/ui/hooks`)
  await logIn(page, 'bob')
  for (const path of ['/hooks', '/hooks/ci', '/hooks/@new']) {
    await open(page, managed, path)
    await expect(page.getByText('This page is not for you')).toBeVisible()
    await expect(page.getByRole('textbox')).toHaveCount(0)
  }
  await open(page, managed, '/portals')
  await expect(page.getByRole('button', { name: 'New portal' })).toHaveAttribute('aria-disabled', 'true')
  for (const [path, field] of [['/portals/main', 'Name for people'], ['/portals/main/pages/terms', 'Title']] as const) {
    await open(page, managed, path)
    await expect(page.getByRole('textbox', { name: field, exact: true })).toBeDisabled()
    await expect(page.getByRole('button', { name: 'Delete' })).toHaveAttribute('aria-disabled', 'true')
    await expect(page.getByRole('button', { name: 'Review and save' })).toHaveAttribute('aria-disabled', 'true')
  }
})

test('a first login makes one refused call, and a session that ends floods no log', async ({ page, managed }) => {
  await managed.addAdmin()
  await page.goto(`${managed.url}/ui/upstreams`)
  await expect(page.getByRole('heading', { name: 'Log in to Weir' })).toBeVisible()
  const refused = async () => (await managed.good<{ items: { status: number }[] }>('GET', '/api/v1/audit?limit=500')).items.filter((it) => it.status === 401).length
  await expect.poll(refused).toBe(1)
  await logIn(page, 'root')
  await expect(page.getByRole('heading', { level: 1, name: 'Upstreams' })).toBeVisible()
  await managed.good('DELETE', '/api/v1/users/root/sessions')
  await expect(page.getByText('Your session has ended')).toBeVisible()
  // The page asks for health every few seconds. Calls that were on their way when the session ended may be refused, and no more.
  const after = await refused()
  await page.waitForTimeout(4_000)
  expect((await refused()) - after).toBeLessThanOrEqual(3)
})

test('an address of something that does not exist says so, without an alarm', async ({ page, weir }) => {
  for (const path of ['/apis/none', '/applications/none', '/portals/none', '/hooks/none', '/routes/none', '/subscriptions/none']) {
    await open(page, weir, path)
    await expect(page.getByRole('alert').first(), path).toContainText('This does not exist, or not any more')
    await expect(page.getByRole('alert').first()).toContainText(/GET \/api\/v1\/\S+ answered 404/)
  }
})

test('health is asked for often only where targets that are checked are watched', async ({ page, weir }) => {
  const checks = { active: { path: '/', healthy: { interval_ms: 1000 }, unhealthy: { interval_ms: 1000, tcp_failures: 1 } } }
  await weir.put('upstreams', 'checked', { name: 'checked', targets: [{ host: '127.0.0.1', port: 9 }], checks })
  const asked: number[] = []
  page.on('request', (request) => void (new URL(request.url()).pathname === '/api/v1/health/upstreams' && asked.push(Date.now())))
  /** Between the last two of some more times. */
  const pause = async () => {
    const before = asked.length
    await expect.poll(() => asked.length - before).toBeGreaterThanOrEqual(3)
    return (asked.at(-1) ?? 0) - (asked.at(-2) ?? 0)
  }
  await open(page, weir, '/upstreams')
  await expect(page.getByRole('table', { name: 'Health of targets' })).toContainText('unhealthy')
  expect(await pause()).toBeLessThan(4_000)
  await open(page, weir, '/')
  await expect(page.getByText('1 target is unhealthy')).toBeVisible()
  expect(await pause()).toBeGreaterThan(4_000)
})
