// A button that copies a text and says so. Over cleartext from another machine, browsers give scripts no clipboard.
import { useEffect, useState } from 'react'
import { Button } from '../ui/button'

const SAID_MS = 2_500

export function CopyButton({ text, isQuiet = false }: { text: string; isQuiet?: boolean }) {
  const [said, say] = useState<string | null>(null)
  useEffect(() => {
    if (said === null) return
    const timer = setTimeout(() => say(null), SAID_MS)
    return () => clearTimeout(timer)
  }, [said])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      say('Copied')
    } catch {
      say('Select it and copy it by hand')
    }
  }
  return (
    <Button small={isQuiet} look={isQuiet ? 'quiet' : 'plain'} onPress={() => void copy()}>
      {said ?? 'Copy'}
    </Button>
  )
}
