// Deleting a document: what goes with it, what needs it, and what of that goes in the same commit, if somebody wants it so.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { components } from '../../generated/api'
import { type Planned, commit, undo } from '../api/changes'
import { call, get } from '../api/client'
import { type Document, documentPath } from '../api/hooks'
import type { Fields } from '../api/types'
import { type Kind, kindOf, list, nameOf, stepName, words } from '../kinds'
import { isMap } from '../form/path'
import { Failure } from '../shell/page'
import { Act } from '../ui/act'
import { countText } from '../ui/time'
import { toast } from '../ui/toast'
import { Effects, movesCalls } from './effects'

type Dependent = components['schemas']['Dependent']

/** Dependents that are named at once. */
const SHOWN = 20

/** Fields whose documents are of no use without what they name: a route without its service leads nowhere. */
const WHOLLY = new Set(['service', 'upstream'])

/** Whether it may go together with what it needs. Users of a plugin, and documents of which only a part needs something, are more than that. */
const mayGo = (it: Dependent): boolean => !it.owned_by && !it.part && WHOLLY.has(it.field)

const pathOf = ({ kind, name }: Pick<Dependent, 'kind' | 'name'>) => `/${kind}/${encodeURIComponent(name)}`

export function Delete({ kind, name, document, onClose }: { kind: Kind; name: string; document: Document; onClose: () => void }) {
  const [isTogether, setTogether] = useState(false)
  const found = useQuery({
    queryKey: ['configuration', 'dependents', kind.path, name],
    queryFn: async ({ signal }) => (await get<{ items: Dependent[] }>(`${documentPath(kind.path, name)}/dependents`, {}, signal)).items,
    staleTime: 0,
  })
  const dependents = found.data ?? []
  const isPossible = dependents.every(mayGo)
  const all = [{ kind: kind.path, name }, ...(isTogether ? dependents : [])]
  const isReady = found.data !== undefined && (dependents.length === 0 || (isPossible && isTogether))
  const trial = useTrial(all, isReady)
  const [, go] = useLocation()
  const client = useQueryClient()
  const run = async () => {
    const planned: Planned[] = [{ kind: kind.path, name, before: document.data, tag: document.tag, after: null }]
    for (const it of all.slice(1)) {
      const read = await call<Fields>('GET', documentPath(it.kind, it.name))
      planned.push({ kind: it.kind, name: it.name, before: read.data, tag: read.tag, after: null })
    }
    const what = planned.length === 1 ? name : `${name} and ${countText(planned.length - 1, 'document', 'documents')}`
    const made = await commit(planned, `Delete ${what}`)
    const verb = planned.length === 1 ? 'is' : 'are'
    toast(`${what} ${verb} deleted`, {
      ...(made.revision === null ? {} : { link: { to: `/history/${made.revision}`, text: `r${made.revision}` } }),
      action: {
        text: 'Undo',
        run: () =>
          void undo(planned, made, `Undo: delete ${what}`)
            .then(async () => {
              await client.invalidateQueries({ queryKey: ['configuration'] })
              toast(`${what} ${verb} back`, { link: { to: pathOf({ kind: kind.path, name }), text: 'Open' } })
            })
            .catch((wrong: unknown) => toast(wrong instanceof Error ? wrong.message : String(wrong), { isBad: true })),
      },
    })
    await client.invalidateQueries({ queryKey: ['configuration'] })
    go(`/${kind.path}`)
  }
  const refused =
    found.data === undefined
      ? 'It is being looked up what needs it.'
      : !isPossible
        ? `${countText(dependents.length, 'other document needs it.', 'other documents need it.')}`
        : dependents.length > 0 && !isTogether
          ? 'What needs it has to go, too.'
          : trial !== null
            ? 'Weir refuses this.'
            : null
  return (
    <Act title={`Delete ${name}?`} action={isTogether ? `Delete ${countText(all.length, 'document', 'documents')}` : 'Delete'} look="danger" wide={dependents.length > 0 || movesCalls(kind.path)} refused={refused} onClose={onClose} run={run}>
      <p>
        {found.data !== undefined && dependents.length === 0 && trial === null && 'Nothing needs it. '}History keeps it: any revision can be brought back.
      </p>
      <Inside kind={kind} document={document.data} />
      {found.error && <Failure error={found.error} onRetry={() => void found.refetch()} />}
      {dependents.length > 0 && (
        <section className="stack tight" aria-label="What needs it">
          <h3>{countText(dependents.length, 'other document needs it', 'other documents need it')}</h3>
          <ul className="changes">
            {dependents.slice(0, SHOWN).map((it) => (
              <li key={`${it.kind}/${it.name}`}>
                <span>
                  {kindOf(it.kind)?.one ?? it.kind} <Link href={pathOf(it)}>{it.name}</Link>
                  {it.part && <> with its route {it.part}</>}, in <code>{it.field}</code>
                  {it.owned_by && <>, made by {it.owned_by}</>}
                </span>
              </li>
            ))}
            {dependents.length > SHOWN && <li className="muted">and {dependents.length - SHOWN} more</li>}
          </ul>
          {isPossible ? (
            <label className="choice">
              <input type="checkbox" checked={isTogether} onChange={(event) => setTogether(event.target.checked)} />
              Delete {dependents.length === 1 ? 'it' : `these ${dependents.length}`}, too, in the same commit
            </label>
          ) : (
            <p className="note warn">Take {name} out there first: these documents have more to say than that.</p>
          )}
        </section>
      )}
      {trial !== null && <Failure error={trial} />}
      {isReady && trial === null && all.some((it) => movesCalls(it.kind)) && <Effects documents={Object.fromEntries(all.map((it) => [`native/${it.kind}/${it.name}`, null]))} />}
    </Act>
  )
}

/** What a document holds that goes with it. */
function Inside({ kind, document }: { kind: Kind; document: Fields }) {
  const routes = list(document['routes']).map((it) => (isMap(it) ? nameOf(kind, it) : ''))
  const credentials = list(document['credentials']).map(stepName)
  const plugins = list(document['plugins']).map(stepName)
  const targets = kind.path === 'upstreams' ? words(document['targets']) : []
  const parts = [
    routes.length > 0 && `${countText(routes.length, 'route', 'routes')} (${routes.slice(0, SHOWN).join(', ')})`,
    credentials.length > 0 && `${countText(credentials.length, 'credential', 'credentials')} (${credentials.slice(0, SHOWN).join(', ')})`,
    plugins.length > 0 && `${countText(plugins.length, 'plugin', 'plugins')} (${plugins.slice(0, SHOWN).join(', ')})`,
    targets.length > 0 && countText(targets.length, 'target', 'targets'),
  ].filter(Boolean)
  return parts.length === 0 ? null : <p>With it go what is written in it: {parts.join(', ')}.</p>
}

/** Why the deletion would be refused, as one that is only tried says; `null`: it would not, or that is not known yet. */
function useTrial(all: { kind: string; name: string }[], isWanted: boolean): unknown {
  const [refused, setRefused] = useState<unknown>(null)
  const key = JSON.stringify(all)
  useEffect(() => {
    setRefused(null)
    if (!isWanted) return
    let isCurrent = true
    const planned = (JSON.parse(key) as { kind: string; name: string }[]).map((it) => ({ ...it, before: {}, tag: null, after: null }))
    commit(planned, '', true).catch((wrong: unknown) => isCurrent && setRefused(wrong))
    return () => {
      isCurrent = false
    }
  }, [key, isWanted])
  return refused
}
