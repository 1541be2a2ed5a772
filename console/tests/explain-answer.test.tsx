// What an explanation shows of plugins.
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Answer, type Explained } from '../src/pages/explain-answer'

const explained = (placeholder_for?: string): Explained => ({
  call: 'GET /',
  client: '127.0.0.1',
  route: null,
  answer: null,
  others: [],
  plugins: [
    {
      plugin: { name: 'request-termination', id: null, when: null, is_shared: false, at: null, ...(placeholder_for === undefined ? {} : { placeholder_for }) },
      response_only: false,
      exceptions: [],
      exceptions_not_shown: 0,
      verdict: { verdict: 'answers', status: 503, reason: null, body: null },
    },
  ],
  response_order: [],
  consumer: null,
  end: { kind: 'answered', step: 1, status: 503, reason: null },
  revision: 1,
  plans: [],
  skipped: [],
})

test('a plugin that is not served is named beside the one that stands for it', () => {
  const shown = (name?: string) => renderToStaticMarkup(<Answer explained={explained(name)} />)
  expect(shown('wasm')).toContain('wasm is written there and is not served, so calls are refused.')
  expect(shown()).not.toContain('is not served')
})
