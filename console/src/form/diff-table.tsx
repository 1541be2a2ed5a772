// Differences, field by field.
import type { Json } from '../api/types'
import { differences, pathText } from './path'
import { Shown } from './show'

export function DiffTable({ before, after }: { before: Json | undefined; after: Json | undefined }) {
  const found = differences(before, after)
  const [only] = found
  // What is made or removed as a whole has nothing beside it.
  if (found.length === 1 && only && only.path.length === 0 && (only.before === undefined || only.after === undefined)) {
    const isMade = only.before === undefined
    return (
      <figure className={isMade ? 'whole is' : 'whole was'}>
        <figcaption>{isMade ? 'What it is' : 'What it was'}</figcaption>
        <Shown value={isMade ? only.after : only.before} />
      </figure>
    )
  }
  if (found.length === 0) return <p className="muted">Nothing differs.</p>
  return (
    <div className="wide">
      <table className="diff">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {found.map((it) => (
            <tr key={pathText(it.path)}>
              <th scope="row">
                <code>{pathText(it.path) || 'the document'}</code>
              </th>
              <td className={it.before === undefined ? '' : 'was'}>
                <Shown value={it.before} />
              </td>
              <td className={it.after === undefined ? '' : 'is'}>
                <Shown value={it.after} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
