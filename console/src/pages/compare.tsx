// Any two revisions side by side.
import { useParams } from 'wouter'
import { useDiff } from '../api/hooks'
import { Failure, Page } from '../shell/page'
import { Differences } from './differences'

export default function Compare() {
  const parameters = useParams()
  const [from, to] = [Number(parameters['from']), Number(parameters['to'])]
  const diff = useDiff(from, to)
  return (
    <Page
      title={`Revisions ${from} and ${to}`}
      crumbs={[{ to: '/history', text: 'History' }]}
      about={`What the documents were right after revision ${from}, and what they were right after revision ${to}.`}
      calls={[{ about: 'The difference', method: 'GET', path: `/api/v1/diff?from=${from}&to=${to}`, command: `weir diff ${from} ${to}` }]}
    >
      {diff.error ? <Failure error={diff.error} onRetry={() => void diff.refetch()} /> : diff.data && <Differences items={diff.data} />}
    </Page>
  )
}
