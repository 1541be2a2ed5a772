// A call in the languages that people call from.
import type { Wire } from './request'

export const LANGUAGES = ['curl', 'JavaScript', 'Python', 'Go', 'Rust'] as const
export type Language = (typeof LANGUAGES)[number]

const shell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const quoted = (text: string) => JSON.stringify(text)

function curl({ method, url, headers, body }: Wire): string {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}${shell(url)}`]
  for (const [name, value] of headers) lines.push(`-H ${shell(`${name}: ${value}`)}`)
  if (body !== null && 'form' in body) {
    const flag = body.media.startsWith('multipart') ? '-F' : '--data-urlencode'
    for (const [name, value, isFile] of body.form) lines.push(`${flag} ${shell(`${name}=${isFile ? '@' : ''}${value}`)}`)
  } else if (body !== null) lines.push(`--data-binary ${shell(body.text)}`)
  return lines.join(' \\\n  ')
}

function javascript({ method, url, headers, body }: Wire): string {
  const options = [`  method: ${quoted(method)},`]
  if (headers.length > 0) options.push(`  headers: { ${headers.map(([name, value]) => `${quoted(name)}: ${quoted(value)}`).join(', ')} },`)
  const before: string[] = []
  if (body !== null && 'form' in body) {
    const isMultipart = body.media.startsWith('multipart')
    before.push(`const body = new ${isMultipart ? 'FormData' : 'URLSearchParams'}()`)
    for (const [name, value, isFile] of body.form) before.push(`body.append(${quoted(name)}, ${isFile ? `file, ${quoted(value)}` : quoted(value)})`)
    options.push('  body,')
  } else if (body !== null) options.push(`  body: ${isJson(body) ? `JSON.stringify(${indent(body.text, '  ')})` : quoted(body.text)},`)
  return [...before, `const response = await fetch(${quoted(url)}, {`, ...options, '})', 'console.log(response.status, await response.text())'].join('\n')
}

function isJson(body: { media: string; text: string }): boolean {
  if (!body.media.includes('json')) return false
  try {
    JSON.parse(body.text)
    return true
  } catch {
    return false
  }
}

const indent = (text: string, by: string) => text.split('\n').join(`\n${by}`)

function python({ method, url, headers, body }: Wire): string {
  const lines = ['import requests', '', 'response = requests.request(', `    ${quoted(method)},`, `    ${quoted(url)},`]
  const all = headers.filter(([name]) => !(name === 'Content-Type' && body !== null && 'form' in body))
  if (all.length > 0) lines.push(`    headers={${all.map(([name, value]) => `${quoted(name)}: ${quoted(value)}`).join(', ')}},`)
  if (body !== null && 'form' in body) {
    const files = body.form.filter(([, , isFile]) => isFile)
    const plain = body.form.filter(([, , isFile]) => !isFile)
    if (plain.length > 0) lines.push(`    data={${plain.map(([name, value]) => `${quoted(name)}: ${quoted(value)}`).join(', ')}},`)
    if (files.length > 0) lines.push(`    files={${files.map(([name, value]) => `${quoted(name)}: open(${quoted(value)}, "rb")`).join(', ')}},`)
  } else if (body !== null) lines.push(`    data=${quoted(body.text)},`)
  return [...lines, ')', 'print(response.status_code, response.text)'].join('\n')
}

function go({ method, url, headers, body }: Wire): string {
  const isMultipart = body !== null && 'form' in body && body.media.startsWith('multipart')
  const imports = new Set(['fmt', 'io', 'net/http'])
  const before: string[] = []
  let reader = 'nil'
  if (body !== null && 'form' in body && isMultipart) {
    for (const name of ['bytes', 'mime/multipart']) imports.add(name)
    before.push('var body bytes.Buffer', 'form := multipart.NewWriter(&body)')
    for (const [name, value, isFile] of body.form) {
      if (isFile) {
        imports.add('os')
        before.push(`part, _ := form.CreateFormFile(${quoted(name)}, ${quoted(value)})`, `file, _ := os.Open(${quoted(value)})`, 'io.Copy(part, file)')
      } else before.push(`form.WriteField(${quoted(name)}, ${quoted(value)})`)
    }
    before.push('form.Close()')
    reader = '&body'
  } else if (body !== null && 'form' in body) {
    for (const name of ['net/url', 'strings']) imports.add(name)
    before.push('form := url.Values{}', ...body.form.map(([name, value]) => `form.Set(${quoted(name)}, ${quoted(value)})`))
    reader = 'strings.NewReader(form.Encode())'
  } else if (body !== null) {
    imports.add('strings')
    reader = `strings.NewReader(${quoted(body.text)})`
  }
  const lines = [...before, `request, err := http.NewRequest(${quoted(method)}, ${quoted(url)}, ${reader})`, 'if err != nil {', '\tpanic(err)', '}']
  for (const [name, value] of headers) lines.push(`request.Header.Set(${quoted(name)}, ${quoted(value)})`)
  if (isMultipart) lines.push('request.Header.Set("Content-Type", form.FormDataContentType())')
  else if (body !== null && 'form' in body) lines.push(`request.Header.Set("Content-Type", ${quoted(body.media)})`)
  lines.push('response, err := http.DefaultClient.Do(request)', 'if err != nil {', '\tpanic(err)', '}', 'defer response.Body.Close()')
  lines.push('text, _ := io.ReadAll(response.Body)', 'fmt.Println(response.Status, string(text))')
  const block = [...imports].sort().map((it) => `\t${quoted(it)}`)
  return ['package main', '', 'import (', ...block, ')', '', 'func main() {', ...lines.map((it) => `\t${it}`), '}'].join('\n')
}

/** A text as Rust writes it: what has lines and quotes of its own stays as it is. */
function rustText(text: string): string {
  if (text.includes('\n') && !text.includes('"#') && !text.includes('\r')) return `r#"${text}"#`
  const named: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
  const escaped = text.replace(/[\\"]/g, '\\$&').replace(/[\p{Cc}]/gu, (it) => named[it] ?? `\\u{${it.charCodeAt(0).toString(16)}}`)
  return `"${escaped}"`
}

function rust({ method, url, headers, body }: Wire): string {
  const before: string[] = []
  const isForm = body !== null && 'form' in body
  const isMultipart = isForm && body.media.startsWith('multipart')
  const chain = headers.filter(([name]) => !(name === 'Content-Type' && isForm)).map(([name, value]) => `.header(${rustText(name)}, ${rustText(value)})`)
  if (isForm && isMultipart) {
    before.push('let form = reqwest::blocking::multipart::Form::new()')
    for (const [name, value, isFile] of body.form) before.push(`    .${isFile ? 'file' : 'text'}(${rustText(name)}, ${rustText(value)})${isFile ? '?' : ''}`)
    before[before.length - 1] += ';'
    chain.push('.multipart(form)')
  } else if (isForm) chain.push(`.form(&[${body.form.map(([name, value]) => `(${rustText(name)}, ${rustText(value)})`).join(', ')}])`)
  else if (body !== null) chain.push(`.body(${rustText(body.text)})`)
  const lines = [
    ...before,
    'let response = reqwest::blocking::Client::new()',
    `    .request(${rustText(method)}.parse()?, ${rustText(url)})`,
    ...chain.map((it) => `    ${it}`),
    '    .send()?;',
    'println!("{} {}", response.status(), response.text()?);',
    'Ok(())',
  ]
  const features = isMultipart ? '"blocking", "multipart"' : '"blocking"'
  return [`// reqwest = { version = "0.12", features = [${features}] }`, 'fn main() -> Result<(), Box<dyn std::error::Error>> {', ...lines.map((it) => `    ${it}`), '}'].join('\n')
}

/** The call in a language. */
export function sample(language: Language, wire: Wire): string {
  return { curl, JavaScript: javascript, Python: python, Go: go, Rust: rust }[language](wire)
}
