// Subscribing: an application, a plan, its conditions, and what the provider is told. One page.
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { Button } from '../../ui/button'
import { AreaField } from '../../ui/field'
import { type Typed, Questions, answersOf, begun } from '../../ui/questions'
import type { Fields, Json } from '../../api/types'
import { isOfApplication, wordsOf } from '../../ui/credentials'
import { type App, type ShownKey, type Subscription, useRead, useVersion, useWrite } from '../data'
import { Broken, Loading, Page, SignedIn } from '../frame'
import { PlanFacts } from '../plans'
import { Text } from '../text'
import { KeyShown } from './app-keys'
import { NewApp } from './apps'
import { Form, Said } from './entry'

interface Wanted {
  publication: string
  plan: string
  conditions_revision: number
  request: string
  answers: Fields
}

export default function Subscribe({ api, version: number }: { api: string; version: string }) {
  const version = useVersion(api, number)
  const apps = useRead<{ items: App[] }>('/apps')
  const [query, set] = useSearchParams()
  const [app, chooseApp] = useState('')
  const [placeAt, choosePlace] = useState(0)
  const [agreed, agree] = useState(false)
  const [request, type] = useState('')
  const [typedOf, typeAnswers] = useState<{ plan: string; typed: Typed } | null>(null)
  const [shown, show] = useState<ShownKey | null>(null)
  const subscribe = useWrite<Subscription, Wanted>('POST', () => `/apps/${encodeURIComponent(app || (apps.data?.items[0]?.name ?? ''))}/subscriptions`)
  if (version.error) return <Broken error={version.error} onRetry={() => void version.refetch()} />
  if (apps.error) return <SignedIn error={apps.error} onRetry={() => void apps.refetch()} />
  if (version.data === undefined || apps.data === undefined) return <Loading />
  const plan = version.data.plans.find((it) => it.name === query.get('plan')) ?? version.data.plans.find((it) => it.refused === null)
  const place = version.data.places[placeAt] ?? version.data.places[0]
  const chosen = app || (apps.data.items[0]?.name ?? '')
  if (plan === undefined || place === undefined) {
    return (
      <Page title="Subscribe">
        <p>This version has no plan that you can subscribe to.</p>
      </Page>
    )
  }
  const done = subscribe.data
  const form = plan.form as Json
  const typed = typedOf?.plan === plan.name ? typedOf.typed : begun(form)
  const asksWhatFor = plan.comment === 'required' || (plan.needs_approval && plan.comment !== 'none')
  return (
    <Page title={`Subscribe to ${version.data.title} ${version.data.version}`}>
      {done ? (
        <div className="stack">
          <p className="note" role="status">
            {done.state === 'accepted' ? `The subscription is good.${done.security === 'jwt' ? ' Add a public key on the page of the application.' : ''}` : 'The provider has to accept the subscription. You find it with the application.'}
          </p>
          <div className="row">
            <Link className="button primary" href={`/apps/${encodeURIComponent(chosen)}`}>
              To the application
            </Link>
            <Link className="button" href={`/apis/${encodeURIComponent(api)}/${encodeURIComponent(number)}`}>
              To the reference
            </Link>
          </div>
          {shown && <KeyShown shown={shown} security={plan.security} onClose={() => show(null)} />}
        </div>
      ) : (
        <div className="halves">
          <div className="stack">
            {apps.data.items.length === 0 ? (
              <section className="stack" aria-label="Application">
                <h2>First, an application</h2>
                <NewApp onMade={(it) => chooseApp(it.name)} />
              </section>
            ) : (
              <Form
                label="Subscribe"
                submit="Subscribe"
                isBusy={subscribe.isPending}
                onSubmit={() =>
                  subscribe.mutate(
                    { publication: place.publication, plan: plan.name, conditions_revision: agreed ? plan.conditions_revision : 0, request: asksWhatFor ? request : '', answers: answersOf(form, typed) },
                    { onSuccess: (made) => made.key && show(made.key) },
                  )
                }
              >
                <label className="field">
                  <span className="label">Application</span>
                  <select className="select" value={chosen} onChange={(event) => chooseApp(event.target.value)}>
                    {apps.data.items.map((it) => (
                      <option key={it.name} value={it.name}>
                        {it.title}
                        {it.team ? ` (team ${it.team_name})` : ''}
                      </option>
                    ))}
                  </select>
                </label>
                <label className="field">
                  <span className="label">Plan</span>
                  <select className="select" value={plan.name} onChange={(event) => set({ plan: event.target.value }, { replace: true })}>
                    {version.data.plans.map((it) => (
                      <option key={it.name} value={it.name} disabled={it.refused !== null}>
                        {it.title}
                        {it.refused ? `: ${it.refused}` : ''}
                      </option>
                    ))}
                  </select>
                </label>
                {version.data.places.length > 1 && (
                  <label className="field">
                    <span className="label">Environment</span>
                    <select className="select" value={placeAt} onChange={(event) => choosePlace(Number(event.target.value))}>
                      {version.data.places.map((it, index) => (
                        <option key={it.publication} value={index}>
                          {it.title}
                        </option>
                      ))}
                    </select>
                  </label>
                )}
                <Questions form={form} typed={typed} onChange={(next) => typeAnswers({ plan: plan.name, typed: next })} />
                {asksWhatFor && <AreaField label="What is it for?" rows={3} value={request} onChange={type} isRequired={plan.comment === 'required'} about={plan.needs_approval ? 'The provider reads this before accepting.' : 'The provider reads this.'} />}
                {plan.conditions.length > 0 && (
                  <div className="nested">
                    <Text nodes={plan.conditions} />
                    <label className="choice">
                      <input type="checkbox" checked={agreed} onChange={(event) => agree(event.target.checked)} /> I agree to these conditions
                    </label>
                  </div>
                )}
                {isOfApplication(plan.security) && (
                  <p className="muted">
                    This plan identifies the application by its {wordsOf(plan.security).title.toLowerCase()}: <Link href={`/apps/${encodeURIComponent(chosen)}/settings`}>enter it in the settings</Link>.
                  </p>
                )}
                <Said error={subscribe.error} />
              </Form>
            )}
          </div>
          <div className="card">
            <PlanFacts plan={plan} />
          </div>
        </div>
      )}
      {done && !shown && done.key && (
        <div>
          <Button onPress={() => done.key && show(done.key)}>Show the key once more</Button>
        </div>
      )}
    </Page>
  )
}
