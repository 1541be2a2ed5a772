// The pictures of the portal's documentation: `PICTURES=1 npx playwright test portal-pictures` writes them to docs/pictures.
import { expect } from './weir'
import { portalTest } from './shop'

portalTest.skip(process.env.PICTURES !== '1', 'written on demand')

portalTest('pictures of the portal', async ({ page, shop }) => {
  await shop.good('PUT', '/api/v1/apis/shop', { display_name: 'Shop', description: 'Orders, refunds and **pictures** of a shop.', category: 'Commerce' })
  await page.setViewportSize({ width: 1280, height: 800 })
  const views: [string, string, 'light' | 'dark'][] = [
    ['home', '/', 'light'],
    ['reference', '/apis/shop/1.0.0/operations/addOrder', 'light'],
    ['plans', '/apis/shop/1.0.0/plans', 'dark'],
  ]
  for (const [name, path, colorScheme] of views) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto(`${shop.portal}${path}`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await page.waitForLoadState('networkidle')
    await page.screenshot({ path: `../docs/pictures/portal-${name}.jpg`, type: 'jpeg', quality: 82 })
  }
})
