// One application: what it subscribes to, and a way to subscribe it to more.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type Application, type Credential, type Plan, type Subscription, asFields, compact, partsOf, useApplication, usePlans, useProductPlans, useProducts, usePublications, useSubscriptions } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { readVersion } from '../../form/send'
import { useVersioned } from '../../form/versioned'
import { Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { certificatesIn } from '../../ui/certificates'
import { wordsOf } from '../../ui/credentials'
import { AreaField, CheckField, ChoiceField, SelectField, TextField } from '../../ui/field'
import { type Typed, Questions, answersOf, begun, unanswered } from '../../ui/questions'
import { Time } from '../../ui/time'
import { toast } from '../../ui/toast'
import { applicationPath } from './applications'
import { CredentialShown } from './credential-shown'
import { Pairs, State, TargetLink, Waiting, limitText, targetText } from './shared'
import { toSubscription } from './subscriptions'

const CRUMBS = [{ to: '/applications', text: 'Applications' }]

export default function ApplicationPage() {
  const [, name = ''] = useSegments()
  const [application, subscriptions] = [useApplication(name), useSubscriptions()]
  const [above, setAbove] = useState<'subscribe' | 'edit' | 'delete' | { made: Credential } | null>(null)
  const refused = useRight('subscriptions:write', 'putApplication')
  const subscribing = useRight('subscriptions:write', 'subscribe')
  if (application.data === undefined) return <Waiting title={name} crumbs={CRUMBS} queries={[application]} />
  const own = (subscriptions.data ?? []).filter((it) => it.application === name)
  const close = () => setAbove(null)
  return (
    <Page
      title={application.data.display_name || name}
      about={application.data.description}
      crumbs={CRUMBS}
      calls={[
        { about: 'Read the application', method: 'GET', path: applicationPath(name) },
        { about: 'Subscribe it', method: 'POST', path: '/api/v1/subscriptions', body: { application: name, publication: 'API/VERSION/ENVIRONMENT', plan: 'PLAN' } },
      ]}
      actions={
        <>
          <Button look="quiet" icon="trash" refused={refused} onPress={() => setAbove('delete')}>
            Delete
          </Button>
          <Button isEdit refused={refused} onPress={() => setAbove('edit')}>
            Edit
          </Button>
          <Button look="primary" refused={subscribing ?? (application.data.archived ? 'It is archived: it takes no new subscriptions.' : null)} onPress={() => setAbove('subscribe')}>
            Subscribe
          </Button>
        </>
      }
    >
      <section className="card" aria-label="About it">
        <Pairs
          pairs={[
            ['Name', <code key="name">{name}</code>],
            ['Owner', application.data.owner],
            ['Client id', application.data.client_id && <code key="client">{application.data.client_id}</code>],
            ['Certificates', application.data.certificates?.length],
            ['State', application.data.archived ? 'archived' : 'active'],
          ]}
        />
      </section>
      <section className="card flush" aria-label="Subscriptions">
        <div className="head2">
          <h2>Subscriptions</h2>
        </div>
        {own.length === 0 ? (
          <p className="empty muted">It subscribes to nothing yet. A subscription gives it a key for one API.</p>
        ) : (
          <div className="wide">
            <table className="plain stacked" aria-label={`Subscriptions of ${name}`}>
              <thead>
                <tr>
                  <th scope="col">API</th>
                  <th scope="col">Plan</th>
                  <th scope="col">State</th>
                  <th scope="col">Since</th>
                  <th scope="col">
                    <span className="sr">Open</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {own.map((it) => (
                  <tr key={it.id}>
                    <td>
                      <TargetLink of={it} />
                    </td>
                    <td>{it.plan}</td>
                    <td>
                      <State state={it.state} />
                    </td>
                    <td>
                      <Time at={it.created} />
                    </td>
                    <td>
                      <Link href={toSubscription(it.id)} aria-label={`Keys for ${targetText(it)}`}>
                        Keys
                      </Link>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      {above === 'subscribe' && <Subscribe application={name} own={own} onClose={close} onMade={(made) => (made === undefined ? close() : setAbove({ made }))} />}
      {above === 'edit' && <EditApplication application={application.data} onClose={close} />}
      {above === 'delete' && <DeleteApplication name={name} own={own} onClose={close} />}
      {typeof above === 'object' && above !== null && (
        <CredentialShown title={`The ${wordsOf(above.made.kind).secret.toLowerCase()} of ${name}`} made={above.made} onClose={close} />
      )}
    </Page>
  )
}

/** What values of products begin with, among those of publications. */
const PRODUCT = 'product: '

/** Whether subscribers say what they want a plan for. */
const asksWhatFor = (plan: Plan): boolean => plan.comment === 'required' || (plan.validation === 'manual' && plan.comment !== 'none')

interface SubscribeProps {
  application: string
  own: Subscription[]
  onClose: () => void
  /** With what was made for it, if the subscription is accepted at once. */
  onMade: (made: Credential | undefined) => void
}

function Subscribe({ application, own, onClose, onMade }: SubscribeProps) {
  const [publications, products] = [usePublications(), useProducts()]
  const offered = (publications.data ?? []).filter((it) => it.state === 'live' && !it.retired)
  const bundles = (products.data ?? []).filter((it) => it.state === 'published')
  const targets = [...offered.map((it) => [`${it.api}/${it.version}/${it.environment}`, `${it.api} · ${it.version} · ${it.environment}`] as const), ...bundles.map((it) => [`${PRODUCT}${it.name}`, `${it.display_name || it.name} (product)`] as const)]
  const [chosen, setChosen] = useState('')
  const target = chosen || (targets[0]?.[0] ?? '')
  const product = target.startsWith(PRODUCT) ? target.slice(PRODUCT.length) : ''
  const publication = product === '' ? target : ''
  const [api, version] = partsOf(publication)
  const [ofVersion, ofProduct] = [usePlans(api, version), useProductPlans(product)]
  const plans = product === '' ? ofVersion : ofProduct
  const open = (plans.data ?? []).filter((it) => it.state === 'published' && it.security !== 'keyless').sort((a, b) => a.order - b.order)
  const [planName, setPlan] = useState('')
  const plan = open.find((it) => it.name === planName) ?? open[0]
  const [request, setRequest] = useState('')
  const [isAgreed, setAgreed] = useState(false)
  const [typedOf, setTyped] = useState<{ plan: string; typed: Typed } | null>(null)
  const planId = `${target} ${plan?.name ?? ''}`
  const typed = typedOf?.plan === planId ? typedOf.typed : begun(plan?.form)
  const openQuestion = unanswered(plan?.form, typed)
  const client = useQueryClient()
  const known = own.find((it) => it.publication === publication && (it.product ?? '') === product && it.plan === plan?.name && it.state !== 'closed' && it.state !== 'rejected')
  const refused =
    target === '' ? 'Nothing is published yet.' : !plan ? 'It offers no plan that is published.' : known ? 'It has this plan already.' : plan.conditions && !isAgreed ? 'The conditions have to be accepted first.' : openQuestion !== null ? `“${openQuestion}” has to be answered first.` : plan.comment === 'required' && request.trim() === '' ? 'Say what it is for first.' : null
  return (
    <Act
      title={`Subscribe ${application}`}
      action="Subscribe"
      refused={refused}
      onClose={onClose}
      run={async () => {
        const made = await call<Subscription & { credential?: Credential }>('POST', '/api/v1/subscriptions', {
          body: { application, ...(product === '' ? { publication } : { product }), plan: plan?.name, ...(request === '' ? {} : { request }), ...(plan?.form ? { answers: answersOf(plan.form, typed) } : {}), ...(plan?.conditions_revision ? { conditions_revision: plan.conditions_revision } : {}) },
        })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(made.data.state === 'pending' ? 'The subscription waits for a decision' : `${application} may call ${targetText(made.data)}`)
        onMade(made.data.credential)
      }}
    >
      <SelectField label="API" value={target} onChange={setChosen} options={targets} />
      {open.length > 0 ? (
        <ChoiceField
          label="Plan"
          value={plan?.name ?? ''}
          onChange={setPlan}
          options={open.map((it) => ({ value: it.name, text: it.display_name || it.name, about: [limitText(it), it.validation === 'manual' ? 'somebody has to accept' : '', it.price].filter(Boolean).join(' · ') }))}
        />
      ) : (
        target !== '' && plans.data && <p className="note warn">It offers no plan that is published. Make one on its page.</p>
      )}
      {plan?.conditions && (
        <>
          <AreaField label="Conditions" value={plan.conditions} onChange={() => undefined} isDisabled rows={5} />
          <CheckField label={`I accept the conditions (revision ${plan.conditions_revision ?? 1})`} value={isAgreed} onChange={setAgreed} />
        </>
      )}
      <Questions form={plan?.form} typed={typed} onChange={(next) => setTyped({ plan: planId, typed: next })} />
      {plan && asksWhatFor(plan) && <TextField label="What it is for" value={request} onChange={setRequest} about="Who decides reads it." isRequired={plan.comment === 'required'} />}
    </Act>
  )
}

function EditApplication({ application, onClose }: { application: Application; onClose: () => void }) {
  const [fields, setFields] = useState(application)
  const [pem, setPem] = useState((application.certificates ?? []).join(''))
  const client = useQueryClient()
  const { put, choice } = useVersioned({
    opened: compact(application),
    read: () => readVersion<Application>(applicationPath(application.name), (it) => asFields(compact(it))),
    onChosen: (value) => {
      const chosen = value as unknown as Application
      setFields(chosen)
      setPem((chosen.certificates ?? []).join(''))
    },
  })
  return (
    <Act
      title={`Edit ${application.name}`}
      action="Save"
      onClose={onClose}
      run={async () => {
        await put(applicationPath(application.name), compact(pem === (fields.certificates ?? []).join('') ? fields : { ...fields, certificates: certificatesIn(pem) }))
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${application.name} is saved`)
        onClose()
      }}
    >
      <TextField label="Name for people" value={fields.display_name ?? ''} onChange={(value) => setFields({ ...fields, display_name: value })} />
      <TextField label="What it does" value={fields.description ?? ''} onChange={(value) => setFields({ ...fields, description: value })} />
      <TextField label="Owner" value={fields.owner ?? ''} onChange={(value) => setFields({ ...fields, owner: value })} />
      <TextField label="Client id" value={fields.client_id ?? ''} onChange={(value) => setFields({ ...fields, client_id: value })} about="What it is called at authorization servers. Plans with access tokens know it by that." />
      <AreaField label="Certificates, in PEM" value={pem} onChange={setPem} isMono rows={4} placeholder="-----BEGIN CERTIFICATE-----" about="Plans with client certificates know it by them. Up to ten, one after the other." />
      <CheckField label="Archived" value={fields.archived === true} onChange={(value) => setFields({ ...fields, archived: value })} about="It takes no new subscriptions. Those that it has go on." />
      {choice}
    </Act>
  )
}

function DeleteApplication({ name, own, onClose }: { name: string; own: Subscription[]; onClose: () => void }) {
  const [, go] = useLocation()
  const client = useQueryClient()
  return (
    <Act
      title={`Delete ${name}?`}
      action="Delete"
      look="danger"
      refused={own.length > 0 ? 'It has subscriptions. Archive it instead.' : null}
      onClose={onClose}
      run={async () => {
        await call('DELETE', applicationPath(name))
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${name} is deleted`)
        go('/applications')
      }}
    >
      <p>{own.length > 0 ? 'An application with subscriptions is not deleted, so that the history stays readable. Archive it: it takes no new ones.' : 'It subscribes to nothing.'}</p>
    </Act>
  )
}
