// The settings of an application: what it is called, whom it belongs to, and its end.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiError, call } from '../../api/client'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { type App, type AppDetail, BASE, useWrite } from '../data'
import { type AppDraft, AppFields, NAMED, bodyOf, mergedDraft } from './app-fields'
import { Webhooks } from './app-webhooks'
import { Form, Said } from './entry'

const part = encodeURIComponent

const draftOf = ({ app, client_id, certificates }: AppDetail): AppDraft => ({
  title: app.title,
  description: app.description,
  team: app.team ?? '',
  client: client_id,
  certificates: certificates.join(''),
})

const isSame = (a: AppDraft, b: AppDraft) => JSON.stringify(a) === JSON.stringify(b)

/** The edit of an application, which overwrites nothing that somebody else has stored since it began. */
function useEdit(detail: AppDetail, tag: string | null) {
  const path = `${BASE}/apps/${part(detail.app.name)}`
  const client = useQueryClient()
  const [begun, begin] = useState({ fields: draftOf(detail), tag })
  const [draft, setDraft] = useState(begun.fields)
  /** What somebody else has changed, too; `null`: it was met by no other edit. */
  const [met, setMet] = useState<string[] | null>(null)
  // If nothing is edited, what others have stored is shown. What was read before the edit began is no news.
  const seen = useRef(tag)
  useEffect(() => {
    if (tag === seen.current) return
    seen.current = tag
    if (tag === begun.tag || !isSame(draft, begun.fields)) return
    begin({ fields: draftOf(detail), tag })
    setDraft(draftOf(detail))
  }, [detail, tag, begun, draft])
  const meet = async () => {
    const now = await call<AppDetail>('GET', path)
    const theirs = draftOf(now.data)
    const merged = mergedDraft(begun.fields, theirs, draft)
    begin({ fields: theirs, tag: now.tag })
    setDraft(merged.draft)
    setMet(merged.both)
  }
  const change = useMutation({
    mutationFn: async () => {
      setMet(null)
      try {
        const { tag: stored } = await call<App>('PUT', path, { body: bodyOf(draft, begun.fields), headers: { 'if-match': begun.tag ?? undefined } })
        begin({ fields: draft, tag: stored })
        void client.invalidateQueries({ queryKey: ['portal'] })
        return true
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 412)) throw error
        await meet()
        return false
      }
    },
  })
  return { draft, setDraft, met, change }
}

export function Settings({ detail, tag }: { detail: AppDetail; tag: string | null }) {
  const { app } = detail
  const { draft, setDraft, met, change } = useEdit(detail, tag)
  if (app.role === 'viewer') return <p className="note">You see this application as a viewer of the team {app.team_name}. Its members change it.</p>
  return (
    <div className="stack">
      <div className="halves">
        <Form label="Application" onSubmit={() => change.mutate()} submit="Save" isBusy={change.isPending}>
          <h2>Application</h2>
          <AppFields value={draft} onChange={setDraft} error={change.error} />
          <Said error={change.error} fields={NAMED} />
          {met !== null && (
            <div className="note warn" role="alert">
              <strong>Somebody else has changed this application meanwhile</strong>
              <span>
                Nothing is stored yet.{' '}
                {met.length === 0 ? 'What they changed is in the form now, beside what you typed.' : `You have both changed this: ${met.join('; ')}. What you typed is in the form, and would replace it.`} Look at it, and
                save again.
              </span>
            </div>
          )}
          {change.data === true && <p role="status">Saved.</p>}
        </Form>
        <Removal app={app} />
      </div>
      <Webhooks app={app.name} />
    </div>
  )
}

function Removal({ app }: { app: App }) {
  const [isOpen, open] = useState(false)
  const [, go] = useLocation()
  const remove = useWrite<null>('DELETE', () => `/apps/${part(app.name)}`)
  return (
    <section className="card" aria-label="Removal">
      <h2>Remove the application</h2>
      <p className="muted">An application that has had subscriptions stays for the record: close its subscriptions instead. No key is good after that.</p>
      <div>
        <Button refused={app.subscriptions > 0 ? 'It has subscriptions. They stay for the record.' : null} onPress={() => open(true)}>
          Remove
        </Button>
      </div>
      <Dialog
        title={`Remove ${app.title}?`}
        isOpen={isOpen}
        onClose={() => open(false)}
        actions={
          <>
            <Button onPress={() => open(false)}>Cancel</Button>
            <Button look="danger" isBusy={remove.isPending} onPress={() => remove.mutate(undefined, { onSuccess: () => go('/apps') })}>
              Remove it
            </Button>
          </>
        }
      >
        <p>It is gone for good.</p>
        <Said error={remove.error} />
      </Dialog>
    </section>
  )
}
