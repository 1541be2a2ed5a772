// The steps of the publish wizard that only show and ask: where to, which content, whether to force it, and what came of it.
import type { ReactNode } from 'react'
import { useLocation } from 'wouter'
import { type Environment, type Outcome, type Publication, type Revision, type VersionDetail, toPublication } from '../../api/apis'
import { Failure } from '../../shell/page'
import { Button, ButtonLink } from '../../ui/button'
import { CheckField, ChoiceField, SelectField } from '../../ui/field'
import type { Check, StepState } from './publish-check'
import { RolledOut, StepList } from './publish-parts'

/** What was published, and where it goes on. */
export function Published({ outcome, api, name, environment, base, first }: { outcome: Outcome; api: string; name: string; environment: Environment | undefined; base: string; first: string | undefined }) {
  const [, go] = useLocation()
  const to = environment?.name ?? ''
  const server = environment?.base_urls?.[0] ?? 'http://127.0.0.1:8000'
  return (
    <section className="card" aria-label="Published">
      <h2>
        r{outcome.revision} is published to {to}
      </h2>
      <p>
        Commit <a href={`/ui/history/${outcome.commit}`}>r{outcome.commit}</a>. It can be taken back on the publication’s page, at any time.
      </p>
      <RolledOut environment={to} commit={outcome.commit ?? 0} />
      <div className="row">
        <Button look="primary" onPress={() => go(toPublication(api, name, to))}>
          To the publication
        </Button>
        <ButtonLink to={`/explain?url=${encodeURIComponent(`${server}${base}${first ?? '/'}`)}`}>Try a call</ButtonLink>
      </div>
    </section>
  )
}

/** The environment, and what stands below it. */
export function Target({ environments, publications, to, onTo, children }: { environments: Environment[]; publications: Publication[]; to: string; onTo: (environment: string) => void; children: ReactNode }) {
  const options = environments.map((it) => {
    const here = publications.find((one) => one.environment === it.name)
    return { value: it.name, text: it.display_name || it.name, about: [here ? `serves r${here.revision}` : 'nothing of it yet', it.protected ? 'protected' : ''].filter(Boolean).join(', ') }
  })
  return (
    <li className="card" aria-label="Target">
      <h2>1. Where to</h2>
      {environments.length === 0 ? (
        <div className="row">
          <p>There is no environment yet.</p>
          <ButtonLink to="/environments">Environments</ButtonLink>
        </div>
      ) : (
        <ChoiceField label="Environment" value={to} onChange={onTo} options={options} />
      )}
      {children}
    </li>
  )
}

/** The draft, or one of the revisions. */
export function Content({ version, revisions, revision, onChange }: { version: VersionDetail; revisions: Revision[]; revision: number | null; onChange: (revision: string | null) => void }) {
  const kept = [...revisions].reverse().map((it) => [String(it.number), `r${it.number} ${it.hash.slice(0, 8)} ${it.note ?? ''}`] as const)
  return (
    <SelectField
      label="Content"
      value={revision === null ? '' : String(revision)}
      onChange={(value) => onChange(value === '' ? null : value)}
      options={[['', `the draft (${version.draft.state.replaceAll('-', ' ')})`], ...kept]}
    />
  )
}

export function Outdated() {
  return (
    <div className="note warn" role="status">
      <strong>A newer version exists</strong>
      <span>The addresses were changed since you began. Publishing shows both side by side.</span>
    </div>
  )
}

/** What every step of the server says, and what stands below it. */
export function Checked({ check, steps, missing, children }: { check: Check; steps: StepState[]; missing: string[]; children: ReactNode }) {
  return (
    <li className="card" aria-label="Check">
      <div className="head2">
        <h2>3. What every step says</h2>
        <span role="status" className="muted small">
          {missing.length > 0 ? `Waiting for the address of ${missing.join(', ')}` : check.isChecking ? 'Checking' : check.outcome ? 'Checked: nothing is stored yet' : ''}
        </span>
      </div>
      {check.failure && <Failure error={check.failure} />}
      <StepList steps={steps} />
      {children}
    </li>
  )
}

/** Whether it is published although callers break, or others lose calls. */
export function Force({ outcome, value, onChange }: { outcome: Outcome | null; value: boolean; onChange: (value: boolean) => void }) {
  return (
    <CheckField
      label={outcome?.breaking ? 'Publish although callers break' : 'Publish although others take these calls'}
      value={value}
      onChange={onChange}
      about={outcome?.breaking ? 'A new version beside this one breaks no caller. The history notes that it was forced.' : 'The history notes that it was forced.'}
    />
  )
}

/** The last step: what it asks, and its button. */
export function Commit({ action, error, children }: { action: string; error: unknown; children: ReactNode }) {
  return (
    <li className="card" aria-label="Commit">
      <h2>4. {action}</h2>
      {children}
      {error !== null && <Failure error={error} />}
    </li>
  )
}
