// A page that the caller may not read says so, and which right it asks for, in place of calls that are refused.
import type { ReactNode } from 'react'
import { useCan } from '../api/rights'
import { Empty, Page } from './page'

export function Permitted({ title, action, children }: { title: string; action: string; children: ReactNode }) {
  const can = useCan()
  const asked = (can.data ?? []).filter((it) => it.action === action)
  if (asked.length === 0 || asked.some((it) => it.allowed)) return children
  return (
    <Page title={title} calls={[{ about: 'What you may do', method: 'GET', path: '/api/v1/me/can' }]}>
      <div className="table">
        <Empty title="This page is not for you">
          <p>{asked[0]?.reason ?? `Your roles do not allow this: it asks for ${action}.`}</p>
        </Empty>
      </div>
    </Page>
  )
}
