// Plans of each kind in the portal: what their callers get, and the questions that a plan asks.
import { generateKeyPairSync } from 'node:crypto'
import { expect, findings } from './weir'
import { type Shop, join, portalTest, post } from './shop'
import type { Page } from '@playwright/test'

const publish = (shop: Shop, name: string, body: object) => shop.plan('shop', name, { state: 'published', ...body })

async function subscribed(page: Page, shop: Shop, plan: string, app: string) {
  await post(page, shop, `/apps/${app}/subscriptions`, { publication: 'shop/1.0.0/default', plan })
  await page.goto(`${shop.portal}/apps/${app}`)
  return page.getByRole('listitem', { name: new RegExp(`, ${plan}$`) })
}

const newApp = async (page: Page, shop: Shop) => (await post<{ name: string }>(page, shop, '/apps', { title: 'Till' })).name

portalTest('a plan with user names shows user name and password once, and works', async ({ page, shop }) => {
  await publish(shop, 'people', { security: 'basic' })
  await join(page, shop)
  await newApp(page, shop)
  await page.goto(`${shop.portal}/apis/shop/1.0.0/subscribe?plan=people`)
  await expect(page.getByText('User name and password')).toBeVisible()
  await page.getByRole('button', { name: 'Subscribe' }).click()
  const dialog = page.getByRole('dialog', { name: 'Your password' })
  const password = await dialog.getByLabel('Password').innerText()
  const user = (await dialog.getByText(/^User name: /).innerText()).replace('User name: ', '')
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  const call = async () => (await fetch(`${shop.weir.proxy}/shop/orders`, { headers: { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` } })).status
  await expect.poll(call).toBe(200)
  await page.getByRole('link', { name: 'To the application' }).click()
  const keys = page.getByRole('group', { name: 'User names' })
  await expect(keys.getByRole('row', { name: new RegExp(`^${user} `) })).toBeVisible()
  await page.getByRole('button', { name: 'New user name' }).click()
  await expect(dialog.getByText(/^User name: /)).not.toContainText(user)
  expect(await findings(page)).toEqual([])
})

portalTest('a plan of the application offers no key; one with tokens takes a public key', async ({ page, shop }) => {
  await publish(shop, 'partner', { security: 'oauth2', oauth2: { discovery: 'https://id.example.com' } })
  await publish(shop, 'signed', { security: 'jwt' })
  await join(page, shop)
  const app = await newApp(page, shop)
  const known = (await shop.good('GET', `/api/v1/applications/${app}`)) as object
  await shop.good('PUT', `/api/v1/applications/${app}`, { ...known, client_id: 'till-client' })
  const partner = await subscribed(page, shop, 'partner', app)
  await expect(partner.getByRole('group', { name: 'Client id' })).toContainText('till-client')
  await expect(partner.getByRole('button', { name: 'New key' })).toHaveCount(0)
  const signed = await subscribed(page, shop, 'signed', app)
  await expect(signed).toContainText('There is no public key yet')
  await signed.getByRole('button', { name: 'Add a public key' }).click()
  const dialog = page.getByRole('dialog', { name: 'Add a public key' })
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  await dialog.getByLabel('Public key, in PEM').fill(publicKey.export({ type: 'spki', format: 'pem' }).toString())
  await dialog.getByLabel('Issuer').fill('till')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await expect(signed.getByRole('row', { name: /^till / })).toBeVisible()
  await expect(signed.getByRole('button', { name: /^Rotate/ })).toHaveCount(0)
  expect(await findings(page)).toEqual([])
})

portalTest('a client id is entered in the settings, which no other application can take then', async ({ page, shop }) => {
  await publish(shop, 'partner', { security: 'oauth2', oauth2: { discovery: 'https://id.example.com' } })
  await shop.good('PUT', '/api/v1/applications/of-another', { client_id: 'theirs' })
  await join(page, shop)
  const app = await newApp(page, shop)
  await page.goto(`${shop.portal}/apis/shop/1.0.0/subscribe?plan=partner`)
  await expect(page.getByText('This plan identifies the application by its client id')).toBeVisible()
  await page.getByRole('main').getByRole('link', { name: 'enter it in the settings' }).click()
  await page.getByText('For plans with access tokens or certificates').click()
  const client = page.getByLabel('Client id')
  await client.fill('theirs')
  await page.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByText('it cannot be used for this application')).toBeVisible()
  await expect(page.getByRole('main')).not.toContainText('of-another')
  await client.fill('mine')
  await page.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByRole('status').filter({ hasText: 'Saved.' })).toBeVisible()
  expect(await findings(page)).toEqual([])
  const partner = await subscribed(page, shop, 'partner', app)
  await expect(partner.getByRole('group', { name: 'Client id' })).toContainText('mine')
  await partner.getByRole('link', { name: 'Change it in the settings' }).click()
  await expect(client).toHaveValue('mine')
})

portalTest('the questions of a plan are asked, and shown with the subscription', async ({ page, shop }) => {
  const form = {
    type: 'object',
    required: ['team'],
    properties: { team: { type: 'string', title: 'Which team?', description: 'As in the directory.', minLength: 2 }, outside: { type: 'boolean', title: 'Used outside?' } },
  }
  await publish(shop, 'asking', { validation: 'manual', comment: 'required', form })
  await join(page, shop)
  const app = await newApp(page, shop)
  await page.goto(`${shop.portal}/apis/shop/1.0.0/subscribe?plan=asking`)
  const team = page.getByLabel('Which team?')
  await expect(team).toHaveAccessibleDescription('As in the directory.')
  expect(await findings(page)).toEqual([])
  // What has to be answered is asked for before anything is sent.
  const send = page.getByRole('button', { name: 'Subscribe' })
  await send.click()
  await expect(team).toBeFocused()
  await team.fill('b')
  await page.getByLabel('Used outside?').check()
  await page.getByLabel('What is it for?').fill('a till')
  await send.click()
  await expect(page.getByRole('alert')).toContainText('team')
  await team.fill('blue')
  await send.click()
  await expect(page.getByRole('status')).toContainText('has to accept')
  await page.goto(`${shop.portal}/apps/${app}`)
  const told = page.getByLabel('Your answers')
  for (const text of ['a till', 'Which team?', 'blue', 'Used outside?', 'yes']) await expect(told).toContainText(text)
  expect(await findings(page)).toEqual([])
})
