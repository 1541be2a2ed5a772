// Webhooks: which servers are told what happens, and whether they could be.
import { Link } from 'wouter'
import { useStoredRight } from '../../api/rights'
import { type Hook, hookPath, hostOf, toHook, useHooks } from '../../api/webhooks'
import { Empty, Failure, Page } from '../../shell/page'
import { ButtonLink } from '../../ui/button'
import { type Column, Table } from '../../ui/table'

const columns: Column<Hook>[] = [
  { id: 'name', title: 'Name', text: (it) => it.name, render: (it) => <Link href={toHook(it.name)}>{it.name}</Link> },
  { id: 'url', title: 'Called at', text: (it) => it.url, width: 'minmax(9rem, 1.8fr)' },
  { id: 'events', title: 'Events', text: (it) => (it.events ?? []).join(', ') || 'all events', from: 2, width: 'minmax(7rem, 1.2fr)' },
  { id: 'apis', title: 'Of the APIs', text: (it) => (it.apis ?? []).join(', ') || 'all', from: 3 },
  { id: 'state', title: 'State', text: (it) => (it.disabled ? 'off' : 'on'), render: (it) => <span className={it.disabled ? 'badge' : 'badge good'}>{it.disabled ? 'off' : 'on'}</span>, from: 2, width: '5rem' },
  { id: 'deliveries', title: 'Deliveries', text: hostOf, render: (it) => <Link href={`/deliveries?q=${encodeURIComponent(`to:${hostOf(it)}`)}`}>Show<span className="sr"> deliveries to {hostOf(it)}</span></Link>, from: 3, width: '6rem' },
]

const key = (it: Hook) => it.name

export default function Hooks() {
  const hooks = useHooks()
  const refused = useStoredRight('alerts:write')
  const add = (
    <ButtonLink to="/hooks/@new" look="primary" refused={refused}>
      New webhook
    </ButtonLink>
  )
  return (
    <Page
      title="Webhooks"
      about="A webhook tells a server of yours what happens here: publications, subscriptions, keys, approvals. Each call is signed."
      calls={[
        { about: 'List webhooks', method: 'GET', path: '/api/v1/hooks' },
        { about: 'Make one', method: 'PUT', path: hookPath('ci'), body: { url: 'https://ci.example.com/weir', events: ['publication.*'] } },
      ]}
      actions={add}
    >
      {hooks.error && hooks.data === undefined ? (
        <Failure error={hooks.error} onRetry={() => void hooks.refetch()} />
      ) : (
        <Table
          label="Webhooks"
          rows={hooks.data ?? []}
          columns={columns}
          rowKey={key}
          isLoading={hooks.isLoading}
          noun={['webhook', 'webhooks']}
          empty={
            <Empty title="No webhooks yet" example={`curl -X PUT ${location.origin}${hookPath('ci')} \\\n  -d '{"url": "https://ci.example.com/weir", "events": ["publication.*"]}'`}>
              <p>Start a pipeline when a version is published, post requests for subscriptions to a chat, or keep a billing system up to date. Make one here, or on the command line:</p>
            </Empty>
          }
        />
      )}
    </Page>
  )
}
