// The settings of an application: what it is called, whom it belongs to, and its end.
import { useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { type App, type AppDetail, useWrite } from '../data'
import { type AppDraft, AppFields, NAMED, bodyOf } from './app-fields'
import { Webhooks } from './app-webhooks'
import { Form, Said } from './entry'

const part = encodeURIComponent

export function Settings({ detail: { app, client_id, certificates } }: { detail: AppDetail }) {
  const known: AppDraft = { title: app.title, description: app.description, team: app.team ?? '', client: client_id, certificates: certificates.join('') }
  const [begun, begin] = useState(known)
  const [draft, setDraft] = useState(known)
  const change = useWrite<App, ReturnType<typeof bodyOf>>('PUT', () => `/apps/${part(app.name)}`)
  if (app.role === 'viewer') return <p className="note">You see this application as a viewer of the team {app.team_name}. Its members change it.</p>
  return (
    <div className="stack">
      <div className="halves">
        <Form label="Application" onSubmit={() => change.mutate(bodyOf(draft, begun), { onSuccess: () => begin(draft) })} submit="Save" isBusy={change.isPending}>
          <h2>Application</h2>
          <AppFields value={draft} onChange={setDraft} error={change.error} />
          <Said error={change.error} fields={NAMED} />
          {change.isSuccess && <p role="status">Saved.</p>}
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
