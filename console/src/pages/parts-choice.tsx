// Which parts the numbers of a page are of, for callers who see some only.
import { chooseParts, partsKey, partsText, useParts } from '../api/parts'

export function PartsChoice() {
  const { all, current } = useParts()
  if (current === null) return null
  if (all.length === 1) return <p className="note">These are the numbers of {partsText(current)}: you have no right to others.</p>
  return (
    <div className="note row">
      <label className="row">
        <span>Numbers of</span>
        <select className="select fit" value={partsKey(current)} onChange={(event) => chooseParts(all.find((it) => partsKey(it) === event.target.value) ?? current)}>
          {all.map((it) => (
            <option key={partsKey(it)} value={partsKey(it)}>
              {partsText(it)}
            </option>
          ))}
        </select>
      </label>
      <span className="muted">You have no right to others.</span>
    </div>
  )
}
