// What a browser calls itself, in two words.

const BROWSERS = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari', 'curl'] as const
const TITLES: Record<string, string> = { Edg: 'Edge', OPR: 'Opera' }
const SYSTEMS = [['iPhone', 'iPhone'], ['iPad', 'iPad'], ['Android', 'Android'], ['Windows', 'Windows'], ['Mac OS', 'macOS'], ['Linux', 'Linux']] as const

export function browserText(agent: string): string {
  const browser = BROWSERS.find((it) => agent.includes(`${it}/`))
  const system = SYSTEMS.find(([mark]) => agent.includes(mark))?.[1]
  if (browser === undefined) return agent.slice(0, 40) || 'Unknown browser'
  return `${TITLES[browser] ?? browser}${system === undefined ? '' : ` on ${system}`}`
}
