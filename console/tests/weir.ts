// A Weir for a test, and what pages are checked for. Ports are chosen by the system; nothing is mocked.
import { type Locator, type Page, test as base, expect } from '@playwright/test'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PROGRAM = process.env.WEIR ?? '../target/debug/weir'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Of all users of the tests. */
export const PASSWORD = 'correct horse battery'

export class Weir {
  readonly folder = mkdtempSync(join(tmpdir(), 'weir-console-'))
  private process: ChildProcess | null = null
  private arguments: string[] = []
  /** Where its API and console are. */
  url = ''
  /** Where it takes calls. */
  proxy = ''
  /** Where it tells how it stands. */
  status = ''
  /** The token that calls of the test show, once there are users. */
  token: string | null = null
  /** Where the developer portal is, if it was asked for. */
  portal = ''

  async start(more: string[] = ['--data', this.folder], consolePort = 0): Promise<this> {
    this.arguments = more
    const flags = ['--listen', '127.0.0.1:0', '--status', '127.0.0.1:0', '--console', `127.0.0.1:${consolePort}`]
    const child = spawn(PROGRAM, ['run', ...flags, ...more], { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH } })
    this.process = child
    let said = ''
    const ready = await new Promise<string>((resolve, reject) => {
      child.stdout.on('data', (data: Buffer) => {
        said += data.toString()
        const line = said.split('\n').find((it) => it.startsWith('ready'))
        if (line !== undefined) resolve(line)
      })
      child.stderr.on('data', (data: Buffer) => (said += data.toString()))
      child.on('exit', () => reject(new Error(`weir ended: ${said}`)))
    })
    this.url = /the console on (http:\/\/[^/]+)/.exec(ready)?.[1] ?? ''
    this.status = /status on (http:\/\/[\d.:]+)/.exec(ready)?.[1] ?? ''
    this.portal = /the developer portal on (http:\/\/[\d.:]+)/.exec(ready)?.[1] ?? ''
    this.proxy = /routes? on (http:\/\/[\d.:]+)/.exec(ready)?.[1] ?? ''
    return this
  }

  /** Ends it at once; its data stays. */
  async stop() {
    const child = this.process
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  async restart() {
    await this.start(this.arguments, Number(new URL(this.url).port))
  }

  async end() {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(this.token === null ? {} : { authorization: `Bearer ${this.token}` }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    })
  }

  /** Makes the first user, who may do everything and has a password; calls of the test show the token from then on. */
  async addAdmin(name = 'root', password = PASSWORD) {
    const { token } = await this.good<{ token: string }>('POST', `/api/v1/users/${name}`, { rights: [{ role: 'admin' }], password })
    this.token = token
  }

  async addUser(name: string, rights: object[]) {
    await this.good('POST', `/api/v1/users/${name}`, { rights, password: PASSWORD, without_token: true })
  }

  /** Stops answering without closing anything, as an overloaded server does, and goes on. */
  freeze() {
    this.process?.kill('SIGSTOP')
  }

  thaw() {
    this.process?.kill('SIGCONT')
  }

  async put(kind: string, name: string, body: unknown) {
    const answer = await this.call('PUT', `/api/v1/resources/${kind}/${encodeURIComponent(name)}`, body)
    if (!answer.ok) throw new Error(`${kind}/${name}: ${await answer.text()}`)
  }

  async read(kind: string, name: string): Promise<unknown> {
    return (await this.call('GET', `/api/v1/resources/${kind}/${encodeURIComponent(name)}`)).json()
  }

  /** The newest revision. */
  async revision(): Promise<number> {
    const { items } = (await (await this.call('GET', '/api/v1/history?limit=1')).json()) as { items: { revision: number }[] }
    return items[0]?.revision ?? 0
  }

  /** Makes a call that has to be answered well. */
  async good<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.call(method, path, body)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return (text === '' ? null : JSON.parse(text)) as T
  }

  /** Two environments, an API that is published in one of them, a plan, a portal, a webhook, and an application with a key. */
  async fillApis(backend = 'http://127.0.0.1:9') {
    await this.good('PUT', '/api/v1/environments/test', { order: 10, description: 'For trying things.' })
    await this.good('PUT', '/api/v1/environments/prod', { order: 20, kind: 'production', base_urls: ['https://api.example.com'] })
    await this.good('PUT', '/api/v1/apis/pets', { display_name: 'Pets', description: 'Pets and their owners.', owner: 'team-pets', category: 'animals' })
    await this.good('POST', '/api/v1/apis/pets/versions', { spec: PETS })
    await this.good('PUT', '/api/v1/apis/pets/versions/1.0.0/plans/gold', { state: 'published', limits: [{ count: 1000, per: 'day' }] })
    await this.good('POST', '/api/v1/publications/pets/1.0.0/test', { runtime: { base_path: '/v1', backends: { main: { url: backend } } } })
    await this.good('PUT', '/api/v1/products/bundle', { description: 'Reading pets, for partners.', publications: { 'pets/1.0.0/test': ['listPets', 'getPet'] } })
    await this.good('PUT', '/api/v1/products/bundle/plans/partner', { state: 'published', limits: [{ count: 5000, per: 'day' }] })
    await this.good('PUT', '/api/v1/hooks/ci', { url: 'https://ci.example.com/weir', events: ['publication.*'], apis: ['pets'] })
    await this.good('PUT', '/api/v1/portals/main', { display_name: 'Example developers', url: 'https://developers.example.com', home: '# Build with us\n\nPets, orders and more.', featured: ['pets'] })
    await this.good('PUT', '/api/v1/portals/main/pages/terms', { title: 'Terms of use', body: '# Terms\n\nBe kind.', visibility: 'public', menu: true, published: true })
    await this.good('PUT', '/api/v1/applications/shop', { owner: 'team-web' })
    return this.good<{ id: string; credential: { key: string } }>('POST', '/api/v1/subscriptions', { application: 'shop', publication: 'pets/1.0.0/test', plan: 'gold' })
  }

  /** Two services, two routes, an upstream and a consumer. */
  async fill() {
    await this.fillOrders({ targets: [{ host: '127.0.0.1', port: 1980 }] })
    await this.put('services', 'hello', { name: 'hello', url: 'http://127.0.0.1:1980', routes: [{ name: 'hello', paths: ['/hello'] }] })
  }

  /** A route with plugins, its service, an upstream, and a consumer with a key. */
  async fillOrders(upstream: object) {
    await this.put('upstreams', 'orders', { name: 'orders', ...upstream })
    await this.put('services', 'orders', { name: 'orders', upstream: 'orders' })
    await this.put('routes', 'orders', {
      name: 'orders',
      hosts: ['api.example.com'],
      paths: ['/orders'],
      methods: ['GET', 'POST'],
      service: 'orders',
      max_body_bytes: 1048576,
      plugins: [{ 'key-auth': {} }, { 'rate-limit': { limits: [{ count: 5, per: 'minute' }], by: 'consumer' } }],
    })
    await this.put('consumers', 'alice', { name: 'alice', credentials: [{ 'key-auth': { key: 'alice-key' } }] })
  }
}

/** An OpenAPI document with a few operations. */
export const PETS = `openapi: 3.1.0
info: {title: Pets, version: 1.0.0}
servers: [{url: https://api.example.com/v1}]
paths:
  /pets:
    get:
      operationId: listPets
      summary: All pets
      responses:
        "200": {description: The pets}
    post:
      operationId: addPet
      summary: Adds a pet
      responses:
        "201": {description: It is there}
  /pets/{id}:
    get:
      operationId: getPet
      summary: One pet
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses:
        "200": {description: The pet}
        "404": {description: There is none}
`

/**
 * With `CONSOLE_DIST=1`, pages come from console/dist in place of the program, which need not be built again then. The
 * policy is the program's.
 */
export async function pagesFromDist(page: Page) {
  if (process.env.CONSOLE_DIST !== '1') return
  const types: Record<string, string> = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', html: 'text/html' }
  await page.context().route(/\/ui\//, async (route) => {
    const path = new URL(route.request().url()).pathname.replace(/^\/ui\//, '')
    const isFile = /^(assets\/|icon\.svg|press\.css)/.test(path)
    const file = join('dist', isFile ? path : 'index.html')
    const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    await route.fulfill({ path: file, headers: { 'content-type': types[file.split('.').at(-1) ?? ''] ?? 'text/plain', 'content-security-policy': policy } })
  })
  // The portal's server writes the head of each page; only the names of the files are of dist.
  const built = readFileSync(join('dist', 'portal.html'), 'utf8')
  const current = new Map([...built.matchAll(/\/ui\/assets\/([^"]+)-[\w-]{8}(\.\w+)/g)].map(([path, name, ending]) => [`${name}${ending}`, path]))
  await page.context().route(/^(?!.*\/(ui|portal\/v1|api)\/)/, async (route) => {
    if (route.request().resourceType() !== 'document') return route.fallback()
    const response = await route.fetch()
    const text = await response.text()
    const body = text
      .replace(/\/ui\/assets\/([^"]+)-[\w-]{8}(\.\w+)/g, (path, name: string, ending: string) => current.get(`${name}${ending}`) ?? path)
      // What the program was built with and dist has no more is not loaded ahead.
      .replace(/<link rel="modulepreload"[^>]*href="\/ui\/([^"]+)"[^>]*>/g, (link, file: string) => (existsSync(join('dist', file)) ? link : ''))
    return route.fulfill({ response, body })
  })
}

export const test = base.extend<{ weir: Weir; filled: Weir; managed: Weir }>({
  weir: async ({ page }, use) => {
    const weir = await new Weir().start()
    await pagesFromDist(page)
    watch(page, () => [weir.url, weir.portal])
    await use(weir)
    await weir.end()
  },
  filled: async ({ weir }, use) => {
    await weir.fill()
    await use(weir)
  },
  managed: async ({ page }, use) => {
    const weir = new Weir()
    await weir.start(['--data', weir.folder, '--environment', 'test', '--environment', 'prod'])
    await pagesFromDist(page)
    await weir.fillApis()
    watch(page, () => [weir.url])
    await use(weir)
    await weir.end()
  },
})

/** Nothing may be asked of another host, and nothing may be refused by the page's policy. */
function watch(page: Page, urls: () => string[]) {
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'blob:') expect(urls(), request.url()).toContain(origin)
  })
  page.on('console', (message) => {
    // Chromium itself styles what is typed over a selection in the text editor; the policy holds that off, too.
    if (message.text().startsWith('Applying inline style')) return
    expect(message.text(), 'the policy of the page').not.toContain('Content Security Policy')
  })
  page.on('pageerror', (error) => {
    throw error
  })
}

export const open = async (page: Page, weir: Weir, path: string) => {
  await page.goto(`${weir.url}/ui${path}`)
  await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible()
}

/** Logs in on the page that asks for it. */
export async function logIn(page: Page, name: string) {
  await page.getByLabel('User name').fill(name)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page.getByRole('heading', { name: 'Log in to Weir' })).toHaveCount(0)
}

/** Waits until a page shows what it has read. Pages that follow the gateway never stop asking. */
export async function settled(page: Page) {
  await expect(page.locator('[aria-busy=true], .skeleton')).toHaveCount(0)
}

/** Presses Tab, or Tab with Shift, until an element has the focus. */
export async function tabTo(page: Page, wanted: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab') {
  await expect(wanted).toBeVisible()
  for (let presses = 0; presses < 120; presses += 1) {
    // The text editor stands in a root of its own.
    if (await wanted.evaluate((it) => it === (it.getRootNode() as Document | ShadowRoot).activeElement)) return
    await page.keyboard.press(key)
  }
  throw new Error(`${key} does not reach it`)
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
/** The rule that a theme can break while the other keeps it. */
const CONTRAST = ['color-contrast']

/** Serious and critical findings of axe, as text. */
export async function findings(page: Page, rules = RULES): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as { axe: { run: (options: unknown) => Promise<{ violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[] }> } }
    const { violations } = await axe.run({ runOnly })
    return violations
      .filter((it) => it.impact === 'serious' || it.impact === 'critical')
      .map((it) => `${it.id}: ${it.nodes.slice(0, 2).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 240)}`).join(' | ')}`)
  }, rules)
}

/** Findings in both themes: all rules in the light one, those of colours in the dark one. */
export async function findingsInBothThemes(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  const light = await findings(page)
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  const dark = await findings(page, CONTRAST)
  return [...light.map((it) => `light: ${it}`), ...dark.map((it) => `dark: ${it}`)]
}

/** A server that answers every call with a text. */
export async function upstream(text: string): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((_, response) => response.end(text))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

export { expect }
