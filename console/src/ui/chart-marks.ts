// How the lines and marks of a chart are told apart: no two lines look the same, and marks that are close are one.

const COLOURS = ['--accent', '--warn', '--bad', '--good', '--ink-2', '--line-strong']
/** Classes of answers have the colours that they have everywhere. */
const CLASSES: Record<string, string> = { '2xx': '--good', '3xx': '--accent', '4xx': '--warn', '5xx': '--bad', threshold: '--bad' }
/** Patterns beside colours, so that lines differ without them. */
const DASHES: number[][] = [[], [6, 3], [2, 3], [10, 4], [1, 2], [8, 2, 2, 2]]

export const tokenOf = (name: string, index: number): string => CLASSES[name] ?? COLOURS[index % COLOURS.length] ?? '--accent'

/** The pattern of a line. When all colours are used, the next ones have other patterns than those before. */
export const dashOf = (index: number): number[] => DASHES[(index + Math.floor(index / COLOURS.length)) % DASHES.length] ?? []

export interface Mark {
  at: number
  /** A publication is drawn as a whole line, a commit as a broken one. */
  kind: 'commit' | 'publication'
}

/** Marks that are drawn as one line. */
export interface MarkGroup {
  x: number
  kind: Mark['kind']
  count: number
}

/** Marks at their places, put together with those that are nearer than `gap` to the first of a group. */
export function grouped(placed: { x: number; kind: Mark['kind'] }[], gap: number): MarkGroup[] {
  const groups: { first: number; sum: number; kind: Mark['kind']; count: number }[] = []
  for (const { x, kind } of [...placed].sort((a, b) => a.x - b.x)) {
    const last = groups.at(-1)
    if (last === undefined || x - last.first >= gap) {
      groups.push({ first: x, sum: x, kind, count: 1 })
      continue
    }
    last.sum += x
    last.count += 1
    if (kind === 'publication') last.kind = kind
  }
  return groups.map(({ sum, kind, count }) => ({ x: Math.round(sum / count), kind, count }))
}
