// A small line without axes, beside a number that it is the way to. Readers of screens have the number.
interface Props {
  values: (number | null)[]
  tone?: 'warn' | 'bad'
}

const WIDTH = 100
const HEIGHT = 28

export function Spark({ values, tone }: Props) {
  const most = Math.max(...values.map((it) => it ?? 0), 0)
  if (values.length < 2) return null
  const x = (index: number) => ((index / (values.length - 1)) * WIDTH).toFixed(1)
  const y = (value: number) => (HEIGHT - 1 - (most > 0 ? (value / most) * (HEIGHT - 3) : 0)).toFixed(1)
  const points = values.map((it, index) => `${x(index)},${y(it ?? 0)}`).join(' ')
  return (
    <svg className={`spark ${tone ?? ''}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} fill="currentColor" opacity="0.12" />
      <polyline points={points} fill="none" stroke="currentColor" strokeWidth="1.5" vectorEffect="non-scaling-stroke" strokeLinejoin="round" />
    </svg>
  )
}
