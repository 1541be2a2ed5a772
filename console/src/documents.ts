// Keys of stored documents, such as `native/routes/orders` or `apis/versions/pets/1.0.0`, as people read them.
import { kindOf } from './kinds'

export interface Place {
  namespace: string
  kind: string
  name: string
  /** Where the console shows it; `null`: it has no page. */
  to: string | null
}

/** Pages of what is kept below `apis/`, by the words behind its kind. */
const PAGES: Record<string, (words: string[]) => string> = {
  apis: ([api]) => `/apis/${api}`,
  versions: ([api, version]) => `/apis/${api}/${version}`,
  plans: ([api, version]) => `/apis/${api}/${version}/plans`,
  tests: ([api, version]) => `/apis/${api}/${version}/tests`,
  revisions: ([api, version]) => `/apis/${api}/${version}/revisions`,
  publications: ([api, version, environment]) => `/apis/${api}/${version}/in/${environment}`,
  environments: () => '/environments',
  products: ([product]) => `/products/${product}`,
  'product-plans': ([product]) => `/products/${product}`,
  applications: ([name]) => `/applications/${name}`,
  subscriptions: ([id]) => `/subscriptions/${id}`,
  approvals: () => '/approvals',
  hooks: ([name]) => `/hooks/${name}`,
  portals: ([name]) => `/portals/${name}`,
  pages: ([portal, name]) => `/portals/${portal}/pages/${name}`,
}

export function placeOf(key: string): Place {
  const [namespace = '', ...rest] = key.split('/')
  if (namespace === 'apis') {
    const [kind = '', ...words] = rest
    const page = PAGES[kind]
    // The name of a document is the hash of its content.
    const name = kind === 'specs' ? (words[0] ?? '').slice(0, 8) : words.join(' ')
    return { namespace, kind, name, to: page === undefined ? null : page(words.map(encodeURIComponent)) }
  }
  const name = rest.at(-1) ?? ''
  const kind = rest.at(-2) ?? rest[0] ?? ''
  if (namespace === 'native' && kindOf(kind) !== undefined) return { namespace, kind, name, to: `/${kind}/${encodeURIComponent(name)}` }
  return { namespace, kind, name, to: null }
}
