// Subscriptions of plans of each kind in the console: what their callers need, and the questions of a plan.
import type { Page } from '@playwright/test'
import { type Weir, expect, findings, open, test } from './weir'

const plan = (weir: Weir, name: string, body: object) => weir.good('PUT', `/api/v1/apis/pets/versions/1.0.0/plans/${name}`, { state: 'published', ...body })

async function subscribe(page: Page, weir: Weir, name: string) {
  await open(page, weir, '/applications/shop')
  await page.getByRole('button', { name: 'Subscribe' }).click()
  const dialog = page.getByRole('dialog', { name: 'Subscribe shop' })
  await dialog.getByLabel('API', { exact: true }).selectOption('pets/1.0.0/test')
  await dialog.getByRole('radio', { name: new RegExp(name) }).check()
  return dialog
}

test('a plan with user names shows them, and the password once', async ({ page, managed }) => {
  await plan(managed, 'people', { security: 'basic' })
  const dialog = await subscribe(page, managed, 'people')
  await dialog.getByRole('button', { name: 'Subscribe' }).click()
  const first = page.getByRole('dialog', { name: 'The password of shop' })
  await expect(first).toContainText('Authorization: Basic')
  await expect(first).toContainText('User name')
  await first.getByRole('button', { name: 'I have kept it' }).click()
  await page.getByRole('table', { name: 'Subscriptions of shop' }).getByRole('row', { name: /people/ }).getByRole('link', { name: /^Keys/ }).click()
  const users = page.getByRole('region', { name: 'User names' })
  await users.getByRole('button', { name: 'New user name' }).click()
  const made = page.getByRole('dialog', { name: 'The new password' })
  await expect(made).toBeVisible()
  const { items } = await managed.good<{ items: { name: string; created: number }[] }>('GET', `/api/v1/subscriptions/${page.url().split('/').at(-1)}/credentials`)
  expect(items).toHaveLength(2)
  await made.getByRole('button', { name: 'I have kept it' }).click()
  for (const { name } of items) {
    await expect(users.getByRole('listitem').filter({ hasText: name })).toHaveCount(1)
    await expect(users.getByRole('button', { name: `Rotate ${name}` })).toBeVisible()
  }
  expect(await findings(page)).toEqual([])
})

test('a plan that knows the application offers no key, and shows its client id', async ({ page, managed }) => {
  await plan(managed, 'partner-tokens', { security: 'oauth2', oauth2: { discovery: 'https://id.example.com' } })
  await open(page, managed, '/applications/shop')
  await page.getByRole('button', { name: 'Edit' }).click()
  const edit = page.getByRole('dialog', { name: 'Edit shop' })
  await edit.getByLabel('Client id').fill('shop-client')
  await edit.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByRole('region', { name: 'About it' })).toContainText('shop-client')
  const dialog = await subscribe(page, managed, 'partner-tokens')
  await dialog.getByRole('button', { name: 'Subscribe' }).click()
  await page.getByRole('row', { name: /partner-tokens/ }).getByRole('link', { name: /^Keys/ }).click()
  const known = page.getByRole('region', { name: 'Client id' })
  await expect(known.getByRole('listitem')).toHaveText('shop-client')
  await expect(known.getByRole('button')).toHaveCount(0)
  await expect(known.getByRole('link', { name: 'Open the application' })).toBeVisible()
})

test('the questions of a plan are asked, and the approver reads the answers', async ({ page, managed }) => {
  const form = {
    type: 'object',
    required: ['team', 'use'],
    properties: { team: { type: 'string', title: 'Which team?', description: 'As in the directory.' }, use: { title: 'What kind of use?', type: 'string', enum: ['inside', 'outside'] }, calls: { type: 'integer', title: 'Calls a day' } },
  }
  await plan(managed, 'asking', { validation: 'manual', form })
  // One more, from the form of the plan; the others stay as they are.
  await open(page, managed, '/apis/pets/1.0.0/plans')
  await page.getByRole('button', { name: 'Edit asking' }).click()
  const edit = page.getByRole('dialog', { name: 'Edit asking' })
  await expect(edit.getByLabel('Choices of question 2')).toHaveValue('inside, outside')
  await edit.getByRole('button', { name: 'Add a question' }).click()
  await edit.getByLabel('Text of question 4').fill('Is it urgent?')
  await edit.getByLabel('Answer of question 4').selectOption('yes or no')
  await edit.getByRole('button', { name: 'Save' }).click()
  await expect(edit).toHaveCount(0)
  const changed = await managed.good<{ form: { required: string[]; properties: Record<string, unknown> } }>('GET', '/api/v1/apis/pets/versions/1.0.0/plans/asking')
  expect(changed.form).toEqual({ ...form, properties: { ...form.properties, 'question-4': { type: 'boolean', title: 'Is it urgent?' } } })
  const dialog = await subscribe(page, managed, 'asking')
  const send = dialog.getByRole('button', { name: 'Subscribe' })
  await expect(send).toHaveAttribute('aria-disabled', 'true')
  await expect(dialog.getByLabel('Which team?')).toHaveAccessibleDescription('As in the directory.')
  await dialog.getByLabel('Which team?').fill('blue')
  await dialog.getByLabel('What kind of use?').selectOption('outside')
  await dialog.getByLabel('Calls a day').fill('70')
  await dialog.getByLabel('What it is for').fill('a till')
  expect(await findings(page)).toEqual([])
  await send.click()
  await expect(dialog).toHaveCount(0)
  await open(page, managed, '/subscriptions?q=state:pending')
  await page.getByRole('table', { name: 'Subscriptions' }).getByRole('link', { name: /asking/ }).click()
  const about = page.getByRole('region', { name: 'About it' })
  for (const text of ['a till', 'Which team?', 'blue', 'What kind of use?', 'outside', 'Calls a day', '70']) await expect(about).toContainText(text)
  const stored = await managed.good<{ answers: object }>('GET', `/api/v1/subscriptions/${page.url().split('/').at(-1)}`)
  expect(stored.answers).toEqual({ team: 'blue', use: 'outside', calls: 70, 'question-4': false })
})
