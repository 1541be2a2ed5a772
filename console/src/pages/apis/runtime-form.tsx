// What holds in one environment only: where the backends are, and under which hosts and path the API is called. It never
// travels with a revision.
import type { Backend, Environment, Runtime } from '../../api/apis'
import { AreaField, CheckField, ChoiceField, TextField, lines } from '../../ui/field'

interface Props {
  runtime: Runtime
  environment: Environment | undefined
  /** The backends that components name. */
  backends: string[]
  onChange: (runtime: Runtime) => void
}

export function RuntimeForm({ runtime, environment, backends, onChange }: Props) {
  const base = environment?.base_urls?.find((it) => it !== '')
  const set = (name: string, backend: Backend) => onChange({ ...runtime, backends: { ...runtime.backends, [name]: backend } })
  const spare = Object.keys(runtime.backends).filter((it) => !backends.includes(it))
  return (
    <div className="stack">
      {backends.map((name) => (
        <BackendForm key={name} name={name} isOnly={backends.length === 1} backend={runtime.backends[name] ?? {}} onChange={(backend) => set(name, backend)} />
      ))}
      {spare.length > 0 && <p className="muted small">No component uses these backends; they are kept: {spare.join(', ')}.</p>}
      <div className="grid">
        <TextField
          label="Base path"
          value={runtime.base_path}
          placeholder="/v1"
          isMono
          onChange={(base_path) => onChange({ ...runtime, base_path })}
          about={base ? `Callers use ${base}${runtime.base_path}` : 'The path before those of the operations.'}
        />
        <AreaField label="Hosts" rows={2} value={(runtime.hosts ?? []).join('\n')} placeholder="every host" isMono onChange={(text) => onChange({ ...runtime, hosts: text.split('\n') })} about="One on each line." />
      </div>
      <CheckField label="The backend does not see the base path" value={runtime.strip_base_path === true} onChange={(strip_base_path) => onChange({ ...runtime, strip_base_path })} />
    </div>
  )
}

/** Without what is empty. */
export function tidyRuntime(runtime: Runtime): Runtime {
  const hosts = (runtime.hosts ?? []).map((it) => it.trim()).filter((it) => it !== '')
  const { hosts: _, strip_base_path, ...rest } = runtime
  return { ...rest, ...(hosts.length > 0 ? { hosts } : {}), ...(strip_base_path ? { strip_base_path } : {}) }
}

/** The backends that have no address yet. */
export const withoutAddress = (runtime: Runtime, backends: string[]): string[] =>
  backends.filter((name) => {
    const backend = runtime.backends[name]
    return !backend?.url && (backend?.targets ?? []).length === 0
  })

const targetsText = (backend: Backend): string => (backend.targets ?? []).map((it) => `${it.host}:${it.port}${it.weight === 100 ? '' : ` ${it.weight}`}`).join('\n')

function targetsIn(text: string): NonNullable<Backend['targets']> {
  return lines(text).map((line) => {
    const [address = '', weight] = line.split(/\s+/)
    const at = address.lastIndexOf(':')
    return { host: at === -1 ? address : address.slice(0, at), port: at === -1 ? 80 : Number(address.slice(at + 1)) || 0, weight: Number(weight ?? 100) }
  })
}

function BackendForm({ name, isOnly, backend, onChange }: { name: string; isOnly: boolean; backend: Backend; onChange: (backend: Backend) => void }) {
  const isGroup = backend.targets !== undefined
  const { url: _, targets: __, scheme: ___, path: ____, ...kept } = backend
  const title = isOnly ? 'Backend' : `Backend ${name}`
  return (
    <fieldset className="nested" aria-label={title}>
      <ChoiceField
        label={title}
        value={isGroup ? 'targets' : 'url'}
        onChange={(kind) => onChange(kind === 'url' ? { ...kept, url: '' } : { ...kept, targets: [] })}
        options={[
          { value: 'url', text: 'One address' },
          { value: 'targets', text: 'Several servers' },
        ]}
      />
      {isGroup ? (
        <>
          <AreaField
            label="Servers"
            rows={3}
            isMono
            value={backend.targets && backend.targets.length > 0 ? targetsText(backend) : ''}
            placeholder={'10.0.0.1:8080\n10.0.0.2:8080 50'}
            onChange={(text) => onChange({ ...backend, targets: targetsIn(text) })}
            about="host:port, and a weight if it is not 100. One on each line."
          />
          <div className="grid">
            <TextField label="Scheme" value={backend.scheme ?? ''} placeholder="http" offered={['http', 'https']} onChange={(scheme) => onChange(scheme === '' ? without(backend, 'scheme') : { ...backend, scheme })} />
            <TextField label="Path before the call's own" value={backend.path ?? ''} placeholder="none" onChange={(path) => onChange(path === '' ? without(backend, 'path') : { ...backend, path })} />
          </div>
        </>
      ) : (
        <TextField label="Address" value={backend.url ?? ''} placeholder="http://10.0.0.1:8080/path" isMono isRequired onChange={(url) => onChange({ ...backend, url })} />
      )}
      {Object.keys(kept).length > 0 && <p className="muted small">Kept as they are: {Object.keys(kept).join(', ')}.</p>}
    </fieldset>
  )
}

function without(backend: Backend, name: 'scheme' | 'path'): Backend {
  const next = { ...backend }
  delete next[name]
  return next
}
