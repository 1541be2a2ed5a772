// Where the focus goes when a dialog closes and the button that opened it is gone, as that of a row which the dialog
// removed: to the nearest thing around it that is still there. Without this the keyboard starts over at the top.

const PLACES = 'tr, li, [role=row], section, [role=group], form, main'

/** What is around an element, the nearest first. */
export function placesAround(element: Element | null): HTMLElement[] {
  const places: HTMLElement[] = []
  for (let place = element?.parentElement?.closest<HTMLElement>(PLACES); place; place = place.parentElement?.closest<HTMLElement>(PLACES)) places.push(place)
  return places
}

/** Moves the focus there, if nothing has it. */
export function focusPlace(places: HTMLElement[]) {
  if (document.activeElement !== null && document.activeElement !== document.body) return
  const place = places.find((it) => it.isConnected) ?? document.getElementById('page')
  if (place === null) return
  if (!place.hasAttribute('tabindex')) place.tabIndex = -1
  place.focus({ preventScroll: true })
}
