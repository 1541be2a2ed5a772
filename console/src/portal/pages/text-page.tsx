// A page that people wrote.
import { type PageDetail, useRead } from '../data'
import { Broken, Loading, Page } from '../frame'
import { Text } from '../text'

export default function TextPage({ name }: { name: string }) {
  const page = useRead<PageDetail>(`/pages/${encodeURIComponent(name)}`)
  if (page.error) return <Broken error={page.error} onRetry={() => void page.refetch()} />
  if (page.data === undefined) return <Loading />
  return (
    <Page title={page.data.title}>
      <Text nodes={page.data.body} />
    </Page>
  )
}
