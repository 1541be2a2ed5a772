// One version: its operations beside its document. Either is edited, and the other follows; nothing is served of it until
// it is published.
import { useQueryClient } from '@tanstack/react-query'
import { Suspense, lazy, useMemo, useState } from 'react'
import { type VersionDetail, toPublish, useSpec, useVersion, versionPath } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import type { Json } from '../../api/types'
import { ConflictDialog } from '../../form/conflict'
import { DiffTable } from '../../form/diff-table'
import { Failure, Page } from '../../shell/page'
import { useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { toast } from '../../ui/toast'
import { type Edited, bodyOf, editedOf, findingsIn, useCheckedDraft, useEdited } from './design-draft'
import { DesignComponents, DesignOperations } from './design-operations'
import { DesignText } from './design-text'
import { OperationChanges, State, Waiting } from './shared'
import { VersionTabs, crumbsOf } from './version-tabs'

const ExportVersion = lazy(() => import('./export'))

export default function Design() {
  const [, api = '', name = ''] = useSegments()
  const version = useVersion(api, name)
  const spec = useSpec(api, name, version.data?.draft.spec)
  if (version.data === undefined || spec.data === undefined) return <Waiting title={`${api} ${name}`} crumbs={crumbsOf(api)} queries={[version, spec]} />
  return <DesignOf key={`${api}/${name}`} version={version.data} spec={spec.data} />
}

function DesignOf({ version, spec }: { version: VersionDetail; spec: string }) {
  const { api, version: name } = version
  const { hash, base, edited, isChanged, change, reset } = useEdited(version, spec)
  const checked = useCheckedDraft(version, base, edited)
  const [above, setAbove] = useState<'export' | { save: string | null } | { theirs: Edited; hash: string } | null>(null)
  const right = useRight('apis:write')
  const publishing = useRight('apis:publish')
  const refused = right ?? (version.line === 'retired' ? 'It is retired: callers get 410.' : null)
  const shown = checked.detail ?? version
  const broken = checked.refused
  const findings = useMemo(() => (broken ? findingsIn(broken) : shown.findings), [broken, shown])
  const title = `${api} ${name}`
  const cannotSave = refused ?? (!isChanged ? 'Nothing is changed.' : broken ? 'What is found as an error has to be mended first.' : checked.isChecking ? 'It is being checked.' : null)
  const [error, setError] = useState<unknown>(null)
  const review = async () => {
    setError(null)
    try {
      const { data: latest, tag } = await call<VersionDetail>('GET', versionPath(api, name))
      if (latest.hash === hash) return setAbove({ save: tag })
      const text = latest.draft.spec === version.draft.spec ? spec : (await call<string>('GET', `${versionPath(api, name)}/spec`, { asText: true })).data
      setAbove({ theirs: editedOf(latest, text), hash: latest.hash })
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <Page
      title={title}
      about={
        <>
          <State state={version.line} /> {version.format} {version.draft.state !== 'clean' && <span className="badge accent">draft {version.draft.state.replaceAll('-', ' ')}</span>}
        </>
      }
      crumbs={crumbsOf(api)}
      calls={[
        { about: 'Read the version', method: 'GET', path: versionPath(api, name) },
        { about: 'Its document, as it was uploaded', method: 'GET', path: `${versionPath(api, name)}/spec` },
        { about: 'Change the draft without storing it', method: 'PUT', path: versionPath(api, name), body: bodyOf(base, edited), headers: { 'Weir-Dry-Run': 'true' } },
      ]}
      actions={
        <>
          <Button look="quiet" icon="download" onPress={() => setAbove('export')}>
            Export
          </Button>
          {isChanged && (
            <Button onPress={() => reset(version.hash, editedOf(version, spec))}>Discard</Button>
          )}
          <Button refused={cannotSave} onPress={() => void review()}>
            Review and save
          </Button>
          <ButtonLink to={toPublish(api, name)} look="primary" refused={publishing ?? (version.line === 'retired' ? 'It is retired.' : isChanged ? 'Save the draft first.' : null)}>
            Publish
          </ButtonLink>
        </>
      }
    >
      <VersionTabs api={api} version={name} at="design" />
      {hash !== version.hash && isChanged && (
        <div className="note warn" role="status">
          <strong>A newer draft exists</strong>
          <span>Somebody changed it since you began. Saving shows both side by side.</span>
        </div>
      )}
      {error !== null && <Failure error={error} onRetry={() => void review()} />}
      {broken && findings.length === 0 && (
        <div className="note bad" role="alert">
          <strong>Weir would refuse this</strong>
          <span>{broken.message}</span>
        </div>
      )}
      <div className="design">
        <div className="stack">
          <DesignOperations operations={shown.operations} components={edited.components} settings={edited.operations} refused={refused} onChange={(operations) => change({ operations })} />
          <DesignComponents components={edited.components} chain={edited.chain} refused={refused} onChange={(components) => change({ components })} onChain={(chain) => change({ chain })} />
        </div>
        <div className="stack">
          <DesignText title={title} text={edited.spec} findings={findings} isReadOnly={refused !== null} onChange={(text) => change({ spec: text })} />
        </div>
      </div>
      <Suspense fallback={null}>{above === 'export' && <ExportVersion api={api} version={name} onClose={() => setAbove(null)} />}</Suspense>
      {typeof above === 'object' && above !== null && 'save' in above && (
        <SaveDraft
          tag={above.save}
          version={version}
          base={base}
          edited={edited}
          after={checked.detail}
          onClose={() => setAbove(null)}
          onSaved={(stored) => {
            reset(stored.hash, editedOf(stored, edited.spec))
            setAbove(null)
          }}
        />
      )}
      {typeof above === 'object' && above !== null && 'theirs' in above && (
        <ConflictDialog
          base={base as unknown as Record<string, Json>}
          theirs={above.theirs as unknown as Record<string, Json>}
          mine={edited as unknown as Record<string, Json>}
          by={null}
          onClose={() => setAbove(null)}
          onMerged={(value) => {
            reset(above.hash, above.theirs, value as unknown as Edited)
            setAbove(null)
          }}
        />
      )}
    </Page>
  )
}

interface SaveProps {
  /** The version that was looked at: nothing that somebody stores meanwhile is lost. */
  tag: string | null
  version: VersionDetail
  base: Edited
  edited: Edited
  after: VersionDetail | null
  onClose: () => void
  onSaved: (stored: VersionDetail) => void
}

function SaveDraft({ tag, version, base, edited, after, onClose, onSaved }: SaveProps) {
  const client = useQueryClient()
  const { spec: _, ...before } = base
  const { spec: __, ...next } = edited
  return (
    <Act
      title={`Save the draft of ${version.api} ${version.version}?`}
      action="Save the draft"
      wide
      onClose={onClose}
      run={async () => {
        const answer = await call<VersionDetail>('PUT', versionPath(version.api, version.version), { body: bodyOf(base, edited), headers: { 'if-match': tag ?? undefined } })
        client.setQueryData(['spec', version.api, version.version, answer.data.draft.spec], edited.spec)
        onSaved(answer.data)
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast('The draft is saved. Nothing is served of it until you publish.')
      }}
    >
      <h3>Operations</h3>
      <OperationChanges operations={after?.diff?.operations ?? []} />
      <h3>Components, plugins and assignments</h3>
      <DiffTable before={before as unknown as Json} after={next as unknown as Json} />
    </Act>
  )
}
