// What a publish of an adopted version asks: whether the routes that it was adopted from go in the same commit.
import type { Runtime, Source } from '../../api/apis'
import { useRight } from '../../api/rights'
import { CheckField } from '../../ui/field'
import { countText } from '../../ui/time'
import { DIALECTS } from '../dialects'

/** What the adoption has found, in the state of the address: a reload keeps it. */
const found = (): { adopted?: Runtime; notes?: string[] } => (history.state as { adopted?: Runtime; notes?: string[] } | null) ?? {}

/** The runtime with which a publication takes the same calls to the same backend. */
export const adoptedRuntime = (): Runtime | undefined => found().adopted

interface Props {
  source: Source
  environment: string
  value: boolean
  onChange: (value: boolean) => void
}

export function TakeOver({ source, environment, value, onChange }: Props) {
  const refused = useRight('configuration:write')
  const files = source.files ?? []
  return (
    <>
      <p>
        This version was adopted from {source.service} of {DIALECTS[source.dialect] ?? source.dialect}. Its routes serve all environments, and they take the same calls: beside them, the
        publication is refused as a conflict.
      </p>
      {(found().notes ?? []).length > 0 && (
        <div className="note warn">
          <strong>What it does not do as the routes do</strong>
          <ul>
            {(found().notes ?? []).map((it) => (
              <li key={it}>{it}</li>
            ))}
          </ul>
        </div>
      )}
      <CheckField
        label="Take them over: remove those routes in the same commit"
        value={value}
        isDisabled={refused !== null || files.length > 0}
        onChange={onChange}
        about={files.length > 0 ? `They stand in ${files.join(', ')}. Take them out there; Weir reads the file again by itself.` : refused}
      />
      {value && (
        <div className="note warn" role="status">
          <strong>{countText(source.documents.length, 'document is', 'documents are')} removed</strong>
          <span>
            Their plugins go with them, and so do calls in environments other than {environment}: publish the version there first. History can bring all of it back.
          </span>
          <ul>
            {source.documents.map((it) => (
              <li key={it}>
                <code>{it}</code>
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  )
}
