// The publish wizard: where to, with which addresses, what would change, and whether it may. All steps of the server are
// shown before anything is committed; what it answers to a dry run is shown as it came.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'
import {
  type Approval,
  type Environment,
  type Outcome,
  type Runtime,
  useApprovals,
  useEnvironments,
  usePlans,
  usePublications,
  useRevisions,
  useVersion,
} from '../../api/apis'
import { call } from '../../api/client'
import { useHead } from '../../api/hooks'
import { useRight } from '../../api/rights'
import { Failure, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Button } from '../../ui/button'
import { TextField } from '../../ui/field'
import { toast } from '../../ui/toast'
import { type Call, type Check, callOf, canPass, stepsOf, usePublishCheck } from './publish-check'
import { Diffs } from './publish-parts'
import { useRuntime } from './publish-runtime'
import { Checked, Commit, Content, Force, Outdated, Published, Target } from './publish-steps'
import { RuntimeForm, tidyRuntime, withoutAddress } from './runtime-form'
import { Hash, Waiting } from './shared'
import { TakeOver, adoptedRuntime } from './take-over'
import { crumbsOf } from './version-tabs'

const EMPTY: Runtime = { base_path: '', backends: {} }

export default function Publish() {
  const [, api = '', name = ''] = useSegments()
  const [version, environments, publications, revisions, approvals, plans] = [
    useVersion(api, name),
    useEnvironments(),
    usePublications(),
    useRevisions(api, name),
    useApprovals(),
    usePlans(api, name),
  ]
  const loaded = [version, environments, publications, revisions]
  if (version.data === undefined || environments.data === undefined || publications.data === undefined || revisions.data === undefined) {
    return <Waiting title={`Publish ${api} ${name}`} crumbs={crumbsOf(api)} queries={loaded} />
  }
  return (
    <Wizard
      api={api}
      name={name}
      version={version.data}
      environments={environments.data}
      publications={publications.data.filter((it) => it.api === api && it.version === name)}
      revisions={revisions.data}
      approvals={(approvals.data ?? []).filter((it) => it.publication.startsWith(`${api}/${name}/`))}
      plans={plans.data ?? []}
    />
  )
}

interface Props {
  api: string
  name: string
  version: NonNullable<ReturnType<typeof useVersion>['data']>
  environments: Environment[]
  publications: NonNullable<ReturnType<typeof usePublications>['data']>
  revisions: NonNullable<ReturnType<typeof useRevisions>['data']>
  approvals: Approval[]
  plans: NonNullable<ReturnType<typeof usePlans>['data']>
}

/** What the address says: where to, from where, which revision, with which approval. */
function useTarget(props: Props) {
  const [parameters, setParameters] = useSearchParams()
  const from = parameters.get('from')
  const to = parameters.get('to') || (props.environments.find((it) => !it.protected)?.name ?? props.environments[0]?.name ?? '')
  const source = props.publications.find((it) => it.environment === from) ?? null
  const revision = source ? source.revision : parameters.get('revision') ? Number(parameters.get('revision')) : null
  const set = (name: string, value: string | null) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old)
        if (value === null) next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  return { to, from: source ? from : null, source, revision, given: parameters.get('approval'), set }
}

/** The calls that the page makes, for those who want to make them themselves. */
const examplesOf = (action: string, { path, body }: Call, publication: string) => [
  { about: 'What would change', method: 'POST', path, body, headers: { 'Weir-Dry-Run': 'true' } },
  { about: action, method: 'POST', path, body },
  { about: 'Ask for an approval', method: 'POST', path: '/api/v1/approvals', body: { publication } },
]

/** Why it cannot be published yet; `null`: it can. */
function refusalOf({ to, missing, check, isForceMissing, isReasonMissing }: { to: string; missing: string[]; check: Check; isForceMissing: boolean; isReasonMissing: boolean }): string | null {
  if (to === '') return 'There is no environment yet.'
  if (missing.length > 0) return `Give the address of ${missing.join(', ')} first.`
  if (check.isChecking) return 'It is being checked.'
  if (!canPass(check)) return 'A step refuses it.'
  if (isForceMissing) return 'It breaks callers or takes calls of others: say that you want it all the same.'
  return isReasonMissing ? 'Tests fail: say why it is to be published all the same.' : null
}

function Wizard(props: Props) {
  const { api, name, version, environments, publications, revisions } = props
  const { to, from, source, revision, given, set } = useTarget(props)
  const known = publications.find((it) => it.environment === to)
  const environment = environments.find((it) => it.name === to)
  const content = revisions.find((it) => it.number === revision)
  const backends = [...new Set((content?.components ?? version.draft.components ?? []).map((it) => it.backend))]
  const begin = useMemo((): Runtime => known?.runtime ?? adoptedRuntime() ?? { ...EMPTY, base_path: source?.runtime.base_path ?? '', ...(source?.runtime.strip_base_path ? { strip_base_path: true } : {}) }, [known, source])
  const addresses = useRuntime({ api, version: name, environment: to, stored: known?.runtime ?? null, begin })
  const { runtime } = addresses
  const [force, setForce] = useState(false)
  const [isTakenOver, setTakenOver] = useState(false)
  const adopted = from === null && version.source && version.source.taken_over === undefined ? version.source : null
  const [overrideTests, setOverrideTests] = useState('')
  const [note, setNote] = useState('')
  const [done, setDone] = useState<Outcome | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const client = useQueryClient()
  const right = useRight('apis:publish')
  const head = useHead().data?.revision

  const hash = content?.hash ?? version.hash
  const approvals = props.approvals.filter((it) => it.publication === `${api}/${name}/${to}`)
  const granted = approvals.find((it) => it.id === given) ?? approvals.find((it) => it.state === 'granted' && it.hash === hash)
  const missing = withoutAddress(runtime, backends)
  const wanted = { api, version: name, environment: to, from, revision, runtime: tidyRuntime(runtime), approval: granted?.id ?? null, takeOver: isTakenOver && adopted !== null, overrideTests, note }
  const dry: Call | null = to === '' || missing.length > 0 || done ? null : callOf({ ...wanted, overrideTests: '', force: false })
  const check = usePublishCheck(dry, head)
  const steps = stepsOf(check, environment?.protected === true)
  const failsTests = check.refusals.some((it) => it.kind === 'tests') && canPass(check)
  const needsForce = check.refusals.some((it) => it.kind !== 'tests') && canPass(check)
  useEffect(() => (setForce(false), setTakenOver(false), setOverrideTests('')), [to, revision])
  const refused = right ?? refusalOf({ to, missing, check, isForceMissing: needsForce && !force, isReasonMissing: failsTests && overrideTests.trim() === '' })
  const publish = async () => {
    setBusy(true)
    setError(null)
    const { path, body } = callOf({ ...wanted, force: force && needsForce })
    try {
      await addresses.guarded(async (headers) => {
        const { data } = await call<Outcome>('POST', path, { body, headers })
        setDone(data)
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${api} ${name} r${data.revision} is published to ${to}`)
      })
    } catch (wrong) {
      setError(wrong)
    }
    setBusy(false)
  }

  const action = from ? 'Promote' : 'Publish'
  return (
    <Page
      title={`${action} ${api} ${name}`}
      about={from && source ? <>The same revision, r{source.revision} <Hash value={source.hash} />, goes from {from} to {to}. Addresses stay where they are.</> : 'Nothing changes until the last step. Each step says what it found.'}
      crumbs={[...crumbsOf(api), { to: `/apis/${encodeURIComponent(api)}/${encodeURIComponent(name)}`, text: name }]}
      calls={examplesOf(action, callOf({ ...wanted, force }), `${api}/${name}/${to}`)}
    >
      {done ? (
        <Published outcome={done} api={api} name={name} environment={environment} base={runtime.base_path} first={version.operations[0]?.path} />
      ) : (
        <ol className="wizard">
          <Target environments={environments} publications={publications} to={to} onTo={(value) => set('to', value)}>
            {!from && <Content version={version} revisions={revisions} revision={revision} onChange={(value) => set('revision', value)} />}
          </Target>
          <li className="card" aria-label="Addresses">
            <h2>2. Addresses in {to || 'the environment'}</h2>
            <RuntimeForm runtime={runtime} environment={environment} backends={backends} onChange={addresses.set} />
            {addresses.isOutdated && <Outdated />}
          </li>
          {adopted && (
            <li className="card" aria-label="Routes that serve now">
              <h2>The routes that serve now</h2>
              <TakeOver source={adopted} environment={to} value={isTakenOver} onChange={setTakenOver} />
            </li>
          )}
          <Checked check={check} steps={steps} missing={missing}>
            {check.refusals.some((it) => it.kind.startsWith('approval') || it.message.startsWith('approval:')) && <AskForApproval publication={`${api}/${name}/${to}`} revision={revision} approvals={approvals} hash={hash} />}
            {check.outcome && <Diffs outcome={check.outcome} text={check.text} plans={props.plans} />}
          </Checked>
          <Commit action={action} error={error}>
            {needsForce && <Force outcome={check.outcome} value={force} onChange={setForce} />}
            {failsTests && <TextField label="Why tests may fail" value={overrideTests} onChange={setOverrideTests} isRequired about="The history notes the reason." />}
            <TextField label="Note" value={note} onChange={setNote} placeholder="Why, for those who read the history" />
            <div className="row">
              <Button look="primary" refused={refused} isBusy={isBusy} onPress={() => void publish()}>
                {`${action} to ${to || 'an environment'}`}
              </Button>
            </div>
          </Commit>
        </ol>
      )}
      {addresses.choice}
    </Page>
  )
}

function AskForApproval({ publication, revision, approvals, hash }: { publication: string; revision: number | null; approvals: Approval[]; hash: string }) {
  const [reason, setReason] = useState('')
  const [error, setError] = useState<unknown>(null)
  const client = useQueryClient()
  const open = approvals.find((it) => it.state === 'open' && it.hash === hash)
  const ask = async () => {
    setError(null)
    try {
      await call('POST', '/api/v1/approvals', { body: { publication, ...(revision === null ? {} : { revision }), ...(reason === '' ? {} : { reason }) } })
      await client.invalidateQueries({ queryKey: ['configuration'] })
      toast('Somebody is asked. This page goes on as soon as it is granted.')
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <div className="note" role="group" aria-label="Approval">
      {open ? (
        <>
          <strong>An approval is asked for</strong>
          <span>
            {open.requested_by} asked for exactly this content, <Hash value={open.hash} />. This page goes on as soon as it is granted.
          </span>
        </>
      ) : (
        <>
          <strong>Somebody else has to agree</strong>
          <TextField label="Reason" value={reason} onChange={setReason} about="Who decides reads it." />
          {error !== null && <Failure error={error} />}
          <div>
            <Button onPress={() => void ask()}>Ask for an approval</Button>
          </div>
        </>
      )}
    </div>
  )
}

