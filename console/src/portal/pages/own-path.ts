// The page that a login leads back to.

/** The path of an address here; `null`: it leads to another site, also in spellings that browsers read as `//`. */
export function ownPath(asked: string, origin: string): string | null {
  if (!asked.startsWith('/')) return null
  try {
    const url = new URL(asked, origin)
    return url.origin === origin ? url.pathname + url.search + url.hash : null
  } catch {
    return null
  }
}
