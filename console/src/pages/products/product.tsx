// One product: what it opens, its plans, and who subscribes.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type Plan, type PlanState, type Product, type Subscription, compact, productPath, productPlanPath, toProduct, useProduct, useProductPlans, useSubscriptions } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Empty, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { EditPlan } from '../apis/plan-form'
import { DeletePlan } from '../apis/delete-plan'
import { PlanCards } from '../apis/plan-cards'
import { Pairs, PublicationLink, State, Waiting } from '../apis/shared'

const CRUMBS = [{ to: '/products', text: 'Products' }]

type Above = { kind: 'state' } | { kind: 'delete' } | { kind: 'delete-plan'; plan: Plan } | { kind: 'plan'; plan: Plan | null } | { kind: 'move'; plan: Plan; to: PlanState; text: string } | null

const isOver = (it: Subscription): boolean => it.state === 'closed' || it.state === 'rejected'

export default function ProductPage() {
  const [, name = ''] = useSegments()
  const [product, plans, subscriptions] = [useProduct(name), useProductPlans(name), useSubscriptions()]
  const [above, setAbove] = useState<Above>(null)
  const refused = useRight('apis:write', 'putProduct')
  if (product.data === undefined) return <Waiting title={name} crumbs={CRUMBS} queries={[product]} />
  const it = product.data
  const all = [...(plans.data ?? [])].sort((a, b) => a.order - b.order || a.name.localeCompare(b.name))
  const own = (subscriptions.data ?? []).filter((one) => one.product === name && !isOver(one))
  const close = () => setAbove(null)
  const isOffered = it.state === 'published'
  const addPlan = (
    <Button look="primary" refused={refused} onPress={() => setAbove({ kind: 'plan', plan: null })}>
      New plan
    </Button>
  )
  return (
    <Page
      title={it.display_name || name}
      about={it.description}
      crumbs={CRUMBS}
      calls={[
        { about: 'Read the product', method: 'GET', path: productPath(name) },
        { about: 'List its plans', method: 'GET', path: `${productPath(name)}/plans` },
        { about: 'Make a plan', method: 'PUT', path: productPlanPath(name, 'gold'), body: { state: 'published', limits: [{ count: 1000, per: 'day' }] } },
      ]}
      actions={
        <>
          <Button look="quiet" icon="trash" refused={refused} onPress={() => setAbove({ kind: 'delete' })}>
            Delete
          </Button>
          <ButtonLink isEdit to={`${toProduct(name)}/edit`} refused={refused}>
            Edit
          </ButtonLink>
          <Button look={isOffered ? 'plain' : 'primary'} refused={refused ?? (Object.keys(it.publications).length === 0 ? 'It opens nothing yet: edit it first.' : null)} onPress={() => setAbove({ kind: 'state' })}>
            {isOffered ? 'Stop offering it' : 'Offer it'}
          </Button>
        </>
      }
    >
      <div className="halves">
        <section className="card" aria-label="About it">
          <h2>About it</h2>
          <Pairs
            pairs={[
              ['Name', <code key="name">{name}</code>],
              ['State', <State key="state" state={it.state} />],
              ['Subscriptions', <Link key="s" href={`/subscriptions?q=${encodeURIComponent(`api:${name}`)}`}>{own.length}</Link>],
              ['Labels', Object.entries(it.labels ?? {}).map(([label, value]) => `${label}: ${value}`).join(', ')],
            ]}
          />
        </section>
        <section className="card" aria-label="What it opens">
          <h2>What it opens</h2>
          {Object.keys(it.publications).length === 0 ? (
            <p className="muted">Nothing yet. Edit it, and choose operations.</p>
          ) : (
            <ul className="lines-list">
              {Object.entries(it.publications).map(([id, operations]) => (
                <li key={id} className="row between">
                  <PublicationLink id={id} />
                  <span className="muted">{operations.length === 0 ? 'all operations' : operations.join(', ')}</span>
                </li>
              ))}
            </ul>
          )}
        </section>
      </div>
      <div className="row between">
        <h2>Plans</h2>
        {addPlan}
      </div>
      {all.length === 0 && plans.data !== undefined ? (
        <div className="table">
          <Empty title="No plans yet" example={`curl -X PUT ${location.origin}${productPlanPath(name, 'gold')} -d '{"state": "published", "limits": [{"count": 1000, "per": "day"}]}'`}>
            <p>Applications subscribe to a plan of the product. Its limits count the calls of all its APIs together.</p>
          </Empty>
        </div>
      ) : (
        <PlanCards
          plans={all}
          refused={refused}
          subscribers={(plan) => <Link href={`/subscriptions?q=${encodeURIComponent(`api:${name} plan:${plan.name}`)}`}>{own.filter((one) => one.plan === plan.name).length}</Link>}
          onEdit={(plan) => setAbove({ kind: 'plan', plan })}
          onDelete={(plan) => setAbove({ kind: 'delete-plan', plan })}
          onMove={(plan, to, text) => setAbove({ kind: 'move', plan, to, text })}
        />
      )}
      {above?.kind === 'plan' && <EditPlan pathOf={(plan) => productPlanPath(name, plan)} operations={[]} securities={['key', 'basic', 'hmac', 'jwt', 'oauth2', 'mtls']} plan={above.plan} known={all} onClose={close} />}
      {above?.kind === 'delete-plan' && <DeletePlan plan={above.plan} path={productPlanPath(name, above.plan.name)} plans={all} count={own.filter((one) => one.plan === above.plan.name).length} onClose={close} />}
      {above?.kind === 'move' && <MovePlan product={name} {...above} count={own.filter((one) => one.plan === above.plan.name).length} onClose={close} />}
      {above?.kind === 'state' && <Offer product={it} count={own.length} onClose={close} />}
      {above?.kind === 'delete' && <DeleteProduct name={name} count={own.length} onClose={close} />}
    </Page>
  )
}

/** Offers a product, or stops it. */
function Offer({ product, count, onClose }: { product: Product; count: number; onClose: () => void }) {
  const isOffered = product.state === 'published'
  const client = useQueryClient()
  return (
    <Act
      title={isOffered ? `Stop offering ${product.name}?` : `Offer ${product.name}?`}
      action={isOffered ? 'Stop offering it' : 'Offer it'}
      look={isOffered ? 'danger' : 'primary'}
      onClose={onClose}
      run={async () => {
        await call('PUT', productPath(product.name), { body: { ...product, state: isOffered ? 'unpublished' : 'published' } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(isOffered ? `${product.name} is not offered any more` : `${product.name} is offered`)
        onClose()
      }}
    >
      {isOffered ? (
        <p>{count === 0 ? 'It has no subscribers.' : `Gateways refuse the keys of its ${countText(count, 'subscription', 'subscriptions')} from then on. The subscriptions stay, and are good again once it is offered.`}</p>
      ) : (
        <p>Its publications ask for a key from then on, unless a version has a plan without one. Callers who show none are answered with 401.</p>
      )}
    </Act>
  )
}

/** A new state of a plan. One that is closed closes its subscriptions. */
function MovePlan({ product, plan, to, text, count, onClose }: { product: string; plan: Plan; to: PlanState; text: string; count: number; onClose: () => void }) {
  const client = useQueryClient()
  return (
    <Act
      title={`${text} ${plan.name}?`}
      action={text}
      look={to === 'closed' ? 'danger' : 'primary'}
      onClose={onClose}
      run={async () => {
        const { conditions_revision: _, ...rest } = plan
        await call('PUT', productPlanPath(product, plan.name), { body: compact({ ...rest, state: to }) })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${plan.name} is ${to}`)
        onClose()
      }}
    >
      {to === 'published' && <p>It is offered from now on.</p>}
      {to === 'deprecated' && <p>It takes no new subscriptions. Those that it has go on.</p>}
      {to === 'closed' && <p>{count === 0 ? 'It has no subscribers.' : `Its ${countText(count, 'subscription is', 'subscriptions are')} closed: their keys stop working at once, for good.`}</p>}
    </Act>
  )
}

function DeleteProduct({ name, count, onClose }: { name: string; count: number; onClose: () => void }) {
  const [, go] = useLocation()
  const client = useQueryClient()
  const why = count > 0 ? `It has ${countText(count, 'subscription', 'subscriptions')}. Close them first.` : null
  return (
    <Act
      title={`Delete ${name}?`}
      action="Delete"
      look="danger"
      refused={why}
      onClose={onClose}
      run={async () => {
        await call('DELETE', productPath(name))
        toast(`${name} is deleted`)
        go('/products')
        await client.invalidateQueries({ queryKey: ['configuration'] })
      }}
    >
      <p>{why ?? 'It goes with its plans. The APIs stay as they are.'}</p>
    </Act>
  )
}
