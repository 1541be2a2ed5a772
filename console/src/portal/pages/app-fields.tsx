// What is said of an application, in the form of a new one and in its settings.
import { useState } from 'react'
import { certificatesIn } from '../../ui/certificates'
import { AreaField } from '../../ui/field'
import { type TeamList, useRead } from '../data'
import { Field } from './entry'

export interface AppDraft {
  title: string
  description: string
  /** The team that it belongs to; empty: the developer. */
  team: string
  /** What plans know it by that give out no keys. */
  client: string
  /** Certificates in PEM, one after the other. */
  certificates: string
}

/** An application of which nothing is known yet. */
export const NOTHING: AppDraft = { title: '', description: '', team: '', client: '', certificates: '' }

/** The fields that calls name. */
export const NAMED = ['title', 'client_id']

/** What the calls that make and change an application take. What is not changed is left out, and so stays as others have written it. */
export const bodyOf = ({ title, description, team, client, certificates }: AppDraft, known = NOTHING) => ({
  title,
  description,
  team: team || null,
  ...(client === known.client ? {} : { client_id: client }),
  ...(certificates === known.certificates ? {} : { certificates: certificatesIn(certificates) }),
})

/** What the fields are called. */
const WORDS: Record<keyof AppDraft, string> = { title: 'title', description: 'description', team: 'owner', client: 'client id', certificates: 'certificates' }

/** An edit over what somebody else has stored since it began. What only they changed is taken; `both`: what the two changed, in words. */
export function mergedDraft(begun: AppDraft, theirs: AppDraft, mine: AppDraft): { draft: AppDraft; both: string[] } {
  const names = Object.keys(begun) as (keyof AppDraft)[]
  const taken = names.filter((it) => mine[it] === begun[it])
  const both = names.filter((it) => !taken.includes(it) && theirs[it] !== begun[it] && theirs[it] !== mine[it])
  const said = (it: keyof AppDraft) => (it === 'team' || it === 'certificates' ? WORDS[it] : `${WORDS[it]}, which is “${theirs[it]}” now`)
  return { draft: { ...mine, ...Object.fromEntries(taken.map((it) => [it, theirs[it]])) }, both: both.map(said) }
}

interface Props {
  value: AppDraft
  onChange: (value: AppDraft) => void
  error: unknown
}

export function AppFields({ value, onChange, error }: Props) {
  const teams = useRead<TeamList>('/teams')
  const [isOpen] = useState(value.client !== '' || value.certificates !== '')
  return (
    <>
      <Field label="Title" name="title" value={value.title} onChange={(title) => onChange({ ...value, title })} error={error} />
      <label className="field">
        <span className="label">What it does</span>
        <textarea className="input" rows={3} value={value.description} onChange={(event) => onChange({ ...value, description: event.target.value })} />
      </label>
      {((teams.data?.items.length ?? 0) > 0 || value.team !== '') && (
        <label className="field">
          <span className="label">Belongs to</span>
          <select className="select" value={value.team} onChange={(event) => onChange({ ...value, team: event.target.value })}>
            <option value="">Me</option>
            {teams.data?.items.map((it) => (
              <option key={it.id} value={it.id}>
                Team {it.name}
              </option>
            ))}
          </select>
          <span className="about">All members of a team see its applications and keep them when a member leaves.</span>
        </label>
      )}
      <details open={isOpen}>
        <summary>For plans with access tokens or certificates</summary>
        <div className="stack folded">
          <Field label="Client id" name="client_id" isOptional value={value.client} onChange={(client) => onChange({ ...value, client })} about="What the application is called at the authorization server. Plans with access tokens know it by that." error={error} />
          <AreaField label="Certificates, in PEM" rows={4} isMono value={value.certificates} onChange={(certificates) => onChange({ ...value, certificates })} placeholder="-----BEGIN CERTIFICATE-----" about="Plans with client certificates know it by them. Up to ten, one after the other, without private keys." />
        </div>
      </details>
    </>
  )
}
