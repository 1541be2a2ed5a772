// The quickest way from nothing to a route that answers: an address, a path, and a key if callers shall show one. All of it
// is one commit of plain documents, which are edited like any others.
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { call } from '../api/client'
import { useGatewayAddress } from '../api/hooks'
import { useRight } from '../api/rights'
import type { Fields } from '../api/types'
import { Failure } from '../shell/page'
import { Button } from '../ui/button'
import { CheckField, TextField } from '../ui/field'
import { copy } from '../ui/files'
import { toast } from '../ui/toast'

const KEY_BYTES = 16
const CONSUMER = 'first-caller'

/** Bits that cannot be guessed, as text. */
const freshKey = (): string => [...crypto.getRandomValues(new Uint8Array(KEY_BYTES))].map((it) => it.toString(16).padStart(2, '0')).join('')

/** The name of what answers at a path: `/orders/v1` gives `orders-v1`. */
export const nameFor = (path: string): string => path.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'first'

interface Made {
  name: string
  path: string
  key: string | null
}

export default function QuickStart() {
  const [fields, setFields] = useState({ url: '', path: '', isProtected: true })
  const [made, setMade] = useState<Made | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const right = useRight('configuration:write')
  const client = useQueryClient()
  const path = fields.path.trim() === '' ? '' : fields.path.trim().startsWith('/') ? fields.path.trim() : `/${fields.path.trim()}`
  const refused = right ?? (fields.url.trim() === '' ? 'It needs the address of an API.' : path === '' ? 'It needs a path.' : null)
  const create = async () => {
    setBusy(true)
    setError(null)
    const name = nameFor(path)
    const key = fields.isProtected ? freshKey() : null
    const service: Fields = { name, url: fields.url.trim(), routes: [{ name, paths: [path], ...(key === null ? {} : { plugins: [{ 'key-auth': {} }] }) }] }
    const changes = [{ kind: 'services', name, value: service }, ...(key === null ? [] : [{ kind: 'consumers', name: CONSUMER, value: { name: CONSUMER, credentials: [{ 'key-auth': { key } }] } }])]
    try {
      await call('POST', '/api/v1/changes', { body: { changes }, headers: { 'weir-note': encodeURIComponent(`Quick start: ${path}`) } })
      setMade({ name, path, key })
      toast(`${path} is served`)
    } catch (wrong) {
      setError(wrong)
    }
    setBusy(false)
    await client.invalidateQueries({ queryKey: ['configuration'] })
  }
  if (made !== null) return <Done made={made} onMore={() => setMade(null)} />
  return (
    <form
      className="stack"
      aria-label="Quick start"
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        if (refused === null && !isBusy) void create()
      }}
    >
      <div className="grid">
        <TextField label="Address of your API" value={fields.url} onChange={(url) => setFields({ ...fields, url })} placeholder="http://127.0.0.1:9000" isMono />
        <TextField label="Path that callers use" value={fields.path} onChange={(next) => setFields({ ...fields, path: next })} placeholder="/orders" isMono />
        <div className="stack tight">
          <CheckField label="Callers show a key" value={fields.isProtected} onChange={(isProtected) => setFields({ ...fields, isProtected })} about="Weir makes the first one." />
          <div>
            <Button look="primary" refused={refused} isBusy={isBusy} onPress={() => void create()}>
              Serve it
            </Button>
          </div>
        </div>
      </div>
      <button type="submit" className="sr" tabIndex={-1} aria-hidden="true" />
      {error !== null && <Failure error={error} />}
    </form>
  )
}

function Done({ made, onMore }: { made: Made; onMore: () => void }) {
  const address = useGatewayAddress()
  const line = `curl -i ${made.key === null ? '' : `-H 'apikey: ${made.key}' `}http://${address}${made.path}`
  return (
    <div className="note" role="status">
      <strong>{made.path} is served. Call it:</strong>
      <pre className="code" tabIndex={0} aria-label="Call">
        {line}
      </pre>
      {made.key !== null && <span>Keep the key now: the page does not show it again. It belongs to the consumer {CONSUMER}.</span>}
      <div className="row">
        <Button small onPress={() => void copy(line)}>
          Copy
        </Button>
        <Link href={`/services/${encodeURIComponent(made.name)}`}>Open the service</Link>
        <Link href="/live">Watch the calls</Link>
        <Button small look="quiet" onPress={onMore}>
          Another one
        </Button>
      </div>
    </div>
  )
}
