// A page of a portal: its text in Markdown with a preview, who may see it, and where it stands.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { compact, useApis } from '../../api/apis'
import { call } from '../../api/client'
import { type PortalPage, pagePath, readPage, toPage, toPortal, usePages } from '../../api/portals'
import { useRight } from '../../api/rights'
import type { Fields, Json } from '../../api/types'
import type { Begun } from '../../form/draft'
import { EntityEditor } from '../../form/entity-editor'
import { nameFault, nameIn, send, writeHeaders } from '../../form/send'
import { Page } from '../../shell/page'
import { useIsNew, useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button } from '../../ui/button'
import { AreaField, CheckField, NumberField, SelectField, TextField } from '../../ui/field'
import { toast } from '../../ui/toast'
import { Waiting } from '../apis/shared'
import { Preview } from './portal'

const FRESH: Begun = { data: { name: '', title: '', body: '', visibility: 'public', menu: true, published: true }, tag: null }
const crumbs = (portal: string) => [
  { to: '/portals', text: 'Portals' },
  { to: toPortal(portal), text: portal },
]

export default function EditPage() {
  const [, portal = '', , name = ''] = useSegments()
  return useIsNew() ? <Editor key="new" portal={portal} base={FRESH} isNew /> : <Existing key={`${portal} ${name}`} portal={portal} name={name} />
}

function Existing({ portal, name }: { portal: string; name: string }) {
  const page = useQuery({ queryKey: ['configuration', 'portals', portal, 'page', name], queryFn: () => readPage(portal, name) })
  if (page.data === undefined) return <Waiting title={name} crumbs={crumbs(portal)} queries={[page]} />
  return <Editor portal={portal} base={page.data} isNew={false} />
}

function Editor({ portal, base, isNew }: { portal: string; base: Begun; isNew: boolean }) {
  const known = usePages(portal)
  const refused = useRight('portals:write')
  const client = useQueryClient()
  const [, go] = useLocation()
  const [isDeleting, setDeleting] = useState(false)
  const name = nameIn(base.data)
  const missing = (value: Fields): string | null => {
    const wrong = isNew ? nameFault(value, known.data, 'A page') : null
    return wrong ?? (String(value['title'] ?? '').trim() === '' ? 'It needs a title.' : null)
  }
  return (
    <Page
      title={isNew ? 'New page' : String(base.data['title'] ?? '') || name}
      about="Written in Markdown. HTML and scripts in it are shown as text."
      crumbs={crumbs(portal)}
      calls={[{ about: 'Store it', method: 'PUT', path: pagePath(portal, name || 'NAME'), body: base.data }]}
      actions={
        !isNew && (
          <Button look="quiet" icon="trash" refused={refused} onPress={() => setDeleting(true)}>
            Delete
          </Button>
        )
      }
    >
      <EntityEditor
        kept={`portal/${portal}/page/${name}`}
        title={isNew ? 'the new page' : name}
        base={base}
        isNew={isNew}
        refused={refused}
        missing={missing}
        form={(value, onChange) => <PageForm value={value} isNew={isNew} onChange={onChange} />}
        send={(value, options) => send('PUT', pagePath(portal, isNew ? nameIn(value) : name), compact(value), options)}
        read={() => readPage(portal, name)}
        onSaved={async (stored) => {
          await client.invalidateQueries({ queryKey: ['configuration'] })
          toast(`${String(stored['title'])} is saved`)
          if (isNew) go(toPage(portal, String(stored['name'])))
        }}
      />
      {isDeleting && (
        <Act
          title={`Delete ${name}?`}
          action="Delete"
          look="danger"
          onClose={() => setDeleting(false)}
          run={async () => {
            await call('DELETE', pagePath(portal, name), { headers: writeHeaders({ isDry: false, ...(base.tag === null ? {} : { tag: base.tag }) }) })
            toast(`${name} is deleted`)
            go(toPortal(portal))
            await client.invalidateQueries({ queryKey: ['configuration'] })
          }}
        >
          <p>Links to it lead nowhere from then on.</p>
        </Act>
      )}
    </Page>
  )
}

function PageForm({ value, isNew, onChange }: { value: Fields; isNew: boolean; onChange: (value: Fields) => void }) {
  const page = value as unknown as PortalPage
  const apis = useApis()
  const set = (name: string, next: Json) => onChange({ ...value, [name]: next })
  const visibility = typeof page.visibility === 'string' ? page.visibility : 'groups'
  const names = [...new Set([...(apis.data ?? []).map((it) => it.name), ...(page.api ? [page.api] : [])])]
  return (
    <>
      <section className="card" aria-label="About it">
        <div className="grid">
          {isNew && <TextField label="Name" value={page.name} onChange={(text) => set('name', text)} placeholder="terms" isRequired about="In its address; it cannot be changed later." />}
          <TextField label="Title" value={page.title} onChange={(text) => set('title', text)} placeholder="Terms of use" isRequired />
          <SelectField
            label="Who may see it"
            value={visibility}
            onChange={(next) => set('visibility', next === 'groups' ? { groups: [] } : next)}
            options={[
              ['public', 'Everybody'],
              ['signed-in', 'Those who are signed in'],
              ['groups', 'Groups, named in the text'],
            ]}
          />
          <SelectField label="Belongs to" value={page.api ?? ''} onChange={(api) => set('api', api === '' ? null : api)} options={[['', 'the portal'], ...names.map((it) => [it, it] as const)]} />
          <NumberField label="Place among pages" min={0} value={page.order ?? 0} onChange={(order) => set('order', Math.max(0, Math.trunc(order ?? 0)))} about="The lowest comes first." />
        </div>
        <div className="row">
          <CheckField label="It is shown" value={page.published === true} onChange={(isOn) => set('published', isOn)} />
          <CheckField label="The menu names it" value={page.menu === true} onChange={(isOn) => set('menu', isOn)} />
        </div>
      </section>
      <section className="card" aria-label="Text of the page">
        <div className="halves">
          <AreaField label="Text, in Markdown" value={page.body ?? ''} onChange={(text) => set('body', text)} rows={22} isMono />
          <Preview text={page.body ?? ''} />
        </div>
      </section>
    </>
  )
}
