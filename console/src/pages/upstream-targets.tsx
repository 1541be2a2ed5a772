// The targets of an upstream, each with its health, and what is done with one of them: its weight, draining it, taking it out,
// and setting it back. Each is tried first, shown, and one commit that one press takes back.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type Planned, commit, undo } from '../api/changes'
import { type Document, useHealth } from '../api/hooks'
import { useRight } from '../api/rights'
import type { Fields, Json } from '../api/types'
import { DiffTable } from '../form/diff-table'
import { isMap } from '../form/path'
import { list } from '../kinds'
import { Act } from '../ui/act'
import { Button } from '../ui/button'
import { TextField } from '../ui/field'
import { toast } from '../ui/toast'
import { HealthBadge } from './upstreams'

/** Of a target that has none. */
const WEIGHT = 100

type Step = 'weight' | 'drain' | 'back' | 'out'

interface Target {
  index: number
  address: string
  weight: number
  priority: number
}

function targetOf(value: Json, index: number): Target {
  if (!isMap(value)) return { index, address: String(value), weight: WEIGHT, priority: 0 }
  const { host, port, weight, priority } = value
  return { index, address: `${String(host)}:${String(port)}`, weight: typeof weight === 'number' ? weight : WEIGHT, priority: typeof priority === 'number' ? priority : 0 }
}

/** The list of targets with another weight of one; `null`: without it. Everything else stays as it is written. */
function changed(targets: Json[], target: Target, weight: number | null): Json[] {
  if (weight === null) return targets.filter((_, at) => at !== target.index)
  const written = targets[target.index]
  const at = target.address.lastIndexOf(':')
  const whole: Fields = written !== undefined && isMap(written) ? written : { host: target.address.slice(0, at), port: Number(target.address.slice(at + 1)) }
  return targets.map((it, index) => (index === target.index ? { ...whole, weight } : it))
}

export function UpstreamTargets({ name, document }: { name: string; document: Document }) {
  const written = list(document.data['targets'])
  const targets = written.map(targetOf)
  const health = useHealth(true).data?.find((it) => it.name === name)
  const refused = useRight('configuration:write')
  const [step, setStep] = useState<{ step: Step; target: Target } | null>(null)
  if (targets.length === 0) return null
  const sum = targets.reduce((total, it) => total + it.weight, 0)
  return (
    <section className="card" aria-label="Targets">
      <h2>Targets</h2>
      <ul className="targets">
        {targets.map((it) => {
          const seen = health?.targets.find((other) => `${other.host}:${other.port}` === it.address)
          const act = (step: Step) => setStep({ step, target: it })
          return (
            <li key={`${it.index} ${it.address}`} aria-label={it.address}>
              <code className="clip" title={it.address}>
                {it.address}
              </code>
              <span className="row tight">
                {seen && <HealthBadge status={seen.status} />}
                {it.weight === 0 && <span className="badge warn">drained</span>}
              </span>
              <span className="muted small">
                weight {it.weight}
                {sum > 0 && it.weight > 0 && targets.every((other) => other.priority === it.priority) && `, ${Math.round((it.weight / sum) * 100)} % of calls`}
              </span>
              <span className="row tight">
                {it.weight === 0 ? (
                  <Button small refused={refused} onPress={() => act('back')}>
                    Set back<span className="sr"> {it.address}</span>
                  </Button>
                ) : (
                  <Button small refused={refused} onPress={() => act('drain')}>
                    Drain<span className="sr"> {it.address}</span>
                  </Button>
                )}
                <Button small refused={refused} onPress={() => act('weight')}>
                  Weight<span className="sr"> of {it.address}</span>
                </Button>
                <Button small look="quiet" refused={refused ?? (targets.length === 1 ? 'It is the only target: drain it, or delete the upstream.' : null)} onPress={() => act('out')}>
                  Take out<span className="sr"> {it.address}</span>
                </Button>
              </span>
            </li>
          )
        })}
      </ul>
      {step !== null && <Change name={name} document={document} {...step} onClose={() => setStep(null)} />}
    </section>
  )
}

const TITLES: Record<Step, (address: string) => string> = {
  weight: (it) => `Weight of ${it}`,
  drain: (it) => `Drain ${it}?`,
  back: (it) => `Set ${it} back?`,
  out: (it) => `Take ${it} out?`,
}
const ACTIONS: Record<Step, string> = { weight: 'Set the weight', drain: 'Drain', back: 'Set back', out: 'Take out' }

function Change({ name, document, step, target, onClose }: { name: string; document: Document; step: Step; target: Target; onClose: () => void }) {
  const written = list(document.data['targets'])
  const others = written.map(targetOf).filter((it) => it.index !== target.index)
  const usual = Math.max(...others.map((it) => it.weight), 0) || WEIGHT
  const [text, setText] = useState(String(step === 'back' ? usual : target.weight))
  const weight = step === 'drain' ? 0 : step === 'out' ? null : Number(text)
  const isNumber = weight === null || (/^\d+$/.test(text) && Number(text) <= 65_535) || step === 'drain'
  const after: Fields = { ...document.data, targets: changed(written, target, isNumber ? weight : target.weight) }
  const planned: Planned[] = [{ kind: 'upstreams', name, before: document.data, tag: document.tag, after }]
  const tried = useTrial(planned, isNumber)
  const client = useQueryClient()
  const isLast = others.every((it) => it.weight === 0) && (weight === null || weight === 0)
  const run = async () => {
    const note = `${ACTIONS[step]}: ${target.address} of ${name}`
    const made = await commit(planned, note)
    const reread = () => Promise.all([client.invalidateQueries({ queryKey: ['document', 'upstreams', name] }), client.invalidateQueries({ queryKey: ['configuration'] })])
    await reread()
    toast(step === 'out' ? `${target.address} is taken out` : `${target.address} has the weight ${weight}`, {
      ...(made.revision === null ? {} : { link: { to: `/history/${made.revision}`, text: `r${made.revision}` } }),
      action: {
        text: 'Undo',
        run: () =>
          void undo(planned, made, `Undo: ${note}`)
            .then(async () => {
              await reread()
              toast(`${target.address} is what it was`)
            })
            .catch((wrong: unknown) => toast(wrong instanceof Error ? wrong.message : String(wrong), { isBad: true })),
      },
    })
    onClose()
  }
  const refused = !isNumber ? 'A weight is a whole number, 0 to 65535.' : weight === target.weight ? 'Nothing is changed.' : tried === undefined ? 'It is being checked.' : tried
  return (
    <Act title={TITLES[step](target.address)} action={ACTIONS[step]} refused={refused} onClose={onClose} run={run}>
      {step === 'drain' && <p>It takes no new calls; those that are under way end. It stays in the list, and its health is checked as before.</p>}
      {step === 'out' && <p>It leaves the list of targets: no call goes there, and its health is checked no longer.</p>}
      {(step === 'weight' || step === 'back') && <TextField label="Weight" type="number" value={text} onChange={setText} about="Its share of the calls beside the other targets’ weights; 0: none." autoFocus />}
      {isLast && <p className="note warn">No other target takes calls: all calls of {name} will be answered 503.</p>}
      {typeof tried === 'string' && (
        <p className="note bad" role="alert">
          {tried}
        </p>
      )}
      <DiffTable before={document.data} after={after} />
    </Act>
  )
}

/** What Weir says of a plan that is only tried: why it is refused; `null`: it is not; `undefined`: that is being asked. */
function useTrial(planned: Planned[], isWanted: boolean): string | null | undefined {
  const [said, setSaid] = useState<string | null | undefined>(undefined)
  const key = JSON.stringify(planned)
  useEffect(() => {
    setSaid(undefined)
    if (!isWanted) return
    let isCurrent = true
    const say = (it: string | null) => isCurrent && setSaid(it)
    const timer = setTimeout(() => {
      commit(JSON.parse(key) as Planned[], '', true).then(
        () => say(null),
        (wrong: unknown) => say(wrong instanceof Error ? wrong.message : String(wrong)),
      )
    }, 150)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [key, isWanted])
  return said
}
