// An API as a card of the catalogue.
import { Link } from 'wouter'
import { countText } from '../ui/time'
import type { Card } from './data'

const SECURITY: Record<string, string> = { keyless: 'No key needed', key: 'API key' }

export const securityText = (kind: string) => SECURITY[kind] ?? kind

export function Cards({ items }: { items: Card[] }) {
  return (
    <ul className="cards">
      {items.map((it) => (
        <li key={it.name} className="card api-card">
          <div className="row between">
            <h2>
              <Link href={`/apis/${encodeURIComponent(it.name)}`}>{it.title}</Link>
            </h2>
            <span className="badge accent">{it.version}</span>
          </div>
          <p className="muted summary">{it.summary || 'No description yet.'}</p>
          <div className="row">
            {it.is_deprecated && <span className="badge warn">deprecated</span>}
            {it.category && <span className="badge">{it.category}</span>}
            {it.security.map((kind) => (
              <span key={kind} className="badge">
                {securityText(kind)}
              </span>
            ))}
            <span className="muted small">{countText(it.operations, 'operation', 'operations')}</span>
          </div>
        </li>
      ))}
    </ul>
  )
}
