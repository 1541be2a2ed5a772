// A SAML identity provider for the tests, made of Node's `samlp`, on a free port of this machine: node provider.mjs '{…}'.
//
// Options: `key`, `cert` and `sp_cert` in PEM; `callback`, `logout` (where messages of logouts go) and `audience` of the service
// provider; `encrypt` (an algorithm), `sign_response`, `sign_assertion`. It prints `ready ADDRESS`. Nobody is asked: whoever
// comes to /sso is ada. /slo takes messages of logouts; without one, it ends ada's session itself.
import { createServer } from 'node:http'
import { createPublicKey } from 'node:crypto'
import samlp from 'samlp'
import Participants from 'samlp/lib/sessionParticipants/index.js'

const options = JSON.parse(process.argv[2])
const redirect = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect'
const user = {
  id: 'ada',
  emails: [{ value: 'ada@example.test' }],
  displayName: 'Ada <&>',
  name: { givenName: 'Ada', familyName: 'Lovelace' },
  groups: ['admins', 'developers'],
}
const own = {
  issuer: 'urn:idp.test',
  cert: options.cert,
  key: options.key,
  signatureAlgorithm: 'rsa-sha256',
  digestAlgorithm: 'sha256',
}

const login = samlp.auth({
  ...own,
  audience: options.audience,
  destination: options.callback,
  recipient: options.callback,
  sessionIndex: '_session',
  lifetimeInSeconds: 300,
  signResponse: options.sign_response === true,
  signAssertion: options.sign_assertion !== false,
  // The service provider signs its requests.
  signingCert: options.sp_cert,
  getUserFromRequest: () => user,
  getPostURL: (audience, request, call, done) => done(null, options.callback),
  ...(options.encrypt && {
    encryptionCert: options.sp_cert,
    encryptionPublicKey: createPublicKey(options.sp_cert).export({ type: 'spki', format: 'pem' }),
    encryptionAlgorithm: options.encrypt,
    disallowEncryptionWithInsecureAlgorithm: false,
    warnOnInsecureEncryptionAlgorithm: false,
  }),
})

const kept = new Map()
const store = {
  save: (call, state, done) => {
    const handle = `state-${kept.size}`
    kept.set(handle, state)
    done(null, handle)
  },
  load: (call, handle, how, done) => (done ?? how)(null, kept.get(handle)),
  update: (call, handle, state, done) => {
    kept.set(handle, state)
    done(null)
  },
}
const participants = () =>
  new Participants([
    {
      serviceProviderId: options.audience,
      nameId: 'ada',
      sessionIndex: '_session',
      serviceProviderLogoutURL: options.logout,
      cert: options.sp_cert,
      binding: redirect,
    },
  ])
const logoutWith = (sessionParticipants) =>
  samlp.logout({ ...own, deflate: true, protocolBinding: redirect, sessionParticipants, store, clearIdPSession: (done) => done() })
// A logout that the provider begins goes on with the answer of the service provider.
let ending = participants()

const body = async (request) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://idp.test')
  const answer = {
    set: (name, value) => response.setHeader(name, value),
    send: (status, text) => {
      if (typeof status === 'number') response.statusCode = status
      response.end(typeof status === 'number' ? String(text ?? '') : status)
    },
    redirect: (place) => response.writeHead(302, { Location: place }).end(),
  }
  const call = {
    method: request.method,
    url: request.url,
    originalUrl: request.url,
    query: Object.fromEntries(url.searchParams),
    body: Object.fromEntries(new URLSearchParams(await body(request))),
  }
  const failed = (error) => response.writeHead(500).end(String(error))
  if (url.pathname === '/sso') return login(call, answer, failed)
  if (url.pathname !== '/slo') return response.writeHead(404).end()
  const begins = !call.query.SAMLRequest && !call.query.SAMLResponse && !call.body.SAMLRequest
  if (begins) ending = participants()
  return logoutWith(call.query.SAMLResponse || begins ? ending : participants())(call, answer, failed)
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
console.log(`ready http://127.0.0.1:${server.address().port}`)
