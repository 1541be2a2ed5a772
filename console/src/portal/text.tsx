// Texts of people: a tree of few kinds of nodes that the server made of Markdown. Every leaf is a text, so that nothing in
// it can run.
import { Link } from 'wouter'
import type { TextNode } from './data'

export function Text({ nodes }: { nodes: TextNode[] }) {
  return <div className="text">{nodes.map((node, index) => <Block key={index} node={node} />)}</div>
}

const Children = ({ node }: { node: TextNode }) => <>{node.children?.map((it, index) => <Block key={index} node={it} />)}</>

export function slug(node: TextNode): string {
  const words = (it: TextNode): string => (it.text ?? '') + (it.children?.map(words).join('') ?? '')
  return words(node).toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-')
}

function Block({ node }: { node: TextNode }) {
  const inner = <Children node={node} />
  switch (node.kind) {
    case 'heading':
      return <Heading node={node} />
    case 'list':
      return node.level == null ? <ul>{inner}</ul> : <ol start={node.level}>{inner}</ol>
    case 'item':
      return <li>{inner}</li>
    case 'quote':
      return <blockquote>{inner}</blockquote>
    case 'callout':
      return <Callout node={node} />
    case 'code':
      return (
        <pre className="code" tabIndex={0}>
          <code>{node.text}</code>
        </pre>
      )
    case 'table':
      return (
        <div className="wide" tabIndex={0} role="group" aria-label="Table">
          <table className="plain">
            <tbody>{inner}</tbody>
          </table>
        </div>
      )
    case 'row':
      return <tr>{node.children?.map((cell, index) => (node.to === 'head' ? <th key={index} scope="col"><Children node={cell} /></th> : <td key={index}><Children node={cell} /></td>))}</tr>
    case 'rule':
      return <hr />
    case 'break':
      return <br />
    case 'text':
      return <>{node.text}</>
    case 'strong':
      return <strong>{inner}</strong>
    case 'emphasis':
      return <em>{inner}</em>
    case 'strike':
      return <s>{inner}</s>
    case 'inline-code':
      return <code>{node.text}</code>
    case 'link':
      return <TextLink node={node} />
    case 'image':
      return <img src={node.to} alt={node.text ?? ''} loading="lazy" />
    case 'paragraph':
      return <p>{inner}</p>
    default:
      return <span>{inner}</span>
  }
}

/** The page has a first heading of its own: those of a text begin below it. */
function Heading({ node }: { node: TextNode }) {
  const inner = <Children node={node} />
  const id = slug(node)
  if (node.level === 1 || node.level === 2) return <h2 id={id}>{inner}</h2>
  return <h3 id={id}>{inner}</h3>
}

const CALLOUTS: Record<string, [string, string]> = {
  note: ['Note', ''],
  tip: ['Tip', ''],
  important: ['Important', 'warn'],
  warning: ['Warning', 'warn'],
  caution: ['Caution', 'bad'],
}

function Callout({ node }: { node: TextNode }) {
  const [title, look] = CALLOUTS[node.to ?? ''] ?? ['Note', '']
  return (
    <div className={`note ${look}`} role="note">
      <strong>{title}</strong>
      <Children node={node} />
    </div>
  )
}

function TextLink({ node }: { node: TextNode }) {
  const to = node.to ?? ''
  const inner = node.children?.length ? <Children node={node} /> : to
  if (to.startsWith('/') && !to.startsWith('//')) return <Link href={to}>{inner}</Link>
  return (
    <a href={to} rel="noopener noreferrer nofollow">
      {inner}
    </a>
  )
}
