// The form of a plan, of a version or of a product.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Operation, type Plan, type PlanSecurity, asFields, compact } from '../../api/apis'
import { readVersion } from '../../form/send'
import { useVersioned } from '../../form/versioned'
import { Act } from '../../ui/act'
import { Button, IconButton } from '../../ui/button'
import { AreaField, ChoiceField, NumberBox, SelectField, TextField } from '../../ui/field'
import { countText, duration } from '../../ui/time'
import { toast } from '../../ui/toast'
import { PlanQuestions } from './plan-questions'

const PERIODS = ['second', 'minute', 'hour', 'day', 'week', 'month']
const HOUR = 3600

interface Props {
  /** The call of the plan of a name. */
  pathOf: (name: string) => string
  /** The operations that a plan may open; none: it opens those of its product. */
  operations: Operation[]
  /** How callers of its plans may be recognised. */
  securities: readonly PlanSecurity[]
  plan: Plan | null
  known: Plan[]
  onClose: () => void
}

const SECURITIES: Record<PlanSecurity, { text: string; about: string }> = {
  key: { text: 'An API key', about: 'One for each subscription. Weir makes it and shows it once.' },
  jwt: { text: 'A token that they sign', about: 'A JSON Web Token. The subscriber gives Weir the public key; Weir keeps no secret.' },
  basic: { text: 'A user name and a password', about: 'One pair for each subscription. Weir makes it and shows the password once.' },
  hmac: { text: 'A signature', about: 'Made with a secret that Weir makes and shows once. It has to be kept, so the store must be sealed (--store-key).' },
  oauth2: { text: 'A token of an authorization server', about: 'The subscriber is the application with the token’s client id.' },
  mtls: { text: 'A client certificate', about: 'The subscriber is the application that has the certificate.' },
  keyless: { text: 'Nothing', about: 'Everybody may call.' },
}

/** The revision of the conditions is counted by the server. */
function bodyOf({ conditions_revision: _, ...rest }: Plan) {
  return compact(rest)
}

/** Whose tokens a plan takes. What this does not show stays as it is. */
function OauthFields({ settings, onChange, isKept }: { settings: NonNullable<Plan['oauth2']>; onChange: (settings: NonNullable<Plan['oauth2']>) => void; isKept: boolean }) {
  const asks = settings.check === 'introspection'
  return (
    <>
      <TextField label="Authorization server" value={settings.discovery} onChange={(discovery) => onChange({ ...settings, discovery })} placeholder="https://id.example.com" isRequired />
      <ChoiceField
        label="Tokens are checked"
        value={settings.check ?? 'jwks'}
        onChange={(check) => onChange({ ...settings, check })}
        options={[
          { value: 'jwks', text: 'By the server’s keys' },
          { value: 'introspection', text: 'By asking the server' },
        ]}
      />
      {asks && <TextField label="Client id of the gateway" value={settings.client_id ?? ''} onChange={(client_id) => onChange({ ...settings, client_id })} isRequired />}
      {asks && <TextField label="Secret of the gateway" value={settings.client_secret ?? ''} onChange={(client_secret) => onChange({ ...settings, client_secret })} about={isKept ? 'Left empty, it stays as it is.' : undefined} />}
    </>
  )
}

export function EditPlan({ pathOf, operations, securities, plan, known, onClose }: Props) {
  const [fields, setFields] = useState<Plan>(
    plan ?? { name: '', security: 'key', validation: 'auto', order: known.length, limits: [{ count: 1000, per: 'day' }], state: 'staging' },
  )
  const client = useQueryClient()
  const { put, choice } = useVersioned({
    opened: plan === null ? null : bodyOf(plan),
    read: () => readVersion<Plan>(pathOf(plan?.name ?? ''), (it) => asFields(bodyOf(it))),
    onChosen: (value) => setFields(value as unknown as Plan),
  })
  const set = <K extends keyof Plan>(name: K, value: Plan[K]) => setFields({ ...fields, [name]: value })
  const limits = fields.limits ?? []
  const setLimit = (index: number, more: Partial<(typeof limits)[number]>) => set('limits', limits.map((it, at) => (at === index ? { ...it, ...more } : it)))
  const isTaken = plan === null && known.some((it) => it.name === fields.name)
  const opened = new Set(fields.operations ?? [])
  // An emptied limit is not one of 0 calls.
  const emptied = limits.findIndex((it) => Number.isNaN(it.count))
  return (
    <Act
      title={plan ? `Edit ${plan.name}` : 'New plan'}
      action={plan ? 'Save' : 'Create'}
      wide
      refused={fields.name === '' ? 'It needs a name.' : isTaken ? 'A plan of this name exists.' : emptied >= 0 ? `Limit ${emptied + 1} needs a number of calls.` : null}
      onClose={onClose}
      run={async () => {
        await put(pathOf(fields.name), bodyOf(fields))
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${fields.name} is saved`)
        onClose()
      }}
    >
      <div className="halves">
        <div className="stack">
          {plan === null && <TextField label="Name" value={fields.name} onChange={(value) => set('name', value)} placeholder="gold" isRequired autoFocus wrong={isTaken ? 'A plan of this name exists.' : null} />}
          <TextField label="Name for people" value={fields.display_name ?? ''} onChange={(value) => set('display_name', value)} />
          <TextField label="What it offers" value={fields.description ?? ''} onChange={(value) => set('description', value)} />
          <TextField label="Price" value={fields.price ?? ''} onChange={(value) => set('price', value)} placeholder="free" about="A text for people. Weir sends no bills." />
          <ChoiceField
            label="Callers show"
            value={fields.security}
            onChange={(value) => setFields({ ...fields, security: value, oauth2: value === 'oauth2' ? { discovery: '' } : undefined, hmac: undefined, mtls: undefined, ...(value === 'keyless' ? { form: undefined } : {}) })}
            options={securities.map((value) => ({ value, ...SECURITIES[value] }))}
          />
          {fields.security === 'oauth2' && <OauthFields settings={fields.oauth2 ?? { discovery: '' }} onChange={(value) => set('oauth2', value)} isKept={plan?.oauth2?.check === 'introspection'} />}
          {plan === null && (
            <ChoiceField
              label="State"
              value={fields.state}
              onChange={(value) => set('state', value)}
              options={[
                { value: 'staging', text: 'Staging', about: 'Not offered yet.' },
                { value: 'published', text: 'Published', about: 'Offered at once.' },
              ]}
            />
          )}
        </div>
        <div className="stack">
          <fieldset className="field">
            <legend className="label">Limits</legend>
            <p className="about">All of them have to allow a call.</p>
            <div className="rows">
              {limits.map((it, index) => (
                <div className="row" key={index}>
                  <NumberBox min={0} aria-label={`Calls of limit ${index + 1}`} required value={Number.isNaN(it.count) ? undefined : it.count} aria-invalid={Number.isNaN(it.count) || undefined} onChange={(count) => setLimit(index, { count: count === undefined ? Number.NaN : Math.trunc(count) })} />
                  <span className="muted">per</span>
                  <select className="select" aria-label={`Window of limit ${index + 1}`} value={it.per} onChange={(event) => setLimit(index, { per: event.target.value })}>
                    {PERIODS.map((period) => (
                      <option key={period}>{period}</option>
                    ))}
                  </select>
                  <IconButton small icon="trash" label={`Remove limit ${index + 1}`} onPress={() => set('limits', limits.filter((_, at) => at !== index))} />
                </div>
              ))}
              {emptied >= 0 && (
                <p className="wrong" role="alert">
                  Limit {emptied + 1} needs a number of calls.
                </p>
              )}
              <div>
                <Button small icon="plus" onPress={() => set('limits', [...limits, { count: 10, per: 'second' }])}>
                  Add a limit
                </Button>
              </div>
            </div>
          </fieldset>
          <ChoiceField
            label="Subscriptions are accepted"
            value={fields.validation}
            onChange={(value) => set('validation', value)}
            options={[
              { value: 'auto', text: 'At once' },
              { value: 'manual', text: 'By somebody', about: 'They wait on the page of subscriptions.' },
            ]}
          />
          <SelectField
            label="After a rotation the old key stays good for"
            value={fields.overlap === undefined || fields.overlap === null ? '' : String(fields.overlap)}
            onChange={(value) => set('overlap', value === '' ? null : Number(value))}
            options={[
              ['', '2 hours'],
              ['0', 'not at all'],
              [String(24 * HOUR), '1 day'],
              [String(7 * 24 * HOUR), '7 days'],
              ...(fields.overlap && ![0, 24 * HOUR, 7 * 24 * HOUR].includes(fields.overlap) ? [[String(fields.overlap), duration(fields.overlap * 1000)] as const] : []),
            ]}
          />
          <AreaField label="Conditions" value={fields.conditions ?? ''} onChange={(value) => set('conditions', value)} about="Subscribers accept them. A change asks new subscribers again." />
          {fields.security !== 'keyless' && <PlanQuestions form={fields.form} onChange={(form) => set('form', form)} />}
          {operations.length > 0 && (
            <details>
              <summary>{opened.size === 0 ? 'Opens all operations' : `Opens ${countText(opened.size, 'operation', 'operations')}`}</summary>
              <div className="rows scrolled" role="group" aria-label="Operations that it opens">
                {operations.map((it) => (
                  <label className="choice" key={it.id}>
                    <input
                      type="checkbox"
                      checked={opened.has(it.id)}
                      onChange={(event) => set('operations', event.target.checked ? [...opened, it.id] : [...opened].filter((id) => id !== it.id))}
                    />
                    <code>
                      {it.method.toUpperCase()} {it.path}
                    </code>
                  </label>
                ))}
              </div>
            </details>
          )}
        </div>
      </div>
      {choice}
    </Act>
  )
}
