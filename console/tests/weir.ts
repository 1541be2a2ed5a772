// A Weir for a test, and what pages are checked for. Ports are chosen by the system; nothing is mocked.
import { type Page, test as base, expect } from '@playwright/test'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PROGRAM = process.env.WEIR ?? '../target/debug/weir'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export class Weir {
  readonly folder = mkdtempSync(join(tmpdir(), 'weir-console-'))
  private process: ChildProcess | null = null
  private arguments: string[] = []
  /** Where its API and console are. */
  url = ''
  /** Where it takes calls. */
  proxy = ''

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
    this.proxy = /routes on (http:\/\/[\d.:]+)/.exec(ready)?.[1] ?? ''
    return this
  }

  /** Ends it at once; its data stays. */
  async stop() {
    const child = this.process
    if (child === null || child.exitCode !== null) return
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
      headers: { 'content-type': 'application/json', ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    })
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

  /** Two services, two routes, an upstream and a consumer. */
  async fill() {
    await this.put('upstreams', 'orders', { name: 'orders', targets: [{ host: '127.0.0.1', port: 1980 }] })
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
    await this.put('services', 'hello', { name: 'hello', url: 'http://127.0.0.1:1980', routes: [{ name: 'hello', paths: ['/hello'] }] })
    await this.put('consumers', 'alice', { name: 'alice', credentials: [{ 'key-auth': { key: 'alice-key' } }] })
  }
}

export const test = base.extend<{ weir: Weir; filled: Weir }>({
  weir: async ({ page }, use) => {
    const weir = await new Weir().start()
    watch(page, () => weir.url)
    await use(weir)
    await weir.end()
  },
  filled: async ({ weir }, use) => {
    await weir.fill()
    await use(weir)
  },
})

/** Nothing may be asked of another host, and nothing may be refused by the page's policy. */
function watch(page: Page, url: () => string) {
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'blob:') expect(origin, request.url()).toBe(url())
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

/** Serious and critical findings of axe, as text. */
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run: (options: unknown) => Promise<{ violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[] }> } }
    const { violations } = await axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })
    return violations
      .filter((it) => it.impact === 'serious' || it.impact === 'critical')
      .map((it) => `${it.id}: ${it.nodes.slice(0, 2).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 240)}`).join(' | ')}`)
  })
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
