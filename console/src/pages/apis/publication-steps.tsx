// What can be done with a publication, each in a dialog: rolling back, canaries, deprecation, retirement, switching off.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Canary, type Outcome, type Publication, publicationPath, useRevisions } from '../../api/apis'
import { ApiError, call } from '../../api/client'
import { Act } from '../../ui/act'
import { CheckField, ChoiceField, SelectField, TextField } from '../../ui/field'
import { toast } from '../../ui/toast'
import { canPass, usePublishCheck } from './publish-check'
import { Diffs } from './publish-parts'
import { Failure } from '../../shell/page'

export type Step = 'rollback' | 'canary' | 'abort' | 'deprecate' | 'undeprecate' | 'retire' | 'disable' | 'enable' | 'remove'

interface Props {
  step: Step
  publication: Publication
  onClose: () => void
  onGone: () => void
}

export default function StepDialog({ step, publication, onClose, onGone }: Props) {
  const client = useQueryClient()
  const path = publicationPath(publication.api, publication.version, publication.environment)
  const place = `${publication.api} ${publication.version} in ${publication.environment}`
  const send = async (method: string, end: string, body: unknown, done: string) => {
    await call(method, `${path}${end}`, body === undefined ? {} : { body })
    await client.invalidateQueries({ queryKey: ['configuration'] })
    toast(done)
    onClose()
  }
  switch (step) {
    case 'rollback':
      return <Rollback publication={publication} path={path} onClose={onClose} />
    case 'canary':
      return <StartCanary publication={publication} onClose={onClose} onDone={(canary, force) => send('PUT', '/canary', { ...canary, ...force }, `${canary.share / 100} % of the callers get r${canary.revision}`)} />
    case 'abort':
      return (
        <Act title={`Abort the canary of ${place}?`} action="Abort" onClose={onClose} run={() => send('POST', '/canary/abort', {}, `Everybody gets r${publication.revision} again`)}>
          <p>Everybody gets r{publication.revision} again, in one commit.</p>
        </Act>
      )
    case 'deprecate':
      return <Deprecate publication={publication} onClose={onClose} onDone={(body) => send('PUT', '/deprecation', body, `Callers of ${place} are told`)} />
    case 'undeprecate':
      return (
        <Act title={`Take the deprecation of ${place} back?`} action="Take it back" onClose={onClose} run={() => send('POST', '/undeprecate', {}, `${place} goes on`)}>
          <p>Answers no longer tell that it ends.</p>
        </Act>
      )
    case 'retire':
      return (
        <Confirmed name={publication.version} title={`Retire ${place}?`} action="Retire" onClose={onClose} run={(note) => send('POST', '/retire', { note }, `${place} is retired`)}>
          <p>All calls get 410 from now on. A version that is retired stays so.</p>
        </Confirmed>
      )
    case 'disable':
      return (
        <Act title={`Disable ${place}?`} action="Disable" look="danger" onClose={onClose} run={() => send('POST', '/disable', {}, `${place} is disabled`)}>
          <p>Its routes go for the time being: calls get 404. Subscriptions and keys stay.</p>
        </Act>
      )
    case 'enable':
      return <Enable place={place} onClose={onClose} onDone={(force) => send('POST', '/enable', force, `${place} is enabled`)} />
    case 'remove':
      return <Remove publication={publication} path={path} onClose={onClose} onGone={onGone} />
  }
}

/** What a body needs to make a step although others take its calls. */
type Force = { force?: true }

/** A step that is refused if others take its calls. After that it is asked whether to make it all the same. */
function useForce() {
  const [isTaken, setTaken] = useState(false)
  const [force, setForce] = useState(false)
  return {
    run: async (step: (force: Force) => Promise<unknown>) => {
      try {
        await step(force ? { force } : {})
      } catch (error) {
        if (error instanceof ApiError && error.kind === 'conflicts') setTaken(true)
        throw error
      }
    },
    refused: isTaken && !force ? 'Others take these calls.' : null,
    field: isTaken && <CheckField label="Do it all the same" value={force} onChange={setForce} about="The history notes that it was forced." />,
  }
}

function Enable({ place, onClose, onDone }: { place: string; onClose: () => void; onDone: (force: Force) => Promise<unknown> }) {
  const { run, refused, field } = useForce()
  return (
    <Act title={`Enable ${place}?`} action="Enable" refused={refused} onClose={onClose} run={() => run(onDone)}>
      <p>Its routes are served again.</p>
      {field}
    </Act>
  )
}

function Remove({ publication, path, onClose, onGone }: { publication: Publication; path: string; onClose: () => void; onGone: () => void }) {
  const client = useQueryClient()
  const place = `${publication.api} ${publication.version} in ${publication.environment}`
  // Asked once more after Weir has said who depends on it.
  const [dependents, setDependents] = useState<string | null>(null)
  const [force, setForce] = useState(false)
  return (
    <Confirmed
      name={publication.environment}
      title={`Remove ${place}?`}
      action="Remove"
      refused={dependents !== null && !force ? 'Subscriptions depend on it.' : null}
      onClose={onClose}
      run={async () => {
        try {
          await call('DELETE', path, force ? { body: { force } } : {})
        } catch (error) {
          if (error instanceof ApiError && error.kind === 'subscribers') setDependents(error.message)
          throw error
        }
        toast(`${place} is removed`)
        onGone()
        await client.invalidateQueries({ queryKey: ['configuration'] })
      }}
    >
      <p>All its routes go. Its revisions stay, so it can be published again.</p>
      {dependents !== null && <CheckField label="Remove it all the same, and notify the applications that are subscribed" value={force} onChange={setForce} />}
    </Confirmed>
  )
}

function Confirmed({ name, title, action, children, refused, onClose, run }: { name: string; title: string; action: string; children: React.ReactNode; refused?: string | null; onClose: () => void; run: (note: string) => Promise<unknown> }) {
  const [typed, setTyped] = useState('')
  const [note, setNote] = useState('')
  return (
    <Act title={title} action={action} look="danger" refused={typed === name ? (refused ?? null) : `Type ${name} first.`} onClose={onClose} run={() => run(note)}>
      {children}
      <TextField label={`Type ${name} to confirm`} value={typed} onChange={setTyped} autoFocus />
      {action === 'Retire' && <TextField label="Note" value={note} onChange={setNote} />}
    </Act>
  )
}

function Rollback({ publication, path, onClose }: { publication: Publication; path: string; onClose: () => void }) {
  const revisions = useRevisions(publication.api, publication.version)
  const older = [...(revisions.data ?? [])].reverse().filter((it) => it.number !== publication.revision)
  const before = [...publication.history].reverse().find((it) => it.revision !== publication.revision)?.revision
  const [chosen, setChosen] = useState<string | null>(null)
  const [note, setNote] = useState('')
  const number = Number(chosen ?? before ?? older[0]?.number ?? 0)
  const client = useQueryClient()
  const check = usePublishCheck(number === 0 ? null : { path: `${path}/rollback`, body: { revision: number } }, undefined)
  const refusal = check.refusals[0] ?? check.failure
  return (
    <Act
      title={`Roll ${publication.api} ${publication.version} back in ${publication.environment}`}
      action={`Roll back to r${number}`}
      wide
      refused={number === 0 ? 'There is no other revision.' : check.isChecking ? 'It is being checked.' : !canPass(check) ? 'A step refuses it.' : null}
      onClose={onClose}
      run={async () => {
        const force = check.refusals.length > 0 ? { force: true } : {}
        const answer = await call<Outcome>('POST', `${path}/rollback`, { body: { revision: number, ...force, ...(note === '' ? {} : { note }) } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`r${answer.data.revision} is served again`, { link: { to: `/history/${answer.data.commit}`, text: `r${answer.data.commit}` } })
        onClose()
      }}
    >
      <p className="muted">Addresses, subscriptions and keys stay as they are.</p>
      <SelectField label="Serve" value={String(number)} onChange={setChosen} options={older.map((it) => [String(it.number), `r${it.number} ${it.hash.slice(0, 8)} ${it.note ?? ''}${it.number === before ? ' (served before)' : ''}`] as const)} />
      {refusal && !canPass(check) && <Failure error={refusal} />}
      {check.outcome && <Diffs outcome={check.outcome} text={check.text} plans={[]} />}
      <TextField label="Note" value={note} onChange={setNote} placeholder="Why, for those who read the history" />
    </Act>
  )
}

const SHARES = [100, 1000, 5000, 10_000]

function StartCanary({ publication, onClose, onDone }: { publication: Publication; onClose: () => void; onDone: (canary: Canary, force: Force) => Promise<unknown> }) {
  const { run, refused: conflict, field } = useForce()
  const revisions = useRevisions(publication.api, publication.version)
  const others = [...(revisions.data ?? [])].reverse().filter((it) => it.number !== publication.revision)
  const known = publication.canary
  const [chosen, setChosen] = useState<string | null>(known ? String(known.revision) : null)
  const [share, setShare] = useState(String(known?.share ?? 100))
  const knownBy = known?.by
  const [kind, setKind] = useState<'cookie' | 'header' | 'address'>(knownBy === undefined || knownBy === 'address' ? (knownBy === 'address' ? 'address' : 'cookie') : 'cookie' in knownBy ? 'cookie' : 'header')
  const [name, setName] = useState(knownBy === undefined || knownBy === 'address' ? 'sid' : 'cookie' in knownBy ? knownBy.cookie : knownBy.header)
  const revision = Number(chosen ?? others[0]?.number ?? 0)
  const [guard] = known?.guards ?? []
  const [isGuarded, setGuarded] = useState(known === undefined || guard !== undefined)
  const [above, setAbove] = useState(String((guard?.above ?? 0.02) * 100))
  const [minutes, setMinutes] = useState(String((guard?.period ?? 180) / 60))
  const [isGrowing, setGrowing] = useState((known?.steps ?? []).length > 0)
  const [every, setEvery] = useState('30')
  const guards = isGuarded ? [{ metric: guard?.metric ?? 'share_5xx', above: Number(above) / 100, period: Math.max(Number(minutes) * 60, 120), min_calls: guard?.min_calls ?? 20 }] : []
  const later = SHARES.filter((it) => it > Number(share))
  const steps = isGrowing ? (known?.steps && known.steps.length > 0 ? known.steps : later.map((it, index) => ({ after: (index + 1) * Number(every) * 60, share: it }))) : []
  // An emptied field is not 0, which would take every canary back at once.
  const emptied = isGuarded && above.trim() === '' ? 'Say above which share of errors it is taken back.' : isGuarded && minutes.trim() === '' ? 'Say for how many minutes.' : isGrowing && every.trim() === '' ? 'Say how many minutes are between the steps.' : null
  const by = kind === 'address' ? 'address' : kind === 'cookie' ? { cookie: name } : { header: name }
  return (
    <Act
      title={known ? 'Change the canary' : 'Start a canary'}
      action={known ? 'Change' : 'Start'}
      refused={revision === 0 ? 'There is no other revision: publish the draft elsewhere first, which makes one.' : kind !== 'address' && name === '' ? `Name the ${kind}.` : (emptied ?? conflict)}
      onClose={onClose}
      run={() => run((force) => onDone({ ...(known ?? {}), revision, share: Number(share), by, steps, guards }, force))}
    >
      <SelectField label="The other revision" value={String(revision)} onChange={setChosen} options={others.map((it) => [String(it.number), `r${it.number} ${it.hash.slice(0, 8)} ${it.note ?? ''}`] as const)} />
      <ChoiceField
        label="Share of the callers"
        value={share}
        onChange={setShare}
        options={[...new Set([...SHARES, Number(share)])].sort((a, b) => a - b).map((it) => ({ value: String(it), text: `${it / 100} %` }))}
      />
      <ChoiceField
        label="Callers are told apart by"
        value={kind}
        onChange={setKind}
        options={[
          { value: 'cookie', text: 'A cookie' },
          { value: 'header', text: 'A header' },
          { value: 'address', text: 'Their address' },
        ]}
      />
      {kind !== 'address' && <TextField label={`Name of the ${kind}`} value={name} onChange={setName} />}
      <CheckField label="Grow by itself" value={isGrowing} onChange={setGrowing} about={later.length > 0 ? `To ${later.map((it) => `${it / 100} %`).join(', then ')}.` : ''} />
      {isGrowing && (known?.steps ?? []).length === 0 && <TextField label="Minutes between steps" type="number" value={every} onChange={setEvery} />}
      <CheckField label="Take it back by itself" value={isGuarded} onChange={setGuarded} about="If too many of the candidate's calls fail. The history and an alert say so. It needs analytics." />
      {isGuarded && (
        <div className="grid">
          <TextField label="Errors above, in percent" type="number" value={above} onChange={setAbove} />
          <TextField label="For minutes" type="number" value={minutes} onChange={setMinutes} about="At least 2." />
        </div>
      )}
      {field}
    </Act>
  )
}

const seconds = (date: string): number => Math.floor(new Date(`${date}T00:00:00Z`).getTime() / 1000)
const dateOf = (at: number | undefined): string => (at === undefined ? '' : new Date(at * 1000).toISOString().slice(0, 10))

function Deprecate({ publication, onClose, onDone }: { publication: Publication; onClose: () => void; onDone: (body: object) => Promise<unknown> }) {
  const known = publication.deprecation
  const [since, setSince] = useState(dateOf(known?.since ?? Date.now() / 1000))
  const [sunset, setSunset] = useState(dateOf(known?.sunset ?? undefined))
  const [link, setLink] = useState(known?.link ?? '')
  const [successor, setSuccessor] = useState(known?.successor ?? '')
  const [enforce, setEnforce] = useState(known?.enforce === true)
  const isTurned = sunset !== '' && sunset < since
  return (
    <Act
      title={`Deprecate ${publication.api} ${publication.version} in ${publication.environment}`}
      action="Deprecate"
      refused={since === '' ? 'Say since when.' : isTurned ? 'It cannot end before it is deprecated.' : null}
      onClose={onClose}
      run={() =>
        onDone({
          since: seconds(since),
          ...(sunset === '' ? {} : { sunset: seconds(sunset) }),
          ...(link === '' ? {} : { link }),
          ...(successor === '' ? {} : { successor }),
          ...(enforce ? { enforce } : {}),
        })
      }
    >
      <p className="muted">Every answer, refusals included, carries the headers Deprecation, Sunset and Link. Subscribers see it in the portal.</p>
      <div className="grid">
        <TextField label="Since" type="date" value={since} onChange={setSince} about="From the beginning of the day, in UTC." />
        <TextField label="Ends" type="date" value={sunset} onChange={setSunset} about="At the beginning of the day, in UTC." wrong={isTurned ? 'Not before it is deprecated.' : null} />
      </div>
      <TextField label="A page about it" value={link} onChange={setLink} placeholder="https://…" />
      <TextField label="Where its successor is" value={successor} onChange={setSuccessor} placeholder="https://…" />
      <CheckField label="Refuse calls after the end" value={enforce} onChange={setEnforce} about="From then on callers get 410 with a link to the successor." />
    </Act>
  )
}
