// Pictures of every page, to be looked at: `LOOK=1 npx playwright test looks` writes them to ../target/looks, at the
// width of a desk and of a phone, in both themes, with nothing, a few objects, many, and with files in place of a store.
// `LOOK=few-1440-dark` makes one of these sets, `LOOK_AT=^/plans` only pages whose path fits.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Company } from './company'
import { API_PAGES, PAGES, pagesWithIds } from './list'
import { Weir, expect, logIn, open, pagesFromDist, settled, test } from './weir'

const WANTED = process.env.LOOK ?? ''
const ONLY = new RegExp(process.env.LOOK_AT ?? '')
const WIDTHS = [1440, 390]
const MANY = 500
const LONG = 'a-route-with-a-name-that-is-as-long-as-names-of-generated-routes-are-in-large-companies'

interface Made {
  weir: Weir
  end: () => Promise<void>
}

async function started(fill: (weir: Weir) => Promise<unknown> = async () => undefined, more?: (weir: Weir) => string[]): Promise<Made> {
  const weir = new Weir()
  await weir.start(more?.(weir))
  await fill(weir)
  return { weir, end: () => weir.end() }
}

async function fillMany(weir: Weir) {
  await weir.fill()
  await weir.fillApis()
  const changes = Array.from({ length: MANY }, (_, index) => [
    { kind: 'services', name: `service-${index}`, value: { name: `service-${index}`, url: `http://10.0.0.${index % 250}:8080` } },
    { kind: 'routes', name: `${LONG}-${index}`, value: { name: `${LONG}-${index}`, hosts: [`h${index}.example.com`, 'second.example.com'], paths: [`/p/${index}`], service: `service-${index}`, plugins: [{ cors: {} }, { 'key-auth': {} }] } },
    { kind: 'consumers', name: `consumer-${index}`, value: { name: `consumer-${index}` } },
    { kind: 'upstreams', name: `upstream-${index}`, value: { name: `upstream-${index}`, targets: [{ host: `10.0.0.${index % 250}`, port: 80 }, { host: `10.0.1.${index % 250}`, port: 80 }] } },
  ]).flat()
  await weir.good('POST', '/api/v1/changes', { changes })
  for (let index = 0; index < 60; index += 1) {
    await weir.good('PUT', `/api/v1/applications/app-${index}`, { display_name: `Application ${index} of a customer`, owner: 'team-web' })
    await weir.good('POST', '/api/v1/subscriptions', { application: `app-${index}`, publication: 'pets/1.0.0/test', plan: 'gold' })
    await weir.good('PUT', `/api/v1/apis/api-${index}`, { display_name: `The API number ${index} of a large company`, owner: 'team-with-a-long-name' })
  }
}

function files(weir: Weir): string[] {
  const file = join(weir.folder, 'kong.yml')
  writeFileSync(file, `_format_version: "3.0"\nservices:\n- {name: orders, url: "http://127.0.0.1:9", routes: [{name: orders, paths: [/orders]}, {name: refunds, paths: [/refunds]}], plugins: [{name: rate-limiting, config: {minute: 5, policy: local}}]}\nconsumers:\n- {username: alice, keyauth_credentials: [{key: alice-key}]}\n`)
  return ['-c', file]
}

/** What a set of pictures is made with. */
const AMOUNTS: Record<string, () => Promise<Made>> = {
  none: () => started(),
  files: () => started(undefined, files),
  few: async () => {
    const company = await new Company().open()
    return { weir: company.weir, end: () => company.end() }
  },
  many: () => started(fillMany),
}

for (const [amount, make] of Object.entries(AMOUNTS)) {
  for (const width of WIDTHS) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const name = `${amount}-${width}-${colorScheme}`
      test(`looks: ${name}`, async ({ page }) => {
        test.skip(WANTED !== '1' && WANTED !== name, 'made on demand')
        test.setTimeout(600_000)
        const { weir, end } = await make()
        await pagesFromDist(page)
        const folder = `../target/looks/${name}`
        mkdirSync(folder, { recursive: true })
        await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        if (weir.token !== null) {
          await page.goto(`${weir.url}/ui/`)
          await logIn(page, 'root')
        }
        const pages = ['none', 'files'].includes(amount) ? PAGES.filter((it) => !/\/(orders|alice|\d)/.test(it)) : [...PAGES, ...API_PAGES, ...(await pagesWithIds(weir))]
        for (const path of new Set(pages.filter((it) => ONLY.test(it)))) {
          await open(page, weir, path)
          await settled(page)
          await page.screenshot({ fullPage: true, path: `${folder}/${path.replaceAll(/[^a-z0-9]+/gi, '_')}.png` })
        }
        await open(page, weir, '/')
        await page.getByRole('button', { name: 'Keys' }).click()
        await expect(page.getByRole('dialog', { name: 'Keys' })).toBeVisible()
        await page.screenshot({ path: `${folder}/dialog.png` })
        await end()
      })
    }
  }
}
