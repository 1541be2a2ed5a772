// One call of /api/v1, and what a refused one says. Everything that the console does goes through here.
import type { components } from '../../generated/api'
import { watch } from './trouble'

/** A place in a document that was refused, and why. */
export interface Finding {
  path: string
  message: string
}

/** Who changed a document last. */
export type LastChange = components['schemas']['LastChange']

/** A call that was refused, or that got no answer (status 0). */
export class ApiError extends Error {
  constructor(
    readonly method: string,
    readonly path: string,
    readonly status: number,
    detail: string,
    readonly findings: Finding[] = [],
    readonly requestId: string | null = null,
    /** What kind of refusal it is: the end of the problem's type, such as `breaking`. */
    readonly kind = '',
    /** If another version was there than the one that the call named: who has stored it, if that is known. */
    readonly changed: LastChange | null = null,
    /** The answer as it came: some refusals say more than a problem does. */
    readonly text = '',
  ) {
    super(detail)
    this.name = 'ApiError'
  }

  /** Whether the server could not be reached, or said that it cannot answer now. */
  get isAway(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504
  }
}

/** What came back. */
export interface Answer<T> {
  data: T
  /** The version of the document, for `If-Match`. */
  tag: string | null
  /** What the server says about a document that it accepted. */
  warning: string | null
  status: number
  /** The body as it came. */
  text: string
}

export interface CallOptions {
  query?: Record<string, string | number | boolean | null | undefined>
  body?: unknown
  /** Sent as it is, with this media type. */
  text?: { content: string; mediaType: string }
  headers?: Record<string, string | undefined>
  signal?: AbortSignal
  /** The answer is no JSON. */
  asText?: boolean
}

const listeners = new Set<() => void>()
let isNeeded = false
let wasIn = false
let isKnown = false

/** Whether the server asked for a login; the page that was asked for stays where it is. */
export const login = {
  subscribe: (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
  isNeeded: () => isNeeded,
  /** Whether pages were shown before the login was asked for: a session has ended. */
  wasIn: () => wasIn,
  /** Whether the caller shows who it is: its calls need a token on the command line. */
  isKnown: () => isKnown,
  setKnown: (known: boolean) => {
    isKnown = known
  },
  set: (needed: boolean) => {
    if (needed !== isNeeded) {
      isNeeded = needed
      listeners.forEach((listener) => listener())
    }
  },
  /** Somebody has logged out: what comes next is a first login. */
  leave: () => {
    wasIn = false
    isKnown = false
    login.set(true)
  },
}

/** Calls of the console. The portal has a login of its own, and shows by itself that a session has ended. */
const CONSOLE = '/api/'
/** Calls of the console's login itself: what they refuse is no session that has ended. */
const SESSION = '/api/v1/session'

/** The path of a call with its query. */
export function target(path: string, query?: CallOptions['query']): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '') parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === '' ? path : `${path}?${text}`
}

/** Makes a call. */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<Answer<T>> {
  const headers = new Headers()
  for (const [name, value] of Object.entries(options.headers ?? {})) if (value !== undefined) headers.set(name, value)
  let body: string | undefined
  if (options.text !== undefined) {
    headers.set('content-type', options.text.mediaType)
    body = options.text.content
  } else if (options.body !== undefined) {
    headers.set('content-type', 'application/json')
    body = JSON.stringify(options.body)
  }
  // Pages that ask again and again would be refused again and again, and each refusal stands in the audit log.
  if (isNeeded && !path.startsWith(SESSION)) throw loginNeeded(method, path, null)
  const watched = watch(method, path)
  let response: Response
  let text: string
  try {
    response = await fetch(target(path, options.query), {
      method,
      headers,
      body: body ?? null,
      signal: options.signal ?? null,
      credentials: 'same-origin',
    })
    text = await response.text()
  } catch (error) {
    if (options.signal?.aborted) {
      watched.ended()
      throw error
    }
    watched.lost()
    throw new ApiError(method, path, 0, 'Weir does not answer. It may be restarting, or the network is down.')
  }
  watched.answered(response.status, response.headers.get('x-request-id'))
  const data = options.asText && response.ok ? text : parse(text)
  if (!response.ok) {
    // The originals' Admin APIs answer 401 in their own words to who may not write; that asks for no login.
    const isProblem = response.headers.get('content-type')?.includes('problem') === true
    // At the login itself it says that the password is wrong.
    const asksForLogin = response.status === 401 && isProblem && path.startsWith(CONSOLE) && path !== SESSION
    if (!asksForLogin) throw refusal(method, path, response, data, text)
    login.set(true)
    throw loginNeeded(method, path, response.headers.get('x-request-id'))
  }
  if (!path.startsWith(SESSION)) wasIn = true
  return {
    data: data as T,
    tag: response.headers.get('etag'),
    warning: warning(response.headers.get('warning')),
    status: response.status,
    text,
  }
}

function loginNeeded(method: string, path: string, requestId: string | null): ApiError {
  const detail = wasIn ? 'Your session has ended. Log in, and then do this again: nothing that you typed is lost.' : 'Weir asks for a login.'
  return new ApiError(method, path, 401, detail, [], requestId)
}

function parse(text: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Why a call was refused that was not made by `call`, as one whose answer is a stream. */
export async function refusalOf(method: string, path: string, response: Response): Promise<ApiError> {
  const text = await response.text()
  return refusal(method, path, response, parse(text), text)
}

function refusal(method: string, path: string, response: Response, data: unknown, text: string): ApiError {
  const problem = typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : {}
  const words = problem['detail'] ?? problem['message'] ?? problem['error_msg'] ?? problem['title']
  const detail = typeof words === 'string' ? words : `Weir answered with status ${response.status}.`
  const findings = Array.isArray(problem['errors']) ? problem['errors'].map(findingOf) : fieldsOf(problem['fields'])
  const type = typeof problem['type'] === 'string' ? problem['type'] : ''
  return new ApiError(method, path, response.status, detail, findings, response.headers.get('x-request-id'), type.split(':').at(-1) ?? '', (problem['changed'] as LastChange | undefined) ?? null, text)
}

/** A finding as Weir tells it, or as APISIX does of a whole configuration: by list and index. */
function findingOf(it: Finding | { resource_type: string; index?: number; error: string }): Finding {
  if (!('resource_type' in it)) return it
  return { path: it.index === undefined ? it.resource_type : `${it.resource_type}[${it.index}]`, message: it.error }
}

/** The fields that Kong names in a refusal, each with its place. */
function fieldsOf(value: unknown, path = ''): Finding[] {
  if (typeof value === 'string') return [{ path: path.replace(/(^|\.)@entity$/, ''), message: value }]
  if (Array.isArray(value)) return value.flatMap((it, index) => fieldsOf(it, path === '' || path.endsWith('@entity') ? path : `${path}[${index}]`))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, it]) => fieldsOf(it, path === '' ? name : `${path}.${name}`))
}

function warning(header: string | null): string | null {
  if (header === null) return null
  const quoted = /^\d+ \S+ "(.*)"$/.exec(header)
  return quoted?.[1] ?? header
}

/** Reads. */
export async function get<T>(path: string, query?: CallOptions['query'], signal?: AbortSignal): Promise<T> {
  return (await call<T>('GET', path, signal ? { query, signal } : { query })).data
}

/** The call as a command line. */
export function asCurl(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const parts = ['curl']
  if (method !== 'GET') parts.push('-X', method)
  parts.push(quote(`${location.origin}${path}`))
  if (login.isKnown()) parts.push('-H', '"Authorization: Bearer $WEIR_TOKEN"')
  for (const [name, value] of Object.entries(headers)) parts.push('-H', quote(`${name}: ${value}`))
  if (body !== undefined) {
    parts.push('-H', quote('Content-Type: application/json'), '-d', quote(JSON.stringify(body, null, 2)))
  }
  return parts.join(' ')
}
