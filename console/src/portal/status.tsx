// How a version does in an environment: a word for now, and a bar for each of the last 30 days.
import type { PlaceStatus } from './data'

const WORDS: Record<PlaceStatus['state'], [string, string]> = {
  up: ['works', 'good'],
  trouble: ['has trouble', 'warn'],
  down: ['is down', 'bad'],
  quiet: ['no calls lately', ''],
}
/** From which share of answered calls on a day is good, and from which it is fair. */
const GOOD = 0.999
const FAIR = 0.95
const BAR = 4

const percent = (share: number) => `${(share * 100).toLocaleString(undefined, { maximumFractionDigits: 2 })} %`
const lookOf = (share: number | null) => (share === null ? 'none' : share >= GOOD ? 'good' : share >= FAIR ? 'warn' : 'bad')

export function StatusLine({ status }: { status: PlaceStatus }) {
  const [word, look] = WORDS[status.state]
  const called = status.days.filter((it) => it !== null)
  const troubled = called.filter((it) => it < GOOD).length
  const about = called.length === 0 ? 'No calls in the last 30 days' : `The last 30 days: calls on ${called.length}, trouble on ${troubled}`
  return (
    <div className="stack tight">
      <span className="row">
        <span className={`badge ${look}`}>{word}</span>
        {status.answered !== null && <span className="muted small">{percent(status.answered)} of calls answered in 30 days</span>}
      </span>
      {called.length > 0 && (
        <svg className="days" viewBox={`0 0 ${status.days.length * BAR} 10`} preserveAspectRatio="none" role="img" aria-label={about}>
          {status.days.map((share, index) => (
            <rect key={index} className={lookOf(share)} x={index * BAR} y="0" width={BAR - 1} height="10" />
          ))}
        </svg>
      )}
    </div>
  )
}
