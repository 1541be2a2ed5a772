// The operations of a version beside its document: which component serves each, with which plugins of its own. Several
// are assigned at once.
import { useMemo, useState } from 'react'
import type { Component, Operation, OperationSettings } from '../../api/apis'
import type { Json } from '../../api/types'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { SelectField, TextField } from '../../ui/field'
import { type Column, Table } from '../../ui/table'
import { countText } from '../../ui/time'
import { PluginsDialog } from './plugins-dialog'
import { Method } from './shared'

interface Props {
  operations: Operation[]
  components: Component[]
  settings: Record<string, OperationSettings>
  refused: string | null
  onChange: (settings: Record<string, OperationSettings>) => void
}

const key = (it: Operation) => it.id

/** Settings that say nothing are left out, unless they tell which operation it was. */
function tidy(settings: OperationSettings): OperationSettings | null {
  const kept: OperationSettings = { ...settings }
  if (!kept.component) delete kept.component
  if (!kept.plugins || kept.plugins.length === 0) delete kept.plugins
  if (!kept.hidden) delete kept.hidden
  return Object.keys(kept).length === 0 ? null : kept
}

export function DesignOperations({ operations, components, settings, refused, onChange }: Props) {
  const [plugins, setPlugins] = useState<Operation | null>(null)
  const [assigned, setAssigned] = useState<Operation[] | null>(null)
  const change = (chosen: Operation[], more: Partial<OperationSettings>) => {
    const next = { ...settings }
    for (const { id } of chosen) {
      const own = tidy({ ...next[id], ...more })
      if (own === null) delete next[id]
      else next[id] = own
    }
    onChange(next)
  }
  const columns = useMemo(
    (): Column<Operation>[] => [
      {
        id: 'operation',
        title: 'Operation',
        text: (it) => `${it.method} ${it.path} ${it.summary ?? ''} ${it.id}`,
        render: (it) => (
          <span className="row nowrap" title={it.summary ?? it.id}>
            <Method name={it.method} />
            <span className={settings[it.id]?.hidden ? 'clip struck' : 'clip'}>{it.path}</span>
            {it.deprecated && <span className="badge warn">deprecated</span>}
            {settings[it.id]?.hidden && <span className="badge">not served</span>}
          </span>
        ),
        width: 'minmax(9rem, 2fr)',
      },
      { id: 'component', title: 'Component', text: (it) => settings[it.id]?.component ?? components[0]?.name ?? '', width: 'minmax(4rem, 0.7fr)', from: 2 },
      {
        id: 'plugins',
        title: 'Plugins',
        text: (it) => String((settings[it.id]?.plugins ?? []).length),
        number: (it) => (settings[it.id]?.plugins ?? []).length,
        render: (it) => (
          <button type="button" className="button quiet small" onClick={() => setPlugins(it)}>
            {(settings[it.id]?.plugins ?? []).length || 'Add'}
            <span className="sr"> plugins of {it.id}</span>
          </button>
        ),
        width: '4.5rem',
      },
    ],
    [settings, components],
  )
  return (
    <section className="stack tight" aria-label="Operations">
      <Table
        label="Operations"
        rows={operations}
        columns={columns}
        rowKey={key}
        noun={['operation', 'operations']}
        bulk={[
          { text: 'Assign', refused, run: (rows) => setAssigned(rows) },
          { text: 'Do not serve', refused, run: (chosen) => change(chosen, { hidden: true }) },
          { text: 'Serve', refused, run: (chosen) => change(chosen, { hidden: false }) },
        ]}
        empty={<p className="empty muted">The document describes no operation yet: write one below `paths`.</p>}
      />
      {plugins && (
        <PluginsDialog
          title={`Plugins of ${plugins.method.toUpperCase()} ${plugins.path}`}
          about="They run for this operation only, after those of its component."
          value={(settings[plugins.id]?.plugins ?? []) as Json[]}
          isReadOnly={refused !== null}
          onClose={() => setPlugins(null)}
          onDone={(value: Json[]) => {
            change([plugins], { plugins: value })
            setPlugins(null)
          }}
        />
      )}
      {assigned && (
        <Assign
          count={assigned.length}
          components={components}
          onClose={() => setAssigned(null)}
          onDone={(component) => {
            change(assigned, { component: component === components[0]?.name ? '' : component })
            setAssigned(null)
          }}
        />
      )}
    </section>
  )
}

function Assign({ count, components, onClose, onDone }: { count: number; components: Component[]; onClose: () => void; onDone: (component: string) => void }) {
  const [component, setComponent] = useState(components[0]?.name ?? '')
  return (
    <Act title={`Assign ${countText(count, 'operation', 'operations')}`} action="Assign" onClose={onClose} run={async () => onDone(component)}>
      <SelectField label="Component" value={component} onChange={setComponent} options={components.map((it) => [it.name, `${it.name}, served by the backend ${it.backend}`] as const)} />
    </Act>
  )
}

interface ComponentsProps {
  components: Component[]
  chain: Json[]
  refused: string | null
  onChange: (components: Component[]) => void
  onChain: (chain: Json[]) => void
}

/** The groups of operations: each has a backend, by its name, and plugins. */
export function DesignComponents({ components, chain, refused, onChange, onChain }: ComponentsProps) {
  const [edited, setEdited] = useState<{ index: number; component: Component } | null>(null)
  const [plugins, setPlugins] = useState<number | 'all' | null>(null)
  const set = (index: number, component: Component) => onChange(components.map((it, at) => (at === index ? component : it)))
  return (
    <section className="card" aria-label="Components">
      <div className="head2">
        <h2>Components</h2>
        <div className="row">
          <Button small look="quiet" onPress={() => setPlugins('all')}>
            Plugins of all operations ({String(chain.length)})
          </Button>
          <Button small refused={refused} onPress={() => setEdited({ index: components.length, component: { name: '', backend: '' } })}>
            New component
          </Button>
        </div>
      </div>
      <p className="muted small">A component is a group of operations with one backend. The backend is a name here; its address is given when you publish.</p>
      <ul className="lines-list">
        {components.map((it, index) => (
          <li key={it.name} className="row between">
            <span>
              <strong>{it.name}</strong> <span className="muted">backend</span> <code>{it.backend}</code>
              {index === 0 && components.length > 1 && <span className="muted"> takes what is assigned to none</span>}
              {it.prefix && (
                <span className="muted">
                  {' '}
                  all below <code>{it.prefix}</code>
                </span>
              )}
            </span>
            <span className="row">
              <Button small look="quiet" onPress={() => setPlugins(index)}>
                Plugins ({String((it.plugins ?? []).length)})<span className="sr"> of {it.name}</span>
              </Button>
              <Button small look="quiet" refused={refused} onPress={() => setEdited({ index, component: it })}>
                Edit<span className="sr"> {it.name}</span>
              </Button>
            </span>
          </li>
        ))}
      </ul>
      {edited && (
        <EditComponent
          {...edited}
          known={components}
          onClose={() => setEdited(null)}
          onDone={(component) => {
            if (component === null) onChange(components.filter((_, at) => at !== edited.index))
            else if (edited.index === components.length) onChange([...components, component])
            else set(edited.index, component)
            setEdited(null)
          }}
        />
      )}
      {plugins !== null && (
        <PluginsDialog
          title={plugins === 'all' ? 'Plugins of all operations' : `Plugins of ${components[plugins]?.name ?? ''}`}
          about={plugins === 'all' ? 'They run for every operation, before those of its component.' : 'They run for every operation of this component.'}
          value={plugins === 'all' ? chain : ((components[plugins]?.plugins ?? []) as Json[])}
          isReadOnly={refused !== null}
          onClose={() => setPlugins(null)}
          onDone={(value) => {
            const component = plugins === 'all' ? undefined : components[plugins]
            if (plugins === 'all') onChain(value)
            else if (component) {
              const { plugins: _, ...rest } = component
              set(plugins, value.length === 0 ? rest : { ...rest, plugins: value })
            }
            setPlugins(null)
          }}
        />
      )}
    </section>
  )
}

interface EditProps {
  index: number
  component: Component
  known: Component[]
  onClose: () => void
  /** `null`: it is to go. */
  onDone: (component: Component | null) => void
}

function EditComponent({ index, component, known, onClose, onDone }: EditProps) {
  const [fields, setFields] = useState(component)
  const isNew = index === known.length
  const isTwice = known.some((it, at) => at !== index && it.name === fields.name)
  return (
    <Act
      title={isNew ? 'New component' : `Edit ${component.name}`}
      action="Done"
      refused={fields.name === '' ? 'It needs a name.' : isTwice ? 'A component of this name exists.' : fields.backend === '' ? 'It needs the name of a backend.' : null}
      onClose={onClose}
      run={async () => {
        const { prefix, ...rest } = fields
        onDone(prefix ? { ...rest, prefix } : rest)
      }}
    >
      <TextField label="Name" value={fields.name} onChange={(name) => setFields({ ...fields, name })} autoFocus />
      <TextField label="Backend" value={fields.backend} onChange={(backend) => setFields({ ...fields, backend })} offered={[...new Set(known.map((it) => it.backend))]} about="A name, not an address." />
      <TextField label="One route for all paths below" value={fields.prefix ?? ''} onChange={(prefix) => setFields({ ...fields, prefix })} placeholder="one route for each operation" />
      {!isNew && known.length > 1 && (
        <div>
          <Button look="quiet" icon="trash" onPress={() => onDone(null)}>
            Remove this component
          </Button>
        </div>
      )}
    </Act>
  )
}
