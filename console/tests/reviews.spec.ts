// Reviews of drafts: one person asks, another sees what changed and approves it or asks for changes.
import type { Page } from '@playwright/test'
import { PETS, type Weir, expect, findings, logIn, open, pagesFromDist, test } from './weir'

const PATH = '/apis/pets/1.0.0/review'

/** Two people who may change the API and decide, each in a browser of their own. */
async function people(page: Page, weir: Weir): Promise<[Page, Page]> {
  await weir.addAdmin()
  await weir.addUser('ann', [{ role: 'api-owner', api: 'pets' }])
  await weir.addUser('rea', [{ role: 'viewer' }, { role: 'approver' }])
  const context = await page.context().browser()?.newContext()
  if (context === undefined) throw new Error('there is no browser')
  const other = await context.newPage()
  await pagesFromDist(other)
  for (const [it, name] of [[page, 'ann'], [other, 'rea']] as const) {
    await it.goto(`${weir.url}/ui/`)
    await logIn(it, name)
  }
  return [page, other]
}

test('a draft is reviewed: asked for, changes asked for, asked again, approved by another person', async ({ page, managed }) => {
  const [ann, rea] = await people(page, managed)
  await ann.goto(`${managed.url}/ui/apis/pets/1.0.0`)
  const more = `${PETS}  /toys:\n    get: {operationId: listToys, responses: {"200": {description: Toys}}}\n`
  const editor = ann.getByRole('textbox', { name: 'pets 1.0.0 as an OpenAPI document' })
  await editor.press('Control+End')
  await ann.keyboard.insertText(more.slice(PETS.length))
  await ann.getByRole('button', { name: 'Review and save' }).click()
  await ann.getByRole('dialog').getByRole('button', { name: 'Save the draft' }).click()
  await expect(ann.getByText('draft changed')).toBeVisible()
  await ann.getByRole('navigation', { name: 'Parts of the version' }).getByRole('link', { name: 'Review' }).click()
  await expect(ann.getByRole('region', { name: 'What changed since r1' })).toContainText('/toys')
  await ann.getByRole('button', { name: 'Ask for a review' }).click()
  const ask = ann.getByRole('dialog', { name: 'Ask for a review of pets 1.0.0?' })
  await ask.getByLabel('What it is about').fill('toys for pets')
  await ask.getByRole('button', { name: 'Ask', exact: true }).click()
  await expect(ann.getByRole('region', { name: 'Review', exact: true })).toContainText('in review')
  await expect(ann.getByRole('region', { name: 'Review', exact: true })).toContainText('approvals:decide')
  await expect(ann.getByRole('button', { name: 'Approve' })).toHaveAttribute('aria-disabled', 'true')
  expect(await findings(ann)).toEqual([])
  // What waits is on the overview of who did not ask, and among the approvals.
  await ann.goto(`${managed.url}/ui/`)
  await expect(ann.getByRole('region', { name: 'To look at' })).not.toContainText('waits for a review')
  await rea.goto(`${managed.url}/ui/`)
  await rea.getByRole('region', { name: 'To look at' }).getByRole('link', { name: /1 draft waits for a review/ }).click()
  await expect(rea.getByRole('region', { name: 'Reviews of drafts' })).toContainText('toys for pets')
  await rea.getByRole('link', { name: 'Review pets 1.0.0' }).click()
  await expect(rea.getByRole('region', { name: 'What changed since r1' })).toContainText('/toys')
  await rea.getByRole('button', { name: 'Ask for changes' }).click()
  const changes = rea.getByRole('dialog', { name: 'Ask for changes of pets 1.0.0?' })
  await expect(changes.getByRole('button', { name: 'Ask for changes' })).toHaveAttribute('aria-disabled', 'true')
  await changes.getByLabel('What is to be changed').fill('toys need a limit')
  await changes.getByRole('button', { name: 'Ask for changes' }).click()
  await open(ann, managed, PATH)
  await expect(ann.getByRole('region', { name: 'Review', exact: true })).toContainText('toys need a limit')
  await ann.getByRole('button', { name: 'Ask for a review' }).click()
  await ann.getByRole('dialog').getByRole('button', { name: 'Ask', exact: true }).click()
  await rea.reload()
  await rea.getByRole('button', { name: 'Approve' }).click()
  await rea.getByRole('dialog', { name: 'Approve pets 1.0.0?' }).getByRole('button', { name: 'Approve' }).click()
  await expect(rea.getByRole('region', { name: 'Review', exact: true })).toContainText('Another person has approved')
  expect(await findings(rea)).toEqual([])
  const { draft } = await managed.good<{ draft: { state: string; review: { decided_by: string } } }>('GET', '/api/v1/apis/pets/versions/1.0.0')
  expect([draft.state, draft.review.decided_by]).toEqual(['approved', 'rea'])
  await rea.context().close()
})

test('what was changed after it was looked at is not approved', async ({ page, managed }) => {
  const [ann, rea] = await people(page, managed)
  await open(ann, managed, PATH)
  await ann.getByRole('button', { name: 'Ask for a review' }).click()
  await ann.getByRole('dialog').getByRole('button', { name: 'Ask', exact: true }).click()
  await open(rea, managed, PATH)
  await rea.getByRole('button', { name: 'Approve' }).click()
  const dialog = rea.getByRole('dialog', { name: 'Approve pets 1.0.0?' })
  await expect(dialog).toBeVisible()
  await managed.good('PUT', '/api/v1/apis/pets/versions/1.0.0', { spec: PETS.replace('All pets', 'Every pet') })
  await managed.good('POST', '/api/v1/apis/pets/versions/1.0.0/review')
  await dialog.getByRole('button', { name: 'Approve' }).click()
  await expect(dialog.getByRole('alert')).toContainText('review it again')
  const { state } = await managed.good<{ state: string }>('GET', '/api/v1/apis/pets/versions/1.0.0/review')
  expect(state).toBe('in-review')
  await rea.context().close()
})
