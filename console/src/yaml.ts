// Documents as YAML for reading, small enough for the first view. Editing loads the whole library.
import type { Json } from './api/types'

const PLAIN = /^[A-Za-z_/][\w ./@-]*$/
const RESERVED = /^(true|false|null|yes|no|on|off|~)$/i

function scalar(value: Json): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  return PLAIN.test(value) && !RESERVED.test(value) && !value.endsWith(' ') ? value : JSON.stringify(value)
}

const isEmpty = (value: Json): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0

export function stringify(value: Json, indent = ''): string {
  if (typeof value !== 'object' || value === null || isEmpty(value)) return `${indent}${scalar(value)}\n`
  if (Array.isArray(value)) {
    return value
      .map((it) => `${indent}- ${stringify(it, `${indent}  `).slice(indent.length + 2)}`)
      .join('')
  }
  return Object.entries(value)
    .map(([name, it]) => {
      const isNested = typeof it === 'object' && it !== null && !isEmpty(it)
      return isNested ? `${indent}${scalar(name)}:\n${stringify(it, `${indent}  `)}` : `${indent}${scalar(name)}: ${scalar(it)}\n`
    })
    .join('')
}
