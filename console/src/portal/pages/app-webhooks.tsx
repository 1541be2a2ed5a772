// The webhooks of an application: where they go, their secret, which is shown once, and what became of each delivery.
import { useState } from 'react'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { Time } from '../../ui/time'
import { CopyButton } from '../copy'
import { type Deliveries, type Webhook, useRead, useWrite } from '../data'
import { Field, Form, Said } from './entry'

const part = encodeURIComponent
const LOOKS: Record<string, string> = { delivered: 'good', waiting: 'warn', failed: 'bad' }
/** What can be chosen; more is possible through the API. */
const KINDS = [
  ['', 'All events'],
  ['subscription.*', 'Subscriptions'],
  ['credential.*', 'Keys'],
  ['publication.*', 'Versions of APIs'],
  ['quota.*', 'Quotas'],
] as const

interface Wanted {
  url: string
  events: string[]
  disabled: boolean
}

export function Webhooks({ app }: { app: string }) {
  const path = `/apps/${part(app)}/webhooks`
  const all = useRead<{ items: Webhook[] }>(path)
  const [url, type] = useState('')
  const [kind, choose] = useState('')
  const [made, show] = useState<Webhook | null>(null)
  const make = useWrite<Webhook, Wanted>('POST', () => path)
  const send = () =>
    make.mutate(
      { url, events: kind === '' ? [] : [kind], disabled: false },
      {
        onSuccess: (it) => {
          type('')
          show(it)
        },
      },
    )
  return (
    <section className="card" aria-label="Webhooks">
      <h2>Webhooks</h2>
      <p className="muted">Your server is called when a subscription or a key changes, or when an API that you use is to end. Calls are signed (Standard Webhooks) and tried again for three days.</p>
      {all.data?.items.map((it) => (
        <Shown key={it.name} path={`${path}/${part(it.name)}`} hook={it} />
      ))}
      <Form isInline label="New webhook" onSubmit={send} submit="Add the webhook" isBusy={make.isPending}>
        <Field label="URL" name="url" type="url" value={url} onChange={type} error={make.error} />
        <label className="field">
          <span className="label">Events</span>
          <select className="select" value={kind} onChange={(event) => choose(event.target.value)}>
            {KINDS.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </Form>
      <Said error={make.error} fields={['url']} />
      {made && (
        <Dialog
          title="The secret of the webhook"
          isOpen
          loses="The secret is not shown again"
          onClose={() => show(null)}
          actions={
            <>
              <CopyButton text={made.secret ?? ''} />
              <Button look="primary" onPress={() => show(null)}>
                I have kept it
              </Button>
            </>
          }
        >
          <p>Your server checks the signature with it. This is the only time that you see it.</p>
          <pre className="code" tabIndex={0} aria-label="Secret">{made.secret}</pre>
        </Dialog>
      )}
    </section>
  )
}

function Shown({ path, hook }: { path: string; hook: Webhook }) {
  const [isOpen, open] = useState(false)
  const test = useWrite<null>('POST', () => `${path}/test`)
  const remove = useWrite<null>('DELETE', () => path)
  const [isDoomed, setDoomed] = useState(false)
  const change = useWrite<Webhook, Wanted>('PUT', () => path)
  return (
    <div className="nested" role="group" aria-label={hook.url}>
      <div className="row between">
        <code className="path">{hook.url}</code>
        <span className="row">
          {hook.events.map((it) => (
            <span key={it} className="badge">
              {it}
            </span>
          ))}
          {hook.disabled && <span className="badge warn">off</span>}
        </span>
      </div>
      <div className="row">
        <Button small isBusy={test.isPending} onPress={() => test.mutate(undefined, { onSuccess: () => open(true) })}>
          Send a test
        </Button>
        <Button small onPress={() => open(!isOpen)}>
          {isOpen ? 'Hide deliveries' : 'Deliveries'}
        </Button>
        <Button small look="quiet" onPress={() => change.mutate({ url: hook.url, events: hook.events, disabled: !hook.disabled })}>
          {hook.disabled ? 'Turn on' : 'Turn off'}
        </Button>
        <Button small look="quiet" onPress={() => setDoomed(true)}>
          Remove
        </Button>
      </div>
      <Said error={test.error ?? change.error} />
      {isDoomed && (
        <Act title={`Remove ${hook.url}?`} action="Remove" look="danger" onClose={() => setDoomed(false)} run={() => remove.mutateAsync().then(() => setDoomed(false))}>
          <p>It is not called any more, and its secret is gone. To pause it, turn it off instead.</p>
        </Act>
      )}
      {isOpen && <Log path={path} />}
    </div>
  )
}

function Log({ path }: { path: string }) {
  const found = useRead<Deliveries>(`${path}/deliveries`)
  const retry = useWrite<null, string>('POST', (id) => `${path}/deliveries/${part(id)}/retry`)
  return (
    <div className="stack tight">
      <div className="row">
        <h3>Deliveries</h3>
        <Button small look="quiet" onPress={() => void found.refetch()}>
          Read again
        </Button>
      </div>
      {found.data?.items.length === 0 && <p className="muted">Nothing was sent yet.</p>}
      <ul className="stack tight" aria-label="Deliveries">
        {found.data?.items.map((it) => (
          <li key={it.id} className="row between">
            <span className="row">
              <span className={`badge ${LOOKS[it.state] ?? ''}`}>{it.state}</span>
              <code>{it.kind}</code>
              <span className="muted small">
                <Time at={it.created} /> · {it.attempts.at(-1)?.outcome ?? 'not tried yet'}
              </span>
            </span>
            {it.state !== 'delivered' && (
              <Button small onPress={() => retry.mutate(it.id)}>
                Try again
              </Button>
            )}
          </li>
        ))}
      </ul>
      <Said error={retry.error ?? found.error} />
    </div>
  )
}
