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

export function useSegments(): string[] {
  useLocation()
  return location.pathname.replace(/^\/ui\/?/, '').split('/').map(decoded)
}
