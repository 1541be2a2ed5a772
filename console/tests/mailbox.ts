// A mail server that keeps what it gets, for tests.
import { type Socket, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

export interface Mail {
  to: string
  text: string
}

export async function mailbox(): Promise<{ url: string; mails: Mail[]; close: () => Promise<void> }> {
  const mails: Mail[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    let to = ''
    let text: string | null = null
    let waiting = ''
    const say = (line: string) => socket.write(`${line}\r\n`)
    say('220 mailbox')
    socket.on('data', (data) => {
      waiting += data.toString()
      for (let end = waiting.indexOf('\r\n'); end >= 0; end = waiting.indexOf('\r\n')) {
        const line = waiting.slice(0, end)
        waiting = waiting.slice(end + 2)
        if (text !== null) {
          if (line === '.') {
            mails.push({ to, text: decoded(text) })
            text = null
            say('250 kept')
          } else text += `${line}\n`
        } else if (/^RCPT TO:/i.test(line)) {
          to = /<(.*)>/.exec(line)?.[1] ?? ''
          say('250 good')
        } else if (/^DATA/i.test(line)) {
          text = ''
          say('354 go on')
        } else if (/^QUIT/i.test(line)) {
          say('221 bye')
          socket.end()
        } else say('250 good')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    close: () =>
      new Promise((resolve) => {
        sockets.forEach((it) => it.destroy())
        server.close(() => resolve())
      }),
  }
}

/** The text of a mail, whatever it was encoded in. */
function decoded(mail: string): string {
  const [head = '', ...rest] = mail.split('\n\n')
  const body = rest.join('\n\n')
  if (/base64/i.test(head)) return Buffer.from(body, 'base64').toString()
  return body.replace(/=\n/g, '').replace(/=([0-9A-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}
