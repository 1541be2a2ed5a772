// A page that breaks says so and leaves the rest usable; another page is shown as usual.
import { Component, type ReactNode } from 'react'
import { Failure } from './page'

interface Props {
  /** The address of the page. */
  place: string
  children: ReactNode
}

export class Boundary extends Component<Props, { error: unknown }> {
  override state = { error: null as unknown }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error !== null && before.place !== this.props.place) this.setState({ error: null })
  }

  override render() {
    if (this.state.error === null) return this.props.children
    return (
      <main id="page" className="page" tabIndex={-1}>
        <Failure error={this.state.error} onRetry={() => location.reload()} />
      </main>
    )
  }
}
