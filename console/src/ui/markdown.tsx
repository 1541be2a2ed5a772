// Markdown beside the field that it is typed into: headings, lists, quotes, code, links and emphasis. Each leaf is a text,
// so that nothing in it can run. The portal itself reads more of Markdown.
import type { ReactNode } from 'react'

const INLINE = /(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|_[^_\s][^_]*_|\[[^\]]+\]\([^)\s]+\))/

/** Only addresses that lead somewhere; others stay as they are written. */
const isAddress = (to: string) => /^(https?:\/\/|\/(?!\/)|#|mailto:)/i.test(to)

function inline(text: string): ReactNode[] {
  return text.split(INLINE).map((part, index) => {
    if (part.startsWith('`') && part.length > 2) return <code key={index}>{part.slice(1, -1)}</code>
    if (part.startsWith('**') && part.length > 4) return <strong key={index}>{part.slice(2, -2)}</strong>
    if (/^[*_].+[*_]$/.test(part)) return <em key={index}>{part.slice(1, -1)}</em>
    const [, words, to] = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(part) ?? []
    if (words !== undefined && to !== undefined && isAddress(to))
      return (
        <a key={index} href={to} rel="noopener noreferrer nofollow" target="_blank">
          {words}
        </a>
      )
    return part
  })
}

/** Texts between empty lines, with code between fences as one. */
function blocks(text: string): string[] {
  const found: string[] = []
  let lines: string[] = []
  let isCode = false
  const end = () => {
    if (lines.length > 0) found.push(lines.join('\n'))
    lines = []
  }
  for (const line of text.split('\n')) {
    const isFence = line.startsWith('```')
    if (isFence && !isCode) end()
    if (isFence) isCode = !isCode
    if (!isCode && !isFence && line.trim() === '') end()
    else if (!isCode && !isFence && /^#{1,6} /.test(line)) {
      end()
      found.push(line)
    } else lines.push(line)
    if (isFence && !isCode) end()
  }
  end()
  return found
}

const ITEM = /^\s*([-*+]|\d+[.)])\s+/

function Block({ text }: { text: string }) {
  if (text.startsWith('```')) {
    return (
      <pre className="code" tabIndex={0}>
        {text.replace(/^```[^\n]*\n?/, '').replace(/\n?```$/, '')}
      </pre>
    )
  }
  const [, marks, title] = /^(#{1,6}) (.*)$/.exec(text) ?? []
  if (marks !== undefined && title !== undefined) return marks.length < 3 ? <h3 className="first">{inline(title)}</h3> : <h4>{inline(title)}</h4>
  if (/^(-{3,}|\*{3,})$/.test(text.trim())) return <hr />
  const lines = text.split('\n')
  if (ITEM.test(lines[0] ?? '')) {
    const items = lines.reduce<string[]>((all, line) => (ITEM.test(line) ? [...all, line.replace(ITEM, '')] : [...all.slice(0, -1), `${all.at(-1) ?? ''} ${line.trim()}`]), [])
    const inner = items.map((it, index) => <li key={index}>{inline(it)}</li>)
    return /^\s*\d/.test(text) ? <ol>{inner}</ol> : <ul>{inner}</ul>
  }
  if (lines.every((line) => line.startsWith('>'))) return <blockquote>{inline(lines.map((line) => line.replace(/^>\s?/, '')).join(' '))}</blockquote>
  return <p>{inline(lines.join(' '))}</p>
}

export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      {blocks(text).map((it, index) => (
        <Block key={index} text={it} />
      ))}
    </div>
  )
}
