// A webhook that is made or changed: where it goes, what it tells, and its secret, which is shown once.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { compact, useApis } from '../../api/apis'
import { call } from '../../api/client'
import { useStoredRight } from '../../api/rights'
import type { Fields, Json } from '../../api/types'
import { EVENTS, type Hook, hookPath, hostOf, readHook, toHook, useHooks } from '../../api/webhooks'
import type { Begun } from '../../form/draft'
import { EntityEditor } from '../../form/entity-editor'
import { type SendOptions, nameFault, nameIn, send } from '../../form/send'
import { Page } from '../../shell/page'
import { useIsNew, useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { CheckField, TextField } from '../../ui/field'
import { ShownOnce } from '../../ui/once'
import { Prose } from '../../ui/prose'
import { toast } from '../../ui/toast'
import { Waiting } from '../apis/shared'

const CRUMBS = [{ to: '/hooks', text: 'Webhooks' }]
const FRESH: Begun = { data: { name: '', url: '' }, tag: null }

export default function EditHook() {
  const [, name = ''] = useSegments()
  return useIsNew() ? <Editor key="new" base={FRESH} isNew /> : <Existing key={name} name={name} />
}

function Existing({ name }: { name: string }) {
  const hook = useQuery({ queryKey: ['configuration', 'hook', name], queryFn: () => readHook(name) })
  if (hook.data === undefined) return <Waiting title={name} crumbs={CRUMBS} queries={[hook]} />
  return <Editor base={hook.data} isNew={false} />
}

function Editor({ base, isNew }: { base: Begun; isNew: boolean }) {
  const known = useHooks()
  const refused = useStoredRight('alerts:write')
  const client = useQueryClient()
  const [, go] = useLocation()
  const [above, setAbove] = useState<'delete' | { secret: string; name: string } | null>(null)
  const name = nameIn(base.data)
  const store = async (value: Fields, options: SendOptions): Promise<Begun> => {
    const { data, tag } = await send('PUT', hookPath(isNew ? nameIn(value) : name), compact(value), options)
    const { secret, ...rest } = data
    if (!options.isDry && typeof secret === 'string') setAbove({ secret, name: nameIn(rest) })
    return { data: rest, tag }
  }
  const missing = (value: Fields): string | null => {
    const wrong = isNew ? nameFault(value, known.data, 'A webhook') : null
    return wrong ?? (String(value['url'] ?? '').trim() === '' ? 'It needs a URL.' : null)
  }
  return (
    <Page
      title={isNew ? 'New webhook' : name}
      about="Events are sent as JSON by a POST, signed as Standard Webhooks says. A call that fails is tried again for three days."
      crumbs={CRUMBS}
      calls={[{ about: 'Store it', method: 'PUT', path: hookPath(name || 'NAME'), body: base.data }]}
      actions={
        !isNew && (
          <Button look="quiet" icon="trash" refused={refused} onPress={() => setAbove('delete')}>
            Delete
          </Button>
        )
      }
    >
      <EntityEditor
        kept={`hook/${name}`}
        title={isNew ? 'the new webhook' : name}
        base={base}
        isNew={isNew}
        refused={refused}
        missing={missing}
        form={(value, onChange) => <HookForm value={value} isNew={isNew} onChange={onChange} />}
        send={store}
        read={() => readHook(name)}
        onSaved={async (stored) => {
          await client.invalidateQueries({ queryKey: ['configuration'] })
          toast(`${String(stored['name'])} is saved`)
        }}
      />
      {above === 'delete' && <Delete name={name} onClose={() => setAbove(null)} />}
      {typeof above === 'object' && above !== null && (
        <ShownOnce
          title={`The secret of ${above.name}`}
          secret={above.secret}
          about="Your server needs it to check the signature of each call."
          onClose={() => go(toHook(above.name))}
        >
          <p className="muted">The key is the base64 behind whsec_. HMAC-SHA256 over ID.TIMESTAMP.BODY gives the header webhook-signature.</p>
        </ShownOnce>
      )}
    </Page>
  )
}

function HookForm({ value, isNew, onChange }: { value: Fields; isNew: boolean; onChange: (value: Fields) => void }) {
  const hook = value as unknown as Hook
  const apis = useApis()
  const set = (name: string, next: Json) => onChange({ ...value, [name]: next })
  const chosen = hook.apis ?? []
  const names = [...new Set([...(apis.data ?? []).map((it) => it.name), ...chosen])]
  return (
    <>
      <section className="card" aria-label="Where it goes">
        <h2>Where it goes</h2>
        <div className="grid">
          {isNew && <TextField label="Name" value={hook.name ?? ''} onChange={(text) => set('name', text)} placeholder="ci" isRequired about="In addresses; it cannot be changed later." />}
          <TextField label="URL" value={hook.url ?? ''} onChange={(text) => set('url', text)} placeholder="https://ci.example.com/weir" isRequired isMono about={<Prose text="A public address. Networks of your own are allowed with `--webhook-allow`." />} />
          <TextField label="What it is for" value={hook.description ?? ''} onChange={(text) => set('description', text)} />
        </div>
        <CheckField label="It is called" value={hook.disabled !== true} onChange={(isOn) => set('disabled', !isOn)} about={isNew ? undefined : <Link href={`/deliveries?q=${encodeURIComponent(`to:${hostOf(hook)}`)}`}>What became of its calls</Link>} />
      </section>
      <EventChoice chosen={hook.events ?? []} onChange={(events) => set('events', events)} />
      <section className="card" aria-label="APIs">
        <h2>Of which APIs</h2>
        <p className="muted">{chosen.length === 0 ? 'Of all APIs. Choose some to be told only of these.' : 'Only of those that are chosen.'}</p>
        {names.length === 0 ? (
          <p className="muted">There are no APIs yet.</p>
        ) : (
          <div className="options scrolled">
            {names.map((api) => (
              <CheckField key={api} label={api} value={chosen.includes(api)} onChange={(isOn) => set('apis', isOn ? [...chosen, api] : chosen.filter((it) => it !== api))} />
            ))}
          </div>
        )}
      </section>
    </>
  )
}

/** Which events: whole kinds, or single ones. None chosen are all. */
function EventChoice({ chosen, onChange }: { chosen: string[]; onChange: (events: string[]) => void }) {
  const toggle = (event: string, isOn: boolean) => onChange(isOn ? [...chosen, event] : chosen.filter((it) => it !== event))
  const known = new Set(Object.entries(EVENTS).flatMap(([kind, events]) => [`${kind}.*`, ...events.map((it) => `${kind}.${it}`)]))
  const others = chosen.filter((it) => !known.has(it))
  return (
    <section className="card" aria-label="Events">
      <h2>Which events</h2>
      <p className="muted">{chosen.length === 0 ? 'All events. Choose some to be told only of these.' : 'Only those that are chosen.'}</p>
      <div className="grid">
        {Object.entries(EVENTS).map(([kind, events]) => {
          const all = `${kind}.*`
          const isAll = chosen.includes(all)
          const some = events.filter((it) => chosen.includes(`${kind}.${it}`))
          return (
            <fieldset key={kind} className="stack tight" aria-label={`Events of a ${kind}`}>
              <CheckField label={`${kind}: all`} value={isAll} onChange={(isOn) => onChange([...chosen.filter((it) => !it.startsWith(`${kind}.`)), ...(isOn ? [all] : [])])} />
              <details open={some.length > 0}>
                <summary className="small muted">{isAll ? 'single ones' : some.length > 0 ? `${some.length} of ${events.length}` : 'single ones'}</summary>
                <div className="stack tight folded">
                  {events.map((event) => (
                    <CheckField key={event} label={event} isDisabled={isAll} value={isAll || chosen.includes(`${kind}.${event}`)} onChange={(isOn) => toggle(`${kind}.${event}`, isOn)} />
                  ))}
                </div>
              </details>
            </fieldset>
          )
        })}
      </div>
      {others.length > 0 && <p className="muted">Also chosen, as text: {others.join(', ')}</p>}
    </section>
  )
}

function Delete({ name, onClose }: { name: string; onClose: () => void }) {
  const client = useQueryClient()
  const [, go] = useLocation()
  return (
    <Act
      title={`Delete ${name}?`}
      action="Delete"
      look="danger"
      onClose={onClose}
      run={async () => {
        await call('DELETE', hookPath(name))
        toast(`${name} is deleted`)
        go('/hooks')
        await client.invalidateQueries({ queryKey: ['configuration'] })
      }}
    >
      <p>It gets no further events. A new one of the same name has another secret.</p>
    </Act>
  )
}
