// One commit: what it changed, and the way back to it.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useParams } from 'wouter'
import { call } from '../api/client'
import { useRight } from '../api/rights'
import { useDiff, useHead, useHistory } from '../api/hooks'
import type { Difference } from '../api/types'
import { Failure, Page } from '../shell/page'
import { Button, ButtonLink } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { Time } from '../ui/time'
import { toast } from '../ui/toast'
import { Differences } from './differences'
import NotFound from './not-found'
import { TakeBack, canTakeBack } from './take-back'

export default function CommitPage() {
  const named = useParams()['revision'] ?? ''
  return /^\d{1,15}$/.test(named) ? <Shown revision={Number(named)} /> : <NotFound />
}

function Shown({ revision }: { revision: number }) {
  const history = useHistory({ before: revision + 1, limit: 1 })
  const commit = history.data?.find((it) => it.revision === revision)
  const diff = useDiff(revision - 1, revision)
  const head = useHead().data?.revision ?? null
  const refused = useRight('configuration:rollback')
  const [isRolling, setRolling] = useState(false)
  const [taken, setTaken] = useState<Difference | null>(null)
  const writing = useRight('configuration:write')
  const takeBack = (it: Difference) =>
    canTakeBack(it) && (
      <Button small refused={writing} onPress={() => setTaken(it)}>
        Take back<span className="sr"> {it.document}</span>
      </Button>
    )
  return (
    <Page
      title={`Revision ${revision}`}
      crumbs={[{ to: '/history', text: 'History' }]}
      about={
        commit && (
          <>
            {commit.author}, <Time at={commit.time} />. {commit.note}
          </>
        )
      }
      calls={[
        { about: 'What it changed', method: 'GET', path: `/api/v1/diff?from=${revision - 1}&to=${revision}`, command: `weir diff ${revision - 1} ${revision}` },
        { about: 'Make everything what it was then', method: 'POST', path: '/api/v1/rollback', body: { revision }, command: `weir rollback ${revision}` },
      ]}
      actions={
        <>
          <ButtonLink to={`/history/compare/${revision}/${head ?? revision}`}>Compare with now</ButtonLink>
          <Button look="primary" refused={refused ?? (head === revision ? 'This is the newest revision.' : null)} onPress={() => setRolling(true)}>
            Roll back to this
          </Button>
        </>
      }
    >
      {diff.error ? <Failure error={diff.error} onRetry={() => void diff.refetch()} /> : diff.data && <Differences items={diff.data} action={takeBack} />}
      {taken !== null && <TakeBack difference={taken} revision={revision} onClose={() => setTaken(null)} />}
      {isRolling && <Rollback revision={revision} onClose={() => setRolling(false)} />}
    </Page>
  )
}

/** A rollback is tried first; what it would change is shown before anybody can commit it. */
function Rollback({ revision, onClose }: { revision: number; onClose: () => void }) {
  const [preview, setPreview] = useState<Difference[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const client = useQueryClient()
  const send = async (isDry: boolean) => {
    setBusy(true)
    setError(null)
    try {
      const answer = await call<{ revision: number; changes: Difference[] }>('POST', '/api/v1/rollback', {
        body: { revision },
        headers: { 'weir-dry-run': isDry ? 'true' : undefined },
      })
      if (isDry) setPreview(answer.data.changes)
      else {
        toast(`Everything is what it was at revision ${revision}`, { link: { to: `/history/${answer.data.revision}`, text: `r${answer.data.revision}` } })
        await client.invalidateQueries()
        onClose()
      }
    } catch (refused) {
      setError(refused)
    }
    setBusy(false)
  }
  return (
    <Dialog
      title={`Roll back to revision ${revision}`}
      isOpen
      wide
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Cancel</Button>
          {preview === null ? (
            <Button look="primary" isBusy={isBusy} onPress={() => void send(true)}>
              Preview
            </Button>
          ) : (
            <Button look="primary" isBusy={isBusy} refused={preview.length === 0 ? 'Nothing would change.' : null} onPress={() => void send(false)}>
              Roll back
            </Button>
          )}
        </>
      }
    >
      <p>
        Every document becomes what it was right after revision {revision}, in one new commit. Nothing is lost: the revisions in between stay in the{' '}
        <Link href="/history">history</Link>.
      </p>
      {preview !== null && <Differences items={preview} />}
      {error !== null && <Failure error={error} />}
    </Dialog>
  )
}
