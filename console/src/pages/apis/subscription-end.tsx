// When a subscription ends, and how that is changed.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Subscription, subscriptionPath } from '../../api/apis'
import { call } from '../../api/client'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { TextField } from '../../ui/field'
import { Time } from '../../ui/time'
import { toast } from '../../ui/toast'

/** A day of a field, as its end in seconds since 1970. */
const endOf = (day: string): number => Math.floor(new Date(`${day}T23:59:59Z`).getTime() / 1000)
const dayOf = (at: number): string => new Date(at * 1000).toISOString().slice(0, 10)

/** Those that are over have another way back, or none. */
const isOpen = (it: Subscription): boolean => ['pending', 'accepted', 'paused', 'stopped'].includes(it.state)

export function Ends({ subscription: it, refused, onChange }: { subscription: Subscription; refused: string | null; onChange: () => void }) {
  return (
    <span className="row tight">
      {it.ends ? <Time at={it.ends} /> : 'never'}
      {isOpen(it) && (
        <Button small look="quiet" refused={refused} onPress={onChange}>
          Change<span className="sr"> the end</span>
        </Button>
      )}
    </span>
  )
}

export function ChangeEnd({ subscription: it, onClose }: { subscription: Subscription; onClose: () => void }) {
  const [day, setDay] = useState(it.ends ? dayOf(it.ends) : '')
  const client = useQueryClient()
  const isPast = day !== '' && endOf(day) <= Date.now() / 1000
  return (
    <Act
      title="When it ends"
      action="Save"
      refused={isPast ? 'That day is over.' : null}
      onClose={onClose}
      run={async () => {
        await call('PUT', `${subscriptionPath(it.id)}/ends`, { body: { ends: day === '' ? null : endOf(day) } })
        await client.invalidateQueries({ queryKey: ['configuration'] })
        toast(day === '' ? 'It has no end' : `It ends on ${day}`)
        onClose()
      }}
    >
      <TextField label="Last day" type="date" value={day} onChange={setDay} wrong={isPast ? 'Choose a day that lies ahead.' : null} about="In UTC. Without a day it goes on until it is closed." />
    </Act>
  )
}
