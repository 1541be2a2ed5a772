// The pictures of the documentation: `PICTURES=1 npx playwright test pictures` writes them to docs/pictures.
import { PETS, expect, open, test, upstream } from './weir'

const FOLDER = '../docs/pictures'

test.skip(process.env.PICTURES !== '1', 'written on demand')

test('pictures', async ({ page, managed }) => {
  test.setTimeout(180_000)
  const backend = await upstream('hello')
  await managed.fill()
  await managed.put('services', 'hello', { name: 'hello', url: backend.url, routes: [{ name: 'hello', paths: ['/hello'], plugins: [{ cors: {} }] }] })
  await managed.put('routes', 'legacy', { name: 'legacy', paths: ['/v1/orders'], methods: ['DELETE'], service: 'orders' })
  await managed.good('POST', '/api/v1/publications/pets/1.0.0/prod', { runtime: { base_path: '/v1', backends: { main: { url: backend.url } } } })
  const newer = `${PETS}  /toys:\n    get: {operationId: listToys, summary: All toys, responses: {"200": {description: Toys}}}\n`
  await managed.good('PUT', '/api/v1/apis/pets/versions/1.0.0', { spec: newer })
  await managed.good('POST', '/api/v1/publications/pets/1.0.0/test', {})
  await expect.poll(async () => (await fetch(`${managed.proxy}/hello`)).status).toBe(200)
  for (let count = 0; count < 60; count += 1) await fetch(`${managed.proxy}/${count % 9 === 0 ? 'nothing' : 'hello'}`)
  await page.setViewportSize({ width: 1200, height: 750 })
  const views: [string, string, 'light' | 'dark'][] = [
    ['overview', '/', 'light'],
    ['routes', '/routes', 'dark'],
    ['explain', '/explain?url=http://api.example.com/orders', 'light'],
    ['apis', '/apis/pets', 'light'],
    ['design', '/apis/pets/1.0.0', 'dark'],
    ['publish', '/apis/pets/1.0.0/publish?to=prod', 'light'],
  ]
  for (const [name, path, colorScheme] of views) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await open(page, managed, path)
    await page.waitForTimeout(1500)
    await page.screenshot({ path: `${FOLDER}/console-${name}.jpg`, type: 'jpeg', quality: 80 })
  }
  await backend.close()
})
