// What is done about developers, each in a dialog: deciding, changing, removing, making.
import { useState } from 'react'
import { type Developer, type DeveloperState, developerPath, developersPath } from '../../api/developers'
import { call } from '../../api/client'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { TextField } from '../../ui/field'
import { Time, countText } from '../../ui/time'
import { toast } from '../../ui/toast'

export interface Decision {
  name: 'approve' | 'refuse' | 'suspend' | 'resume'
  text: string
  done: string
  from: DeveloperState[]
  asksWhy: boolean
  look?: 'danger'
  about: string
}

export const DECISIONS: Record<'approve' | 'refuse' | 'suspend' | 'resume', Decision> = {
  approve: { name: 'approve', text: 'Approve', done: 'approved', from: ['confirmed', 'refused'], asksWhy: false, about: 'They can sign in at once, and get a mail that says so.' },
  refuse: { name: 'refuse', text: 'Refuse', done: 'refused', from: ['confirmed'], asksWhy: true, look: 'danger', about: 'They cannot sign in. You can approve them later.' },
  suspend: { name: 'suspend', text: 'Suspend', done: 'suspended', from: ['active'], asksWhy: true, look: 'danger', about: 'Their sessions end at once. Keys of their applications go on working: pause the subscriptions to stop calls.' },
  resume: { name: 'resume', text: 'Resume', done: 'active again', from: ['suspended'], asksWhy: false, about: 'They can sign in again, and get a mail that says so.' },
}

interface Common {
  portal: string
  onDone: () => Promise<void>
  onClose: () => void
}

/** Decides about one or several. Those of whom it is not possible are left. */
export function Decide({ portal, decision, chosen, onDone, onClose }: Common & { decision: Decision; chosen: Developer[] }) {
  const [reason, setReason] = useState('')
  const able = chosen.filter((it) => decision.from.includes(it.state))
  const left = chosen.length - able.length
  const [only] = able
  const who = able.length === 1 && only ? only.name : countText(able.length, 'developer', 'developers')
  const needs = decision.asksWhy && reason.trim() === '' ? 'Say why first: the developer reads it.' : null
  return (
    <Act
      title={`${decision.text} ${who}?`}
      action={decision.text}
      {...(decision.look ? { look: decision.look } : {})}
      refused={able.length === 0 ? 'This is not possible for any of them.' : needs}
      onClose={onClose}
      run={async () => {
        let done = 0
        try {
          for (const it of able) {
            await call('POST', `${developerPath(portal, it.id)}/${decision.name}`, { body: reason.trim() === '' ? {} : { reason } })
            done += 1
          }
          toast(`${who} ${decision.done}`)
          onClose()
        } finally {
          if (done > 0) await onDone()
        }
      }}
    >
      <p>{decision.about}</p>
      {left > 0 && <p className="muted">{countText(left, 'selected one stays as it is', 'selected ones stay as they are')}.</p>}
      {decision.asksWhy && <TextField label="Reason" value={reason} onChange={setReason} isRequired about="The developer reads it." autoFocus />}
    </Act>
  )
}

const split = (text: string) =>
  text
    .split(',')
    .map((it) => it.trim())
    .filter((it) => it !== '')

export function Edit({ portal, developer, refused, onDone, onFactor, onRemove, onClose }: Common & { developer: Developer; refused: string | null; onFactor: () => void; onRemove: () => void }) {
  const [name, setName] = useState(developer.name)
  const [groups, setGroups] = useState(developer.groups.join(', '))
  return (
    <Act
      title={developer.name}
      action="Save"
      refused={refused}
      onClose={onClose}
      run={async () => {
        await call('PUT', developerPath(portal, developer.id), { body: { name, groups: split(groups) } })
        await onDone()
        toast(`${name} is changed`)
        onClose()
      }}
    >
      <p className="muted">
        {developer.mail}, since <Time at={developer.created} />
        {developer.decided && (
          <>
            . {developer.decided.by} decided <Time at={developer.decided.at} />
            {developer.decided.reason && <>: “{developer.decided.reason}”</>}
          </>
        )}
      </p>
      <TextField label="Name" value={name} onChange={setName} isRequired />
      <TextField label="Groups" value={groups} onChange={setGroups} placeholder="partners, beta" about="They decide which APIs, plans and pages this developer sees. Separate them with commas." />
      {developer.teams.length > 0 && <p className="muted">Teams: {developer.teams.map((it) => `${it.name} (${it.role})`).join(', ')}</p>}
      {developer.applications.length > 0 && <p className="muted">Applications: {developer.applications.join(', ')}</p>}
      <div className="row">
        {developer.has_second_factor && (
          <Button look="quiet" refused={refused} onPress={onFactor}>
            Turn off two-factor login
          </Button>
        )}
        <Button look="quiet" icon="trash" refused={refused} onPress={onRemove}>
          Remove this developer
        </Button>
      </div>
    </Act>
  )
}

/** Lets somebody in again who has lost app and recovery codes. */
export function RemoveFactor({ portal, developer, onDone, onClose }: Common & { developer: Developer }) {
  return (
    <Act
      title={`Turn off two-factor login of ${developer.name}?`}
      action="Turn it off"
      look="danger"
      onClose={onClose}
      run={async () => {
        await call('DELETE', `${developerPath(portal, developer.id)}/second-factor`)
        await onDone()
        toast(`${developer.name} signs in with the password alone`)
        onClose()
      }}
    >
      <p>Be sure that it is {developer.name} who asks for it: the password alone is enough then. A mail says so.</p>
    </Act>
  )
}

export function Remove({ portal, developer, onDone, onClose }: Common & { developer: Developer }) {
  return (
    <Act
      title={`Remove ${developer.name}?`}
      action="Remove"
      look="danger"
      refused={developer.applications.length > 0 ? 'Applications belong to this developer: give them to a team, or remove them first.' : null}
      onClose={onClose}
      run={async () => {
        await call('DELETE', developerPath(portal, developer.id))
        await onDone()
        toast(`${developer.name} is removed`)
        onClose()
      }}
    >
      <p>The account is gone for good, with its sessions. The developer leaves all teams, and gets a mail that says so.</p>
    </Act>
  )
}

export function Invite({ portal, onDone, onClose }: Common) {
  const [fields, setFields] = useState({ mail: '', name: '', groups: '' })
  return (
    <Act
      title="New developer"
      action="Create"
      refused={fields.mail.trim() === '' || fields.name.trim() === '' ? 'It needs a mail address and a name.' : null}
      onClose={onClose}
      run={async () => {
        await call('POST', developersPath(portal), { body: { mail: fields.mail, name: fields.name, groups: split(fields.groups) } })
        await onDone()
        toast(`A mail to ${fields.mail} is on its way`)
        onClose()
      }}
    >
      <p>The developer gets a mail with a link to set a password, and need not be approved.</p>
      <TextField label="Mail address" type="email" value={fields.mail} onChange={(mail) => setFields({ ...fields, mail })} isRequired autoFocus />
      <TextField label="Name" value={fields.name} onChange={(name) => setFields({ ...fields, name })} isRequired />
      <TextField label="Groups" value={fields.groups} onChange={(groups) => setFields({ ...fields, groups })} placeholder="partners, beta" />
    </Act>
  )
}
