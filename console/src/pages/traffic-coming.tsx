// The place of the numbers of traffic while they are read: the rest of the page does not move when they come.
const FIGURES = [1, 2, 3, 4]

export function TrafficComing() {
  return (
    <>
      <div className="figures" aria-busy="true">
        {FIGURES.map((it) => (
          <div key={it} className="skeleton figure" />
        ))}
      </div>
      <div className="halves">
        <div className="skeleton panel" />
        <div className="skeleton panel" />
      </div>
    </>
  )
}
