// Applications: the programs that call APIs.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type Application, type Subscription, compact, useApplications, useSubscriptions } from '../../api/apis'
import { call } from '../../api/client'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { TextField } from '../../ui/field'
import { type Column, Table } from '../../ui/table'
import { toast } from '../../ui/toast'
import { targetText } from './shared'

export const toApplication = (name: string) => `/applications/${encodeURIComponent(name)}`
export const applicationPath = (name: string) => `/api/v1/applications/${encodeURIComponent(name)}`

interface Row {
  application: Application
  subscriptions: Subscription[]
}

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (it) => it.application.name, render: (it) => <Link href={toApplication(it.application.name)}>{it.application.display_name || it.application.name}</Link> },
  { id: 'owner', title: 'Owner', text: (it) => it.application.owner ?? '', from: 2 },
  {
    id: 'subscriptions',
    title: 'Subscribes to',
    text: (it) => it.subscriptions.map(targetText).join(', ') || 'nothing',
    render: (it) => (it.subscriptions.length === 0 ? <span className="muted">nothing</span> : it.subscriptions.map((one) => `${targetText(one)} (${one.plan})`).join(', ')),
    width: 'minmax(8rem, 2fr)',
  },
  { id: 'state', title: 'State', text: (it) => (it.application.archived ? 'archived' : 'active'), from: 2, width: '6rem' },
]

const key = (it: Row) => it.application.name

export default function Applications() {
  const [applications, subscriptions] = [useApplications(), useSubscriptions()]
  const [isAdding, setAdding] = useState(false)
  const refused = useRight('subscriptions:write', 'createApplication')
  const rows = useMemo(
    () =>
      (applications.data ?? []).map((application) => ({
        application,
        subscriptions: (subscriptions.data ?? []).filter((it) => it.application === application.name && it.state !== 'closed' && it.state !== 'rejected'),
      })),
    [applications.data, subscriptions.data],
  )
  const add = (
    <Button look="primary" refused={refused} onPress={() => setAdding(true)}>
      New application
    </Button>
  )
  return (
    <Page
      title="Applications"
      about="An application is a program that calls. It subscribes to APIs and holds the keys for them."
      calls={[
        { about: 'List applications', method: 'GET', path: '/api/v1/applications' },
        { about: 'Make one', method: 'PUT', path: applicationPath('shop'), body: { owner: 'team-web' } },
      ]}
      actions={add}
    >
      {applications.error && applications.data === undefined ? (
        <Failure error={applications.error} onRetry={() => void applications.refetch()} />
      ) : (
        <Table
          label="Applications"
          rows={rows}
          columns={columns}
          rowKey={key}
          isLoading={applications.isLoading}
          noun={['application', 'applications']}
          empty={
            <Empty title="No applications yet" example={`curl -X PUT ${location.origin}/api/v1/applications/shop -d '{}'`}>
              <p>Developers make applications in the portal. You can make one here for somebody, or on the command line:</p>
            </Empty>
          }
        />
      )}
      {isAdding && <NewApplication known={(applications.data ?? []).map((it) => it.name)} onClose={() => setAdding(false)} />}
    </Page>
  )
}

function NewApplication({ known, onClose }: { known: string[]; onClose: () => void }) {
  const [fields, setFields] = useState<Omit<Application, 'key_mode'>>({ name: '', display_name: '', description: '', owner: '' })
  const [, go] = useLocation()
  const client = useQueryClient()
  const set = <K extends keyof Application>(name: K, value: Application[K]) => setFields({ ...fields, [name]: value })
  return (
    <Act
      title="New application"
      action="Create"
      refused={fields.name === '' ? 'It needs a name.' : known.includes(fields.name) ? 'An application of this name exists.' : null}
      onClose={onClose}
      run={async () => {
        await call('POST', '/api/v1/applications', { body: compact(fields) })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${fields.name} is there`)
        go(toApplication(fields.name))
      }}
    >
      <TextField label="Name" value={fields.name} onChange={(value) => set('name', value)} placeholder="shop" autoFocus isRequired />
      <TextField label="Name for people" value={fields.display_name ?? ''} onChange={(value) => set('display_name', value)} />
      <TextField label="What it does" value={fields.description ?? ''} onChange={(value) => set('description', value)} />
      <TextField label="Owner" value={fields.owner ?? ''} onChange={(value) => set('owner', value)} placeholder="a developer or a team" />
    </Act>
  )
}
