// A vault: the document of Kong or APISIX that says where secrets are kept, in its original's form.
import { Suspense, lazy, useMemo } from 'react'
import { foreignOf } from '../api/dialects'
import { Page } from '../shell/page'
import { useSegments } from '../shell/segments'

const ForeignEditor = lazy(() => import('./foreign'))

export default function Vault() {
  const [, document = ''] = useSegments()
  const foreign = useMemo(() => foreignOf({ document }), [document])
  const name = document.split('/').slice(2).join('/')
  return (
    <Page
      title={name}
      about="Where secrets are kept, and how Weir asks for them. What refers to it is listed on the page of secrets."
      crumbs={[{ to: '/secrets', text: 'Secrets' }]}
      calls={foreign === null ? [] : [{ about: 'Read it', method: 'GET', path: foreign.path }]}
    >
      {foreign === null ? (
        <p className="muted">There is no vault in {document}.</p>
      ) : (
        <Suspense fallback={<div className="skeleton tall" />}>
          <ForeignEditor foreign={foreign} name={name} list="secrets" />
        </Suspense>
      )}
    </Page>
  )
}
