// The versions of one API × the environments. A cell leads to its publication; dragged to the right, it is promoted, and
// a button does the same.
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type Environment, type Publication, type VersionBrief, toPublication, toPublish, toVersion } from '../../api/apis'
import { State, notesOf } from './shared'

export function Cell({ to, publication, draft }: { to: string; publication: Publication; draft: string }) {
  const isBehind = publication.hash !== draft
  return (
    <span className="cell">
      <Link href={to}>r{publication.revision}</Link>
      {notesOf(publication).map((it) => (
        <span key={it.text} className={`badge ${it.tone}`}>
          {it.text}
        </span>
      ))}
      {isBehind && (
        <span className="muted small" title="The draft has changes that are not published here">
          <span aria-hidden="true">●</span>
          <span className="sr">differs from the draft</span>
        </span>
      )}
    </span>
  )
}

interface Props {
  api: string
  versions: VersionBrief[]
  environments: Environment[]
  publications: Publication[]
  refused: string | null
}

/** What is dragged: a version in an environment. */
type Dragged = { version: string; environment: string } | null

export function Matrix({ api, versions, environments, publications, refused }: Props) {
  const [dragged, setDragged] = useState<Dragged>(null)
  const [, go] = useLocation()
  return (
    <div className="wide">
      <table className="plain matrix" aria-label={`Versions of ${api} by environment`}>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">State</th>
            {environments.map((it) => (
              <th scope="col" key={it.name}>
                <Link href="/environments">{it.display_name || it.name}</Link>
                {it.protected && <span className="badge">protected</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {versions.map((version) => (
            <tr key={version.version}>
              <th scope="row">
                <Link href={toVersion(api, version.version)}>{version.version}</Link>
              </th>
              <td>
                <State state={version.line} />
              </td>
              {environments.map((environment, index) => {
                const here = publications.find((it) => it.version === version.version && it.environment === environment.name)
                const next = environments[index + 1]
                const after = next && publications.find((it) => it.version === version.version && it.environment === next.name)
                const canDrop = dragged?.version === version.version && dragged.environment !== environment.name
                return (
                  <td
                    key={environment.name}
                    data-drop={canDrop}
                    onDragOver={(event) => canDrop && event.preventDefault()}
                    onDrop={() => canDrop && go(toPublish(api, version.version, { to: environment.name, from: dragged?.environment ?? '' }))}
                  >
                    {here ? (
                      <div
                        className="stack tight"
                        draggable={!refused && version.line !== 'retired'}
                        onDragStart={() => setDragged({ version: version.version, environment: environment.name })}
                        onDragEnd={() => setDragged(null)}
                      >
                        <Cell to={toPublication(api, version.version, environment.name)} publication={here} draft={version.draft.hash} />
                        {next && after?.hash !== here.hash && !refused && version.line !== 'retired' && (
                          <Link
                            href={toPublish(api, version.version, { to: next.name, from: environment.name })}
                            className="small"
                          >
                            Promote to {next.display_name || next.name}
                            <span className="sr">
                              : {api} {version.version} from {environment.name}
                            </span>
                          </Link>
                        )}
                        {next && after?.hash === here.hash && <span className="muted small">the same in {next.display_name || next.name}</span>}
                      </div>
                    ) : version.line === 'retired' || refused ? (
                      <span className="muted">–</span>
                    ) : (
                      <Link href={toPublish(api, version.version, { to: environment.name })} className="muted small" aria-label={`Publish ${api} ${version.version} to ${environment.name}`}>
                        publish
                      </Link>
                    )}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
