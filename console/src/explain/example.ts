// A call that a route may take, as a link to its explanation.

/** Hosts, paths and methods of a route; what it leaves open is filled in. */
export function tryLink(hosts: string[], paths: string[], methods: string[]): string {
  const [host = 'localhost'] = hosts
  const [path = '/'] = paths
  const url = `http://${host.replace('*', 'www')}${path.replace(/^[=~]+/, '').replaceAll(/\{[^}]*\}/g, '1')}`
  return `/explain?${new URLSearchParams({ method: methods[0] ?? 'GET', url })}`
}
