// What is said of an application, in the form of a new one and in its settings.
import { type TeamList, useRead } from '../data'
import { Field } from './entry'

export interface AppDraft {
  title: string
  description: string
  /** The team that it belongs to; empty: the developer. */
  team: string
}

/** What the calls that make and change an application take. */
export const bodyOf = ({ title, description, team }: AppDraft) => ({ title, description, team: team || null })

interface Props {
  value: AppDraft
  onChange: (value: AppDraft) => void
  error: unknown
}

export function AppFields({ value, onChange, error }: Props) {
  const teams = useRead<TeamList>('/teams')
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
    </>
  )
}
