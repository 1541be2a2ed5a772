// A chart over time. The same numbers stand in a table behind it; marks are commits and publications. Colours come from the tokens.
import { useEffect, useMemo, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { shown, tick } from '../api/analytics'
import { useIsDark } from '../shell/theme'
import { Button } from './button'
import { type Mark, dashOf, grouped, tokenOf } from './chart-marks'

export interface Line {
  name: string
  values: (number | null)[]
  /** The place of the line that it is compared with: it has its colour, and is drawn fainter. */
  of?: number
}

interface Props {
  label: string
  times: number[]
  lines: Line[]
  unit: string | undefined
  marks?: Mark[]
  /** With the area below each line. */
  isArea?: boolean
}

const HEIGHT = 190
/** Lines are told apart below areas, too. */
const AREA = 0.14
/** The same list each time: a chart is drawn again if it differs. */
const NO_MARKS: Mark[] = []
/** Marks that are nearer than this, in pixels, are one. */
const MARK_GAP = 20
/** Of what was before. */
const BEFORE = [2, 4]
/** Of a label on an axis, about: the widest letters are digits. */
const LETTER = 7.5

/** The colour of a line: that of the one that it is compared with. */
const tokenAt = (lines: Line[], index: number): string => {
  const at = lines[index]?.of ?? index
  return tokenOf(lines[at]?.name ?? '', at)
}

const dashAt = (lines: Line[], index: number): number[] => (lines[index]?.of === undefined ? dashOf(index) : BEFORE)

/** The top of an axis without any value: a round number of its unit. */
const leastOf = (unit: string | undefined): number => (unit === 'microseconds' ? 1000 : unit === 'share' || unit === 'ratio' ? 1 : unit === 'bytes' ? 1024 : 10)

const DAY_S = 86_400
const clock = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' })
const seconds = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

/** Times on the axis, as the reader's language writes them; the day stands below the first time of it. */
function timeTexts(times: number[], step: number): string[] {
  const days = times.map((it) => day.format(it * 1000))
  if (step >= DAY_S) return days
  const format = step < 60 ? seconds : clock
  return times.map((it, index) => (days[index] === days[index - 1] ? format.format(it * 1000) : `${format.format(it * 1000)}\n${days[index] ?? ''}`))
}

/** A text that repeats the one before it says nothing. */
const distinct = (texts: string[]): (string | null)[] => texts.map((it, index) => (it === texts[index - 1] ? null : it))

/** A colour of the form `rgb(…)`, less opaque. */
const faint = (of: string): string => of.replace(/^rgba?\(([\d.]+)[, ]+([\d.]+)[, ]+([\d.]+).*$/, `rgba($1, $2, $3, ${AREA})`)

/** A token's colour, as the canvas needs it. */
function colour(element: HTMLElement, token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  element.append(probe)
  const found = getComputedStyle(probe).color
  probe.remove()
  return found
}

export default function Chart({ label, times, lines, unit, marks = NO_MARKS, isArea = false }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const [isTable, setTable] = useState(false)
  /** The place that is pointed at. */
  const [at, setAt] = useState<number | null>(null)
  const isDark = useIsDark()
  const data = useMemo((): uPlot.AlignedData => [times, ...lines.map((line) => line.values)], [times, lines])
  useEffect(() => {
    const element = host.current
    if (element === null || isTable) return
    const [ink, grid, mark, accent] = [colour(element, '--ink-2'), colour(element, '--line'), colour(element, '--line-strong'), colour(element, '--accent')]
    const colours = lines.map((_, index) => colour(element, tokenAt(lines, index)))
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: '12px system-ui' }
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        cursor: { points: { size: 6 } },
        legend: { show: false },
        // The last label of the time stands half beyond the end.
        padding: [12, 28, 0, 0],
        scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : leastOf(unit)] } },
        axes: [{ ...axis, space: 72, values: (_, times, __, ___, step) => timeTexts(times, step) }, { ...axis, size: (_, texts) => 22 + LETTER * Math.max(2, ...(texts ?? []).map((it) => (it as string | null)?.length ?? 0)), values: (_, ticks) => distinct(ticks.map((it) => tick(it, unit))) }],
        series: [
          {},
          ...lines.map((line, index) => ({
            label: line.name,
            stroke: colours[index] ?? ink,
            ...(isArea && line.of === undefined ? { fill: faint(colours[index] ?? ink) } : {}),
            dash: dashAt(lines, index),
            width: line.of === undefined ? 1.75 : 1.25,
            points: { show: times.length < 3 },
          })),
        ],
        hooks: {
          setCursor: [(it) => setAt(it.cursor.idx ?? null)],
          draw: [
            (it) => {
              const { ctx, bbox } = it
              const placed = marks.map(({ at, kind }) => ({ x: it.valToPos(at, 'x', true), kind }))
              ctx.save()
              ctx.font = `${10 * devicePixelRatio}px system-ui`
              ctx.textAlign = 'center'
              for (const { x, kind, count } of grouped(placed, MARK_GAP * devicePixelRatio)) {
                ctx.strokeStyle = ctx.fillStyle = kind === 'publication' ? accent : mark
                ctx.setLineDash(kind === 'publication' ? [] : [3, 3])
                ctx.beginPath()
                ctx.moveTo(x, bbox.top)
                ctx.lineTo(x, bbox.top + bbox.height)
                ctx.stroke()
                // How many there are stands above the lines.
                if (count > 1) ctx.fillText(String(count), x, bbox.top - 2 * devicePixelRatio)
              }
              ctx.restore()
            },
          ],
        },
      },
      data,
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [data, lines, times, unit, marks, isArea, isTable, isDark])
  return (
    <figure className="stack tight">
      {isTable ? (
        <div className="wide" style={{ maxHeight: '16rem', overflow: 'auto' }}>
          <table className="plain" aria-label={label}>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {lines.map((line) => (
                  <th scope="col" key={line.name}>
                    {line.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time}>
                  <th scope="row">{new Date(time * 1000).toLocaleString()}</th>
                  {lines.map((line) => (
                    <td key={line.name}>{shown(line.values[index], unit)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <>
          <div ref={host} className="plot" role="img" aria-label={`${label}, as a chart; the table has the same numbers`} />
          <Legend times={times} lines={lines} unit={unit} at={at} />
        </>
      )}
      <div>
        <Button small look="quiet" onPress={() => setTable(!isTable)}>
          {isTable ? 'Chart' : 'Table'}
        </Button>
      </div>
    </figure>
  )
}

/** What each line is, and its value at the place that is pointed at. */
function Legend({ times, lines, unit, at }: { times: number[]; lines: Line[]; unit: string | undefined; at: number | null }) {
  const time = at === null ? undefined : times[at]
  return (
    <ul className="legend" aria-hidden="true">
      {lines.map((line, index) => (
        <li key={line.name}>
          <svg width="20" height="4" viewBox="0 0 20 4">
            <line x1="0" y1="2" x2="20" y2="2" stroke={`var(${tokenAt(lines, index)})`} strokeWidth={line.of === undefined ? 3 : 2} strokeDasharray={dashAt(lines, index).join(' ')} />
          </svg>
          {line.name}
          {at !== null && <span className="value">{shown(line.values[at], unit)}</span>}
        </li>
      ))}
      <li className="at">{time === undefined ? '\u00a0' : new Date(time * 1000).toLocaleString()}</li>
    </ul>
  )
}
