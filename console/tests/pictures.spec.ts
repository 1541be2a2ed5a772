// The pictures of the documentation, in both themes: `PICTURES=1 npx playwright test pictures` writes them to docs/pictures.
import { Company } from './company'
import { logIn, open, settled, test } from './weir'
import { pagesFromDist } from './weir'

const FOLDER = '../docs/pictures'
/** Charts show minutes: there are a few of them. */
const TRAFFIC_MS = 200_000

test.skip(process.env.PICTURES !== '1', 'written on demand')

test('pictures', async ({ page }) => {
  test.setTimeout(600_000)
  const company = await new Company().open()
  const { weir } = company
  await weir.put('routes', 'legacy', { name: 'legacy', paths: ['/v1/orders'], methods: ['DELETE'], service: 'orders' })
  await company.traffic(TRAFFIC_MS)
  await pagesFromDist(page)
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.goto(`${weir.url}/ui/`)
  await logIn(page, 'root')
  const { items } = await weir.good<{ items: { id: string; name: string }[] }>('GET', '/api/v1/alerts')
  const alert = items.find((it) => it.name === 'Slow answers')?.id ?? ''
  const views: [string, string][] = [
    ['overview', '/'],
    ['routes', '/routes'],
    ['explain', '/explain?url=http://api.example.com/orders'],
    ['analytics', '/analytics?range=-15m'],
    ['alert', `/alerts/${alert}`],
    ['apis', '/apis/pets'],
    ['design', '/apis/pets/1.0.0'],
    ['publish', '/apis/pets/1.0.0/publish?to=prod'],
    ['portal', '/portals/main'],
  ]
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    for (const [name, path] of views) {
      await open(page, weir, path)
      await settled(page)
      await page.waitForTimeout(1500)
      await page.screenshot({ path: `${FOLDER}/console-${name}${colorScheme === 'dark' ? '-dark' : ''}.jpg`, type: 'jpeg', quality: 72 })
    }
  }
  await company.end()
})
