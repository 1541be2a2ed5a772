// Developers of a portal: who waits for approval, who is in, and what may be done about each of them.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { type Developer, type DeveloperState, developerPath, developersPath, useDevelopers, usePortals } from '../../api/developers'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { Button } from '../../ui/button'
import { SelectField } from '../../ui/field'
import { type Column, Table } from '../../ui/table'
import { Time, countText } from '../../ui/time'
import { Decide, type Decision, DECISIONS, Edit, Invite, Remove, RemoveFactor } from './dialogs'

/** States in words. */
export const WORDS: Record<DeveloperState, string> = { registered: 'not confirmed', confirmed: 'waits', active: 'active', suspended: 'suspended', refused: 'refused' }
const TONES: Record<DeveloperState, string> = { registered: '', confirmed: 'accent', active: 'good', suspended: 'warn', refused: 'bad' }

type Above = { kind: 'decide'; decision: Decision; chosen: Developer[] } | { kind: 'edit' | 'factor' | 'remove'; developer: Developer } | { kind: 'invite' } | null

const key = (it: Developer) => it.id
const version = (it: Developer) => it.state

const columns = (edit: (it: Developer) => void): Column<Developer>[] => [
  {
    id: 'name',
    title: 'Name',
    text: (it) => it.name,
    render: (it) => (
      <button className="link" onClick={() => edit(it)} aria-label={`${it.name}, change`}>
        {it.name}
      </button>
    ),
  },
  { id: 'mail', title: 'Mail', text: (it) => it.mail, width: 'minmax(9rem, 1.4fr)' },
  { id: 'state', title: 'State', text: (it) => WORDS[it.state], render: (it) => <span className={`badge ${TONES[it.state]}`}>{WORDS[it.state]}</span>, width: '7.5rem' },
  { id: 'groups', title: 'Groups', text: (it) => it.groups.join(', '), from: 3, width: 'minmax(5rem, 0.8fr)' },
  { id: 'teams', title: 'Teams', text: (it) => it.teams.map((team) => team.name).join(', '), from: 3, width: 'minmax(5rem, 0.8fr)' },
  { id: 'applications', title: 'Applications', text: (it) => it.applications.join(', '), from: 3, width: 'minmax(5rem, 0.8fr)' },
  { id: 'since', title: 'Since', text: (it) => new Date(it.created * 1000).toISOString(), order: (it) => it.created, render: (it) => <Time at={it.created} />, from: 2, width: 'minmax(6rem, 0.7fr)' },
]

export default function Developers() {
  const portals = usePortals()
  const [parameters, setParameters] = useSearchParams()
  const wanted = parameters.get('portal')
  const portal = portals.data?.find((it) => it.name === wanted) ?? portals.data?.[0]
  const developers = useDevelopers(portal?.name)
  const refused = useRight('developers:write')
  const client = useQueryClient()
  const [above, setAbove] = useState<Above>(null)
  const name = portal?.name ?? ''
  const waiting = (developers.data?.items ?? []).filter((it) => it.state === 'confirmed')
  const close = () => setAbove(null)
  const changed = async () => {
    await client.invalidateQueries({ queryKey: ['developers'] })
  }
  const invite = (
    <Button look="primary" refused={refused} onPress={() => setAbove({ kind: 'invite' })}>
      New developer
    </Button>
  )
  const error = portals.error ?? developers.error
  return (
    <Page
      title="Developers"
      about="Who has signed up at a developer portal. If a portal asks for approval, new accounts wait here."
      calls={[
        { about: 'List developers', method: 'GET', path: developersPath(name) },
        { about: 'Approve one', method: 'POST', path: `${developerPath(name, 'ID')}/approve`, body: {} },
        { about: 'Refuse one', method: 'POST', path: `${developerPath(name, 'ID')}/refuse`, body: { reason: 'no contract' } },
        { about: 'Turn off a lost second factor', method: 'DELETE', path: `${developerPath(name, 'ID')}/second-factor` },
      ]}
      actions={invite}
    >
      {(portals.data?.length ?? 0) > 1 && (
        <SelectField label="Portal" value={name} onChange={(value) => setParameters({ portal: value })} options={(portals.data ?? []).map((it) => [it.name, it.display_name || it.name] as const)} />
      )}
      {waiting.length > 0 && (
        <section className="card" aria-label="Waiting">
          <h2>{countText(waiting.length, 'account waits', 'accounts wait')} for approval</h2>
          <ul className="lines-list">
            {waiting.slice(0, 20).map((it) => (
              <li key={it.id} className="row between">
                <div className="stack tight">
                  <strong>{it.name}</strong>
                  <p className="muted small">
                    {it.mail}, signed up <Time at={it.created} />
                  </p>
                </div>
                <div className="row">
                  <Button small look="primary" refused={refused} onPress={() => setAbove({ kind: 'decide', decision: DECISIONS.approve, chosen: [it] })}>
                    Approve<span className="sr"> {it.name}</span>
                  </Button>
                  <Button small refused={refused} onPress={() => setAbove({ kind: 'decide', decision: DECISIONS.refuse, chosen: [it] })}>
                    Refuse<span className="sr"> {it.name}</span>
                  </Button>
                </div>
              </li>
            ))}
          </ul>
          {waiting.length > 20 && <p className="muted">and {waiting.length - 20} more, in the list below</p>}
        </section>
      )}
      {error && developers.data === undefined ? (
        <Failure error={error} onRetry={() => void developers.refetch()} />
      ) : (
        <Table
          label="Developers"
          rows={developers.data?.items ?? []}
          columns={columns((developer) => setAbove({ kind: 'edit', developer }))}
          rowKey={key}
          version={version}
          isLoading={developers.isLoading || portals.isLoading}
          noun={['developer', 'developers']}
          bulk={Object.values(DECISIONS).map((decision) => ({
            text: decision.text,
            ...(decision.look ? { look: decision.look } : {}),
            refused,
            run: (chosen: Developer[]) => setAbove({ kind: 'decide', decision, chosen }),
          }))}
          empty={
            <Empty title="No developers yet" example="weir run --data data --console 127.0.0.1:8002 --portal 127.0.0.1:8003 --smtp smtp://mail.example.com --mail-from dev@example.com">
              <p>
                Developers sign up at the portal. It needs a mail server for the links that confirm addresses. Their programs are <Link href="/applications">applications</Link>.
              </p>
            </Empty>
          }
        />
      )}
      {developers.data && developers.data.total > developers.data.items.length && (
        <p className="muted">
          {developers.data.items.length} of {developers.data.total} are listed, the newest.
        </p>
      )}
      {above?.kind === 'decide' && <Decide portal={name} decision={above.decision} chosen={above.chosen} onDone={changed} onClose={close} />}
      {above?.kind === 'edit' && <Edit portal={name} developer={above.developer} refused={refused} onDone={changed} onFactor={() => setAbove({ kind: 'factor', developer: above.developer })} onRemove={() => setAbove({ kind: 'remove', developer: above.developer })} onClose={close} />}
      {above?.kind === 'factor' && <RemoveFactor portal={name} developer={above.developer} onDone={changed} onClose={close} />}
      {above?.kind === 'remove' && <Remove portal={name} developer={above.developer} onDone={changed} onClose={close} />}
      {above?.kind === 'invite' && <Invite portal={name} onDone={changed} onClose={close} />}
    </Page>
  )
}
