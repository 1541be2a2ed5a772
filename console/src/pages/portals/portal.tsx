// A portal that is made or changed, and its pages.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { compact, useApis, useEnvironments } from '../../api/apis'
import { call } from '../../api/client'
import { type Portal, type PortalPage, portalPath, readPortal, toPage, toPortal, usePages, useWrittenPortals } from '../../api/portals'
import { useRight } from '../../api/rights'
import type { Fields, Json } from '../../api/types'
import type { Begun } from '../../form/draft'
import { EntityEditor } from '../../form/entity-editor'
import { nameFault, nameIn, send } from '../../form/send'
import { Failure, Page } from '../../shell/page'
import { NEW, useIsNew, useSegments } from '../../shell/segments'
import { Act } from '../../ui/act'
import { Button, ButtonLink } from '../../ui/button'
import { AreaField, CheckField, ChoiceField, TextField, lines } from '../../ui/field'
import { LogoField } from '../../ui/logo-field'
import { Markdown } from '../../ui/markdown'
import { countText } from '../../ui/time'
import { toast } from '../../ui/toast'
import { Waiting } from '../apis/shared'
import { ThemeForm } from './theme'

const CRUMBS = [{ to: '/portals', text: 'Portals' }]
const FRESH: Begun = { data: { name: '', sign_up: { mode: 'open' } }, tag: null }

export default function EditPortal() {
  const [, name = ''] = useSegments()
  return useIsNew() ? <Editor key="new" base={FRESH} isNew /> : <Existing key={name} name={name} />
}

function Existing({ name }: { name: string }) {
  const portal = useQuery({ queryKey: ['configuration', 'portals', name], queryFn: () => readPortal(name) })
  if (portal.data === undefined) return <Waiting title={name} crumbs={CRUMBS} queries={[portal]} />
  return <Editor base={portal.data} isNew={false} />
}

function Editor({ base, isNew }: { base: Begun; isNew: boolean }) {
  const known = useWrittenPortals()
  const refused = useRight('portals:write')
  const client = useQueryClient()
  const [, go] = useLocation()
  const [isDeleting, setDeleting] = useState(false)
  const name = nameIn(base.data)
  const url = String(base.data['url'] ?? '')
  return (
    <Page
      title={isNew ? 'New portal' : String(base.data['display_name'] || name)}
      about={String(base.data['description'] || 'What it shows, how it looks, and who may sign up.')}
      crumbs={CRUMBS}
      calls={[
        { about: 'Store it', method: 'PUT', path: portalPath(name || 'NAME'), body: base.data },
        { about: 'List its pages', method: 'GET', path: `${portalPath(name || 'NAME')}/pages` },
      ]}
      actions={
        !isNew && (
          <>
            <Button look="quiet" icon="trash" refused={refused} onPress={() => setDeleting(true)}>
              Delete
            </Button>
            <ButtonLink to={`/developers?portal=${encodeURIComponent(name)}`}>Developers</ButtonLink>
            {/^https?:/.test(url) && (
              <a className="button plain" href={url} target="_blank" rel="noreferrer">
                Open it
              </a>
            )}
          </>
        )
      }
    >
      {!isNew && <Pages portal={name} refused={refused} />}
      <EntityEditor
        kept={`portal/${name}`}
        title={isNew ? 'the new portal' : name}
        base={base}
        isNew={isNew}
        refused={refused}
        missing={(value) => (isNew ? nameFault(value, known.data, 'A portal') : null)}
        form={(value, onChange) => <PortalForm value={value} isNew={isNew} onChange={onChange} />}
        send={(value, options) => send('PUT', portalPath(isNew ? nameIn(value) : name), compact(value), options)}
        read={() => readPortal(name)}
        onSaved={async (stored) => {
          await client.invalidateQueries({ queryKey: ['configuration'] })
          toast(`${String(stored['name'])} is saved`)
          if (isNew) go(toPortal(String(stored['name'])))
        }}
      />
      {isDeleting && <Delete name={name} onClose={() => setDeleting(false)} />}
    </Page>
  )
}

interface FormProps {
  value: Fields
  isNew: boolean
  onChange: (value: Fields) => void
}

function PortalForm({ value, isNew, onChange }: FormProps) {
  const portal = value as unknown as Portal
  const set = (name: string, next: unknown) => onChange({ ...value, [name]: next as Json })
  return (
    <>
      <section className="card" aria-label="About it">
        <h2>About it</h2>
        <div className="grid">
          {isNew && <TextField label="Name" value={portal.name ?? ''} onChange={(text) => set('name', text)} placeholder="main" isRequired about="In addresses; it cannot be changed later." />}
          <TextField label="Name for people" value={portal.display_name ?? ''} onChange={(text) => set('display_name', text)} placeholder="Example developers" />
          <TextField label="What it is for" value={portal.description ?? ''} onChange={(text) => set('description', text)} about="One sentence." />
          <TextField label="URL" value={portal.url ?? ''} onChange={(text) => set('url', text)} placeholder="https://developers.example.com" isMono about="As browsers see it: mails with links need it." />
          <LinesField label="Hosts" value={portal.hosts} onChange={(hosts) => set('hosts', hosts)} placeholder="developers.example.com" about="One on each line; none: every host that no other portal answers." />
        </div>
        <LogoField value={portal.logo ?? ''} onChange={(logo) => set('logo', logo)} />
      </section>
      <Shown portal={portal} set={set} />
      <section className="card" aria-label="First page">
        <h2>First page</h2>
        <div className="halves">
          <AreaField label="Text, in Markdown" value={portal.home ?? ''} onChange={(text) => set('home', text)} rows={10} isMono placeholder={'# Build with us\n\nWhat developers find here.'} />
          <Preview text={portal.home ?? ''} />
        </div>
      </section>
      <SignUp portal={portal} set={set} />
      <ThemeForm theme={portal.theme ?? {}} onChange={(theme) => set('theme', theme)} />
    </>
  )
}

/** Markdown beside its text. The portal draws it in its own look. */
export function Preview({ text }: { text: string }) {
  return (
    <div className="field">
      <span className="label">Preview</span>
      <div className="preview">{text.trim() === '' ? <p className="muted">Nothing is written yet.</p> : <Markdown text={text} />}</div>
    </div>
  )
}

interface PartProps {
  portal: Portal
  set: (name: string, next: unknown) => void
}

function LinesField({ value, onChange, ...rest }: { label: string; value: string[] | undefined; onChange: (value: string[]) => void; placeholder?: string; about?: string }) {
  const [text, setText] = useState((value ?? []).join('\n'))
  const isSame = lines(text).join('\n') === (value ?? []).join('\n')
  return (
    <AreaField
      {...rest}
      rows={2}
      isMono
      value={isSame ? text : (value ?? []).join('\n')}
      onChange={(next) => {
        setText(next)
        onChange(lines(next))
      }}
    />
  )
}

function Shown({ portal, set }: PartProps) {
  const [apis, environments] = [useApis(), useEnvironments()]
  const choices: [string, string, string[] | undefined, string[], string][] = [
    ['environments', 'Environments', portal.environments, (environments.data ?? []).map((it) => it.name), 'None chosen: publications of all of them.'],
    ['apis', 'APIs', portal.apis, (apis.data ?? []).map((it) => it.name), 'None chosen: all that a visitor may see.'],
    ['featured', 'Named on the first page', portal.featured, (apis.data ?? []).map((it) => it.name), 'To begin with.'],
  ]
  return (
    <section className="card" aria-label="What it shows">
      <h2>What it shows</h2>
      <div className="grid">
        {choices.map(([name, title, chosen = [], offered, about]) => (
          <fieldset key={name} className="field" aria-label={title}>
            <span className="label">{title}</span>
            <p className="about">{about}</p>
            <div className="stack tight scrolled">
              {[...new Set([...offered, ...chosen])].map((it) => (
                <CheckField key={it} label={it} value={chosen.includes(it)} onChange={(isOn) => set(name, isOn ? [...chosen, it] : chosen.filter((one) => one !== it))} />
              ))}
              {offered.length === 0 && chosen.length === 0 && <p className="muted small">There are none yet.</p>}
            </div>
          </fieldset>
        ))}
      </div>
    </section>
  )
}

function SignUp({ portal, set }: PartProps) {
  const rules = portal.sign_up ?? {}
  const change = (more: object) => set('sign_up', { ...rules, ...more })
  return (
    <section className="card" aria-label="Sign-up">
      <h2>Sign-up</h2>
      <ChoiceField
        label="Who may sign up"
        value={rules.mode ?? 'open'}
        onChange={(mode) => change({ mode })}
        options={[
          { value: 'open', text: 'Everybody', about: 'Who confirms a mail address.' },
          { value: 'invited', text: 'Those who are invited', about: 'By a team.' },
          { value: 'closed', text: 'No one', about: 'Administrators make the accounts.' },
        ]}
      />
      <CheckField label="Somebody has to approve each account" value={rules.approval === true} onChange={(approval) => change({ approval })} />
      <div className="grid">
        <LinesField label="Domains of mail addresses" value={rules.domains} onChange={(domains) => change({ domains })} placeholder="example.com" about="One on each line; none: all." />
        <LinesField label="Who is told that somebody waits" value={rules.notify} onChange={(notify) => change({ notify })} placeholder="team@example.com" about="Mail addresses, one on each line." />
      </div>
    </section>
  )
}

/** The pages of a portal, in their order. */
function Pages({ portal, refused }: { portal: string; refused: string | null }) {
  const pages = usePages(portal)
  const ordered = [...(pages.data ?? [])].sort((a, b) => (a.order ?? 0) - (b.order ?? 0) || a.title.localeCompare(b.title))
  return (
    <section className="card" aria-label="Pages">
      <div className="head2">
        <h2>Pages</h2>
        <ButtonLink small to={`${toPortal(portal)}/pages/${NEW}`} refused={refused}>
          New page
        </ButtonLink>
      </div>
      {pages.error && pages.data === undefined ? (
        <Failure error={pages.error} onRetry={() => void pages.refetch()} />
      ) : ordered.length === 0 ? (
        <p className="muted">{pages.isLoading ? 'Loading' : 'Terms, guides and announcements: pages that you write in Markdown.'}</p>
      ) : (
        <ul className="lines-list">
          {ordered.map((it) => (
            <li key={it.name} className="row">
              <Link href={toPage(portal, it.name)}>{it.title || it.name}</Link>
              <span className="muted small grow">{describe(it)}</span>
              <span className={it.published ? 'badge good' : 'badge'}>{it.published ? 'shown' : 'hidden'}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

const describe = (it: PortalPage): string =>
  [`/pages/${it.name}`, it.menu ? 'in the menu' : '', it.api ? `of ${it.api}` : '', typeof it.visibility === 'string' ? it.visibility : 'for groups'].filter(Boolean).join(' · ')

function Delete({ name, onClose }: { name: string; onClose: () => void }) {
  const client = useQueryClient()
  const [, go] = useLocation()
  const pages = usePages(name)
  return (
    <Act
      title={`Delete ${name}?`}
      action="Delete"
      look="danger"
      onClose={onClose}
      run={async () => {
        await call('DELETE', portalPath(name))
        toast(`${name} is deleted`)
        go('/portals')
        await client.invalidateQueries({ queryKey: ['configuration'] })
      }}
    >
      <p>It goes with its {countText(pages.data?.length ?? 0, 'page', 'pages')}. APIs, applications and subscriptions stay as they are.</p>
    </Act>
  )
}
