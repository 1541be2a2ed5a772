// The parts of the address below /ui/, decoded. The router decodes only once for all, after which `%2F` in a name cannot
// be told from a slash.
import { useLocation } from 'wouter'

/** A part of an address as what it says; one that says nothing stays as it is written. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The parts as they are written. */
const written = (): string[] => location.pathname.replace(/^\/ui\/?/, '').split('/')

export function useSegments(): string[] {
  useLocation()
  return written().map(decoded)
}

/** What stands in an address in place of a name, for something that is to be made. */
export const NEW = '@new'

/** Whether the last part of the address is that of something new. A thing with this name has `%40new` there. */
export function useIsNew(): boolean {
  useLocation()
  return written().at(-1) === NEW
}
