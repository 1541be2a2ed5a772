// A version as OpenAPI, with the servers and the security of the gateway: what callers need, and nothing of what is behind.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { usePublications, versionPath } from '../../api/apis'
import { get } from '../../api/client'
import type { Json } from '../../api/types'
import { Failure } from '../../shell/page'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { ChoiceField, SelectField } from '../../ui/field'
import { copy, saveFile } from '../../ui/files'
import { stringify } from '../../yaml'

interface Props {
  api: string
  version: string
  /** The environment that is chosen first. */
  environment?: string
  onClose: () => void
}

/** As much of it as is drawn; the file has all. */
const SHOWN = 20_000

export default function ExportVersion({ api, version, environment, onClose }: Props) {
  const publications = usePublications()
  const places = (publications.data ?? []).filter((it) => it.api === api && it.version === version).map((it) => it.environment)
  const [chosen, setChosen] = useState(environment ?? '')
  const [format, setFormat] = useState<'yaml' | 'json'>('yaml')
  const document = useQuery({
    queryKey: ['configuration', 'export', api, version, chosen],
    queryFn: ({ signal }) => get<Json>(`${versionPath(api, version)}/openapi`, { environment: chosen }, signal),
  })
  const text = useMemo(() => (document.data === undefined ? null : format === 'yaml' ? stringify(document.data) : `${JSON.stringify(document.data, null, 2)}\n`), [document.data, format])
  const refused = text === null ? 'It is not there yet.' : null
  return (
    <Dialog
      title={`Export ${api} ${version}`}
      isOpen
      wide
      onClose={onClose}
      actions={
        <>
          <Button refused={refused} onPress={() => void copy(text ?? '')}>
            Copy
          </Button>
          <Button look="primary" refused={refused} onPress={() => saveFile(`${api}-${version}.${format}`, format === 'json' ? 'application/json' : 'application/yaml', [text ?? ''])}>
            Download
          </Button>
        </>
      }
    >
      <p className="muted">OpenAPI with the addresses and the keys of the gateway. Backends and plugins are not in it.</p>
      <div className="grid">
        <SelectField
          label="As served in"
          value={chosen}
          onChange={setChosen}
          options={[['', places.length === 0 ? 'nowhere yet: the draft' : 'the draft'], ...places.map((it) => [it, it] as const)]}
        />
        <ChoiceField
          label="Format"
          value={format}
          onChange={setFormat}
          options={[
            { value: 'yaml', text: 'YAML' },
            { value: 'json', text: 'JSON' },
          ]}
        />
      </div>
      {document.error ? (
        <Failure error={document.error} onRetry={() => void document.refetch()} />
      ) : text === null ? (
        <div className="skeleton tall" aria-busy="true" />
      ) : (
        <pre className="code export" tabIndex={0} aria-label="Document">
          {text.slice(0, SHOWN)}
          {text.length > SHOWN && '\n…'}
        </pre>
      )}
    </Dialog>
  )
}
