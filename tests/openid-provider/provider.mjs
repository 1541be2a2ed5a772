// A real OpenID provider for the tests, on a free port of this machine: node provider.mjs '{"clients":[…]}'.
//
// It prints `ready ISSUER`. `port` of the options is where it listens, and `access_token_seconds` how long access tokens are good;
// refresh tokens are good once. `GET /grants` tells how many grants of each type were given and refused. A login needs no page: the login page takes `login` and `groups` from `login_hint`, as
// `ada admins,developers`, and the consent is given. `PUT /groups/ada` with a list gives ada other groups.
// `emails` and `email_verified` of the options say what it tells of somebody's mail address.
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'

const options = JSON.parse(process.argv[2] ?? '{}')
const groups = new Map(Object.entries(options.groups ?? {}))

const server = createServer()
await new Promise((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
const issuer = `http://127.0.0.1:${server.address().port}`

const provider = new Provider(issuer, {
  clients: options.clients,
  claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
  scopes: ['openid', 'offline_access', 'profile', 'email', 'groups'],
  // Claims stand in the ID token, as most providers have it.
  conformIdTokenClaims: options.claims_in_userinfo === true,
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: false },
    rpInitiatedLogout: { enabled: true },
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true },
  },
  rotateRefreshToken: true,
  ttl: { AccessToken: options.access_token_seconds ?? 600, ClientCredentials: 600, RefreshToken: 600, AuthorizationCode: 60, IdToken: 600, Interaction: 600, Session: 600, Grant: 600 },
  cookies: { keys: ['a key of the tests'] },
  jwks: options.jwks,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      name: `The ${id}`,
      preferred_username: id,
      email: options.emails?.[id] ?? `${id}@example.test`,
      email_verified: options.email_verified?.[id],
      groups: groups.get(id) ?? [],
    }),
  }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
})

const grants = {}
const count = (result) => (context) => {
  const name = `${result} ${context.oidc.params?.grant_type}`
  grants[name] = (grants[name] ?? 0) + 1
}
provider.on('grant.success', count('given'))
provider.on('grant.error', count('refused'))

const body = async (request) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

// Who logs in is in `login_hint`; no page asks.
const interact = async (request, response) => {
  const details = await provider.interactionDetails(request, response)
  const { params } = details
  if (params.login_hint === 'refuse') {
    return provider.interactionFinished(request, response, { error: 'access_denied', error_description: 'not today' })
  }
  const accountId = details.session?.accountId ?? params.login_hint ?? 'ada'
  const grant = details.grantId
    ? await provider.Grant.find(details.grantId)
    : new provider.Grant({ accountId, clientId: params.client_id })
  grant.addOIDCScope(params.scope)
  const result = { login: { accountId }, consent: { grantId: await grant.save() } }
  return provider.interactionFinished(request, response, result)
}

const answer = provider.callback()
server.on('request', async (request, response) => {
  const path = new URL(request.url, issuer).pathname
  try {
    if (path.startsWith('/interaction/')) {
      await interact(request, response)
    } else if (path === '/grants') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(grants))
    } else if (path.startsWith('/groups/') && request.method === 'PUT') {
      groups.set(decodeURIComponent(path.slice('/groups/'.length)), JSON.parse(await body(request)))
      response.writeHead(204).end()
    } else {
      await answer(request, response)
    }
  } catch (error) {
    response.writeHead(500).end(String(error))
  }
})

console.log(`ready ${issuer}`)
