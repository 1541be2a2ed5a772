// What pages ask of API management. Types are those of the OpenAPI document; one stands here where pages know more than it says.
import { useQuery } from '@tanstack/react-query'
import { call, get } from './client'
import type { components } from '../../generated/api'
import type { Fields, Json } from './types'

type S = components['schemas']

export type Environment = S['Environment']

export type ApiEntity = S['Api']

export type Line = S['LineState']
export type Level = S['Level']

export type DraftState = S['DraftState']

/** Another person's look at a draft. */
export type Review = S['Review']

/** How a draft stands with reviews. Nobody of the authors can approve it. */
export type ReviewState = S['ReviewResponse']

export interface VersionBrief {
  api: string
  version: string
  display_name?: string
  line: Line
  draft: { state: DraftState; hash: string; review: Review | null }
  last_revision: number
  created: number
  modified: number
}

export type Component = S['Component']

export type OperationSettings = S['OperationSettings']

export interface Operation {
  id: string
  method: string
  path: string
  summary?: string | null
  deprecated: boolean
  tags: string[]
  component: string | null
  hidden: boolean
}

export interface LintFinding {
  rule: string
  level: Level
  message: string
  path: string
  line: number | null
  column: number | null
}

export type OperationChange = S['OperationChange']

/** What of a draft is edited. */
export interface Draft {
  components?: Component[]
  operations?: Record<string, OperationSettings>
  chain?: Json[]
}

export interface VersionDetail {
  api: string
  version: string
  display_name?: string
  description?: string
  line: Line
  draft: Draft & { spec: string; state: string }
  last_revision: number
  hash: string
  format: string
  operations: Operation[]
  findings: LintFinding[]
  /** The routes that it was adopted from. */
  source?: Source
  /** After a write: what became of the operations. */
  diff?: { operations: OperationChange[] }
}

/** Routes that became a version, and stay as they are until a publication takes them over. */
export type Source = S['Source']

/** Chosen operations of several publications, with plans of their own. */
export type Product = S['Product']

export type Revision = S['Revision']

export type Backend = S['Backend']

export type Runtime = S['Runtime']

export type Canary = S['Canary']

export type HistoryItem = S['HistoryItem']

export type Publication = S['PublicationResponse']

/** What a publish answers, and a dry run of one. */
export interface Outcome {
  publication: string
  revision: number
  hash: string
  state: string
  commit: number | null
  breaking: boolean
  diff: { operations: OperationChange[]; documents: { document: string; before: Json; after: Json }[] }
  conflicts: { with: string; route: string; example: string }[]
  lint: { errors: number; warnings: number }
  forced: string[]
  tests: components['schemas']['TestReport'] | null
}

export type PlanState = S['PlanState']

export type PlanSecurity = S['PlanSecurity']

export interface Plan {
  api?: string
  version?: string
  /** The product, for a plan of one; it has no API and no version then. */
  product?: string
  name: string
  display_name?: string
  description?: string
  security: PlanSecurity
  /** Whose access tokens it takes, for `oauth2`. The secret is never read back; a write without it keeps it. */
  oauth2?: { discovery: string; check?: 'jwks' | 'introspection'; client_id?: string; client_secret?: string; [more: string]: unknown }
  /** What signatures must hold, for `hmac`. */
  hmac?: Record<string, unknown>
  /** Which certificates it takes, for `mtls`. */
  mtls?: Record<string, unknown>
  limits?: { count: number; per: string }[]
  operations?: string[]
  validation: 'auto' | 'manual'
  comment?: 'none' | 'asked' | 'required'
  /** Questions that subscribers answer, as a JSON Schema of a map. */
  form?: Fields
  conditions?: string
  conditions_revision?: number
  order: number
  key_lifetime?: number | null
  overlap?: number | null
  price?: string
  state: PlanState
}

export type Application = S['Application']

export type SubscriptionState = S['SubscriptionState']

export type Subscription = Omit<S['Subscription'], 'answers'> & {
  /** What was answered to the plan's questions, by their names. */
  answers?: Fields
}

export type Credential = S['CredentialResponse']

export type Approval = S['ApprovalResponse']

const part = encodeURIComponent
export const apiPath = (api: string) => `/api/v1/apis/${part(api)}`
export const versionPath = (api: string, version: string) => `${apiPath(api)}/versions/${part(version)}`
export const publicationPath = (api: string, version: string, environment: string) =>
  `/api/v1/publications/${part(api)}/${part(version)}/${part(environment)}`
export const productPath = (product: string) => `/api/v1/products/${part(product)}`
export const productPlanPath = (product: string, plan: string) => `${productPath(product)}/plans/${part(plan)}`
export const planPath = (api: string, version: string, plan: string) => `${versionPath(api, version)}/plans/${part(plan)}`
export const subscriptionPath = (id: string) => `/api/v1/subscriptions/${part(id)}`

/** Pages of the console. */
export const toProduct = (product: string) => `/products/${part(product)}`
export const toApi = (api: string) => `/apis/${part(api)}`
export const toVersion = (api: string, version: string) => `${toApi(api)}/${part(version)}`
export const toReview = (api: string, version: string) => `${toVersion(api, version)}/review`
export const toPublication = (api: string, version: string, environment: string) => `${toVersion(api, version)}/in/${part(environment)}`
export const toPublish = (api: string, version: string, more: Record<string, string> = {}) =>
  `${toVersion(api, version)}/publish?${new URLSearchParams(more).toString()}`

/** The parts of `API/VERSION/ENVIRONMENT`. */
export function partsOf(publication: string): [string, string, string] {
  const [api = '', version = '', environment = ''] = publication.split('/')
  return [api, version, environment]
}

function useItems<T>(path: string, isWanted = true) {
  return useQuery({
    queryKey: ['configuration', path],
    queryFn: async ({ signal }) => (await get<{ items: T[] }>(path, {}, signal)).items,
    enabled: isWanted,
  })
}

function useOne<T>(path: string, isWanted = true) {
  return useQuery({ queryKey: ['configuration', path], queryFn: ({ signal }) => get<T>(path, {}, signal), enabled: isWanted })
}

export const useApis = (isWanted = true) => useItems<ApiEntity>('/api/v1/apis', isWanted)
export const useApi = (api: string) => useOne<ApiEntity>(apiPath(api))
export const useAllVersions = () => useItems<VersionBrief>('/api/v1/versions')
export const useVersion = (api: string, version: string) => useOne<VersionDetail>(versionPath(api, version), api !== '')
export const useRevisions = (api: string, version: string) => useItems<Revision>(`${versionPath(api, version)}/revisions`)
export const useReview = (api: string, version: string) => useOne<ReviewState>(`${versionPath(api, version)}/review`)
export const useTests = (api: string, version: string) => useItems<components['schemas']['CallTest']>(`${versionPath(api, version)}/tests`)
export const usePlans = (api: string, version: string) => useItems<Plan>(`${versionPath(api, version)}/plans`, api !== '')
export const useProducts = (isWanted = true) => useItems<Product>('/api/v1/products', isWanted)
export const useProduct = (product: string) => useOne<Product>(productPath(product))
export const useProductPlans = (product: string) => useItems<Plan>(`${productPath(product)}/plans`, product !== '')
export const usePublications = () => useItems<Publication>('/api/v1/publications')
export const usePublication = (api: string, version: string, environment: string) => useOne<Publication>(publicationPath(api, version, environment))
export const useApplications = (isWanted = true) => useItems<Application>('/api/v1/applications', isWanted)
export const useApplication = (name: string) => useOne<Application>(`/api/v1/applications/${part(name)}`)
export const useSubscriptions = () => useItems<Subscription>('/api/v1/subscriptions')
export const useSubscription = (id: string) => useOne<Subscription>(subscriptionPath(id))
export const useCredentials = (id: string) => useItems<Credential>(`${subscriptionPath(id)}/credentials`)
export const useApprovals = () => useItems<Approval>('/api/v1/approvals')

/** Drafts that somebody has to look at. */
export function useReviewsAsked() {
  const found = useAllVersions()
  return { ...found, data: found.data?.filter((it) => it.draft.state === 'in-review') }
}

/** Environments, in the order of promotion. */
export function useEnvironments(isWanted = true) {
  const found = useItems<Environment>('/api/v1/environments', isWanted)
  const data = found.data && [...found.data].sort((a, b) => a.order - b.order || a.name.localeCompare(b.name))
  return { ...found, data }
}

/** The document of a version as it was uploaded. */
export function useSpec(api: string, version: string, hash: string | undefined) {
  return useQuery({
    queryKey: ['spec', api, version, hash],
    queryFn: async ({ signal }) => (await call<string>('GET', `${versionPath(api, version)}/spec`, { signal, asText: true })).data,
    enabled: hash !== undefined,
    staleTime: Infinity,
  })
}

const TONES: Record<string, string> = {
  published: 'good',
  live: 'good',
  accepted: 'good',
  granted: 'good',
  deprecated: 'warn',
  pending: 'accent',
  open: 'accent',
  changed: 'accent',
  'in-review': 'accent',
  approved: 'good',
  'changes-asked': 'warn',
  paused: 'warn',
  stopped: 'warn',
  expired: 'warn',
  outdated: 'warn',
  disabled: 'warn',
  retired: 'bad',
  refused: 'bad',
  rejected: 'bad',
}

export const toneOf = (state: string): string => TONES[state] ?? ''

/** An entity without the fields that are empty: what is left out has its default. */
export function compact<T extends object>(entity: T): T {
  const kept = Object.entries(entity).filter(([, value]) => value !== '' && value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0))
  return Object.fromEntries(kept) as T
}

export const asFields = (value: unknown): Fields => value as Fields
