// How far each page and its table were scrolled, for the way back to it. A page that is opened by a link begins at its top.

/** Places that are remembered. */
const MOST = 200
/** For so long after the way back, a page that loads may be too short to be scrolled. */
const PATIENCE_MS = 3_000

const tops = new Map<string, number>()
let isBack = false
/** How far the page was scrolled that the browser has just gone back to. */
let wanted = 0

const keyOf = (part: string): string => `${location.pathname}${location.search} ${part}`
const PAGE = ''

/** Remembers how far a part of the page is scrolled. */
export function keepTop(part: string, top: number) {
  const key = keyOf(part)
  tops.delete(key)
  tops.set(key, top)
  const [oldest] = tops.keys()
  if (tops.size > MOST && oldest !== undefined) tops.delete(oldest)
}

/** How far a part was scrolled, if the browser has gone back to the page. */
export const topBefore = (part: string): number => (isBack ? (tops.get(keyOf(part)) ?? 0) : 0)

/** Listens to navigation. It has to listen before the router does, which draws the next page at once. */
export function followPlaces() {
  // What a browser does by itself is done before the page has its height.
  history.scrollRestoration = 'manual'
  addEventListener('popstate', () => {
    isBack = true
    wanted = topBefore(PAGE)
  })
  // The event of the router's own navigation.
  addEventListener('pushState', () => {
    isBack = false
    wanted = 0
  })
  addEventListener('scroll', () => {
    if (wanted === 0) keepTop(PAGE, scrollY)
  })
}

/** Scrolls the page that has just been opened: to where it was, or to its top. */
export function showPlace() {
  const top = wanted
  scrollTo(0, top)
  if (top === 0) return
  const until = performance.now() + PATIENCE_MS
  const end = new AbortController()
  // If the user scrolls or types, the page stays where it is then.
  const stop = () => {
    wanted = 0
    end.abort()
  }
  for (const name of ['wheel', 'touchmove', 'keydown', 'pointerdown']) addEventListener(name, stop, { signal: end.signal, passive: true })
  const again = () => {
    if (end.signal.aborted || wanted !== top) return
    if (performance.now() > until) return stop()
    if (Math.abs(scrollY - top) > 1) scrollTo(0, top)
    requestAnimationFrame(again)
  }
  requestAnimationFrame(again)
}
