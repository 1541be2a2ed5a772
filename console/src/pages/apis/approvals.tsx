// What waits for somebody's agreement, and what was decided. Who asks does not decide.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { type Approval, partsOf, toPublish, toReview, useApprovals, useReviewsAsked, useSubscriptions } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { useMe } from '../../api/session'
import { Empty, Failure, Page } from '../../shell/page'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { TextField } from '../../ui/field'
import { Time, countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { Asked } from './asked'
import { Hash, PublicationLink, State } from './shared'

type Decided = { approval: Approval; state: 'granted' | 'refused' | 'withdrawn' }

export default function Approvals() {
  const [approvals, subscriptions, reviews] = [useApprovals(), useSubscriptions(), useReviewsAsked()]
  const [above, setAbove] = useState<Decided | null>(null)
  const refused = useRight('approvals:decide')
  const me = useMe()
  const all = [...(approvals.data ?? [])].sort((a, b) => b.created - a.created)
  const open = all.filter((it) => it.state === 'open')
  const decided = all.filter((it) => it.state !== 'open')
  const waiting = (subscriptions.data ?? []).filter((it) => it.state === 'pending')
  return (
    <Page
      title="Approvals"
      about="Publishing to a protected environment needs somebody else's agreement. It holds for one exact content: a later edit ends it."
      calls={[
        { about: 'List approvals', method: 'GET', path: '/api/v1/approvals' },
        { about: 'Grant one', method: 'POST', path: '/api/v1/approvals/ID/decision', body: { state: 'granted', reason: 'reviewed' } },
      ]}
    >
      {approvals.error && <Failure error={approvals.error} onRetry={() => void approvals.refetch()} />}
      {waiting.length > 0 && (
        <div className="note">
          <div className="row between">
            <strong>{countText(waiting.length, 'subscription waits', 'subscriptions wait')}, too</strong>
            <ButtonLink small to="/subscriptions?q=state%3Apending">
              Show them
            </ButtonLink>
          </div>
        </div>
      )}
      <section className="card" aria-label="Open">
        <h2>Open</h2>
        {open.length === 0 ? (
          <Empty title="Nothing waits for you" actions={<ButtonLink to="/environments">Environments</ButtonLink>}>
            <p>The last step of publishing to a protected environment asks here. Whether one is protected is a setting of the environment.</p>
          </Empty>
        ) : (
          <ul className="lines-list">
            {open.map((it) => (
              <Item key={it.id} approval={it}>
                <Button small look="primary" refused={refused} onPress={() => setAbove({ approval: it, state: 'granted' })}>
                  Grant<span className="sr"> {it.publication}</span>
                </Button>
                <Button small refused={refused} onPress={() => setAbove({ approval: it, state: 'refused' })}>
                  Refuse<span className="sr"> {it.publication}</span>
                </Button>
                {it.requested_by === me.data?.name && (
                  <Button small look="quiet" onPress={() => setAbove({ approval: it, state: 'withdrawn' })}>
                    Withdraw<span className="sr"> {it.publication}</span>
                  </Button>
                )}
              </Item>
            ))}
          </ul>
        )}
      </section>
      {(reviews.data ?? []).length > 0 && (
        <section className="card" aria-label="Reviews of drafts">
          <h2>Reviews of drafts</h2>
          <ul className="lines-list">
            {reviews.data?.map((it) => (
              <li key={`${it.api}/${it.version}`} className="row between">
                <div className="stack tight">
                  <div className="row">
                    <State state={it.draft.state} />{' '}
                    <Link href={toReview(it.api, it.version)}>
                      {it.api} {it.version}
                    </Link>{' '}
                    <Hash value={it.draft.hash} />
                  </div>
                  {it.draft.review && <Asked review={it.draft.review} />}
                </div>
                <ButtonLink small to={toReview(it.api, it.version)}>
                  Review<span className="sr"> {it.api} {it.version}</span>
                </ButtonLink>
              </li>
            ))}
          </ul>
        </section>
      )}
      {decided.length > 0 && (
        <section className="card" aria-label="Decided">
          <h2>Decided</h2>
          <ul className="lines-list">
            {decided.slice(0, 50).map((it) => (
              <Item key={it.id} approval={it}>
                {it.state === 'granted' && (
                  <ButtonLink small to={toPublish(partsOf(it.publication)[0], partsOf(it.publication)[1], { to: partsOf(it.publication)[2], approval: it.id })}>
                    Publish
                  </ButtonLink>
                )}
              </Item>
            ))}
          </ul>
        </section>
      )}
      {above && <Decide {...above} onClose={() => setAbove(null)} />}
    </Page>
  )
}

function Item({ approval: it, children }: { approval: Approval; children: React.ReactNode }) {
  const [api, version] = partsOf(it.publication)
  return (
    <li className="row between">
      <div className="stack tight">
        <div className="row">
          <State state={it.state} /> <PublicationLink id={it.publication} /> <Hash value={it.hash} />
        </div>
        <p className="muted small">
          {it.requested_by} asked <Time at={it.created} />
          {it.reason && <>: “{it.reason}”</>}
          {it.decided_by && (
            <>
              . {it.decided_by}
              {it.decision && <>: “{it.decision}”</>}
            </>
          )}{' '}
          <Link href={toPublish(api, version, { to: partsOf(it.publication)[2], approval: it.id })}>What would change</Link>
        </p>
      </div>
      <div className="row">{children}</div>
    </li>
  )
}

const WORDS = { granted: 'Grant', refused: 'Refuse', withdrawn: 'Withdraw' }

function Decide({ approval, state, onClose }: Decided & { onClose: () => void }) {
  const [reason, setReason] = useState('')
  const client = useQueryClient()
  return (
    <Act
      title={`${WORDS[state]} ${approval.publication}?`}
      action={WORDS[state]}
      look={state === 'refused' ? 'danger' : 'primary'}
      refused={state === 'refused' && reason.trim() === '' ? 'Say why first.' : null}
      onClose={onClose}
      run={async () => {
        const path = `/api/v1/approvals/${encodeURIComponent(approval.id)}`
        // Who has asked takes it back without a right to decide.
        if (state === 'withdrawn') await call('DELETE', path)
        else await call('POST', `${path}/decision`, { body: { state, ...(reason === '' ? {} : { reason }) } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${approval.publication}: ${state}`)
        onClose()
      }}
    >
      <p>
        It is for exactly this content: <Hash value={approval.hash} />
      </p>
      {state !== 'withdrawn' && <TextField label="Reason" value={reason} onChange={setReason} isRequired={state === 'refused'} autoFocus />}
    </Act>
  )
}
