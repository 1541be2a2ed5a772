// Times: relative in words, exact on hover, in the reader's zone with UTC beside it. Numbers: short, exact on hover.
import { useEffect, useState } from 'react'

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const zoned = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short' })
const clock = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit', second: '2-digit', timeZoneName: 'short' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

/** A day in UTC, by a time in it. */
export const dayText = (seconds: number): string => day.format(new Date(seconds * 1000))
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat()

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

export function ago(seconds: number, now: number): string {
  const passed = seconds - now / 1000
  // What would be rounded to 60 minutes is an hour.
  const [unit, size] = STEPS.find(([, size], index) => Math.abs(passed) + (STEPS[index + 1]?.[1] ?? 0) / 2 >= size) ?? ['second', 1]
  return relative.format(Math.round(passed / size), unit)
}

/** A time in seconds since 1970. */
export function Time({ at }: { at: number }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000)
    return () => clearInterval(timer)
  }, [])
  const date = new Date(at * 1000)
  return (
    <time dateTime={date.toISOString()} title={`${exact.format(date)} · ${date.toISOString().replace('T', ' ').replace('.000Z', ' UTC')}`}>
      {ago(at, now)}
    </time>
  )
}

/** The time of an end, which is to be known by its date. In how long that is, is said on hover. */
export function End({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={ago(at, Date.now())}>
      {exactTime(at)}
    </time>
  )
}

/** A time as tables search, sort and export it; nothing for none. */
export const isoTime = (seconds: number | null | undefined): string => (seconds ? new Date(seconds * 1000).toISOString().replace('.000Z', 'Z') : '')

/** A time in a text, where nothing says more on hover: with its zone. */
export function exactTime(seconds: number): string {
  return zoned.format(new Date(seconds * 1000))
}

/** The time of a day, by milliseconds: with its zone. */
export const clockText = (ms: number): string => clock.format(new Date(ms))

export function Count({ value }: { value: number }) {
  return <span title={whole.format(value)}>{value < 10_000 ? whole.format(value) : short.format(value)}</span>
}

export const countText = (value: number, one: string, many: string) => `${whole.format(value)} ${value === 1 ? one : many}`

/** A whole number of a unit, in the next larger one and what is left: 90 minutes are 1 h 30 min. */
function inTwo(count: number, size: number, large: string, small: string): string {
  const left = count % size
  return `${Math.floor(count / size)} ${large}${left === 0 ? '' : ` ${left} ${small}`}`
}

/** Milliseconds in the units that people would say. */
export function duration(ms: number): string {
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_599_500) return inTwo(Math.round(ms / 1000), 60, 'min', 's')
  if (ms < 172_770_000) return inTwo(Math.round(ms / 60_000), 60, 'h', 'min')
  return inTwo(Math.round(ms / 3_600_000), 24, 'd', 'h')
}
