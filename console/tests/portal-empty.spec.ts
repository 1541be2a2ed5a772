// The portal where nothing is yet, and where nothing can be: each page says what it is for, and where to go on.
import { join, portalTest, post } from './shop'
import { expect, findings } from './weir'

portalTest('where nothing is yet, pages say what they are for and offer the first step', async ({ page, shop }) => {
  await join(page, shop)
  await expect(page.getByRole('heading', { name: 'No application yet' })).toBeVisible()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Make the first one' }).click()
  const dialog = page.getByRole('dialog', { name: 'New application' })
  await dialog.getByLabel('Title').fill('Till')
  await dialog.getByRole('button', { name: 'Make it' }).click()
  await page.getByRole('link', { name: 'Till' }).click()
  await expect(page.getByRole('heading', { name: 'No subscription yet' })).toBeVisible()
  await expect(page.getByRole('link', { name: 'All APIs' })).toHaveAttribute('href', '/apis')
  await page.getByRole('link', { name: 'Usage' }).click()
  await expect(page.getByRole('region', { name: 'Quota' })).toContainText('This application has no subscription.')
  await page.goto(`${shop.portal}/teams`)
  await expect(page.getByRole('heading', { name: 'No team yet' })).toBeVisible()
  await page.goto(`${shop.portal}/notices`)
  await expect(page.getByRole('heading', { name: 'Nothing yet' })).toBeVisible()
  await page.getByRole('link', { name: 'Your applications' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Applications' })).toBeVisible()
  await page.goto(`${shop.portal}/search?q=zzzz`)
  await expect(page.getByRole('status')).toContainText('Nothing found for “zzzz”. Try another word, or look through all APIs.')
})

portalTest('an address that leads nowhere says so, and where to go on', async ({ page, shop }) => {
  await join(page, shop)
  const { name } = await post<{ name: string }>(page, shop, '/apps', { title: 'Till' })
  for (const path of ['/nowhere', '/apps/none', `/apps/${name}/nonsense`, '/apis/none', '/pages/none']) {
    await page.goto(`${shop.portal}${path}`)
    await expect(page.getByRole('heading', { level: 1, name: 'Nothing here' }), path).toBeVisible()
    await expect(page.getByRole('main').getByRole('link', { name: 'Your applications' })).toBeVisible()
  }
  await page.getByRole('main').getByRole('link', { name: 'All APIs' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'APIs' })).toBeVisible()
})

portalTest('the login says who is signed in already, and lets somebody else sign in', async ({ page, shop }) => {
  await page.goto(`${shop.portal}/login`)
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible()
  await expect(page.getByText('You are signed in')).toHaveCount(0)
  await join(page, shop)
  await page.goto(`${shop.portal}/login?to=/teams`)
  await expect(page.getByText('You are signed in as Ann.')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible()
  await page.getByRole('link', { name: 'Go on as Ann' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Teams' })).toBeVisible()
})
