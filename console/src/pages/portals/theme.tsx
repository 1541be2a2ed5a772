// The look of a portal: its colours with their contrast, its typeface, and beside them what a card of it looks like.
import { useId } from 'react'
import { type Colours, type Portal, contrast } from '../../api/portals'
import { SelectField } from '../../ui/field'

type Theme = NonNullable<Portal['theme']>
type Side = 'light' | 'dark'

/** Weir's own colours: what holds where none is chosen. */
const OWN: Record<Side, Required<Colours>> = {
  light: { accent: '#0a6685', canvas: '#f6f8f9', surface: '#ffffff', ink: '#15222b' },
  dark: { accent: '#63c3e2', canvas: '#0f1519', surface: '#161d23', ink: '#e8eef1' },
}
const NAMES: [keyof Colours, string, string][] = [
  ['accent', 'Accent', 'Links, buttons and what is chosen.'],
  ['ink', 'Text', 'What is read.'],
  ['surface', 'Surface', 'Background of cards and fields.'],
  ['canvas', 'Canvas', 'Background of the page.'],
]
const FONTS: Record<string, string> = {
  system: 'ui-sans-serif, system-ui, sans-serif',
  serif: 'ui-serif, Georgia, serif',
  rounded: "ui-rounded, 'SF Pro Rounded', system-ui, sans-serif",
  mono: 'ui-monospace, Menlo, monospace',
}
/** What WCAG 2.2 asks of text. */
const LEAST = 4.5

/** What is read best on a colour. */
const inkOn = (colour: string): string => ((contrast('#ffffff', colour) ?? 21) >= (contrast('#000000', colour) ?? 1) ? '#ffffff' : '#000000')

export const coloursOf = (theme: Theme, side: Side): Required<Colours> => ({ ...OWN[side], ...Object.fromEntries(Object.entries(theme[side] ?? {}).filter(([, it]) => it !== '')) })

export function ThemeForm({ theme, onChange }: { theme: Theme; onChange: (theme: Theme) => void }) {
  const set = (side: Side, name: keyof Colours, value: string) => {
    const { [name]: _, ...rest } = theme[side] ?? {}
    onChange({ ...theme, [side]: value === '' ? rest : { ...rest, [name]: value } })
  }
  return (
    <section className="card" aria-label="Look">
      <div className="head2">
        <h2>Look</h2>
        <SelectField
          label="Typeface"
          value={theme.font ?? 'system'}
          onChange={(font) => onChange({ ...theme, font })}
          options={[
            ['system', "The system's"],
            ['serif', 'With serifs'],
            ['rounded', 'Rounded'],
            ['mono', 'All letters equally wide'],
          ]}
        />
      </div>
      <div className="halves">
        {(['light', 'dark'] as const).map((side) => (
          <fieldset key={side} className="stack" aria-label={side === 'light' ? 'Light theme' : 'Dark theme'}>
            <h3>{side === 'light' ? 'Light theme' : 'Dark theme'}</h3>
            <Preview colours={coloursOf(theme, side)} font={FONTS[theme.font ?? 'system'] ?? ''} />
            {NAMES.map(([name, title, about]) => (
              <ColourField key={name} label={title} about={about} own={OWN[side][name]} value={theme[side]?.[name] ?? ''} on={name === 'accent' || name === 'ink' ? coloursOf(theme, side) : null} onChange={(value) => set(side, name, value)} />
            ))}
          </fieldset>
        ))}
      </div>
    </section>
  )
}

interface ColourProps {
  label: string
  about: string
  value: string
  /** What holds where none is chosen. */
  own: string
  /** What it has to be read on; `null`: it is no text. */
  on: Required<Colours> | null
  onChange: (value: string) => void
}

function ColourField({ label, about, value, own, on, onChange }: ColourProps) {
  const id = useId()
  const shown = value === '' ? own : value
  const ratios = on === null ? [] : [contrast(shown, on.surface), contrast(shown, on.canvas)].filter((it) => it !== null)
  const least = ratios.length === 0 ? null : Math.min(...ratios)
  const isBroken = contrast(shown, '#000000') === null
  return (
    <div className="field">
      <div className="label row between">
        <label htmlFor={id}>{label}</label>
        {least !== null && (
          <span id={`${id}-ratio`} className={`badge ${least < LEAST ? 'bad' : 'good'}`}>
            contrast {(Math.floor(least * 10) / 10).toFixed(1)} : 1{least < LEAST && `, needs ${LEAST}`}
          </span>
        )}
      </div>
      <div className="row nowrap">
        <input type="color" className="swatch" aria-label={`${label}, chosen from a palette`} value={isBroken ? own : shown} onChange={(event) => onChange(event.target.value)} />
        <input id={id} className="input mono" value={value} placeholder={`${own}, Weir's own`} aria-describedby={least === null ? `${id}-about` : `${id}-about ${id}-ratio`} aria-invalid={isBroken || undefined} onChange={(event) => onChange(event.target.value)} />
      </div>
      <p className="about" id={`${id}-about`}>
        {isBroken ? 'A colour is written #rrggbb.' : about}
      </p>
    </div>
  )
}

/** A card as the portal would draw it. */
function Preview({ colours, font }: { colours: Required<Colours>; font: string }) {
  return (
    <div className="portal-preview" style={{ background: colours.canvas, color: colours.ink, fontFamily: font }} aria-hidden="true">
      <div style={{ background: colours.surface }}>
        <strong>Orders</strong>
        <span>Orders and refunds of the shop.</span>
        <span className="row">
          <span className="preview-button" style={{ background: colours.accent, color: inkOn(colours.accent) }}>
            Subscribe
          </span>
          <span style={{ color: colours.accent }}>Read the reference</span>
        </span>
      </div>
    </div>
  )
}
