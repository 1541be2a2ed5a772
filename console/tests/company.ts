// A Weir of a small company: environments, APIs with plans and subscribers, resources of all dialects, people, and calls
// that succeed and fail. Pictures of pages are made of it.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PASSWORD, PETS, Weir, expect } from './weir'

const ORDERS = `openapi: 3.1.0
info: {title: Orders, version: 2.3.0, description: Orders and refunds of the shop.}
servers: [{url: https://api.example.com/orders}]
paths:
  /orders:
    get: {operationId: listOrders, summary: Lists orders, responses: {"200": {description: Orders}}}
    post: {operationId: addOrder, summary: Adds an order, responses: {"201": {description: Made}}}
  /orders/{id}:
    get: {operationId: getOrder, summary: Reads an order, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {"200": {description: The order}}}
    delete: {operationId: cancelOrder, summary: Cancels an order, deprecated: true, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {"204": {description: Cancelled}}}
  /orders/{id}/refunds:
    post: {operationId: addRefund, summary: Pays an order back, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {"200": {description: Paid back}}}
`

/** A backend that fails and waits at times, by what is asked for. */
async function backend() {
  const server = createServer((request, response) => {
    const isBroken = request.url?.includes('broken') === true
    setTimeout(() => {
      response.statusCode = isBroken ? 500 : 200
      response.end('{"ok":true}')
    }, request.url?.includes('slow') === true ? 120 : 2)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, close: () => new Promise<void>((resolve) => (server.closeAllConnections(), server.close(() => resolve()))) }
}

export class Company {
  readonly weir = new Weir()
  /** That the application `shop` shows. */
  private key = ''
  private close = async () => undefined as unknown

  async open(): Promise<this> {
    const { weir } = this
    const places = ['--environment', 'test', '--environment', 'prod', '--analytics-interval', '1', '--portal', '127.0.0.1:0']
    await weir.start(['--data', weir.folder, ...places])
    const behind = await backend()
    this.close = behind.close
    await this.gateway(behind.port)
    const key = await this.apis(behind.url)
    await this.watching()
    await this.people()
    await this.calls(key)
    return this
  }

  async end() {
    await this.close()
    await this.weir.end()
  }

  private async gateway(port: number) {
    const { weir } = this
    await weir.fillOrders({
      targets: [{ host: '127.0.0.1', port, weight: 100 }, { host: '127.0.0.1', port: 9, weight: 50 }],
      checks: { active: { path: '/', healthy: { interval_ms: 1000 }, unhealthy: { interval_ms: 1000, tcp_failures: 1 } } },
    })
    await weir.put('services', 'hello', { name: 'hello', url: `http://127.0.0.1:${port}`, routes: [{ name: 'hello', paths: ['/hello'], plugins: [{ cors: {} }] }, { name: 'broken', paths: ['/broken'] }, { name: 'slow', paths: ['/slow'] }] })
    await weir.put('services', 'gone', { name: 'gone', url: 'http://127.0.0.1:9', routes: [{ name: 'gone', paths: ['/gone'] }] })
    await weir.good('PUT', '/api/v1/dialects/kong/services/billing', { url: 'http://127.0.0.1:9', tags: ['finance'] })
    await weir.good('PUT', '/api/v1/dialects/kong/routes/invoices', { service: { name: 'billing' }, paths: ['/invoices'], methods: ['GET'] })
    await weir.good('PUT', '/api/v1/dialects/apisix/apisix/admin/routes/search', { name: 'search', uri: '/search/*', upstream: { type: 'roundrobin', nodes: { '127.0.0.1:9': 1 } } })
    await weir.put('services', 'postgres', { name: 'postgres', url: 'tcp://127.0.0.1:5432' })
    await weir.put('stream_routes', 'postgres', { name: 'postgres', protocols: ['tcp'], destinations: [':5432'], service: 'postgres' })
  }

  private async apis(url: string): Promise<string> {
    const { weir } = this
    const { credential } = await weir.fillApis(url)
    await weir.good('POST', '/api/v1/publications/pets/1.0.0/prod', { runtime: { base_path: '/v1', hosts: ['api.example.com'], backends: { main: { url } } } })
    const newer = `${PETS}  /toys:\n    get: {operationId: listToys, summary: All toys, responses: {"200": {description: Toys}}}\n`
    await weir.good('PUT', '/api/v1/apis/pets/versions/1.0.0', { spec: newer })
    await weir.good('POST', '/api/v1/publications/pets/1.0.0/test', {})
    await weir.good('PUT', '/api/v1/apis/orders', { display_name: 'Orders', description: 'Orders and refunds of the shop.', owner: 'team-shop', category: 'commerce' })
    await weir.good('POST', '/api/v1/apis/orders/versions', { spec: ORDERS })
    await weir.good('PUT', '/api/v1/apis/orders/versions/2.3.0/plans/partner', { state: 'published', validation: 'manual', limits: [{ count: 600, per: 'minute' }] })
    await weir.good('POST', '/api/v1/publications/orders/2.3.0/test', { runtime: { base_path: '/shop', backends: { main: { url } } } })
    await weir.good('PUT', '/api/v1/apis/weather', { display_name: 'Weather', description: 'Forecasts for shops.', owner: 'team-data', category: 'data' })
    await weir.good('POST', '/api/v1/apis/weather/versions', { spec: PETS.replace('title: Pets', 'title: Weather') })
    await weir.good('PUT', '/api/v1/applications/warehouse', { owner: 'team-logistics', display_name: 'Warehouse' })
    await weir.good('POST', '/api/v1/subscriptions', { application: 'warehouse', publication: 'orders/2.3.0/test', plan: 'partner', request: 'Stock is booked with each order.' })
    return credential.key
  }

  private async watching() {
    const { weir } = this
    const alert = { metric: 'share_5xx', operator: '>', period: '2m', group_by: ['service'], channels: [{ kind: 'log' }] }
    await weir.good('POST', '/api/v1/alerts', { ...alert, name: 'Errors', threshold: 0.05, severity: 'critical' })
    await weir.good('POST', '/api/v1/alerts', { ...alert, name: 'Slow answers', metric: 'latency_p95', threshold: 100_000, severity: 'warning', period: '10m' })
    await weir.good('PUT', '/api/v1/hooks/chat', { url: 'https://chat.example.com/hooks/weir', description: 'What the shop team reads.' })
  }

  private async people() {
    const { weir } = this
    await weir.addAdmin()
    await weir.addUser('ann', [{ role: 'api-owner', api: 'orders' }])
    await weir.addUser('bob', [{ role: 'read' }])
    await weir.good('POST', '/api/v1/me/tokens', { name: 'deploy from CI', password: PASSWORD })
  }

  private async calls(key: string) {
    this.key = key
    await expect.poll(() => this.ask('/v1/pets'), { timeout: 30_000 }).toBe(200)
    for (let index = 0; index < 24; index += 1) await this.round(index)
  }

  private async ask(path: string, isKnown = true): Promise<number> {
    const answer = await fetch(`${this.weir.proxy}${path}`, { headers: path.startsWith('/v1') && isKnown ? { apikey: this.key } : {} })
    return answer.status
  }

  /** Calls of each kind; every fourth time some that fail. */
  private async round(index: number) {
    await Promise.all(['/hello', '/hello/a', '/hello/b', '/v1/pets/7', '/shop/orders', '/slow'].map((path) => this.ask(path)))
    if (index % 4 === 0) await Promise.all([this.ask('/broken'), this.ask('/gone'), this.ask('/nothing'), this.ask('/v1/pets', false)])
  }

  /** Goes on calling for a while, more and less. */
  async traffic(milliseconds: number) {
    const end = Date.now() + milliseconds
    for (let index = 0; Date.now() < end; index += 1) {
      await this.round(index)
      await new Promise((resolve) => setTimeout(resolve, 120 + 100 * Math.sin(index / 40)))
    }
  }
}
