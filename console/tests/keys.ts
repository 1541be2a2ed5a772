// What a hand on the keyboard does, for tests that press no mouse button.
import type { Locator, Page } from '@playwright/test'
import { tabTo } from './weir'

type Direction = 'Tab' | 'Shift+Tab'

/** Goes to a field by Tab and types a text in place of what is there. */
export async function typeInto(page: Page, field: Locator, text: string, key: Direction = 'Tab') {
  await tabTo(page, field, key)
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(text)
}

/** Goes to a button or a link by Tab and presses Enter. */
export async function press(page: Page, wanted: Locator, key: Direction = 'Tab') {
  await tabTo(page, wanted, key)
  await page.keyboard.press('Enter')
}

/** Goes to a box by Tab and ticks it. */
export async function tick(page: Page, box: Locator, key: Direction = 'Tab') {
  await tabTo(page, box, key)
  await page.keyboard.press('Space')
}

/** Goes to a select by Tab and types the beginning of an option. */
export async function select(page: Page, field: Locator, option: string) {
  await tabTo(page, field)
  await page.keyboard.type(option)
}

/** Goes to a group of choices, which is one stop for Tab, moves to one by arrows, and chooses it. */
export async function choose(page: Page, group: Locator, name: string, key: Direction = 'Tab') {
  await tabTo(page, group.locator('button[tabindex="0"]'), key)
  const wanted = group.getByRole('button', { name, exact: true })
  const count = await group.getByRole('button').count()
  for (let presses = 0; presses < count; presses += 1) {
    if (await wanted.evaluate((it) => it === document.activeElement)) break
    await page.keyboard.press('ArrowRight')
  }
  await page.keyboard.press('Enter')
}
