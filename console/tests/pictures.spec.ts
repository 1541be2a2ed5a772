// The pictures of the documentation: `PICTURES=1 npx playwright test pictures` writes them to docs/pictures.
import { expect, open, test, upstream } from './weir'

const FOLDER = '../docs/pictures'

test.skip(process.env.PICTURES !== '1', 'written on demand')

test('pictures', async ({ page, filled }) => {
  const backend = await upstream('hello')
  await filled.put('services', 'hello', { name: 'hello', url: backend.url, routes: [{ name: 'hello', paths: ['/hello'], plugins: [{ cors: {} }] }] })
  await filled.put('routes', 'legacy', { name: 'legacy', paths: ['/v1/orders'], service: 'orders' })
  await expect.poll(async () => (await fetch(`${filled.proxy}/hello`)).status).toBe(200)
  for (let count = 0; count < 60; count += 1) await fetch(`${filled.proxy}/${count % 9 === 0 ? 'nothing' : 'hello'}`)
  await page.setViewportSize({ width: 1280, height: 800 })
  const views: [string, string, 'light' | 'dark'][] = [
    ['overview', '/', 'light'],
    ['route', '/routes/orders?view=both', 'light'],
    ['routes', '/routes', 'dark'],
  ]
  for (const [name, path, colorScheme] of views) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await open(page, filled, path)
    await page.waitForTimeout(1500)
    await page.screenshot({ path: `${FOLDER}/console-${name}.jpg`, type: 'jpeg', quality: 82 })
  }
  await backend.close()
})
