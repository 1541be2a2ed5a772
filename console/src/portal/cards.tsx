// An API as a card of the catalogue.
import { Link } from 'wouter'
import { countText } from '../ui/time'
import type { Card } from './data'

const SECURITY: Record<string, string> = { keyless: 'No key needed', key: 'API key', basic: 'User name and password', hmac: 'Signed calls', jwt: 'Tokens that you sign', oauth2: 'Access tokens', mtls: 'Client certificate' }

export const securityText = (kind: string) => SECURITY[kind] ?? kind

/** The logo of something; without one, its first letter in one of a few colours. */
export function Logo({ title, image, isLarge = false }: { title: string; image: string | null; isLarge?: boolean }) {
  const look = `logo${isLarge ? ' large' : ''}`
  if (image !== null) return <img className={look} src={image} alt="" />
  const sum = [...title].reduce((all, letter) => all + (letter.codePointAt(0) ?? 0), 0)
  return (
    <span className={`${look} of-${sum % 4}`} aria-hidden="true">
      {[...title.trim()][0]?.toUpperCase() ?? '?'}
    </span>
  )
}

export function Cards({ items }: { items: Card[] }) {
  return (
    <ul className="cards">
      {items.map((it) => (
        <li key={it.name} className="card link-card api-card">
          <div className="name">
            <Logo title={it.title} image={it.logo} />
            <div>
              <h2>
                <Link href={`/apis/${encodeURIComponent(it.name)}`}>{it.title}</Link>
              </h2>
              <span className="muted small">
                {it.version}
                {it.category && ` · ${it.category}`}
              </span>
            </div>
          </div>
          <p className="muted summary">{it.summary || 'No description yet.'}</p>
          <div className="row">
            {it.is_deprecated && <span className="badge warn">deprecated</span>}
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
