// The documents of selected rows as a weir.yaml, which the import takes again, here or at another Weir.
import { canChange, plan } from '../api/changes'
import type { Json, ViewRow } from '../api/types'
import { saveFile } from '../ui/files'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'
import { stringify } from '../yaml'

/** Documents by kind, as a file. */
export function fileOf(documents: { kind: string; value: Json }[]): string {
  const byKind: Record<string, Json[]> = {}
  for (const { kind, value } of documents) (byKind[kind] ??= []).push(value)
  return stringify({ weir: 1, ...byKind })
}

export async function exportDocuments(rows: ViewRow[]) {
  const able = rows.filter(canChange)
  const left = rows.length - able.length
  if (able.length === 0) {
    toast('None of them is a document of Weir itself: those of Kong and APISIX leave through their own tools.', { isBad: true })
    return
  }
  try {
    const documents = (await plan(able, (it) => it)).map((it) => ({ kind: it.kind, value: it.before }))
    saveFile('weir.yaml', 'application/yaml', [fileOf(documents)])
    toast(`${countText(documents.length, 'document is', 'documents are')} in the file${left > 0 ? `; ${countText(left, 'one', 'ones')} of Kong, APISIX or a file left out` : ''}`)
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { isBad: true })
  }
}
