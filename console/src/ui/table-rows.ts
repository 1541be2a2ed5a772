// The rows of a table in order, and as a file for spreadsheets.
import { saveFile } from './files'
import type { Column } from './table-columns'
import { toast } from './toast'

/** The rows in the order of a column, downwards with `-` before its name. */
export function sortRows<Row>(rows: Row[], columns: Column<Row>[], sort: string): Row[] {
  const isDown = sort.startsWith('-')
  const column = columns.find((it) => it.id === sort.replace(/^-/, ''))
  if (column === undefined) return rows
  const sign = isDown ? -1 : 1
  const { text } = column
  const number = column.number ?? column.order
  const keyed = rows.map((row) => ({ row, key: number ? number(row) : text(row).toLowerCase() }))
  keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0))
  return keyed.map((it) => it.row)
}

/** Text that spreadsheets do not take for a formula. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return `"${safe.replaceAll('"', '""')}"`
}

/** Saves what is read as a file. */
export async function exportRows<Row>(label: string, columns: Column<Row>[], read: () => Promise<Row[]>) {
  try {
    download(label, columns, await read())
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { isBad: true })
  }
}

function download<Row>(label: string, columns: Column<Row>[], rows: Row[]) {
  const lines = [columns.map((column) => cell(column.title)), ...rows.map((row) => columns.map((column) => cell(column.text(row))))]
  saveFile(`${label.toLowerCase().replaceAll(' ', '-')}.csv`, 'text/csv', [lines.map((line) => line.join(',')).join('\r\n')])
}
