// Dialogs: opened one by one, without serious findings of axe in both themes, no wider than a phone, closed by Escape, and the
// focus is back where it was. Single names in the lists below are buttons, pressed in their order; the last opens the dialog.
import type { Locator, Page } from '@playwright/test'
import { Company } from './company'
import { subscriptionPage } from './list'
import { expect, findingsInBothThemes, logIn, open, pagesFromDist, settled, test } from './weir'

/** A page, the buttons that are pressed there, and the name of the dialog that is open then. */
type Case = [path: string, press: (string | RegExp)[], title: string | RegExp]

const GATEWAY: Case[] = [
  ['/routes', ['Show as call'], 'This page as calls'],
  ['/routes', ['Keys'], 'Keys'],
  ['/routes', ['Select orders', 'Label'], 'Label 1 route?'],
  ['/routes', ['Select orders', 'Delete'], 'Delete 1 route?'],
  ['/routes/@new', ['Review and save'], 'Create orders?'],
  ['/routes/orders', ['Delete'], 'Delete orders?'],
  ['/plugins?plugin=rate-limit', [], 'rate-limit'],
  ['/secrets', ['Test a reference'], 'Test a reference'],
  ['/history/3', ['Roll back to this', 'Preview'], 'Roll back to revision 3'],
  ['/analytics', [/^Query of Totals/], 'Query of Totals'],
  ['/alerts', ['Select Errors', 'Delete'], 'Delete Errors?'],
]

const APIS: Case[] = [
  ['/apis/pets', ['Edit'], 'Edit pets'],
  ['/apis/pets', ['Delete'], 'Delete pets?'],
  ['/apis/@new', ['From an address'], 'A document from an address'],
  ['/apis/pets/1.0.0', ['Export'], 'Export pets 1.0.0'],
  ['/apis/pets/1.0.0', ['New component'], 'New component'],
  ['/apis/pets/1.0.0', [/plugins of listPets/], 'Plugins of GET /pets'],
  ['/apis/pets/1.0.0/plans', ['New plan'], 'New plan'],
  ['/apis/pets/1.0.0/plans', [/^Close/], 'Close gold?'],
  ['/apis/pets/1.0.0/tests', ['New test'], 'New test'],
  ['/apis/pets/1.0.0/in/test', ['More', 'Roll back'], 'Roll pets 1.0.0 back in test'],
  ['/apis/pets/1.0.0/in/test', ['More', 'Start a canary'], 'Start a canary'],
  ['/apis/pets/1.0.0/in/test', ['More', 'Deprecate'], 'Deprecate pets 1.0.0 in test'],
  ['/apis/pets/1.0.0/in/test', ['More', 'Remove'], /^Remove pets 1.0.0 in test/],
  ['/products/bundle', ['Offer it'], 'Offer bundle?'],
  ['/environments', ['New environment'], 'New environment'],
  ['/environments', ['Delete test'], 'Delete test?'],
]

const PEOPLE: Case[] = [
  ['/applications', ['New application'], 'New application'],
  ['/applications/shop', ['Subscribe'], 'Subscribe shop'],
  ['SUBSCRIPTION', ['Pause'], /^Pause shop/],
  ['SUBSCRIPTION', [/^Rotate/], /^Rotate/],
  ['SUBSCRIPTION', [/^Revoke/], /^Revoke/],
  ['/developers', ['New developer'], 'New developer'],
  ['/portals/main', ['Delete'], 'Delete main?'],
  ['/hooks/ci', ['Delete'], 'Delete ci?'],
  ['/users', ['New user'], 'New user'],
  ['/users', ['ann'], 'ann'],
  ['/identity-providers', ['New identity provider'], 'New identity provider'],
  ['/workspaces', ['New workspace'], 'New workspace'],
  ['/account', ['New token'], 'New personal token'],
]

/** A button, a box to tick, or an entry of a menu. */
const pressable = (page: Page, name: string | RegExp): Locator => {
  const options = typeof name === 'string' ? { name, exact: true } : { name }
  return page.getByRole('button', options).or(page.getByRole('checkbox', options)).or(page.getByRole('menuitem', options)).first()
}

/** What is wrong with the dialog that is open. */
async function faultsOf(page: Page, dialog: Locator): Promise<string[]> {
  const faults = await findingsInBothThemes(page)
  await page.setViewportSize({ width: 390, height: 844 })
  const box = await dialog.boundingBox()
  if (box === null || box.x < 0 || box.x + box.width > 390) faults.push(`at 390 pixels it reaches from ${box?.x} to ${box === null ? '' : box.x + box.width}`)
  const excess = await dialog.evaluate((it) => it.scrollWidth - it.clientWidth)
  if (excess > 0) faults.push(`at 390 pixels ${excess} of it are cut`)
  await page.setViewportSize({ width: 1440, height: 900 })
  return faults
}

for (const [area, cases] of Object.entries({ 'the gateway': GATEWAY, APIs: APIS, people: PEOPLE })) {
  test(`53: dialogs of ${area} have no serious findings in both themes, fit a phone, and give the focus back`, async ({ page }) => {
    test.setTimeout(900_000)
    const company = await new Company().open()
    const { weir } = company
    await pagesFromDist(page)
    await page.goto(`${weir.url}/ui/`)
    await logIn(page, 'root')
    const subscriptions = await weir.good<{ items: { id: string; state: string }[] }>('GET', '/api/v1/subscriptions')
    const subscription = subscriptionPage(subscriptions.items.find((it) => it.state === 'accepted')?.id ?? 'none')
    const faults: string[] = []
    for (const [path, names, title] of cases) {
      await open(page, weir, path === 'SUBSCRIPTION' ? subscription : path)
      await settled(page)
      for (const name of names) await pressable(page, name).click({ timeout: 30_000 })
      const dialog = page.getByRole('dialog', typeof title === 'string' ? { name: title, exact: true } : { name: title })
      await expect(dialog).toBeVisible()
      await expect(dialog.locator('[aria-busy=true], .skeleton')).toHaveCount(0)
      for (const fault of await faultsOf(page, dialog)) faults.push(`${path}, ${String(title)}: ${fault}`)
      await page.keyboard.press('Escape')
      await expect(dialog).toHaveCount(0)
      await expect.poll(() => page.evaluate(() => document.activeElement?.tagName), { message: `${path}, ${String(title)}: the focus` }).not.toBe('BODY')
    }
    expect(faults).toEqual([])
    await company.end()
  })
}
