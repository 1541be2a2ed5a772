// Rights: rows of a role and where it holds.
import { useId } from 'react'
import { useApis, useEnvironments } from '../api/apis'
import { usePortals } from '../api/developers'
import type { Right } from '../api/types'
import { Button, IconButton } from '../ui/button'

/** What a role allows, for those who choose one. */
export const ROLES: [Right['role'], string][] = [
  ['viewer', 'reads what is in its scope, without secrets'],
  ['api-owner', 'defines and publishes APIs, but not to protected environments'],
  ['approver', 'decides approvals'],
  ['operator', 'runs environments, gateways, certificates and upstreams'],
  ['portal-admin', 'runs portals, developers and teams'],
  ['auditor', 'reads the audit log, the history and analytics'],
  ['analyst', 'reads and exports analytics'],
  ['read', 'sees everything but secrets'],
  ['write', 'changes configuration'],
  ['admin', 'does everything, users included'],
  ['gateway', 'follows the configuration, for gateways'],
]

export type Kind = 'everything' | 'workspace' | 'environment' | 'api' | 'portal'
export const KINDS: [Kind, string][] = [
  ['everything', 'everything'],
  ['workspace', 'the workspace'],
  ['environment', 'the environment'],
  ['api', 'the API'],
  ['portal', 'the portal'],
]

function scopeOf(right: Right): { kind: Kind; name: string } {
  for (const kind of ['environment', 'api', 'portal'] as const) {
    const name = right[kind]
    if (typeof name === 'string') return { kind, name }
  }
  const workspace = right.workspace ?? '*'
  return workspace === '*' ? { kind: 'everything', name: '' } : { kind: 'workspace', name: workspace }
}

const rightOf = (role: Right['role'], kind: Kind, name: string): Right => (kind === 'everything' ? { role, workspace: '*' } : { role, [kind]: name })

/** A right in words. */
export function rightText(right: Right): string {
  const { kind, name } = scopeOf(right)
  return kind === 'everything' ? `${right.role} everywhere` : `${right.role} in ${kind === 'api' ? 'API' : kind} ${name}`
}

export const rightsText = (rights: readonly Right[]): string => rights.map(rightText).join(', ') || 'no rights'

/** Whether each right says where it holds. */
export const areWhole = (rights: readonly Right[]): boolean =>
  rights.every((it) => {
    const { kind, name } = scopeOf(it)
    return kind === 'everything' || name.trim() !== ''
  })

interface Props {
  label: string
  value: readonly Right[]
  onChange: (rights: Right[]) => void
  /** One that may not be changed. */
  isFixed?: boolean
}

/** The names that are there, to be chosen; a right may name what comes later. */
function Offered({ id, kind }: { id: string; kind: Kind }) {
  const found: Partial<Record<Kind, { name: string }[] | undefined>> = { api: useApis(kind === 'api').data, environment: useEnvironments(kind === 'environment').data, portal: usePortals(kind === 'portal').data }
  return (
    <datalist id={id}>
      {(found[kind] ?? []).map((it) => (
        <option key={it.name} value={it.name} />
      ))}
    </datalist>
  )
}

export function RightsField({ label, value, onChange, isFixed = false }: Props) {
  const id = useId()
  const set = (index: number, right: Right) => onChange(value.map((it, at) => (at === index ? right : it)))
  return (
    <fieldset className="field">
      <legend className="label">{label}</legend>
      <div className="rows">
        {value.map((right, index) => {
          const { kind, name } = scopeOf(right)
          return (
            <div className="right" key={index}>
              <select className="select" aria-label={`Role ${index + 1}`} value={right.role} disabled={isFixed} onChange={(event) => set(index, rightOf(event.target.value as Right['role'], kind, name))}>
                {ROLES.map(([it]) => (
                  <option key={it} value={it}>
                    {it}
                  </option>
                ))}
              </select>
              <select className="select" aria-label={`Scope ${index + 1}`} value={kind} disabled={isFixed} onChange={(event) => set(index, rightOf(right.role, event.target.value as Kind, ''))}>
                {KINDS.map(([it, text]) => (
                  <option key={it} value={it}>
                    {it === 'everything' ? text : `in ${text}`}
                  </option>
                ))}
              </select>
              {kind !== 'everything' && (
                <>
                  <input className="input" list={`${id}-${index}`} autoComplete="off" aria-label={`Name of the scope ${index + 1}`} placeholder={`name of ${KINDS.find(([it]) => it === kind)?.[1] ?? ''}`} value={name} disabled={isFixed} onChange={(event) => set(index, rightOf(right.role, kind, event.target.value))} />
                  <Offered id={`${id}-${index}`} kind={kind} />
                </>
              )}
              {!isFixed && value.length > 1 && <IconButton icon="trash" label={`Remove right ${index + 1}`} onPress={() => onChange(value.filter((_, at) => at !== index))} />}
              <p className="about">{ROLES.find(([it]) => it === right.role)?.[1]}</p>
            </div>
          )
        })}
      </div>
      {!isFixed && (
        <div>
          <Button small icon="plus" onPress={() => onChange([...value, rightOf('viewer', 'everything', '')])}>
            Add a right
          </Button>
        </div>
      )}
    </fieldset>
  )
}
