// The real OpenID provider of tests/openid-provider, for logins in a browser. It asks for nothing: everybody is ada.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'

const FOLDER = '../tests/openid-provider'

export class IdentityProvider {
  private constructor(
    private readonly process: ChildProcess,
    readonly issuer: string,
  ) {}

  static isInstalled = (): boolean => existsSync(`${FOLDER}/node_modules/oidc-provider`)

  /** Starts one that knows a Weir at an address, under a name. */
  static async start(weir: string, name: string, groups: Record<string, string[]>): Promise<IdentityProvider> {
    const options = {
      clients: [{ client_id: 'weir', client_secret: 'secret', redirect_uris: [`${weir}/api/v1/session/openid/${name}/callback`], post_logout_redirect_uris: [`${weir}/ui/`] }],
      groups,
    }
    const child = spawn('node', ['provider.mjs', JSON.stringify(options)], { cwd: FOLDER, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    const issuer = await new Promise<string>((resolve, reject) => {
      child.stderr.on('data', (data: Buffer) => (said += data.toString()))
      child.stdout.on('data', (data: Buffer) => {
        const ready = /^ready (\S+)$/m.exec(data.toString())?.[1]
        if (ready !== undefined) resolve(ready)
      })
      child.on('exit', () => reject(new Error(`the provider has ended (make deps FOR=test installs it): ${said}`)))
    })
    return new IdentityProvider(child, issuer)
  }

  async setGroups(who: string, groups: string[]) {
    await fetch(`${this.issuer}/groups/${who}`, { method: 'PUT', body: JSON.stringify(groups) })
  }

  end() {
    this.process.kill('SIGKILL')
  }
}
