// What was changed, in all dialects: every commit with who, when, why, and what.
import { useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Link, useLocation } from 'wouter'
import { get } from '../api/client'
import { useConfigurationState } from '../api/rights'
import type { Commit } from '../api/types'
import { placeOf } from '../documents'
import { Empty, Failure, Page } from '../shell/page'
import { Button, ButtonLink } from '../ui/button'
import { type Column, Table } from '../ui/table'
import { Time } from '../ui/time'
import { summary } from './commit-list'

const PAGE = 200

const columns: Column<Commit>[] = [
  {
    id: 'revision',
    title: 'Revision',
    text: (it) => `r${it.revision}`,
    number: (it) => it.revision,
    render: (it) => <Link href={`/history/${it.revision}`}>r{it.revision}</Link>,
    width: '4rem',
  },
  { id: 'what', title: 'What', text: (it) => `${summary(it)} ${it.changes.map((change) => change.document).join(' ')}`, render: summary, width: 'minmax(6rem, 2fr)' },
  { id: 'documents', title: 'Documents', text: (it) => touched(it), from: 2, width: 'minmax(8rem, 1.2fr)' },
  { id: 'who', title: 'Who', text: (it) => it.author, from: 2, width: 'minmax(5rem, 0.7fr)' },
  { id: 'when', title: 'When', text: (it) => new Date(it.time * 1000).toISOString(), render: (it) => <Time at={it.time} />, width: 'minmax(6.5rem, 0.7fr)' },
]

/** What a commit touched, by kind. */
function touched(commit: Commit): string {
  const counts = new Map<string, number>()
  for (const { document } of commit.changes) {
    const kind = placeOf(document).kind.replaceAll('_', ' ')
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return [...counts].map(([kind, count]) => (count === 1 ? kind : `${count} ${kind}`)).join(', ')
}

const key = (it: Commit) => String(it.revision)

export default function History() {
  const history = useInfiniteQuery({
    queryKey: ['configuration', 'history', 'pages'],
    queryFn: async ({ pageParam, signal }) =>
      (await get<{ items: Commit[] }>('/api/v1/history', { limit: PAGE, before: pageParam }, signal)).items,
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (last) => (last.length === 0 ? undefined : last.at(-1)?.revision),
  })
  const commits = useMemo(() => history.data?.pages.flat() ?? [], [history.data])
  const [, go] = useLocation()
  const isReadOnly = useConfigurationState().data?.read_only === true
  return (
    <Page
      title="History"
      about="Every change through any dialect's API, with its author. Any revision can be compared with any other and brought back."
      calls={[
        { about: 'The latest commits', method: 'GET', path: '/api/v1/history', command: 'weir history' },
        { about: 'The difference of two revisions', method: 'GET', path: '/api/v1/diff?from=1&to=2', command: 'weir diff 1 2' },
      ]}
    >
      {history.error ? (
        <Failure error={history.error} onRetry={() => void history.refetch()} />
      ) : (
        <Table
          label="History"
          rows={commits}
          columns={columns}
          rowKey={key}
          isLoading={history.isLoading}
          noun={['commit', 'commits']}
          bulk={[
            {
              text: 'Compare',
              run: (chosen) => {
                const revisions = chosen.map((it) => it.revision).sort((a, b) => a - b)
                go(`/history/compare/${revisions[0]}/${revisions.at(-1)}`)
              },
            },
          ]}
          empty={
            isReadOnly ? (
              <Empty title="Files have no history here" example="weir run --data /var/lib/weir">
                <p>This Weir serves files: what has changed in them is known where they are kept. With a store, each change becomes a revision here.</p>
              </Empty>
            ) : (
              <Empty title="Nothing was changed yet" example="weir import kong.yml" actions={<ButtonLink to="/services/@new">New service</ButtonLink>}>
                <p>Each change becomes a revision here, whether it comes from this console, the command line or an Admin API.</p>
              </Empty>
            )
          }
        />
      )}
      {history.hasNextPage && (history.data?.pages.at(-1)?.length ?? 0) > 0 && (
        <div>
          <Button isBusy={history.isFetchingNextPage} onPress={() => void history.fetchNextPage()}>
            Older commits
          </Button>
        </div>
      )}
    </Page>
  )
}
