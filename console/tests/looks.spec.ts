// Pictures of every page, to be looked at: `LOOK=1 npx playwright test looks` writes them to ../target/looks, at the
// width of a desk and of a phone, in both themes, with nothing, a few objects and many. `LOOK=few-1440-dark` makes one
// of these sets.
import { mkdirSync } from 'node:fs'
import { API_PAGES, PAGES } from './list'
import { type Weir, expect, open, settled, test } from './weir'

const WANTED = process.env.LOOK ?? ''
const WIDTHS = [1440, 390]
const MANY = 500

/** What a set of pictures is made with. */
const AMOUNTS: Record<string, (weir: Weir) => Promise<void>> = {
  none: async () => undefined,
  few: async (weir) => {
    await weir.fill()
    await weir.fillApis()
  },
  many: async (weir) => {
    await weir.fill()
    await weir.fillApis()
    const long = 'a-route-with-a-name-that-is-as-long-as-names-of-generated-routes-are-in-large-companies'
    const changes = Array.from({ length: MANY }, (_, index) => [
      { kind: 'services', name: `service-${index}`, value: { name: `service-${index}`, url: `http://10.0.0.${index % 250}:8080` } },
      { kind: 'routes', name: `${long}-${index}`, value: { name: `${long}-${index}`, hosts: [`h${index}.example.com`, 'second.example.com'], paths: [`/p/${index}`], service: `service-${index}`, plugins: [{ cors: {} }, { 'key-auth': {} }] } },
      { kind: 'consumers', name: `consumer-${index}`, value: { name: `consumer-${index}` } },
    ]).flat()
    await weir.good('POST', '/api/v1/changes', { changes })
    for (let index = 0; index < 30; index += 1) await weir.good('PUT', `/api/v1/applications/app-${index}`, { display_name: `Application ${index} of a customer`, owner: 'team-web' })
  },
}

for (const [amount, fill] of Object.entries(AMOUNTS)) {
  for (const width of WIDTHS) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const name = `${amount}-${width}-${colorScheme}`
      test(`looks: ${name}`, async ({ page, weir }) => {
        test.skip(WANTED !== '1' && WANTED !== name, 'made on demand')
        test.setTimeout(600_000)
        await fill(weir)
        const folder = `../target/looks/${name}`
        mkdirSync(folder, { recursive: true })
        await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        const pages = amount === 'none' ? PAGES.filter((it) => !/\/(orders|alice|\d)/.test(it)) : [...PAGES, ...API_PAGES]
        for (const path of new Set(pages)) {
          await open(page, weir, path)
          await settled(page)
          await page.screenshot({ fullPage: true, path: `${folder}/${path.replaceAll(/[^a-z0-9]+/gi, '_')}.png` })
        }
        await open(page, weir, '/')
        await page.getByRole('button', { name: 'Keys' }).click()
        await expect(page.getByRole('dialog', { name: 'Keys' })).toBeVisible()
        await page.screenshot({ path: `${folder}/dialog.png` })
      })
    }
  }
}
