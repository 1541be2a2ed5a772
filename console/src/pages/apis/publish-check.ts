// The dry run of a publish: what every step says, asked a moment after the last change.
import { useEffect, useMemo, useState } from 'react'
import { type Outcome, publicationPath } from '../../api/apis'
import { ApiError, call } from '../../api/client'
import type { components } from '../../../generated/api'

export interface Call {
  path: string
  body: Record<string, unknown>
}

interface Wanted {
  api: string
  version: string
  environment: string
  /** The environment that a promotion comes from. */
  from: string | null
  revision: number | null
  runtime: unknown
  approval: string | null
  force: boolean
  /** Removes the routes that the version was adopted from, in the same commit. */
  takeOver: boolean
  /** Why tests may fail; empty: they may not. */
  overrideTests: string
  note: string
}

/** The call that publishes. A promotion is asked of the publication that it comes from. */
export function callOf(it: Wanted): Call {
  const common = { runtime: it.runtime, ...(it.note === '' ? {} : { note: it.note }), ...(it.force ? { force: true } : {}), ...(it.approval ? { approval: it.approval } : {}), ...(it.overrideTests.trim() === '' ? {} : { override_tests: it.overrideTests }) }
  return it.from === null
    ? { path: publicationPath(it.api, it.version, it.environment), body: { ...(it.revision === null ? {} : { revision: it.revision }), ...(it.takeOver ? { take_over: true } : {}), ...common } }
    : { path: `${publicationPath(it.api, it.version, it.from)}/promote`, body: { to: it.environment, ...common } }
}

export const STEPS = ['lint', 'approval', 'breaking', 'conflicts', 'render', 'compile', 'tests'] as const
export type StepName = (typeof STEPS)[number]

export const TITLES: Record<StepName, string> = {
  lint: 'Lint',
  approval: 'Approval',
  breaking: 'Breaking changes',
  conflicts: 'Conflicts',
  render: 'Render',
  compile: 'Compile',
  tests: 'Tests',
}

export interface StepState {
  name: StepName
  /** `forced`: it would refuse, and is overruled. */
  state: 'good' | 'refused' | 'forced' | 'open'
  about: string
  details: string[]
}

export interface Check {
  isChecking: boolean
  outcome: Outcome | null
  /** The answer to the dry run, as it came. */
  text: string
  /** What refuses it, unless it is overruled. */
  refusals: ApiError[]
  /** What has nothing to do with a step. */
  failure: ApiError | null
}

const NONE: Check = { isChecking: false, outcome: null, text: '', refusals: [], failure: null }
const PAUSE_MS = 400
const MAY_BE_FORCED = new Set(['breaking', 'conflicts', 'tests'])

const stepOf = (error: ApiError): StepName | null => STEPS.find((it) => error.kind === it || error.message.startsWith(`${it}:`) || (it === 'approval' && error.kind.startsWith('approval'))) ?? null

/** One call: the answer to a dry run that is refused tells all that refuses it, and what would change. */
async function dryRun({ path, body }: Call, signal: AbortSignal): Promise<Check> {
  try {
    const answer = await call<Outcome>('POST', path, { body, headers: { 'weir-dry-run': 'true' }, signal })
    return { ...NONE, outcome: answer.data, text: answer.text }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return refusedBy(error)
  }
}

type Refusal = components['schemas']['PublishRefusal']

function refusedBy(error: ApiError): Check {
  let told: Partial<Refusal> = {}
  try {
    told = JSON.parse(error.text) as Refusal
  } catch {
    // It is no answer of the API, and the error says so.
  }
  const all = (told.refused ?? []).map((it) => new ApiError(error.method, error.path, it.status, it.detail, it.errors ?? [], error.requestId, it.type.split(':').at(-1) ?? ''))
  const refusals = all.length > 0 ? all : [error]
  return {
    ...NONE,
    outcome: told.diff ? (told as unknown as Outcome) : null,
    text: error.text,
    refusals: refusals.filter((it) => stepOf(it) !== null),
    failure: refusals.find((it) => stepOf(it) === null) ?? null,
  }
}

/** Whether it can be published, with force where that is needed. */
export const canPass = (check: Check): boolean => check.outcome !== null && check.failure === null && check.refusals.every((it) => MAY_BE_FORCED.has(it.kind))

export function usePublishCheck(wanted: Call | null, revision: number | undefined): Check {
  const [check, setCheck] = useState(NONE)
  const key = useMemo(() => JSON.stringify(wanted), [wanted])
  useEffect(() => {
    const it = JSON.parse(key) as Call | null
    if (it === null) {
      setCheck(NONE)
      return
    }
    const abort = new AbortController()
    setCheck((old) => ({ ...old, isChecking: true }))
    const timer = setTimeout(() => {
      dryRun(it, abort.signal)
        .then((found) => !abort.signal.aborted && setCheck(found))
        .catch((error: unknown) => {
          // What is no answer of the server is told, too: the page would wait for ever.
          if (!abort.signal.aborted) setCheck({ ...NONE, failure: new ApiError('POST', it.path, 0, error instanceof Error ? error.message : String(error)) })
        })
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [key, revision])
  return check
}

/** How each step stands. */
export function stepsOf(check: Check, isProtected: boolean): StepState[] {
  const refused = new Map(check.refusals.map((it) => [stepOf(it), it]))
  const hard = check.refusals.find((it) => !MAY_BE_FORCED.has(it.kind))
  let isReached = check.outcome !== null || check.refusals.length > 0
  return STEPS.map((name): StepState => {
    const error = refused.get(name)
    if (error) {
      // What a gateway would not serve is not tried.
      if (error === hard && (check.outcome === null || name === 'render' || name === 'compile')) isReached = false
      const details = error.findings.map((it) => (it.path === '' ? it.message : `${it.path}: ${it.message}`))
      return { name, state: MAY_BE_FORCED.has(error.kind) ? 'forced' : 'refused', about: details.length > 0 ? '' : error.message, details }
    }
    if (!isReached) return { name, state: 'open', about: 'not reached yet', details: [] }
    if (name === 'lint' && check.outcome) {
      const { errors, warnings } = check.outcome.lint
      return { name, state: 'good', about: errors + warnings === 0 ? 'nothing found' : `${errors} errors and ${warnings} warnings, none of which blocks here`, details: [] }
    }
    if (name === 'approval') return { name, state: 'good', about: isProtected ? 'granted, or not needed for you' : 'not needed: the environment is not protected', details: [] }
    if (name === 'tests') {
      const report = check.outcome?.tests
      return { name, state: 'good', about: report && report.results.length > 0 ? `${report.passed} passed` : 'the version has none', details: [] }
    }
    const words: Record<string, string> = { lint: 'nothing that blocks', breaking: 'none', conflicts: 'none', render: 'every component has its backend', compile: 'gateways could serve all of it' }
    return { name, state: 'good', about: words[name] ?? '', details: [] }
  })
}
