// Reads a call as people have it at hand: a line of `curl`, a method with a URL, or a URL alone.

export interface AskedCall {
  method: string
  url: string
  headers: [string, string][]
  body: string
}

/** Words as a shell splits them. */
function words(line: string): string[] {
  const found: string[] = []
  let word: string | null = null
  let quote = ''
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at] ?? ''
    if (quote !== '') {
      if (letter === quote) quote = ''
      else if (letter === '\\' && quote === '"' && at + 1 < line.length) word = (word ?? '') + (line[(at += 1)] ?? '')
      else word = (word ?? '') + letter
    } else if (letter === "'" || letter === '"') {
      quote = letter
      word ??= ''
    } else if (letter === '\\') {
      const next = line[(at += 1)] ?? ''
      // A backslash at the end of a line joins it with the next one.
      if (next !== '\n' && next !== '\r') word = (word ?? '') + next
    } else if (/\s/.test(letter)) {
      if (word !== null) found.push(word)
      word = null
    } else word = (word ?? '') + letter
  }
  if (word !== null) found.push(word)
  return found
}

/** Options of curl that have a value and say nothing of the call. */
const WITH_VALUE = new Set(['-o', '--output', '-m', '--max-time', '--connect-timeout', '--cacert', '--cert', '--key', '--resolve', '-w', '--write-out', '-x', '--proxy', '--retry'])

const header = (text: string): [string, string] => {
  const at = text.indexOf(':')
  return at === -1 ? [text.trim(), ''] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

const has = (call: AskedCall, name: string) => call.headers.some(([it]) => it.toLowerCase() === name)

const encoded = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

/** The call that a text says. */
export function parseCall(text: string): AskedCall {
  const call: AskedCall = { method: '', url: '', headers: [], body: '' }
  const all = words(text.trim())
  if (all[0] !== 'curl') {
    const isMethod = /^[A-Za-z]+$/.test(all[0] ?? '') && all.length > 1
    return { ...call, method: isMethod ? (all[0] ?? '').toUpperCase() : 'GET', url: (isMethod ? all[1] : all[0]) ?? '' }
  }
  const bodies: string[] = []
  for (let at = 1; at < all.length; at += 1) {
    let option = all[at] ?? ''
    let value: string | null = null
    const long = /^(--[\w-]+)=(.*)$/s.exec(option)
    if (long) [, option = '', value = ''] = long
    // `-XPOST`, `-HName: value`
    else if (/^-[XHduAbe]./.test(option)) [option, value] = [option.slice(0, 2), option.slice(2)]
    const next = () => value ?? all[(at += 1)] ?? ''
    switch (option) {
      case '-X':
      case '--request':
        call.method = next().toUpperCase()
        break
      case '-H':
      case '--header':
        call.headers.push(header(next()))
        break
      case '-d':
      case '--data':
      case '--data-raw':
      case '--data-binary':
      case '--data-ascii':
        bodies.push(next())
        break
      case '--json':
        bodies.push(next())
        call.headers.push(['Content-Type', 'application/json'])
        break
      case '-u':
      case '--user':
        call.headers.push(['Authorization', `Basic ${encoded(next())}`])
        break
      case '-A':
      case '--user-agent':
        call.headers.push(['User-Agent', next()])
        break
      case '-b':
      case '--cookie':
        call.headers.push(['Cookie', next()])
        break
      case '-e':
      case '--referer':
        call.headers.push(['Referer', next()])
        break
      case '-I':
      case '--head':
        call.method = 'HEAD'
        break
      case '--url':
        call.url = next()
        break
      default:
        if (WITH_VALUE.has(option)) next()
        else if (!option.startsWith('-')) call.url = option
    }
  }
  call.body = bodies.join('&')
  if (call.method === '') call.method = bodies.length > 0 ? 'POST' : 'GET'
  if (bodies.length > 0 && !has(call, 'content-type')) call.headers.push(['Content-Type', 'application/x-www-form-urlencoded'])
  return call
}

/** The call as a line of curl. */
export function asCurl(call: AskedCall): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const parts = ['curl']
  if (call.method !== 'GET') parts.push('-X', call.method)
  parts.push(quote(call.url))
  for (const [name, value] of call.headers) parts.push('-H', quote(`${name}: ${value}`))
  if (call.body !== '') parts.push('--data-raw', quote(call.body))
  return parts.join(' ')
}
