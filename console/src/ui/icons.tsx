// The few icons, drawn with one stroke. They never carry meaning alone: each stands beside a word or in a named button.
import type { ReactNode } from 'react'

const shapes = {
  search: <path d="M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14Zm5 12 4.500 4.500" />,
  close: <path d="M6 6l12 12M18 6 6 18" />,
  plus: <path d="M12 5v14M5 12h14" />,
  up: <path d="M12 19V5m-6 6 6-6 6 6" />,
  down: <path d="M12 5v14m-6-6 6 6 6-6" />,
  menu: <path d="M4 7h16M4 12h16M4 17h16" />,
  sun: <path d="M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8Zm0-6v2m0 16v2M2 12h2m16 0h2M5 5l1.500 1.500M17.500 17.500 19 19M5 19l1.500-1.500M17.500 6.500 19 5" />,
  moon: <path d="M20 14a8 8 0 1 1-10-10 6.500 6.500 0 0 0 10 10Z" />,
  eye: <path d="M2 12s3.500-7 10-7 10 7 10 7-3.500 7-10 7S2 12 2 12Zm10-3a3 3 0 1 1 0 6 3 3 0 0 1 0-6Z" />,
  code: <path d="m8 7-5 5 5 5m8-10 5 5-5 5" />,
  columns: <path d="M4 5h16v14H4zM10 5v14M15 5v14" />,
  person: <path d="M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM4 20c0-4 3.500-6 8-6s8 2 8 6" />,
  trash: <path d="M4 7h16M9 7V4h6v3m-8 0 1 13h8l1-13" />,
} satisfies Record<string, ReactNode>

export type IconName = keyof typeof shapes

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {shapes[name]}
    </svg>
  )
}
