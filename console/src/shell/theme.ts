// The theme: the system's, until somebody chooses another.
import { useSyncExternalStore } from 'react'

export type Theme = 'light' | 'dark' | 'system'

const KEY = 'weir-theme'
const listeners = new Set<() => void>()
const read = (): Theme => (localStorage.getItem(KEY) as Theme | null) ?? 'system'

export function applyTheme(theme: Theme = read()) {
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}

export function setTheme(theme: Theme) {
  localStorage.setItem(KEY, theme)
  applyTheme(theme)
  listeners.forEach((listener) => listener())
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, read)
}

const isDark = (theme: Theme): boolean =>
  theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)

/** Whether it is dark now. The system's theme changes by itself: what is drawn in its colours is drawn again then. */
export function useIsDark(): boolean {
  return useSyncExternalStore((listener) => {
    const system = matchMedia('(prefers-color-scheme: dark)')
    listeners.add(listener)
    system.addEventListener('change', listener)
    return () => {
      listeners.delete(listener)
      system.removeEventListener('change', listener)
    }
  }, () => isDark(read()))
}
