// A page that breaks says so and leaves the rest of the console usable.
import { Component, type ReactNode } from 'react'
import { Failure } from './page'

export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null as unknown }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render() {
    if (this.state.error === null) return this.props.children
    return (
      <main className="page">
        <Failure error={this.state.error} onRetry={() => location.reload()} />
      </main>
    )
  }
}
