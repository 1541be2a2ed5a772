// The explorer: an answer beside that of the time before, and what was explored as a panel of a board.
import { expect, open, test } from './weir'

test('numbers beside those of the time before, in a table and as a line', async ({ page, filled }) => {
  // The gateway serves the routes a moment after they were written.
  let made = 0
  const status = async () => {
    made += 1
    return (await fetch(`${filled.proxy}/hello`)).status
  }
  await expect.poll(status).not.toBe(404)
  const counted = async () => (await filled.good<{ frames: { total: Record<string, number> }[] }>('POST', '/api/v1/analytics/query', { metrics: ['calls'], from: '-1h' })).frames[0]?.total['calls'] ?? 0
  await expect.poll(counted).toBe(made)
  await open(page, filled, '/analytics/explore?by=route&as=table')
  await page.getByLabel('Compared with').selectOption({ label: 'as much time before' })
  const answer = page.getByRole('region', { name: 'Answer' })
  await expect(answer.getByRole('columnheader', { name: 'Before' })).toBeVisible()
  await expect(answer.getByRole('row').filter({ hasText: 'hello' })).toContainText('new')
  await expect(page).toHaveURL(/compare=before/)
  await page.getByRole('radio', { name: 'chart' }).check()
  await answer.getByRole('button', { name: 'Table', exact: true }).click()
  await expect(answer.getByRole('columnheader', { name: 'hello, before' })).toBeVisible()
})

test('an exploration becomes a panel of a new board, and of one that there is', async ({ page, filled }) => {
  await open(page, filled, '/analytics/explore?metrics=latency_p95&by=route&compare=1w')
  await page.getByRole('button', { name: 'Save as a panel' }).click()
  const dialog = page.getByRole('dialog', { name: 'Save as a panel' })
  await expect(dialog.getByRole('textbox', { name: 'Title of the panel' })).toHaveValue('Latency p95 by route')
  await expect(dialog.getByRole('button', { name: 'Save', exact: true })).toHaveAttribute('aria-disabled', 'true')
  await dialog.getByRole('textbox', { name: 'Title of the board' }).fill('The shop')
  await dialog.getByRole('button', { name: 'Save', exact: true }).click()
  await expect(page.getByText('is a panel of The shop')).toBeVisible()
  await page.getByRole('radio', { name: 'table' }).check()
  await page.getByRole('button', { name: 'Save as a panel' }).click()
  await expect(dialog.getByLabel('Board', { exact: true }).locator('option:checked')).toHaveText('The shop')
  await dialog.getByRole('textbox', { name: 'Title of the panel' }).fill('Slow routes')
  await dialog.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('link', { name: 'Open the board' }).last().click()
  await expect(page.getByRole('region', { name: 'Slow routes' })).toBeVisible()
  const { items } = await filled.good<{ items: { title: string; given: boolean; panels: { kind: string; query: object }[] }[] }>('GET', '/api/v1/boards')
  const own = items.filter((it) => !it.given)
  expect(own).toHaveLength(1)
  expect(own[0]?.panels).toMatchObject([
    { kind: 'line', width: 6, query: { metrics: ['latency_p95'], from: '-1h', step: 'auto', group_by: ['route'], compare: '1w' } },
    { kind: 'table', title: 'Slow routes' },
  ])
})
