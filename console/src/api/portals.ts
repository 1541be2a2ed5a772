// Developer portals and their pages.
import { useQuery } from '@tanstack/react-query'
import { readVersion } from '../form/send'
import { get } from './client'

export interface Colours {
  accent?: string
  canvas?: string
  surface?: string
  ink?: string
}

export interface Portal {
  /** The text of an SVG, or a PNG as a `data:` address. */
  logo?: string
  name: string
  display_name?: string
  description?: string
  hosts?: string[]
  url?: string
  environments?: string[]
  apis?: string[]
  featured?: string[]
  home?: string
  sign_up?: { mode?: string; approval?: boolean; domains?: string[]; notify?: string[] }
  theme?: { light?: Colours; dark?: Colours; font?: string }
  footer?: { title: string; to: string }[]
}

export interface PortalPage {
  portal: string
  name: string
  title: string
  body: string
  visibility: unknown
  api?: string | null
  menu?: boolean
  order?: number
  published: boolean
}

const PORTALS = '/api/v1/portals'

export const portalPath = (name: string) => `${PORTALS}/${encodeURIComponent(name)}`
export const pagesPath = (portal: string) => `${portalPath(portal)}/pages`
export const pagePath = (portal: string, page: string) => `${pagesPath(portal)}/${encodeURIComponent(page)}`
export const toPortal = (name: string) => `/portals/${encodeURIComponent(name)}`
export const toPage = (portal: string, page: string) => `${toPortal(portal)}/pages/${encodeURIComponent(page)}`

/** Portals that have a document. Without any there is one that shows all that is public. */
export function useWrittenPortals() {
  return useQuery({ queryKey: ['configuration', 'portals', 'written'], queryFn: async ({ signal }) => (await get<{ items: Portal[] }>(PORTALS, {}, signal)).items })
}

export function usePages(portal: string) {
  return useQuery({
    queryKey: ['configuration', 'portals', portal, 'pages'],
    queryFn: async ({ signal }) => (await get<{ items: PortalPage[] }>(pagesPath(portal), {}, signal)).items,
    enabled: portal !== '',
  })
}

export const readPortal = (name: string) => readVersion(portalPath(name))
export const readPage = (portal: string, page: string) => readVersion(pagePath(portal, page))

/** The light of a colour as WCAG 2 reckons it; `null`: it is none of the form `#rrggbb`. */
function light(colour: string): number | null {
  const [, ...parts] = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour) ?? []
  if (parts.length !== 3) return null
  const [red = 0, green = 0, blue = 0] = parts.map((it) => {
    const share = Number.parseInt(it, 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** How well two colours are told apart, from 1 to 21. */
export function contrast(one: string, other: string): number | null {
  const [a, b] = [light(one), light(other)]
  if (a === null || b === null) return null
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
}
