// What a page of the portal says where nothing is yet: what it is for, and what to do first.
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../ui/icons'

export function Empty({ title, icon, children, actions }: { title: string; icon: IconName; children: ReactNode; actions?: ReactNode }) {
  return (
    <div className="card empty-card">
      <div className="empty">
        <span className="emblem">
          <Icon name={icon} />
        </span>
        <h2>{title}</h2>
        {children}
        {actions && <div className="row">{actions}</div>}
      </div>
    </div>
  )
}
