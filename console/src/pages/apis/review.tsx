// The review of a draft: who asks and for what, what changed since the last revision, and what another person says to it.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { type DraftState, type OperationChange, type ReviewState, type Revision, type VersionDetail, toVersion, useReview, useRevisions, useVersion, versionPath } from '../../api/apis'
import { call, get } from '../../api/client'
import { useRight } from '../../api/rights'
import { useMe } from '../../api/session'
import type { Json } from '../../api/types'
import { DiffTable } from '../../form/diff-table'
import { Failure, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { AreaField } from '../../ui/field'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { Asked } from './asked'
import { Hash, OperationChanges, Pairs, State, Waiting } from './shared'
import { VersionTabs, crumbsOf } from './version-tabs'

type Step = 'ask' | 'withdraw' | 'approved' | 'changes-asked'

const TEXTS: Record<DraftState, string> = {
  clean: 'Nothing has changed since the last revision.',
  changed: 'It has changed since the last revision, and no one was asked to look at it.',
  'in-review': 'It waits for another person.',
  'changes-asked': 'Another person has looked at it, and asks for changes.',
  approved: 'Another person has approved exactly what it holds.',
}

export default function ReviewPage() {
  const [, api = '', name = ''] = useSegments()
  const [version, review, revisions, me] = [useVersion(api, name), useReview(api, name), useRevisions(api, name), useMe()]
  const [above, setAbove] = useState<Step | null>(null)
  const [writing, deciding] = [useRight('apis:write'), useRight('approvals:decide')]
  if (version.data === undefined || review.data === undefined || revisions.data === undefined) {
    return <Waiting title={`Review of ${api} ${name}`} crumbs={crumbsOf(api)} queries={[version, review, revisions]} />
  }
  const { state, authors, review: asked } = review.data
  const isMine = me.data !== undefined && me.data.name === asked?.requested_by
  const own = isMine ? 'You have asked for this review: another person approves it.' : me.data !== undefined && authors.includes(me.data.name) ? 'You have made a part of it: another person approves it.' : null
  const path = `${versionPath(api, name)}/review`
  return (
    <Page
      title={`${api} ${name}`}
      about="Another person looks at what the draft holds before it is published. What they say is about exactly this content: a later edit ends it."
      crumbs={crumbsOf(api)}
      calls={[
        { about: 'How the draft stands', method: 'GET', path },
        { about: 'Ask for a review', method: 'POST', path, body: { reason: 'paging of lists' }, command: `weir api review ${api} ${name} --reason 'paging of lists'` },
        { about: 'Approve it', method: 'POST', path: `${path}/decision`, body: { state: 'approved', hash: review.data.hash }, command: `weir api review ${api} ${name} --approve` },
      ]}
      actions={
        state === 'in-review' ? (
          <>
            {isMine && <Button look="quiet" refused={writing} onPress={() => setAbove('withdraw')}>Withdraw</Button>}
            <Button refused={deciding} onPress={() => setAbove('changes-asked')}>Ask for changes</Button>
            <Button look="primary" refused={deciding ?? own} onPress={() => setAbove('approved')}>Approve</Button>
          </>
        ) : (
          <Button look="primary" refused={writing ?? (state === 'approved' ? 'It is approved.' : null)} onPress={() => setAbove('ask')}>Ask for a review</Button>
        )
      }
    >
      <VersionTabs api={api} version={name} at="review" />
      <section className="card" aria-label="Review">
        <div className="row">
          <State state={state} /> <Hash value={review.data.hash} /> <span>{TEXTS[state]}</span>
        </div>
        {asked && <Asked review={asked} />}
        <Pairs
          pairs={[
            ['Made by', authors.join(', ')],
            ['Who approves', state === 'in-review' && `Everyone with the right approvals:decide for ${api}, except the people who made a part of it or asked.`],
          ]}
        />
      </section>
      <Changes version={version.data} last={revisions.data.at(-1)} />
      {above && <Decide step={above} version={version.data} review={review.data} onClose={() => setAbove(null)} />}
    </Page>
  )
}

/** What of a draft is not in its document. */
const settingsOf = (it: { components?: unknown; operations?: unknown; chain?: unknown }): Json => ({ components: it.components ?? [], operations: it.operations ?? {}, chain: it.chain ?? [] }) as unknown as Json

function Changes({ version, last }: { version: VersionDetail; last: Revision | undefined }) {
  const { api, version: name } = version
  const from = last?.number ?? 0
  const diff = useQuery({
    queryKey: ['configuration', 'compare', api, name, String(from), '0'],
    queryFn: ({ signal }) => get<{ breaking: boolean; operations: OperationChange[] }>(`${versionPath(api, name)}/diff`, { from, to: 0 }, signal),
    enabled: last !== undefined,
  })
  const toDesign = <ButtonLink small to={toVersion(api, name)}>Open the draft</ButtonLink>
  if (last === undefined) {
    return (
      <Card title="What is new" badge={toDesign}>
        <p className="muted">There is no revision yet: all of it is new, with {countText(version.operations.length, 'operation', 'operations')}.</p>
        <OperationChanges operations={version.operations.map((it) => ({ id: it.id, method: it.method, path: it.path, kind: 'added', changes: [] }))} />
        <h3>Components, plugins and assignments</h3>
        <DiffTable before={undefined} after={settingsOf(version.draft)} />
      </Card>
    )
  }
  return (
    <Card
      title={`What changed since r${last.number}`}
      badge={
        <div className="row">
          {diff.data && <span className={`badge ${diff.data.breaking ? 'bad' : 'good'}`}>{diff.data.breaking ? 'breaks callers' : 'breaks no caller'}</span>}
          {toDesign}
        </div>
      }
    >
      {diff.error && <Failure error={diff.error} />}
      {diff.data && <OperationChanges operations={diff.data.operations} />}
      <h3>Components, plugins and assignments</h3>
      <DiffTable before={settingsOf(last)} after={settingsOf(version.draft)} />
    </Card>
  )
}

function Card({ title, badge, children }: { title: string; badge: ReactNode; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <div className="head2">
        <h2>{title}</h2>
        {badge}
      </div>
      {children}
    </section>
  )
}

const STEPS: Record<Step, { title: string; action: string; label: string; isRequired: boolean; done: string }> = {
  ask: { title: 'Ask for a review of', action: 'Ask', label: 'What it is about', isRequired: false, done: 'waits for a review' },
  withdraw: { title: 'Withdraw the review of', action: 'Withdraw', label: '', isRequired: false, done: 'waits for no review' },
  approved: { title: 'Approve', action: 'Approve', label: 'Comment', isRequired: false, done: 'is approved' },
  'changes-asked': { title: 'Ask for changes of', action: 'Ask for changes', label: 'What is to be changed', isRequired: true, done: 'is to be changed' },
}

function Decide({ step, version, review, onClose }: { step: Step; version: VersionDetail; review: ReviewState; onClose: () => void }) {
  const [reason, setReason] = useState('')
  // What was looked at, though somebody changes it while this is open.
  const [hash] = useState(review.hash)
  const client = useQueryClient()
  const texts = STEPS[step]
  const name = `${version.api} ${version.version}`
  const run = async () => {
    const path = `${versionPath(version.api, version.version)}/review`
    if (step === 'withdraw') await call('DELETE', path)
    else if (step === 'ask') await call('POST', path, { body: { reason } })
    else await call('POST', `${path}/decision`, { body: { state: step, reason, hash } })
    await client.invalidateQueries({ queryKey: ['configuration'] })
    toast(`${name} ${texts.done}`)
    onClose()
  }
  return (
    <Act title={`${texts.title} ${name}?`} action={texts.action} refused={texts.isRequired && reason.trim() === '' ? 'Say what first.' : null} onClose={onClose} run={run}>
      <p>
        It is about exactly this content: <Hash value={hash} />
      </p>
      {texts.label !== '' && <AreaField label={texts.label} value={reason} onChange={setReason} isRequired={texts.isRequired} rows={3} />}
    </Act>
  )
}
