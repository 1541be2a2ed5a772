// The text editor. It lives in a shadow root, where its style sheets are built by script: the page's policy forbids any
// that is written into the page.
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'

export interface Problem {
  from: number
  to: number
  message: string
  /** Left out: an error. */
  severity?: 'error' | 'warning' | 'info'
}

/** A line to go to; another object goes there again. */
export interface Jump {
  line: number
  column: number
}

export interface Props {
  label: string
  text: string
  format: 'yaml' | 'json'
  onChange: (text: string) => void
  problems: Problem[]
  isReadOnly?: boolean
  jump?: Jump | null
}

const look = EditorView.theme({
  '&': { fontSize: '0.8125rem', backgroundColor: 'var(--surface)', color: 'var(--ink)', minHeight: '16rem', maxHeight: '70vh' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6', overflow: 'auto' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--ink-3)', border: '0' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--accent-soft) 45%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-2px' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'var(--accent-soft)' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--ink)', borderColor: 'var(--line)' },
  // Without the pictures that the library would load.
  '.cm-lint-marker-error': { content: 'none', width: '0.6em', height: '0.6em', margin: '0.35em 0.2em', borderRadius: '50%', backgroundColor: 'var(--bad)' },
  '.cm-lint-marker-warning, .cm-lint-marker-info': { content: 'none', width: '0.6em', height: '0.6em', margin: '0.35em 0.2em', borderRadius: '50%', backgroundColor: 'var(--warn)' },
  '.cm-lint-marker-info': { backgroundColor: 'var(--accent)' },
  '.cm-lintRange-warning': { backgroundImage: 'none', textDecoration: 'underline wavy var(--warn)' },
  '.cm-lintRange-info': { backgroundImage: 'none', textDecoration: 'underline dotted var(--accent)' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)' },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--sunken)', borderColor: 'var(--line)', color: 'var(--ink-2)' },
})

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.attributeValue], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--warn)' },
  { tag: tags.comment, color: 'var(--ink-3)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

const language = (format: 'yaml' | 'json') => (format === 'yaml' ? yaml() : json())

export default function Editor({ label, text, format, onChange, problems, isReadOnly = false, jump = null }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const grammar = useRef(new Compartment())
  const change = useRef(onChange)
  /** What was typed and has not come back yet: it is no change from outside. */
  const sent = useRef<string[]>([])
  change.current = onChange

  useEffect(() => {
    const element = host.current
    if (element === null) return
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
    const created = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          foldGutter(),
          lintGutter(),
          history(),
          drawSelection(),
          // A mark that turns the direction of letters is shown, and does not turn what comes after it.
          highlightSpecialChars(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          search(),
          // Escape, then Tab, leaves the editor.
          keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, ...searchKeymap, indentWithTab]),
          grammar.current.of(language(format)),
          syntaxHighlighting(colours),
          look,
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.lineWrapping,
          EditorView.updateListener.of((update) => {
            if (update.docChanged && update.transactions.some((it) => it.isUserEvent('input') || it.isUserEvent('delete') || it.isUserEvent('undo') || it.isUserEvent('redo') || it.isUserEvent('move'))) {
              const typed = update.state.doc.toString()
              sent.current.push(typed)
              change.current(typed)
            }
          }),
        ],
      }),
    })
    view.current = created
    return () => {
      created.destroy()
      view.current = null
    }
    // The editor is built once; what follows keeps it in step.
  }, [isReadOnly, label])

  useEffect(() => {
    const current = view.current
    if (current === null) return
    const echo = sent.current.lastIndexOf(text)
    if (echo !== -1) {
      sent.current.splice(0, echo + 1)
      return
    }
    if (current.state.doc.toString() === text) return
    sent.current = []
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text } })
  }, [text])

  useEffect(() => {
    view.current?.dispatch({ effects: grammar.current.reconfigure(language(format)) })
  }, [format])

  useEffect(() => {
    const current = view.current
    if (current === null) return
    const end = current.state.doc.length
    const found = problems.map((it): Diagnostic => ({ from: Math.min(it.from, end), to: Math.min(Math.max(it.to, it.from), end), severity: it.severity ?? 'error', message: it.message }))
    current.dispatch(setDiagnostics(current.state, found))
  }, [problems, text])

  useEffect(() => {
    const current = view.current
    if (current === null || jump === null) return
    const line = current.state.doc.line(Math.min(Math.max(jump.line, 1), current.state.doc.lines))
    const at = Math.min(line.from + Math.max(jump.column - 1, 0), line.to)
    current.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) })
    current.focus()
  }, [jump])

  return <div className="editor" ref={host} />
}
