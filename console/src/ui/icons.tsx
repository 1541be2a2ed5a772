// The icons, drawn with one stroke. They never carry meaning alone: each stands beside a word or in a named button.
import type { ReactNode } from 'react'

const shapes = {
  search: <path d="M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14Zm5 12 4.500 4.500" />,
  close: <path d="M6 6l12 12M18 6 6 18" />,
  check: <path d="m5 12.500 4.500 4.500L19 7.500" />,
  squares: <path d="M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z" />,
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
  bell: <path d="M6 16V11a6 6 0 1 1 12 0v5l2 2H4l2-2Zm4 5h4" />,
  trash: <path d="M4 7h16M9 7V4h6v3m-8 0 1 13h8l1-13" />,
  chevron: <path d="m9 6 6 6-6 6" />,
  download: <path d="M12 4v11m-4-4 4 4 4-4M4 20h16" />,
  overview: <path d="M4 4h7v8H4zM14 4h6v4h-6zM14 11h6v9h-6zM4 15h7v5H4z" />,
  explain: <path d="M4 6h6c5 0 4 12 9 12m-3-3 3 3-3 3M4 6h.010M4 18h3" />,
  apis: <path d="M8 4c-3 0-3 2-3 4s0 3-2 4c2 1 2 2 2 4s0 4 3 4m8-16c3 0 3 2 3 4s0 3 2 4c-2 1-2 2-2 4s0 4-3 4" />,
  box: <path d="m12 3 8 4.500v9L12 21l-8-4.500v-9L12 3Zm0 9 8-4.500M12 12v9m0-9L4 7.500" />,
  ticket: <path d="M4 6h16v4a2 2 0 0 0 0 4v4H4v-4a2 2 0 0 0 0-4V6Zm10 0v12" />,
  window: <path d="M4 5h16v14H4zM4 10h16M7 7.500h.010M10 7.500h.010" />,
  people: <path d="M9 5a3.500 3.500 0 1 1 0 7 3.500 3.500 0 0 1 0-7ZM2.500 20c0-4 3-6 6.500-6s6.500 2 6.500 6m0-14.500a3.500 3.500 0 0 1 0 6M18 14.500c2.500.800 3.500 2.600 3.500 5.500" />,
  globe: <path d="M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18ZM3 12h18M12 3c5 5 5 13 0 18-5-5-5-13 0-18Z" />,
  shield: <path d="m12 3 8 3v6c0 5-4 7.500-8 9-4-1.500-8-4-8-9V6l8-3Zm-3.500 9 2.500 2.500 4.500-5" />,
  layers: <path d="m12 3 9 5-9 5-9-5 9-5ZM3 12.500l9 5 9-5M3 16.800l9 5 9-5" />,
  fork: <path d="M3 12h5l5-6h8m-3-3 3 3-3 3M8 12l5 6h8m-3-3 3 3-3 3" />,
  server: <path d="M4 4h16v7H4zM4 13h16v7H4zM8 7.500h.010M8 16.500h.010" />,
  tree: <path d="M9.500 3h5v5h-5zM3 16h5v5H3zM16 16h5v5h-5zM12 8v4m-6.500 4v-4h13v4" />,
  key: <path d="M8 11a4.500 4.500 0 1 1 0 9 4.500 4.500 0 0 1 0-9Zm3 1.500L20 4m-4 4 3 3" />,
  lock: <path d="M5 11h14v9H5zM8 11V7.500a4 4 0 0 1 8 0V11M12 14.500v2" />,
  plug: <path d="M9 3v5m6-5v5M6 8h12v4a6 6 0 0 1-12 0V8Zm6 10v3" />,
  waves: <path d="M3 8c3-3.500 6 3.500 9 0s6 3.500 9 0M3 16c3-3.500 6 3.500 9 0s6 3.500 9 0" />,
  seal: <path d="M12 3a6 6 0 1 1 0 12 6 6 0 0 1 0-12Zm-3 11.500L8 21l4-2 4 2-1-6.500" />,
  bars: <path d="M5 20V11m5 9V4m5 16v-7m5 7V8M3 20h19" />,
  pulse: <path d="M3 12h4l3-8 4 16 3-8h4" />,
  page: <path d="M6 3h8l4 4v14H6zM14 3v4h4M9 12h6m-6 4h6" />,
  send: <path d="M21 3 3 10.500l7 3 3 7.500 8-18ZM10 13.500l4-4" />,
  mail: <path d="M3 6h18v12H3zM3 7l9 6 9-6" />,
  clock: <path d="M12 4a8 8 0 1 1-7.500 5.200M4 4v5.500h5.500M12 8v4l3 2" />,
  gateway: <path d="M4 8h16v8H4zM8 12h.010M12 12h.010M7 16v4m10-4v4M12 8V4" />,
  badge: <path d="M5 4h14v16H5zM12 8a2 2 0 1 1 0 4 2 2 0 0 1 0-4Zm-3.500 8.500c.800-2 6.200-2 7 0" />,
  face: <path d="M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm0 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6Zm-6 11c1-2.500 3-3.500 6-3.500s5 1 6 3.500" />,
  list: <path d="M8 6h12M8 12h12M8 18h12M4 6h.010M4 12h.010M4 18h.010" />,
  sliders: <path d="M4 7h9m4 0h3M15 5v4M4 17h3m4 0h9M9 15v4" />,
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
