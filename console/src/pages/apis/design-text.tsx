// The document of a version in the editor, and what lint finds in it, each with a way to its line.
import { useMemo, useState } from 'react'
import type { Level, LintFinding } from '../../api/apis'
import type { Jump, Problem } from '../../ui/editor'
import { countText } from '../../ui/time'
import { TextEditor } from '../../ui/text-editor'


const TONES: Record<Level, string> = { error: 'bad', warn: 'warn', info: 'accent', hint: '' }
const WORDS: Record<Level, string> = { error: 'error', warn: 'warning', info: 'information', hint: 'hint' }
const SEVERITY: Record<Level, NonNullable<Problem['severity']>> = { error: 'error', warn: 'warning', info: 'info', hint: 'info' }
const ORDER: Level[] = ['error', 'warn', 'info', 'hint']
const SHOWN = 50

interface Props {
  title: string
  text: string
  findings: LintFinding[]
  isReadOnly: boolean
  onChange: (text: string) => void
}

/** The end of the word at a place. */
function problemOf(text: string, starts: number[], it: LintFinding): Problem | null {
  if (it.line === null) return null
  const from = (starts[it.line - 1] ?? text.length) + Math.max((it.column ?? 1) - 1, 0)
  const word = /^[^\s:,]+/.exec(text.slice(from, from + 80))?.[0].length ?? 1
  return { from, to: from + word, message: it.rule === '' ? it.message : `${it.message} (${it.rule})`, severity: SEVERITY[it.level] }
}

export function DesignText({ title, text, findings, isReadOnly, onChange }: Props) {
  const [jump, setJump] = useState<Jump | null>(null)
  const [level, setLevel] = useState<Level | null>(null)
  const problems = useMemo(() => {
    const starts = [0]
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
    return findings.map((it) => problemOf(text, starts, it)).filter((it) => it !== null)
  }, [text, findings])
  const sorted = [...findings].sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level) || (a.line ?? 0) - (b.line ?? 0))
  const shown = sorted.filter((it) => level === null || it.level === level)
  const isJson = text.trimStart().startsWith('{')
  return (
    <>
      <section className="card" aria-label="Document">
        <div className="head2">
          <h2>Document</h2>
          {!isReadOnly && (
            <label className="button small">
              Replace it with a file
              <input
                className="sr"
                type="file"
                accept=".yaml,.yml,.json"
                onChange={(event) => {
                  const [file] = event.target.files ?? []
                  if (file) void file.text().then(onChange)
                }}
              />
            </label>
          )}
        </div>
        <TextEditor label={`${title} as an OpenAPI document`} text={text} format={isJson ? 'json' : 'yaml'} onChange={onChange} problems={problems} isReadOnly={isReadOnly} jump={jump} />
      </section>
      <section className="card" aria-label="Findings">
        <div className="head2">
          <h2>Findings</h2>
          <div className="row" role="group" aria-label="Show only">
            {ORDER.map((it) => {
              const count = findings.filter((one) => one.level === it).length
              return (
                count > 0 && (
                  <button key={it} type="button" className={`badge ${TONES[it]} pressable`} aria-pressed={level === it} onClick={() => setLevel(level === it ? null : it)}>
                    {countText(count, WORDS[it], it === 'info' ? 'information' : `${WORDS[it]}s`)}
                  </button>
                )
              )
            })}
          </div>
        </div>
        {findings.length === 0 ? (
          <p className="muted">Nothing is found. The rules have the names of Spectral’s; those of gateways begin with weir-.</p>
        ) : (
          <ul className="lines-list findings">
            {shown.slice(0, SHOWN).map((it, index) => (
              <li key={`${it.rule}${it.path}${index}`} className="row">
                <span className={`badge ${TONES[it.level]}`}>{WORDS[it.level]}</span>
                <span className="grow">
                  {it.message} {it.rule !== '' && <code className="muted">{it.rule}</code>}
                </span>
                {it.line !== null && (
                  <button type="button" className="button small" onClick={() => setJump({ line: it.line ?? 1, column: it.column ?? 1 })}>
                    Line {it.line}
                  </button>
                )}
              </li>
            ))}
            {shown.length > SHOWN && <li className="muted">and {shown.length - SHOWN} more</li>}
          </ul>
        )}
      </section>
    </>
  )
}
