// Pictures of every page of the portal, to be looked at: `LOOK=1 npx playwright test portal-looks` writes them to
// ../target/looks, at the width of a desk and of a phone, in both themes, with nothing, a few objects and
// many, and as a visitor sees those that need no login.
// `LOOK=portal-few` makes one of these sets, `LOOK_AT=^/apps` only pages whose path fits.
import { mkdirSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { payments } from './payments'
import { type Shop, linkFor, portalTest } from './shop'
import { PASSWORD, expect, settled } from './weir'

const WANTED = process.env.LOOK ?? ''
const ONLY = new RegExp(process.env.LOOK_AT ?? '')
const SIZES = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
]
const HOME = `## Build on our payments

Everything that our own shop does is an API. **Keys are free**, the test environment pays no money.

> [!NOTE]
> On 1 March the version 1 of Invoices ends. [What to do](/pages/migrate)
`
const NAMES = ['Payments', 'Invoices', 'Shipping rates', 'Tax calculation', 'Customer identity', 'Ledger', 'Warehouse and stock', 'Notifications', 'Subscriptions and recurring billing', 'Fraud signals', 'Exchange rates', 'Gift cards']

/** An account that is signed in, with an application that has a key. */
async function join(page: Page, shop: Shop) {
  await page.goto(`${shop.portal}/sign-up`)
  await page.getByLabel('Mail address').fill('ann.example@example.com')
  await page.getByLabel('Name', { exact: true }).fill('Ann Example')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Make an account' }).click()
  await page.goto(await linkFor(shop, 'ann.example@example.com'))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await expect(page.getByRole('status').first()).toContainText('You can sign in now.')
  await page.goto(`${shop.portal}/login`)
  await page.getByLabel('Mail address').fill('ann.example@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
}

async function api(shop: Shop, name: string, title: string, index: number) {
  await shop.api(name, payments(title, '1.0.0'), { description: `${title}: what our own shop uses, for yours. Well documented and quick.`, category: ['Money', 'Goods', 'People'][index % 3], labels: { stage: index % 2 === 0 ? 'beta' : 'stable' } })
  await shop.plan(name, 'free', { display_name: 'Free', state: 'published', limits: [{ count: 1000, per: 'day' }], price: 'free' })
}

/** What somebody has who works here: two applications, one with keys and calls. */
async function work(page: Page, shop: Shop) {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await page.request.fetch(`${shop.portal}/portal/v1${path}`, { method, headers: { origin: shop.portal }, ...(body === undefined ? {} : { data: body }) })
    if (!answer.ok()) throw new Error(`${method} ${path}: ${await answer.text()}`)
    return (await answer.json()) as T
  }
  const team = await call<{ id: string }>('POST', '/teams', { name: 'Checkout' })
  const app = await call<{ name: string }>('POST', '/apps', { title: 'Shop checkout', description: 'Takes payments in the shop of the company and pays them back.', team: team.id })
  await call('POST', '/apps', { title: 'Reports by night', description: '' })
  const made = await call<{ key: { key: string } }>('POST', `/apps/${app.name}/subscriptions`, { publication: 'payments/1.0.0/default', plan: 'gold', conditions_revision: 1, request: '' })
  await call('POST', `/apps/${app.name}/subscriptions`, { publication: 'payments/1.0.0/default', plan: 'enterprise', conditions_revision: 0, request: 'A pilot.' })
  const proxied = (path: string) => fetch(`${shop.weir.proxy}/payments${path}`, { headers: { 'x-api-key': made.key.key } })
  await expect.poll(async () => (await proxied('/payments')).status).toBe(200)
  for (let count = 0; count < 24; count += 1) await proxied(['/payments', '/refunds', '/customers/cu_1', '/nothing'][count % 4] ?? '')
  return app.name
}

const AMOUNTS: Record<string, (shop: Shop, page: Page) => Promise<string[]>> = {
  none: async (shop, page) => {
    await shop.good('PUT', '/api/v1/environments/empty', {})
    await shop.good('PUT', '/api/v1/portals/main', { display_name: 'Acme developers', environments: ['empty'] })
    await join(page, shop)
    return ['/', '/apis', '/search?q=refund', '/apps', '/teams', '/account']
  },
  visitor: async (shop) => {
    await shop.good('PUT', '/api/v1/portals/main', { display_name: 'Acme developers', home: HOME })
    await api(shop, 'payments', 'Payments', 0)
    return ['/', '/login', '/sign-up', '/reset', '/reset#x', '/confirm', '/confirm#x', '/invitation', '/invitation#x', '/apps']
  },
  few: async (shop, page) => {
    await shop.good('PUT', '/api/v1/portals/main', { display_name: 'Acme developers', description: 'Payments, invoices and shipping for every shop.', home: HOME, footer: [{ title: 'Terms', to: '/pages/terms' }, { title: 'Status', to: 'https://status.example.com' }] })
    await shop.good('PUT', '/api/v1/portals/main/pages/guides', { title: 'Guides', body: `# Guides\n\n${HOME}\n\n1. Make an application.\n2. Subscribe to a plan.\n3. Call.\n\n\`\`\`\ncurl https://api.example.com\n\`\`\`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n`, menu: true, published: true })
    for (const [index, title] of NAMES.slice(0, 3).entries()) await api(shop, title.toLowerCase().replaceAll(' ', '-'), title, index)
    await shop.plan('payments', 'gold', { display_name: 'Gold', state: 'published', description: 'For shops that sell each day.', limits: [{ count: 20, per: 'hour' }, { count: 100000, per: 'month' }], price: '49 € a month', conditions: 'Be kind. **No scraping.**' })
    await shop.plan('payments', 'enterprise', { display_name: 'Enterprise', state: 'published', description: 'With a contract, and people who answer.', limits: [], price: 'by contract', validation: 'manual' })
    await join(page, shop)
    const app = await work(page, shop)
    await page.waitForTimeout(3_000)
    return ['/', '/apis', '/apis?q=nothing', '/search', '/search?q=refund', '/apis/payments', '/apis/payments/1.0.0/operations/createPayment', '/apis/payments/1.0.0/operations/listPayments', '/apis/payments/1.0.0/operations/addPayoutDocument', '/apis/payments/1.0.0/plans', '/apis/payments/1.0.0/subscribe?plan=gold', '/apis/payments/1.0.0/subscribe?plan=enterprise', '/pages/guides', '/apps', `/apps/${app}`, `/apps/${app}/usage`, `/apps/${app}/calls`, `/apps/${app}/settings`, '/teams', '/account', '/notices', '/nothing/here', '/login', '/sign-up', '/reset', '/confirm#x', '/invitation#x']
  },
  many: async (shop, page) => {
    const extra = Object.fromEntries(Array.from({ length: 2_000 }, (_, it) => [`/things/${it}`, { get: { operationId: `op${it}`, summary: `Reads the thing of number ${it} with a rather long summary`, tags: [`Part ${it % 20}`], responses: { 200: { description: 'ok' } } } }]))
    await shop.api('payments', payments('Payments of a company with a very long name in many words', '1.0.0', extra), { description: 'Payments. '.repeat(60), category: 'A category with a long name', labels: Object.fromEntries(Array.from({ length: 12 }, (_, it) => [`label-${it}`, 'yes'])) })
    for (let index = 0; index < 40; index += 1) await api(shop, `api-${index}`, `${NAMES[index % NAMES.length]} ${index}`, index)
    for (let index = 0; index < 8; index += 1) await shop.good('PUT', `/api/v1/portals/main/pages/page-${index}`, { title: `Guide number ${index}`, body: 'Words.', menu: true, published: true })
    for (let index = 0; index < 6; index += 1) await shop.plan('payments', `plan-${index}`, { display_name: `Plan ${index} with a long name`, state: 'published', limits: [{ count: 10 ** index, per: 'hour' }], price: `${index * 100} € a month and 0.01 € for each call` })
    await join(page, shop)
    for (let index = 0; index < 30; index += 1) await page.request.post(`${shop.portal}/portal/v1/apps`, { headers: { origin: shop.portal }, data: { title: `Application ${index} of a customer with a long name`, description: 'What it does. '.repeat(8), team: null } })
    return ['/', '/apis', '/search?q=refund', '/apis/payments', '/apis/payments/1.0.0/operations/op7', '/apis/payments/1.0.0/plans', '/apps']
  },
}

for (const [amount, fill] of Object.entries(AMOUNTS)) {
  portalTest(`looks of the portal: ${amount}`, async ({ page, shop }) => {
    portalTest.skip(WANTED !== '1' && WANTED !== `portal-${amount}`, 'made on demand')
    portalTest.setTimeout(900_000)
    const paths = (await fill(shop, page)).filter((it) => ONLY.test(it))
    for (const size of SIZES) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const folder = `../target/looks/portal-${amount}-${size.width}-${colorScheme}`
        mkdirSync(folder, { recursive: true })
        await page.setViewportSize(size)
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        for (const path of paths) {
          // Another fragment alone would load nothing.
          await page.goto('about:blank')
          await page.goto(`${shop.portal}${path}`)
          await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible()
          await settled(page)
          await page.waitForLoadState('networkidle')
          await page.screenshot({ fullPage: true, path: `${folder}/${path.replace(/app-[0-9a-f]+|shop-checkout-[0-9a-f]+/, 'app').replaceAll(/[^a-z0-9]+/gi, '_')}.png` })
        }
      }
    }
  })
}
