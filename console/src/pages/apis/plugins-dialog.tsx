// A chain of plugins in a dialog, with the form of each.
import { useState } from 'react'
import { useSchema } from '../../api/hooks'
import type { Json } from '../../api/types'
import { Chain } from '../../form/chain'
import { Form } from '../../form/fields'
import { Failure } from '../../shell/page'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'

interface Props {
  title: string
  about: string
  value: Json[]
  isReadOnly: boolean
  onClose: () => void
  onDone: (value: Json[]) => void
}

const NONE = new Map<string, string[]>()

export function PluginsDialog({ title, about, value, isReadOnly, onClose, onDone }: Props) {
  const schema = useSchema()
  const [chain, setChain] = useState<Json[]>(value)
  return (
    <Dialog
      title={title}
      isOpen
      wide
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button look="primary" refused={isReadOnly ? 'You may not change this.' : null} onPress={() => onDone(chain)}>
            Done
          </Button>
        </>
      }
    >
      <p className="muted">{about}</p>
      {schema.error && <Failure error={schema.error} onRetry={() => void schema.refetch()} />}
      {schema.data && (
        <Form.Provider value={{ root: schema.data, findings: NONE, isReadOnly }}>
          <Chain name="plugins" schema={{}} value={chain} path={['plugins']} onChange={(next) => setChain(Array.isArray(next) ? next : [])} />
        </Form.Provider>
      )}
    </Dialog>
  )
}
