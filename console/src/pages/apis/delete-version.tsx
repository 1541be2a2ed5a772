// The question before a version is deleted. One that is published stays; the server says so of one with subscriptions.
import { useQueryClient } from '@tanstack/react-query'
import { useLocation } from 'wouter'
import { toApi, versionPath } from '../../api/apis'
import { call } from '../../api/client'
import { Act } from '../../ui/act'
import { toast } from '../../ui/toast'

interface Props {
  api: string
  version: string
  /** Where it is published. */
  environments: string[]
  onClose: () => void
}

export function DeleteVersion({ api, version, environments, onClose }: Props) {
  const [, go] = useLocation()
  const queries = useQueryClient()
  const refused = environments.length > 0 ? `It is published in ${environments.join(', ')}. Remove the publications first.` : null
  return (
    <Act
      title={`Delete ${api} ${version}?`}
      action="Delete"
      look="danger"
      refused={refused}
      onClose={onClose}
      run={async () => {
        await call('DELETE', versionPath(api, version))
        await queries.invalidateQueries({ queryKey: ['configuration'] })
        toast(`${api} ${version} is deleted`)
        go(toApi(api))
      }}
    >
      <p>{refused ?? 'Its draft, revisions, plans and tests go with it.'}</p>
    </Act>
  )
}
