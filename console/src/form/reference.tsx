// A field that names another document: a way to what it names, and the names that there are while it names nothing.
import { useQuery } from '@tanstack/react-query'
import { useDeferredValue } from 'react'
import { Link } from 'wouter'
import { get } from '../api/client'
import { type ViewList, viewPath } from '../api/hooks'
import type { ViewPage } from '../api/types'
import { chipText } from '../ui/search'
import type { Path } from './path'

const LISTS: Record<string, ViewList> = { service: 'services', upstream: 'upstreams' }
const DOCUMENTS = ['Route', 'Service', 'StreamRoute']
const OFFERED = 6

/** The list whose names a field of a native document holds. Fields of plugins mean something else by these names. */
export function listOf(name: string, path: Path, document: string | undefined): ViewList | null {
  const isOwn = path.every((step) => typeof step === 'number' || step === 'routes' || step === name)
  return isOwn && document !== undefined && DOCUMENTS.includes(document) ? (LISTS[name] ?? null) : null
}

interface Props {
  list: ViewList
  title: string
  text: string
  onChoose: ((name: string) => void) | null
}

export function Named({ list, title, text, onChoose }: Props) {
  const word = useDeferredValue(text).replaceAll('"', '').trim()
  const found = useQuery({
    queryKey: ['configuration', 'offered', list, word],
    queryFn: async ({ signal }) => (await get<ViewPage>(viewPath(list), { q: `dialect:native${word === '' ? '' : ` ${chipText('name', word)}`}`, limit: 50 }, signal)).items,
    placeholderData: (before) => before,
  })
  const names = [...new Set((found.data ?? []).map((it) => it.name))]
  if (names.includes(text)) {
    return (
      <p className="about">
        <Link className="alone" href={`/${list}/${encodeURIComponent(text)}`}>
          Open {text}
        </Link>
      </p>
    )
  }
  if (onChoose === null || (names.length === 0 && text === '')) return null
  return (
    <div className="row about" role="group" aria-label={`Names for ${title}`}>
      {names.length === 0 && `Nothing of Weir’s own ${list} is called that.`}
      {names.slice(0, OFFERED).map((name) => (
        <button key={name} type="button" className="button small" onClick={() => onChoose(name)}>
          <span className="clip">{name}</span>
        </button>
      ))}
      {names.length > OFFERED && <span>and more: type a part of the name</span>}
    </div>
  )
}
