// The first page: what the portal is for, what there is, and three steps to a first call.
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { Button, ButtonLink } from '../../ui/button'
import { Cards } from '../cards'
import { type Cards as AllCards, usePortal, useRead } from '../data'
import { Broken, Loading, Page } from '../frame'
import { Text } from '../text'

export default function Home() {
  const portal = usePortal()
  const all = useRead<AllCards>('/apis', { sort: 'newest' })
  const [words, type] = useState('')
  const [, go] = useLocation()
  if (portal.error) return <Broken error={portal.error} onRetry={() => void portal.refetch()} />
  if (portal.data === undefined) return <Loading />
  const featured = portal.data.featured.length > 0 ? portal.data.featured : (all.data?.items.slice(0, 6) ?? [])
  const head = (
    <div className="welcome">
      <h1>{portal.data.title}</h1>
      <p>{portal.data.description || 'Find an API, read how it works, get a key, and make your first call.'}</p>
      <form
        role="search"
        aria-label="Catalogue"
        className="hero"
        onSubmit={(event) => {
          event.preventDefault()
          go(`/search?q=${encodeURIComponent(words)}`)
        }}
      >
        <input className="input" type="search" aria-label="What do you want to do?" placeholder="Such as: refund an order" maxLength={200} value={words} onChange={(event) => type(event.target.value)} />
        <Button look="primary" onPress={() => go(`/search?q=${encodeURIComponent(words)}`)}>
          Search
        </Button>
      </form>
      <div className="row">
        <ButtonLink to="/apis" look="primary">
          All APIs
        </ButtonLink>
        {all.data?.categories.slice(0, 5).map((it) => (
          <Link key={it} href={`/apis?category=${encodeURIComponent(it)}`} className="chip-choice">
            {it}
          </Link>
        ))}
      </div>
    </div>
  )
  return (
    <Page title={portal.data.title} head={head}>
      {portal.data.home.length > 0 && <Text nodes={portal.data.home} />}
      <section className="stack" aria-label="APIs to begin with">
        <h2 className="section">{portal.data.featured.length > 0 ? 'Begin here' : 'New here'}</h2>
        {all.data?.items.length === 0 ? (
          <p className="muted">
            Nothing is published here yet. APIs appear as soon as a version is published to an environment that this portal shows.
          </p>
        ) : (
          <Cards items={featured} />
        )}
      </section>
      <section className="stack" aria-label="Your first call">
        <h2 className="section">Your first call</h2>
        <ol className="first-steps">
          <li>
            <strong>Choose an API</strong>
            <span>
              <Link href="/apis">The catalogue</Link> says what each one does, and whether it needs a key.
            </span>
          </li>
          <li>
            <strong>Try an operation</strong>
            <span>Each one has a form. The portal sends the call for you and shows the answer.</span>
          </li>
          <li>
            <strong>Call it from your program</strong>
            <span>Copy the call in your language, with the values that you tried.</span>
          </li>
        </ol>
      </section>
    </Page>
  )
}
