// What is typed, once it has not changed for a moment: a server is not asked for every letter.
import { useEffect, useState } from 'react'

const PAUSE_MS = 120

export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
