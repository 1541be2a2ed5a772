// What was asked and said in a review of a draft, in one line.
import type { Review } from '../../api/apis'
import { Time } from '../../ui/time'

export function Asked({ review: it }: { review: Review }) {
  return (
    <p className="muted small">
      {it.requested_by} asked <Time at={it.requested} />
      {it.reason && <>: “{it.reason}”</>}
      {it.decided_by && it.decided !== undefined && (
        <>
          . {it.decided_by} answered <Time at={it.decided} />
          {it.decision && <>: “{it.decision}”</>}
        </>
      )}
    </p>
  )
}
