// Mails and webhooks: what waits, what was delivered, and why something was not.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { call, get } from '../api/client'
import { useRight } from '../api/rights'
import type { components } from '../../generated/api'
import { Empty, Failure, Page } from '../shell/page'
import { type Column, Table } from '../ui/table'
import { ButtonLink } from '../ui/button'
import { Time, isoTime } from '../ui/time'
import { toast } from '../ui/toast'

type Delivery = components['schemas']['DeliveryResponse']

const PATH = '/api/v1/deliveries'
const MOST = 500
const REFRESH_MS = 10_000
const tones: Record<string, string> = { delivered: 'good', failed: 'bad', waiting: 'warn' }
const key = (it: Delivery) => it.id
const last = (it: Delivery) => it.attempts.at(-1)

const columns: Column<Delivery>[] = [
  { id: 'kind', title: 'About', text: (it) => it.kind, width: 'minmax(8rem, 1.4fr)' },
  { id: 'state', title: 'State', text: (it) => it.state, render: (it) => <span className={`badge ${tones[it.state] ?? ''}`}>{it.state}</span>, width: '6.5rem' },
  { id: 'channel', title: 'As', text: (it) => it.channel, from: 2, width: '5.5rem' },
  { id: 'to', title: 'To', text: (it) => it.to, from: 2 },
  { id: 'created', title: 'Since', text: (it) => isoTime(it.created), order: (it) => it.created, render: (it) => <Time at={it.created} />, from: 2 },
  { id: 'attempts', title: 'Attempts', text: (it) => String(it.attempts.length), number: (it) => it.attempts.length, from: 3, width: '6rem' },
  { id: 'answer', title: 'Last answer', text: (it) => last(it)?.outcome ?? 'none yet', from: 3, width: 'minmax(8rem, 2fr)' },
  { id: 'next', title: 'Next attempt', text: (it) => isoTime(it.next), render: (it) => (it.next ? <Time at={it.next} /> : ''), from: 3 },
]

export default function Deliveries() {
  const deliveries = useQuery({
    queryKey: ['deliveries'],
    queryFn: async ({ signal }) => (await get<{ items: Delivery[] }>(PATH, { limit: MOST }, signal)).items,
    refetchInterval: REFRESH_MS,
  })
  const refused = useRight('alerts:write')
  const client = useQueryClient()
  const retry = async (chosen: Delivery[]) => {
    const open = chosen.filter((it) => it.state !== 'delivered')
    try {
      for (const it of open) await call('POST', `${PATH}/${encodeURIComponent(it.id)}/retry`)
      toast(open.length === 0 ? 'They are delivered already' : `${open.length} tried again`)
    } catch (error) {
      toast((error as Error).message, { isBad: true })
    }
    await client.invalidateQueries({ queryKey: ['deliveries'] })
  }
  return (
    <Page
      title="Deliveries"
      about="Mails and webhooks that Weir sends. One that fails is tried again, with longer and longer pauses."
      calls={[
        { about: 'List them', method: 'GET', path: PATH },
        { about: 'Those that failed', method: 'GET', path: `${PATH}?state=failed` },
        { about: 'Try one again', method: 'POST', path: `${PATH}/ID/retry` },
      ]}
    >
      {deliveries.error && deliveries.data === undefined ? (
        <Failure error={deliveries.error} onRetry={() => void deliveries.refetch()} />
      ) : (
        <Table
          label="Deliveries"
          rows={deliveries.data ?? []}
          columns={columns}
          rowKey={key}
          isLoading={deliveries.isLoading}
          noun={['delivery', 'deliveries']}
          bulk={[{ text: 'Try again', refused, run: (chosen) => void retry(chosen) }]}
          empty={
            <Empty
              title="Nothing was sent yet"
              example="weir run --data /var/lib/weir --smtp smtps://mail.example.com --mail-from weir@example.com"
              actions={
                <>
                  <ButtonLink to="/hooks">Webhooks</ButtonLink>
                  <ButtonLink to="/alerts">Alerts</ButtonLink>
                </>
              }
            >
              <p>Alerts, subscriptions and sign-ups send mails and call webhooks. Mails need a mail server:</p>
            </Empty>
          }
        />
      )}
    </Page>
  )
}
