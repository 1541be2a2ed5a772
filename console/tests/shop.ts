// A Weir with a portal that shows a shop's API, for the tests of the portal.
import { mailbox } from './mailbox'
import type { Page } from '@playwright/test'
import { PASSWORD, type Weir, expect, test as base, upstream } from './weir'

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const json = (schema: unknown) => ({ content: { 'application/json': { schema } } })
const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' }, example: '7' }

/** An OpenAPI document with a bit of everything. */
export const specification = (title: string): Record<string, unknown> => ({
  openapi: '3.1.0',
  info: { title, version: '1.0.0', description: 'Orders, refunds and **pictures**.' },
  tags: [{ name: 'orders' }, { name: 'pictures' }],
  paths: {
    '/orders': {
      get: { operationId: 'listOrders', summary: 'Lists orders', tags: ['orders'], parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100 } }, { name: 'filter', in: 'query', style: 'deepObject', schema: { type: 'object', properties: { state: { type: 'string' } } } }], responses: { 200: { description: 'Orders', ...json({ type: 'array', items: reference('Order') }) } } },
      post: { operationId: 'addOrder', summary: 'Adds an order', tags: ['orders'], requestBody: { required: true, ...json(reference('NewOrder')) }, responses: { 201: { description: 'Made', ...json(reference('Order')) }, 422: { description: 'Refused' } } },
    },
    '/orders/{id}/refunds': { post: { operationId: 'addRefund', summary: 'Pays an order back', tags: ['orders'], parameters: [id], responses: { 200: { description: 'Paid back' } } } },
    '/tree': { get: { operationId: 'getTree', summary: 'Reads the tree', tags: ['orders'], responses: { 200: { description: 'A tree', ...json(reference('Tree')) } } } },
    '/pictures': { post: { operationId: 'addPicture', summary: 'Adds a picture', tags: ['pictures'], requestBody: { content: { 'multipart/form-data': { schema: { type: 'object', required: ['picture'], properties: { title: { type: 'string' }, picture: { type: 'string', format: 'binary' } } } } } }, responses: { 200: { description: 'ok' } } } },
  },
  components: {
    schemas: {
      Base: { type: 'object', required: ['amount'], properties: { amount: { type: 'integer', minimum: 1, description: 'In cents.' } } },
      NewOrder: { allOf: [reference('Base'), { type: 'object', properties: { payment: { oneOf: [reference('Card'), reference('Transfer')], discriminator: { propertyName: 'kind', mapping: { card: '#/components/schemas/Card', transfer: '#/components/schemas/Transfer' } } } } }] },
      Order: { allOf: [reference('NewOrder'), { type: 'object', properties: { id: { type: 'string', format: 'uuid', readOnly: true } } }] },
      Card: { type: 'object', properties: { kind: { const: 'card' }, number: { type: 'string' } } },
      Transfer: { type: 'object', properties: { kind: { const: 'transfer' }, iban: { type: 'string' } } },
      Tree: { type: 'object', properties: { name: { type: 'string' }, children: { type: 'array', items: reference('Tree') }, parent: reference('Tree') } },
    },
  },
})

export class Shop {
  /** Where the portal is. */
  portal = ''
  mail: Awaited<ReturnType<typeof mailbox>> | null = null

  constructor(
    readonly weir: Weir,
    private readonly backend: string,
  ) {
    this.portal = weir.portal
  }

  call(method: string, path: string, body?: unknown) {
    return this.weir.call(method, path, body)
  }

  async good(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.call(method, path, body)
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`)
    return answer.status === 204 ? null : answer.json()
  }

  /** Publishes a document as version 1.0.0 of an API. */
  async api(name: string, spec: unknown, more: Record<string, unknown> = {}) {
    await this.good('PUT', `/api/v1/apis/${name}`, { display_name: (spec as { info: { title: string } }).info.title, ...more })
    await this.good('POST', `/api/v1/apis/${name}/versions?version=1.0.0`, spec)
    await this.publish(name)
  }

  async publish(name: string, backend = this.backend) {
    await this.good('POST', `/api/v1/publications/${name}/1.0.0/default`, { runtime: { base_path: `/${name}`, strip_base_path: true, backends: { main: { url: backend } } } })
  }

  plan(api: string, name: string, plan: unknown) {
    return this.good('PUT', `/api/v1/apis/${api}/versions/1.0.0/plans/${name}`, plan)
  }
}

/** The link of the last mail to somebody that leads to a page: mails of other kinds may be there before it. */
export async function linkFor(shop: Shop, to: string, page: 'confirm' | 'invitation' | 'reset' = 'confirm'): Promise<string> {
  const links = () => shop.mail?.mails.filter((it) => it.to === to).flatMap((it) => /http\S+#\S+/.exec(it.text)?.[0] ?? []) ?? []
  const wanted = () => links().filter((it) => new URL(it).pathname === `/${page}`)
  await expect.poll(() => wanted().length, { timeout: 30_000 }).toBeGreaterThan(0)
  return wanted().at(-1) ?? ''
}

/** Makes an account, confirms it, and signs in. */
export async function join(page: Page, shop: Shop) {
  await page.goto(`${shop.portal}/sign-up`)
  await page.getByLabel('Mail address').fill('ann@example.com')
  await page.getByLabel('Name', { exact: true }).fill('Ann')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Make an account' }).click()
  await page.goto(await linkFor(shop, 'ann@example.com'))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await expect(page.getByRole('status').first()).toContainText('You can sign in now.')
  await page.goto(`${shop.portal}/login`)
  await page.getByLabel('Mail address').fill('ann@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
}

/** Calls the portal's API as who is signed in. */
export async function post<T>(page: Page, shop: Shop, path: string, data: unknown): Promise<T> {
  const answer = await page.request.post(`${shop.portal}/portal/v1${path}`, { data, headers: { origin: shop.portal } })
  expect(answer.ok(), `${path}: ${await answer.text()}`).toBe(true)
  return (await answer.json()) as T
}

/** An application with a key for a plan of the shop's API. */
export async function subscribed(page: Page, shop: Shop, plan = 'gold') {
  const app = await post<{ name: string }>(page, shop, '/apps', { title: 'Till' })
  const made = await post<{ id: string; key: { key: string } }>(page, shop, `/apps/${app.name}/subscriptions`, { publication: 'shop/1.0.0/default', plan, conditions_revision: plan === 'gold' ? 1 : 0 })
  return { app: app.name, id: made.id, key: made.key.key }
}

export const portalTest = base.extend<{ shop: Shop }>({
  shop: async ({ weir }, use) => {
    await weir.stop()
    const mail = await mailbox()
    await weir.start(['--data', `${weir.folder}/portal`, '--analytics-interval', '1', '--portal', '127.0.0.1:0', '--smtp', mail.url, '--mail-from', 'portal@example.com', '--portal-webhook-allow', '127.0.0.0/8'])
    const backend = await upstream('{"orders":[]}')
    const shop = new Shop(weir, backend.url)
    shop.mail = mail
    await shop.good('PUT', '/api/v1/environments/default', { display_name: 'Production', kind: 'production' })
    await shop.good('PUT', '/api/v1/portals/main', { display_name: 'Shop developers' })
    await shop.api('shop', specification('Shop'))
    await shop.plan('shop', 'gold', { display_name: 'Gold', state: 'published', limits: [{ count: 5, per: 'hour' }], price: '10 € a month', conditions: 'Be kind.' })
    await use(shop)
    await backend.close()
    await mail.close()
  },
})
