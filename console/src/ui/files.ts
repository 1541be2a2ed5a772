// What leaves the page: files that are saved, and texts that are copied.
import { toast } from './toast'

/** Offers a file for saving. */
export function saveFile(name: string, mediaType: string, content: BlobPart[]) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(content, { type: mediaType }))
  link.download = name
  link.click()
  // Some browsers read it a moment later.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** Copies a text and says so. Over cleartext from another machine, browsers give scripts no clipboard. */
export async function copy(text: string, done = 'Copied') {
  try {
    await navigator.clipboard.writeText(text)
    toast(done)
  } catch {
    toast('The browser does not let this page copy. Select the text and copy it by hand.', { isBad: true })
  }
}
