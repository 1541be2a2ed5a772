// Parts of the publish wizard: the steps, the three diffs, and how far gateways have come.
import { useState } from 'react'
import type { Outcome, Plan } from '../../api/apis'
import { useGateways } from '../../api/hooks'
import { DiffTable } from '../../form/diff-table'
import { Choices } from '../../ui/choices'
import { countText } from '../../ui/time'
import { TITLES, type StepState } from './publish-check'
import { OperationChanges, State, limitText } from './shared'

const MARKS: Record<StepState['state'], [string, string, string]> = {
  good: ['✓', 'good', 'passed'],
  refused: ['✕', 'bad', 'refuses'],
  forced: ['!', 'warn', 'would refuse'],
  open: ['·', '', 'not reached'],
}

export function StepList({ steps }: { steps: StepState[] }) {
  return (
    <ol className="steps" aria-label="Steps">
      {steps.map((it) => {
        const [mark, tone, words] = MARKS[it.state]
        return (
          <li key={it.name}>
            <span className={`tick ${tone}`} aria-hidden="true">
              {mark}
            </span>
            <div>
              <strong>{TITLES[it.name]}</strong> <span className="sr">{words}: </span>
              <span className="muted">{it.about}</span>
              {it.details.length > 0 && (
                <ul className="stack tight">
                  {it.details.slice(0, 20).map((text) => (
                    <li key={text}>{text}</li>
                  ))}
                  {it.details.length > 20 && <li className="muted">and {it.details.length - 20} more</li>}
                </ul>
              )}
            </div>
          </li>
        )
      })}
    </ol>
  )
}

type View = 'operations' | 'documents' | 'plans' | 'answer'

export function Diffs({ outcome, text, plans }: { outcome: Outcome; text: string; plans: Plan[] }) {
  const [view, setView] = useState<View>('operations')
  const { operations, documents } = outcome.diff
  const ofPlans = documents.filter((it) => /\/(consumers|consumer_tables|plugins)\//.test(it.document))
  const tabs: [View, string][] = [
    ['operations', `Operations (${operations.length})`],
    ['documents', `Gateway documents (${documents.length})`],
    ['plans', 'Plans and limits'],
    ['answer', 'As the API says it'],
  ]
  return (
    <div className="stack">
      <Choices label="What would change" look="tabs" chosen={view} options={tabs.map(([value, text]) => ({ value, text }))} onChoose={setView} />
      {view === 'operations' && <OperationChanges operations={operations} />}
      {view === 'documents' && <Documents documents={documents} />}
      {view === 'plans' && (
        <>
          {plans.length === 0 ? (
            <p className="muted">The version has no plan: everybody who knows the address may call it.</p>
          ) : (
            <ul className="lines-list">
              {plans.map((it) => (
                <li key={it.name} className="row">
                  <strong>{it.display_name || it.name}</strong> <State state={it.state} /> <span className="muted">{limitText(it)}</span>
                </li>
              ))}
            </ul>
          )}
          {ofPlans.length > 0 && <Documents documents={ofPlans} />}
        </>
      )}
      {view === 'answer' && (
        <pre className="code" tabIndex={0} aria-label="The answer to the dry run">
          {text}
        </pre>
      )}
    </div>
  )
}

function Documents({ documents }: { documents: Outcome['diff']['documents'] }) {
  if (documents.length === 0) return <p className="muted">No document of gateways changes.</p>
  return (
    <div className="stack tight">
      {documents.slice(0, 100).map((it) => (
        <details key={it.document}>
          <summary>
            <span className={`badge ${it.before === null ? 'good' : it.after === null ? 'bad' : 'accent'}`}>{it.before === null ? 'new' : it.after === null ? 'gone' : 'changed'}</span> <code>{it.document}</code>
          </summary>
          <DiffTable before={it.before ?? undefined} after={it.after ?? undefined} />
        </details>
      ))}
      {documents.length > 100 && <p className="muted">and {documents.length - 100} more</p>}
    </div>
  )
}

/** Which gateways serve a commit by now. */
export function RolledOut({ environment, commit }: { environment: string; commit: number }) {
  const gateways = useGateways()
  const items = gateways.data?.items ?? []
  const isHere = (gateways.data?.revision ?? 0) >= commit
  const behind = items.filter((it) => it.revision < commit)
  return (
    <p role="status">
      <span className={behind.length === 0 && isHere ? 'badge good' : 'badge warn'}>{behind.length === 0 && isHere ? 'served' : 'on its way'}</span>{' '}
      {items.length === 0
        ? `This process serves it, if it was started with --environment ${environment}.`
        : `${items.length - behind.length} of ${countText(items.length, 'gateway has', 'gateways have')} it.`}
    </p>
  )
}
