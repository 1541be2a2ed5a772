// What credentials of each kind are called, how calls carry them, and where they come from.

export interface CredentialWords {
  /** Above a list of them. */
  title: string
  /** What the button says that makes one; `null`: the application brings them. */
  add: string | null
  /** What is shown once. */
  secret: string
  /** How calls carry them. */
  carried: string
  /** What is said if there are none. */
  none: string
}

const WORDS: Record<string, CredentialWords> = {
  key: { title: 'Keys', add: 'New key', secret: 'Key', carried: 'Calls carry it in the header X-API-Key.', none: 'There is no key yet.' },
  basic: { title: 'User names', add: 'New user name', secret: 'Password', carried: 'Calls carry user name and password in Authorization: Basic.', none: 'There is no user name yet.' },
  hmac: { title: 'Signing secrets', add: 'New secret', secret: 'Secret', carried: 'Calls are signed with the secret, and name the user name as their keyId.', none: 'There is no secret yet.' },
  jwt: { title: 'Public keys', add: 'Add a public key', secret: 'Key', carried: 'Calls carry a token in Authorization: Bearer that is signed with the private half.', none: 'There is no public key yet: calls are refused until there is one.' },
  oauth2: { title: 'Client id', add: null, secret: '', carried: 'Calls carry an access token that the authorization server made for this client.', none: 'No client id is entered for the application yet: calls are refused until there is one.' },
  mtls: { title: 'Certificates', add: null, secret: '', carried: 'Calls show one of these certificates in the TLS handshake. Each is known by its SHA-256.', none: 'No certificate is entered for the application yet: calls are refused until there is one.' },
}

const KEYS: CredentialWords = WORDS['key'] as CredentialWords

export const wordsOf = (security: string): CredentialWords => WORDS[security] ?? KEYS

/** Whether a plan knows its callers by what is entered for their application. */
export const isOfApplication = (security: string): boolean => wordsOf(security).add === null
