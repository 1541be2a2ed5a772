// A test of a version by hand: the call, who makes it, and what has to come of it. What the form does not show of a test
// that is changed stays as it is.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Operation, compact, versionPath } from '../../api/apis'
import { call } from '../../api/client'
import type { CallTest } from '../../explain/keep'
import { Act } from '../../ui/act'
import { AreaField, SelectField, TextField, lines } from '../../ui/field'
import { toast } from '../../ui/toast'

interface Props {
  api: string
  version: string
  /** `null`: a new one. */
  test: CallTest | null
  operations: Operation[]
  environments: string[]
  onClose: () => void
}

/** A choice of a text: not looked at, none, or this one. */
const asChoice = (value: string | null | undefined): string => (value === undefined || value === null ? '*' : value)
const fromChoice = (value: string): string | undefined => (value === '*' ? undefined : value)

const headersOf = (text: string): Record<string, string> =>
  Object.fromEntries(lines(text).map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]))

export function TestForm({ api, version, test, operations, environments, onClose }: Props) {
  const [name, setName] = useState(test?.name ?? '')
  const [description, setDescription] = useState(test?.description ?? '')
  const [where, setWhere] = useState((test?.environments ?? []).join(' '))
  const { request = { path: '' }, expected = {} } = test ?? {}
  const [method, setMethod] = useState(request.method || 'GET')
  const [path, setPath] = useState(request.path ?? '/')
  const [headers, setHeaders] = useState(Object.entries(request.headers ?? {}).map(([key, value]) => `${key}: ${value}`).join('\n'))
  const [body, setBody] = useState(request.body ?? '')
  const [application, setApplication] = useState(request.application ?? '')
  const [operation, setOperation] = useState(asChoice(expected.operation))
  const [end, setEnd] = useState(asChoice(expected.end))
  const [status, setStatus] = useState(expected.status ? String(expected.status) : '')
  const [plugin, setPlugin] = useState(expected.plugin ?? '')
  const [target, setTarget] = useState(expected.target ?? '')
  const queries = useQueryClient()
  const wrongName = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name) ? null : 'Give a name of lower-case letters, digits and hyphens.'
  const save = async () => {
    const { operation: _, end: __, status: ___, plugin: ____, target: _____, ...others } = expected
    const wanted = {
      ...others,
      ...(fromChoice(operation) === undefined ? {} : { operation }),
      ...(fromChoice(end) === undefined ? {} : { end }),
      ...(status === '' ? {} : { status: Number(status) }),
      ...(plugin === '' ? {} : { plugin }),
      ...(target === '' ? {} : { target }),
    }
    const made = {
      ...compact({ description, environments: where.split(/[\s,]+/).filter((it) => it !== '') }),
      request: { ...request, path, method, body, application: application === '' ? undefined : application, headers: headersOf(headers) },
      expected: wanted,
    }
    await call('PUT', `${versionPath(api, version)}/tests/${encodeURIComponent(name)}`, { body: made })
    await queries.invalidateQueries({ queryKey: ['configuration'] })
    onClose()
    toast(`${name} is kept`)
  }
  return (
    <Act title={test ? `Edit the test ${test.name}` : 'New test'} action={test ? 'Save' : 'Create'} wide onClose={onClose} refused={wrongName} run={save}>
      <div className="grid">
        <TextField label="Name" value={name} onChange={setName} isMono isRequired isDisabled={test !== null} />
        <TextField label="Only in environments" value={where} onChange={setWhere} offered={environments} about="Empty: in all of them." />
      </div>
      <TextField label="What it is for" value={description} onChange={setDescription} />
      <h3>Call</h3>
      <div className="grid">
        <SelectField label="Method" value={method} onChange={setMethod} options={[...new Set([method, 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])].map((it) => [it, it] as const)} />
        <TextField label="Path behind the base path" value={path} onChange={setPath} isMono isRequired />
        <TextField label="Application" value={application} onChange={setApplication} about="Empty: a caller without a key." />
      </div>
      <AreaField label="Headers" rows={2} isMono value={headers} onChange={setHeaders} placeholder="Accept: application/json" />
      <AreaField label="Body" rows={2} isMono value={body} onChange={setBody} />
      <h3>What has to come of it</h3>
      <div className="grid">
        <SelectField label="Operation" value={operation} onChange={setOperation} options={[['*', 'not looked at'], ['', 'none of this API'], ...operations.map((it) => [it.id, `${it.id} (${it.method} ${it.path})`] as const)]} />
        <SelectField label="End" value={end} onChange={setEnd} options={[['*', 'not looked at'], ['forwarded', 'it is forwarded'], ['answered', 'the gateway answers it'], ['unknown', 'another server decides']]} />
        <TextField label="Status of the gateway" type="number" value={status} onChange={setStatus} />
        <TextField label="Plugin that decides" value={plugin} onChange={setPlugin} />
        <TextField label="Target" value={target} onChange={setTarget} placeholder="10.0.0.7:80" />
      </div>
    </Act>
  )
}
