// Live calls: what was missed while the stream was broken is read from the log, and what cannot be read is named.
import { expect, test } from 'vitest'
import type { Call } from '../src/api/analytics'
import { type LogPage, merged, readMissed } from '../src/pages/live-calls'

const call = (time: number): Call => ({ time, request_id: `r${time}`, path: '/' }) as Call
const calls = (...times: number[]) => times.map(call)
const times = (all: Call[]) => all.map((it) => it.time)

/** A log that answers with these pages, one after the other. */
function log(...pages: LogPage[]) {
  const asked: (string | undefined)[] = []
  const read = async (after: string | undefined) => {
    asked.push(after)
    return pages[asked.length - 1] ?? { calls: [], complete: true }
  }
  return { asked, read }
}

test('calls of several lists stand in one, the latest first, each of them once', () => {
  expect(times(merged([calls(5, 2), calls(4, 2, 1)]))).toEqual([5, 4, 2, 1])
})

test.each([
  ['the log reaches back to what is shown', calls(3, 2), [{ calls: calls(5, 4, 3), complete: false, next: 'a' }], [5, 4, 3], null, [undefined]],
  ['it does so on its second page', calls(2), [{ calls: calls(5, 4), complete: false, next: 'a' }, { calls: calls(3, 2), complete: false, next: 'b' }], [5, 4, 3, 2], null, [undefined, 'a']],
  ['it begins after what is shown', calls(2), [{ calls: calls(5, 4), complete: true }], [5, 4], { from: 2, to: 4 }, [undefined]],
  ['it was lost', calls(2), [{ calls: [], complete: true }], [], { from: 2, to: 9 }, [undefined]],
  ['nothing was shown yet', [], [{ calls: calls(5, 4), complete: false, next: 'a' }], [5, 4], null, [undefined]],
] as [string, Call[], LogPage[], number[], object | null, (string | undefined)[]][])('what was missed, if %s', async (_, shown, pages, found, gap, asked) => {
  const source = log(...pages)
  const missed = await readMissed(shown, 9, source.read)
  expect({ found: times(missed.calls), gap: missed.gap, asked: source.asked }).toEqual({ found, gap, asked })
})

test('a log with too many calls is read for some pages only', async () => {
  const page = (time: number): LogPage => ({ calls: calls(time), complete: false, next: String(time) })
  const source = log(...Array.from({ length: 10 }, (_, index) => page(100 - index)))
  const missed = await readMissed(calls(1), 200, source.read)
  expect(source.asked).toHaveLength(4)
  expect(missed.gap).toEqual({ from: 1, to: 97 })
})
