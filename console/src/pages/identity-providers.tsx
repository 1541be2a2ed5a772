// Identity providers: where people log in through OpenID Connect, and which rights their groups give.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call, get } from '../api/client'
import { useRight } from '../api/rights'
import type { Right } from '../api/types'
import type { components } from '../../generated/api'
import { Empty, Failure, Page } from '../shell/page'
import { Act } from '../ui/act'
import { Button } from '../ui/button'
import { TextField } from '../ui/field'
import { type Column, Table } from '../ui/table'
import { toast } from '../ui/toast'
import { RightsField, areWhole } from './rights-field'

type Provider = components['schemas']['IdentityProvider']

const ALL = '/api/v1/identity-providers'
const pathOf = (name: string) => `${ALL}/${encodeURIComponent(name)}`
const key = (it: Provider) => it.name

const columnsOf = (open: (it: Provider) => void): Column<Provider>[] => [
  {
    id: 'name',
    title: 'Name',
    text: (it) => it.name,
    render: (it) => (
      <button type="button" className="link" onClick={() => open(it)}>
        {it.display_name}
      </button>
    ),
  },
  { id: 'issuer', title: 'Issuer', text: (it) => it.issuer, width: 'minmax(9rem, 2fr)' },
  { id: 'client', title: 'Client', text: (it) => it.client_id, from: 2 },
  { id: 'groups', title: 'Groups with rights', text: (it) => it.mappings.map((one) => one.group).join(', '), from: 2 },
]

export default function IdentityProviders() {
  const providers = useQuery({ queryKey: ['identity-providers'], queryFn: async ({ signal }) => (await get<{ items: Provider[] }>(ALL, {}, signal)).items })
  const [opened, setOpened] = useState<Provider | 'new' | null>(null)
  const [doomed, setDoomed] = useState<Provider[]>([])
  const refused = useRight('users:manage')
  const client = useQueryClient()
  const add = (
    <Button look="primary" refused={refused} onPress={() => setOpened('new')}>
      New identity provider
    </Button>
  )
  return (
    <Page
      title="Identity providers"
      about="People log in through a provider that speaks OpenID Connect. Their groups there decide what they may do here."
      calls={[
        { about: 'List them', method: 'GET', path: ALL },
        { about: 'Make or change one', method: 'PUT', path: pathOf('corp'), body: { issuer: 'https://id.example.com', client_id: 'weir', client_secret: '…', mappings: [{ group: 'weir-admins', rights: [{ role: 'admin' }] }] } },
      ]}
      actions={add}
    >
      {providers.error && providers.data === undefined ? (
        <Failure error={providers.error} onRetry={() => void providers.refetch()} />
      ) : (
        <Table
          label="Identity providers"
          rows={providers.data ?? []}
          columns={columnsOf(setOpened)}
          rowKey={key}
          isLoading={providers.isLoading}
          noun={['provider', 'providers']}
          bulk={[{ text: 'Remove', look: 'danger', refused, run: (rows) => setDoomed(rows) }]}
          empty={
            <Empty title="No identity provider">
              <p>Keycloak, Entra ID, Okta, Google and others speak OpenID Connect. Register Weir there as a confidential client, and map one group to admin.</p>
            </Empty>
          }
        />
      )}
      {opened !== null && <Edit known={opened === 'new' ? null : opened} onClose={() => setOpened(null)} />}
      {doomed.length > 0 && (
        <Act
          title={`Remove ${doomed.map((it) => it.display_name).join(', ')}?`}
          action="Remove"
          look="danger"
          onClose={() => setDoomed([])}
          run={async () => {
            try {
              for (const it of doomed) await call('DELETE', pathOf(it.name))
            } finally {
              await client.invalidateQueries()
            }
            setDoomed([])
          }}
        >
          <p>The sessions of those who logged in there end at once.</p>
        </Act>
      )}
    </Page>
  )
}

interface Mapping {
  group: string
  rights: Right[]
}

const FRESH: Mapping[] = [{ group: '', rights: [{ role: 'admin', workspace: '*' }] }]

function Edit({ known, onClose }: { known: Provider | null; onClose: () => void }) {
  const [fields, setFields] = useState({
    name: known?.name ?? '',
    display_name: known?.display_name ?? '',
    issuer: known?.issuer ?? '',
    client_id: known?.client_id ?? '',
    client_secret: '',
    base_url: known?.base_url ?? (known === null ? location.origin : ''),
    name_claim: known?.name_claim ?? '',
    groups_claim: known?.groups_claim ?? '',
  })
  const [mappings, setMappings] = useState<Mapping[]>(known === null ? FRESH : known.mappings.map((it) => ({ group: it.group, rights: [...it.rights] })))
  const client = useQueryClient()
  const field = (name: keyof typeof fields, label: string, more: { about?: string; placeholder?: string; isDisabled?: boolean; type?: 'password' } = {}) => (
    <TextField label={label} value={fields[name]} onChange={(value) => setFields({ ...fields, [name]: value })} autoComplete="off" {...more} />
  )
  const missing = fields.name === '' || fields.issuer === '' || fields.client_id === ''
  const wrong = missing ? 'Name, issuer and client are needed.' : mappings.some((it) => it.group.trim() === '') ? 'A mapping has no group.' : !mappings.every((it) => areWhole(it.rights)) ? 'A right has no name of its scope.' : null
  const save = async () => {
    const { name, ...rest } = fields
    const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value.trim() !== ''))
    await call('PUT', pathOf(name), { body: { ...given, ...(known ? { scopes: known.scopes } : {}), mappings }, headers: { 'if-match': known?.etag ?? undefined } })
    await client.invalidateQueries()
    toast(`People can log in with ${fields.display_name || name}`)
    onClose()
  }
  const redirect = `${fields.base_url.replace(/\/+$/, '') || location.origin}/api/v1/session/openid/${fields.name || 'NAME'}/callback`
  return (
    <Act title={known === null ? 'New identity provider' : known.display_name} action="Save" wide refused={wrong} onClose={onClose} run={save}>
      <div className="halves">
        {field('name', 'Name', { about: 'In addresses.', placeholder: 'corp', isDisabled: known !== null })}
        {field('display_name', 'Name for people', { about: 'What the button says.', placeholder: 'Example Corp' })}
        {field('issuer', 'Issuer', { placeholder: 'https://id.example.com' })}
        {field('base_url', 'Address of this Weir', { about: 'As browsers reach it.' })}
        {field('client_id', 'Client')}
        {field('client_secret', 'Secret of the client', { type: 'password', about: known?.has_client_secret ? 'Left empty, it stays what it is. It is never shown.' : 'It is never shown.' })}
        {field('name_claim', 'Claim with the name', { placeholder: 'preferred_username' })}
        {field('groups_claim', 'Claim with the groups', { placeholder: 'groups' })}
      </div>
      <p className="muted small">
        Register this redirect URI at the provider: <code>{redirect}</code>
      </p>
      {mappings.map((mapping, index) => (
        <section className="nested" key={index} aria-label={`Mapping ${index + 1}`}>
          <TextField
            label="Group"
            value={mapping.group}
            about="As the provider calls it. * is everybody whom it lets in."
            onChange={(group) => setMappings(mappings.map((it, at) => (at === index ? { ...it, group } : it)))}
          />
          <RightsField label="Rights of its members" value={mapping.rights} onChange={(rights) => setMappings(mappings.map((it, at) => (at === index ? { ...it, rights } : it)))} />
          {mappings.length > 1 && (
            <div>
              <Button small look="quiet" icon="trash" onPress={() => setMappings(mappings.filter((_, at) => at !== index))}>
                Remove this mapping
              </Button>
            </div>
          )}
        </section>
      ))}
      <div>
        <Button small icon="plus" onPress={() => setMappings([...mappings, { group: '', rights: [{ role: 'viewer', workspace: '*' }] }])}>
          Add a mapping
        </Button>
      </div>
    </Act>
  )
}
