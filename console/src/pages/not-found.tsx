// An address that leads nowhere.
import { Page } from '../shell/page'
import { ButtonLink } from '../ui/button'

export default function NotFound() {
  return (
    <Page title="There is no such page" calls={[]}>
      <p className="muted">The address is mistyped, or what it named is gone.</p>
      <div>
        <ButtonLink to="/">Overview</ButtonLink>
      </div>
    </Page>
  )
}
