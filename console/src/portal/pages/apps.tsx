// Applications: one's own and those of one's teams, and a form for a new one.
import { useState } from 'react'
import { Link } from 'wouter'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { countText } from '../../ui/time'
import { type App, useRead, useWrite } from '../data'
import { Empty } from '../empty'
import { Loading, Page, SignedIn } from '../frame'
import { type AppDraft, AppFields, NAMED, NOTHING, bodyOf } from './app-fields'
import { Form, Said } from './entry'

const part = encodeURIComponent

export default function Apps() {
  const apps = useRead<{ items: App[] }>('/apps')
  const [isNew, setNew] = useState(false)
  if (apps.error) return <SignedIn error={apps.error} onRetry={() => void apps.refetch()} />
  if (apps.data === undefined) return <Loading />
  return (
    <Page title="Applications" about="An application is a program of yours that calls APIs. Each has its own subscriptions and keys." actions={<Button look="primary" icon="plus" onPress={() => setNew(true)}>New application</Button>}>
      {apps.data.items.length === 0 ? (
        <Empty title="No application yet" icon="window" actions={<Button onPress={() => setNew(true)}>Make the first one</Button>}>
          <p>Make one, subscribe it to a plan of an API, and get a key. It takes a minute.</p>
        </Empty>
      ) : (
        <ul className="cards">
          {apps.data.items.map((it) => (
            <li key={it.name} className="card link-card">
              <h2>
                <Link href={`/apps/${part(it.name)}`}>{it.title}</Link>
              </h2>
              <p className="muted summary">{it.description || 'No description.'}</p>
              <div className="row">
                <span className="badge">{it.team ? `Team ${it.team_name}` : 'Mine'}</span>
                <span className="muted small">{countText(it.subscriptions, 'subscription', 'subscriptions')}</span>
              </div>
            </li>
          ))}
        </ul>
      )}
      <Dialog title="New application" isOpen={isNew} onClose={() => setNew(false)}>
        <NewApp onMade={() => setNew(false)} />
      </Dialog>
    </Page>
  )
}

export function NewApp({ onMade }: { onMade: (app: App) => void }) {
  const [draft, setDraft] = useState<AppDraft>(NOTHING)
  const make = useWrite<App, ReturnType<typeof bodyOf>>('POST', () => '/apps')
  return (
    <Form label="New application" onSubmit={() => make.mutate(bodyOf(draft), { onSuccess: onMade })} submit="Make it" isBusy={make.isPending}>
      <AppFields value={draft} onChange={setDraft} error={make.error} />
      <Said error={make.error} fields={NAMED} />
    </Form>
  )
}
