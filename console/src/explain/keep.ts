// From an explanation to a test of an API: the call without keys, and what came of it as what has to come of it. The
// person who keeps it chooses what of that is looked at.
import type { components } from '../../generated/api'
import type { Publication } from '../api/apis'
import type { AskedCall } from './curl'

export type CallTest = components['schemas']['CallTest']
export type Expected = components['schemas']['Expected']
type Explained = components['schemas']['ExplainResponse']

/** Headers that carry keys: a test is kept as plain text, so it says who calls instead. */
const SECRET = /^(authorization|proxy-authorization|cookie|x-api-key|apikey|api-key)$/i

/** The path behind the base path of a publication, with the query. */
export function pathBehind(url: string, base: string): string {
  let path = url.replace(/^[a-z]+:\/\/[^/?#]*/i, '').replace(/#.*$/, '')
  if (!path.startsWith('/')) path = `/${path}`
  const prefix = base.replace(/\/+$/, '')
  if (prefix === '' || !path.startsWith(prefix)) return path
  const rest = path.slice(prefix.length)
  return rest.startsWith('/') ? rest : rest === '' || rest.startsWith('?') ? `/${rest}` : path
}

export const hostOf = (url: string): string => /^[a-z]+:\/\/([^/?#]*)/i.exec(url)?.[1] ?? ''

/** The call of a test. */
export function requestOf(asked: AskedCall, explained: Explained, publication: Publication | undefined, more: { client: string; consumer: string }): CallTest['request'] {
  const hosts = publication?.runtime.hosts ?? []
  const host = hostOf(asked.url)
  const application = explained.plans.find((it) => it.verdict === 'good')?.application
  const headers = asked.headers.filter(([name]) => !SECRET.test(name))
  return {
    ...(asked.method === 'GET' ? {} : { method: asked.method }),
    path: pathBehind(asked.url, publication?.runtime.base_path ?? ''),
    ...(hosts.includes(host) && hosts[0] !== host ? { host } : {}),
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(asked.body === '' ? {} : { body: asked.body }),
    ...(more.client === '' ? {} : { client: more.client }),
    ...(application ? { application } : more.consumer === '' ? {} : { consumer: more.consumer }),
  }
}

/** All that can be expected of a call like this one, in the order in which it is offered. */
export function expectedOf(explained: Explained): Expected {
  const { end, route } = explained
  const plan = explained.plans.find((it) => it.verdict === 'good')
  const decides = end.step ? explained.plugins[end.step - 1]?.plugin?.name : undefined
  const target = end.kind === 'answered' ? undefined : (route?.upstream?.targets[0]?.address ?? addressOf(route?.url))
  return {
    operation: explained.operation ?? '',
    ...(plan?.application ? { application: plan.application } : { consumer: explained.consumer ?? '' }),
    end: end.kind,
    ...(end.status ? { status: end.status } : {}),
    ...(decides ? { plugin: decides } : {}),
    ...(target ? { target } : {}),
  }
}

function addressOf(url: string | null | undefined): string | undefined {
  const found = /^(https?):\/\/([^/?#]*)/i.exec(url ?? '')
  if (!found) return undefined
  const [, scheme = '', host = ''] = found
  return /:\d+$/.test(host) ? host : `${host}:${scheme.toLowerCase() === 'https' ? 443 : 80}`
}

/** What is offered, without what depends on the environment. */
export const CHOSEN_AT_FIRST: readonly (keyof Expected)[] = ['operation', 'application', 'consumer', 'end', 'status', 'plugin']

export const WORDS: Record<string, (value: string) => string> = {
  operation: (it) => (it === '' ? 'no operation of this API takes it' : `the operation ${it} takes it`),
  application: (it) => (it === '' ? 'it is taken for no application' : `it is taken for the application ${it}`),
  consumer: (it) => (it === '' ? 'it is taken for no consumer' : `it is taken for the consumer ${it}`),
  end: (it) => (it === 'forwarded' ? 'it is forwarded' : it === 'answered' ? 'the gateway answers it' : 'it depends on another server'),
  status: (it) => `the status is ${it}`,
  plugin: (it) => `${it} decides`,
  target: (it) => `it may go to ${it}`,
}

/** Expectations in words. */
export const inWords = (expected: Expected): string[] => [
  ...Object.entries(expected)
    .filter(([name, value]) => value !== null && value !== undefined && name in WORDS)
    .map(([name, value]) => WORDS[name]?.(String(value)) ?? ''),
  ...Object.entries(expected.verdicts ?? {}).map(([plugin, verdict]) => `${plugin} ${verdict.replaceAll('-', ' ')}`),
]

/** A name from a call, such as `get-pets-401`. */
export function nameOf(request: CallTest['request'], expected: Expected): string {
  const of = expected.operation || `${request?.method ?? 'GET'} ${request?.path ?? ''}`.replace(/\?.*$/, '')
  const words = `${of.replace(/([a-z0-9])([A-Z])/g, '$1-$2')} ${expected.status ?? expected.end ?? ''}`
  return words.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 63).replace(/-+$/, '')
}
