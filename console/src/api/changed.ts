// Who changed what a moment ago, as the events of commits say: rows that change under a reader say by whom.

const AUTHORS = 1_000
const authors = new Map<string, string>()

/** Remembers the author of each document of a commit. */
export function noteCommit(data: Record<string, unknown>) {
  const author = data['author']
  const documents = data['documents']
  if (typeof author !== 'string' || !Array.isArray(documents)) return
  for (const it of documents as { document: string }[]) authors.set(it.document, author)
  for (const oldest of authors.keys()) {
    if (authors.size <= AUTHORS) break
    authors.delete(oldest)
  }
}

/** Who changed a document last, since this page was opened. */
export const authorOf = (document: string | null | undefined): string | undefined => (document ? authors.get(document) : undefined)
