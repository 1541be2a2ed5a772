// "Keep as a test": an explained call becomes a test of an API, which every publish of the version runs from then on.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { partsOf, toVersion, useAllVersions, usePublications, versionPath } from '../api/apis'
import { call } from '../api/client'
import { Act } from '../ui/act'
import { CheckField, SelectField, TextField } from '../ui/field'
import { toast } from '../ui/toast'
import type { Explained } from '../pages/explain-answer'
import type { AskedCall } from './curl'
import { CHOSEN_AT_FIRST, type Expected, WORDS, expectedOf, nameOf, requestOf } from './keep'

interface Props {
  asked: AskedCall
  explained: Explained
  client: string
  consumer: string
  /** The draft that it was explained by: `API/VERSION`. */
  draft: string
  onClose: () => void
}

export function KeepDialog({ asked, explained, client, consumer, draft, onClose }: Props) {
  const [versions, publications] = [useAllVersions(), usePublications()]
  const [api, version] = partsOf(explained.publication ?? draft)
  const found = `${api}/${version}`
  const [of, setOf] = useState('')
  const all = versions.data ?? []
  const target = of !== '' ? of : all.some((it) => `${it.api}/${it.version}` === found) ? found : all[0] ? `${all[0].api}/${all[0].version}` : ''
  const publication = publications.data?.find((it) => `${it.api}/${it.version}/${it.environment}` === explained.publication) ?? publications.data?.find((it) => `${it.api}/${it.version}` === target)
  const request = requestOf(asked, explained, publication, { client, consumer })
  const offered = expectedOf(explained)
  const [left, setLeft] = useState<Set<string>>(new Set(Object.keys(offered).filter((it) => !CHOSEN_AT_FIRST.includes(it as keyof Expected))))
  const expected = Object.fromEntries(Object.entries(offered).filter(([name]) => !left.has(name))) as Expected
  const [name, setName] = useState(() => nameOf(request, offered))
  const [about, setAbout] = useState('')
  const queries = useQueryClient()
  const [targetApi = '', targetVersion = ''] = target.split('/')
  return (
    <Act
      title="Keep as a test"
      action="Keep"
      onClose={onClose}
      refused={target === '' ? 'There is no version of an API yet.' : name === '' ? 'Give it a name.' : Object.keys(expected).length === 0 ? 'Choose what has to come of the call.' : null}
      run={async () => {
        await call('PUT', `${versionPath(targetApi, targetVersion)}/tests/${encodeURIComponent(name)}`, { body: { ...(about === '' ? {} : { description: about }), request, expected } })
        await queries.invalidateQueries({ queryKey: ['configuration'] })
        onClose()
        toast(`${name} is kept. Every publish of ${targetApi} ${targetVersion} runs it.`, { link: { to: `${toVersion(targetApi, targetVersion)}/tests`, text: 'Tests' } })
      }}
    >
      <p className="muted">
        <code>
          {request?.method ?? 'GET'} {request?.path}
        </code>{' '}
        behind the base path, {request?.application ? `by the application ${request.application}` : request?.consumer ? `by the consumer ${request.consumer}` : 'by a caller without a key'}. Keys are not kept.
      </p>
      <SelectField label="Version" value={target} onChange={setOf} options={all.map((it) => [`${it.api}/${it.version}`, `${it.api} ${it.version}`] as const)} />
      <TextField label="Name" value={name} onChange={setName} isMono isRequired />
      <TextField label="What it is for" value={about} onChange={setAbout} />
      <fieldset className="field">
        <legend className="label">What has to come of it</legend>
        {Object.entries(offered).map(([field, value]) => (
          <CheckField
            key={field}
            label={WORDS[field]?.(String(value)) ?? field}
            value={!left.has(field)}
            onChange={(isOn) => setLeft((old) => {
              const next = new Set(old)
              if (isOn) next.delete(field)
              else next.add(field)
              return next
            })}
          />
        ))}
      </fieldset>
    </Act>
  )
}
