// What is not saved yet, kept in the tab: it outlives leaving the page and a reload, and ends with the tab or the login.

const PREFIX = 'weir-draft-'
/** Whose they are. */
const OWNER = 'weir-drafts-of'

/** Keeps something under a name; `null` forgets it. */
export function keep(name: string, value: unknown) {
  try {
    if (value === null) sessionStorage.removeItem(`${PREFIX}${name}`)
    else sessionStorage.setItem(`${PREFIX}${name}`, JSON.stringify(value))
  } catch {
    // The browser has no place for it. It lives as long as its page.
  }
}

/** What is kept under a name, if it can be read. */
export function kept(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(`${PREFIX}${name}`) ?? 'null')
  } catch {
    return null
  }
}

/** Forgets everything: the next person at this browser does not see it. */
export function forgetDrafts() {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key)
    sessionStorage.removeItem(OWNER)
  } catch {
    // There is nothing then.
  }
}

/** Says who works here now. Edits of somebody else are forgotten; whether there was somebody else. */
export function claimDrafts(name: string): boolean {
  try {
    const before = sessionStorage.getItem(OWNER)
    const isAnother = before !== null && before !== name
    if (isAnother) forgetDrafts()
    sessionStorage.setItem(OWNER, name)
    return isAnother
  } catch {
    return false
  }
}
