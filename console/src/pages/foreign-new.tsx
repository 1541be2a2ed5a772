// A new document of Kong or APISIX: its form, made from the original's own schema, and its text. It is made through the
// original's Admin API, which fills in its defaults.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { ApiError } from '../api/client'
import { type Foreign, collectionOf, createForeign, listOf, useForeignSchema } from '../api/dialects'
import { readView } from '../api/hooks'
import { useRight } from '../api/rights'
import type { Fields } from '../api/types'
import { useDraft } from '../form/draft'
import { label } from '../form/schema'
import { SaveDialog } from '../form/save'
import { Failure, Page, PageActions } from '../shell/page'
import { useSegments } from '../shell/segments'
import { Button } from '../ui/button'
import { SelectField } from '../ui/field'
import { toast } from '../ui/toast'
import { DIALECTS } from './dialects'
import { Effects, movesCalls } from './effects'
import { findingsOf } from './foreign'
import { ForeignFields, type View, ViewTabs } from './foreign-fields'
import { useCatalogue } from '../api/hooks'

const PAUSE_MS = 400
const FIRST = ['name', 'username', 'uri', 'uris', 'url', 'paths', 'hosts', 'methods', 'service', 'upstream', 'snis']

/** Where each kind begins. */
const BEGIN: Record<string, Fields> = {
  'kong/vaults': { prefix: 'my-vault', name: 'hcv', config: { host: '127.0.0.1', port: 8200, mount: 'secret', kv: 'v2', token: '' } },
  'kong/plugins': { name: 'key-auth' },
  'apisix/routes': { uri: '/example', upstream: { type: 'roundrobin', nodes: { '127.0.0.1:1980': 1 } } },
  'apisix/services': { upstream: { type: 'roundrobin', nodes: { '127.0.0.1:1980': 1 } } },
  'apisix/upstreams': { type: 'roundrobin', nodes: { '127.0.0.1:1980': 1 } },
}

export default function NewForeign() {
  const [, dialect = 'kong', kind = 'routes'] = useSegments()
  return <Edit key={`${dialect}/${kind}`} dialect={dialect === 'apisix' ? 'apisix' : 'kong'} kind={kind} />
}

function Edit({ dialect, kind }: { dialect: 'kong' | 'apisix'; kind: string }) {
  const foreign = useMemo((): Foreign => collectionOf(dialect, kind), [dialect, kind])
  const [parameters] = useSearchParams()
  const plugin = parameters.get('plugin')
  const begin = useMemo((): Fields => ({ ...(BEGIN[`${dialect}/${kind}`] ?? {}), ...(plugin ? { name: plugin } : {}) }), [dialect, kind, plugin])
  const begun = useMemo(() => ({ data: begin, tag: null }), [begin])
  const { draft, isChanged, setValue, setText, setFormat, reset } = useDraft(`new ${foreign.path}`, begun)
  const schema = useForeignSchema(foreign, draft.value)
  const [view, setView] = useState<View>('form')
  const [after, setAfter] = useState<Fields | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [, go] = useLocation()
  const client = useQueryClient()
  const refused = useRight('configuration:write')
  const checked = useCheck(foreign, draft.value, isChanged && draft.error === null)
  const findings = useMemo(() => findingsOf(error instanceof ApiError ? error : checked), [error, checked])
  const title = `New ${DIALECTS[dialect]} ${kind.replace(/s$/, '')}`

  const attempt = async (work: () => Promise<void>) => {
    setBusy(true)
    setError(null)
    try {
      await work()
    } catch (wrong) {
      setAfter(null)
      setError(wrong)
    }
    setBusy(false)
  }
  const review = () => attempt(async () => setAfter(await createForeign(foreign, draft.value, true)))
  const commit = (note: string) =>
    attempt(async () => {
      const made = await createForeign(foreign, draft.value, false, note)
      reset(begin)
      await client.invalidateQueries({ queryKey: ['configuration'] })
      const id = String(made['id'] ?? made['username'] ?? '')
      const name = String(made['name'] ?? made['username'] ?? id)
      toast(`${name} is saved`)
      const list = listOf(kind)
      const row = list === null ? undefined : (await readView(list, '', '')).find((it) => it.dialect === dialect && (it.document ?? '').endsWith(`/${kind}/${id}`))
      go(row ? `/view/${list}/${encodeURIComponent(row.id)}` : `/${list ?? (kind === 'vaults' ? 'secrets' : 'plugins')}`)
    })
  return (
    <Page
      title={title}
      about={`It is made through ${DIALECTS[dialect]}'s Admin API, and kept as a document of ${DIALECTS[dialect]}: its clients read it back as they know it.`}
      {...(listOf(kind) ? { crumbs: [{ to: `/${listOf(kind)}`, text: label(listOf(kind) ?? '') }] } : {})}
      calls={[
        { about: 'Check it', method: foreign.kind === 'consumers' && dialect === 'apisix' ? 'PUT' : 'POST', path: foreign.path, body: draft.value, headers: { 'Weir-Dry-Run': 'true' } },
        { about: 'Make it', method: foreign.kind === 'consumers' && dialect === 'apisix' ? 'PUT' : 'POST', path: foreign.path, body: draft.value },
      ]}
    >
      <PageActions>
        {isChanged && <Button onPress={() => (reset(begin), setError(null))}>Discard</Button>}
        <Button look="primary" refused={refused ?? (draft.error ? 'The text cannot be read.' : null)} isBusy={isBusy} onPress={() => void review()}>
          Review and save
        </Button>
      </PageActions>
      <ViewTabs view={view} onChange={setView} />
      {dialect === 'kong' && kind === 'plugins' && <PluginChoice value={String(draft.value['name'] ?? '')} onChange={(name) => setValue({ ...draft.value, name, config: {} })} />}
      {error !== null && findings.size === 0 && <Failure error={error} onRetry={() => void review()} />}
      {(findings.get('') ?? []).length > 0 && (
        <div className="note bad" role="alert">
          {(findings.get('') ?? []).map((text) => (
            <span key={text}>{text}</span>
          ))}
        </div>
      )}
      {schema.error && <Failure error={schema.error} onRetry={() => void schema.refetch()} />}
      {schema.isLoading && <div className="skeleton tall" aria-busy="true" />}
      <ForeignFields dialect={dialect} name={title} without={foreign.own.filter((it) => it !== 'id' || dialect === 'kong')} first={FIRST} view={view} draft={draft} schema={schema.data} findings={findings} isReadOnly={refused !== null} setValue={setValue} setText={setText} setFormat={setFormat} />
      {after !== null && <SaveDialog title={`Save ${title.toLowerCase().replace('new ', 'the new ')}?`} before={undefined} after={after} warning={null} error={error} isBusy={isBusy} onClose={() => setAfter(null)} onCommit={(note) => void commit(note)}>
        {movesCalls(kind) && <Effects documents={{ [`${foreign.document}${String(after['id'] ?? 'new')}`]: after }} />}
      </SaveDialog>}
    </Page>
  )
}

/** Which plugin of Kong it is to be: the form below is made from that one's schema. */
function PluginChoice({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const catalogue = useCatalogue()
  const names = useMemo(() => [...new Set((catalogue.data ?? []).flatMap((it) => it.names['kong'] ?? []))].sort(), [catalogue.data])
  const options = names.includes(value) || value === '' ? names : [value, ...names]
  return <SelectField label="Plugin" value={value} onChange={onChange} options={options.map((it) => [it, it] as const)} />
}

/** What the original would say, asked a moment after the last change. */
function useCheck(foreign: Foreign, value: Fields, isWanted: boolean): ApiError | null {
  const [said, setSaid] = useState<ApiError | null>(null)
  useEffect(() => {
    if (!isWanted) {
      setSaid(null)
      return
    }
    const abort = new AbortController()
    const timer = setTimeout(() => {
      createForeign(foreign, value, true, '', abort.signal)
        .then(() => !abort.signal.aborted && setSaid(null))
        .catch((error: unknown) => {
          if (!abort.signal.aborted) setSaid(error instanceof ApiError && error.status === 400 ? error : null)
        })
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [foreign, value, isWanted])
  return said
}
