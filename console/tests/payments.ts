// An OpenAPI document as a payment company writes it: the pictures of the portal's pages are made with it.
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const json = (schema: unknown, example?: unknown) => ({ content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } } })
const id = (of: string) => ({ name: 'id', in: 'path', required: true, description: `The id of the ${of}.`, schema: { type: 'string', examples: [`${of.slice(0, 2)}_3MtwBwLkdIwHu7ix`] } })
const page = [
  { name: 'limit', in: 'query', description: 'How many objects one page has.', schema: { type: 'integer', minimum: 1, maximum: 100, default: 10 } },
  { name: 'starting_after', in: 'query', description: 'The id of the object after which the page begins.', schema: { type: 'string' } },
]
const wrong = { 400: { description: 'Something in the request is wrong.', ...json(reference('Error')) }, 401: { description: 'The key is missing or wrong.', ...json(reference('Error')) }, 429: { description: 'Too many calls.', headers: { 'Retry-After': { description: 'Seconds until the next call may succeed.', schema: { type: 'integer' } } } } }
const list = (name: string) => ({ 200: { description: 'A page of them.', ...json({ type: 'object', required: ['data', 'has_more'], properties: { data: { type: 'array', items: reference(name) }, has_more: { type: 'boolean', description: 'Whether there are more after this page.' } } }) }, ...wrong })
const one = (status: number, name: string) => ({ [status]: { description: `The ${name.toLowerCase()}.`, ...json(reference(name)) }, ...wrong })

const resource = (path: string, name: string, tag: string) => ({
  [`/${path}`]: {
    get: { operationId: `list${name}s`, summary: `List all ${path.replaceAll('_', ' ')}`, tags: [tag], parameters: page, responses: list(name) },
    post: { operationId: `create${name}`, summary: `Create a ${name.toLowerCase()}`, description: `Creates a ${name.toLowerCase()}. Send an \`Idempotency-Key\` so that a call that is repeated does no harm.\n\n> [!TIP]\n> Use the test environment until all of it works.`, tags: [tag], parameters: [{ name: 'Idempotency-Key', in: 'header', description: 'A value of your own; the same value is carried out once.', schema: { type: 'string', maxLength: 255 } }], requestBody: { required: true, ...json(reference(`New${name}`)) }, responses: one(201, name) },
  },
  [`/${path}/{id}`]: {
    get: { operationId: `get${name}`, summary: `Retrieve a ${name.toLowerCase()}`, tags: [tag], parameters: [id(name.toLowerCase())], responses: one(200, name) },
    patch: { operationId: `update${name}`, summary: `Update a ${name.toLowerCase()}`, tags: [tag], parameters: [id(name.toLowerCase())], requestBody: { ...json(reference(`New${name}`)) }, responses: one(200, name) },
    delete: { operationId: `delete${name}`, summary: `Delete a ${name.toLowerCase()}`, tags: [tag], deprecated: name === 'Payout', parameters: [id(name.toLowerCase())], responses: { 204: { description: 'It is gone.' }, ...wrong } },
  },
})

const DESCRIPTION = `The Payments API takes cards, bank debits and wallets, pays money back and pays it out.

## Authentication

Send your key with each call in \`X-API-Key\`. A key belongs to one application and one plan.

\`\`\`
curl https://api.example.com/payments/v1/payments -H 'X-API-Key: …'
\`\`\`

## Amounts

Amounts are whole numbers in the smallest unit of the currency.

| currency | 1,000 means |
|---|---|
| EUR | 10.00 € |
| JPY | 1,000 ¥ |

## Errors

| status | meaning | what to do |
|---|---|---|
| 400 | the request is wrong | mend it; \`param\` names the field |
| 402 | the card was declined | ask for another card |
| 429 | too many calls | wait for \`Retry-After\` seconds |
`

export const payments = (title: string, version = '2.4.0', more: Record<string, unknown> = {}): Record<string, unknown> => ({
  openapi: '3.1.0',
  info: { title, version, description: DESCRIPTION },
  tags: [{ name: 'Payments' }, { name: 'Refunds' }, { name: 'Customers' }, { name: 'Payouts' }],
  paths: {
    ...resource('payments', 'Payment', 'Payments'),
    '/payments/{id}/capture': { post: { operationId: 'capturePayment', summary: 'Capture a payment that was authorised', tags: ['Payments'], parameters: [id('payment')], requestBody: { ...json({ type: 'object', properties: { amount: { type: 'integer', description: 'What is captured; left out: all of it.' } } }) }, responses: one(200, 'Payment') } },
    ...resource('refunds', 'Refund', 'Refunds'),
    ...resource('customers', 'Customer', 'Customers'),
    ...resource('payouts', 'Payout', 'Payouts'),
    '/payouts/{id}/documents': { post: { operationId: 'addPayoutDocument', summary: 'Attach a document to a payout', tags: ['Payouts'], parameters: [id('payout')], requestBody: { content: { 'multipart/form-data': { schema: { type: 'object', required: ['file'], properties: { purpose: { type: 'string', enum: ['invoice', 'evidence'] }, file: { type: 'string', format: 'binary' } } } } } }, responses: one(200, 'Payout') } },
    ...more,
  },
  components: {
    schemas: {
      Address: { type: 'object', properties: { line1: { type: 'string' }, line2: { type: ['string', 'null'] }, city: { type: 'string' }, postal_code: { type: 'string' }, country: { type: 'string', description: 'ISO 3166-1, two letters.', minLength: 2, maxLength: 2, examples: ['DE'] } } },
      Card: { type: 'object', title: 'Card', required: ['type', 'number'], properties: { type: { const: 'card' }, number: { type: 'string', examples: ['4242424242424242'] }, exp_month: { type: 'integer', minimum: 1, maximum: 12 }, exp_year: { type: 'integer' }, cvc: { type: 'string', writeOnly: true } } },
      Debit: { type: 'object', title: 'SEPA debit', required: ['type', 'iban'], properties: { type: { const: 'sepa_debit' }, iban: { type: 'string', examples: ['DE89370400440532013000'] }, mandate: { type: 'string', format: 'uri' } } },
      Wallet: { type: 'object', title: 'Wallet', properties: { type: { const: 'wallet' }, token: { type: 'string' } } },
      Method: { oneOf: [reference('Card'), reference('Debit'), reference('Wallet')], discriminator: { propertyName: 'type', mapping: { card: '#/components/schemas/Card', sepa_debit: '#/components/schemas/Debit', wallet: '#/components/schemas/Wallet' } } },
      NewPayment: { type: 'object', required: ['amount', 'currency', 'method'], properties: { amount: { type: 'integer', minimum: 1, maximum: 99999999, description: 'What is to be paid, in the smallest unit of the currency.', examples: [2000] }, currency: { type: 'string', enum: ['EUR', 'USD', 'GBP', 'JPY', 'CHF', 'SEK'], description: 'ISO 4217.' }, method: reference('Method'), customer: { type: 'string', description: 'The customer who pays.' }, description: { type: 'string', maxLength: 500 }, metadata: { type: 'object', description: 'Up to 50 values of your own.', additionalProperties: { type: 'string' } } } },
      Payment: { allOf: [reference('NewPayment'), { type: 'object', required: ['id', 'status'], properties: { id: { type: 'string', readOnly: true, examples: ['pa_3MtwBwLkdIwHu7ix'] }, status: { type: 'string', enum: ['requires_action', 'processing', 'succeeded', 'canceled'], readOnly: true }, created: { type: 'string', format: 'date-time', readOnly: true }, refunds: { type: 'array', items: reference('Refund') } } }] },
      NewRefund: { type: 'object', required: ['payment'], properties: { payment: { type: 'string' }, amount: { type: 'integer', minimum: 1 }, reason: { type: 'string', enum: ['duplicate', 'fraudulent', 'requested_by_customer'] } } },
      Refund: { allOf: [reference('NewRefund'), { type: 'object', properties: { id: { type: 'string' }, status: { type: 'string' }, of: reference('Payment') } }] },
      NewCustomer: { type: 'object', required: ['email'], properties: { email: { type: 'string', format: 'email' }, name: { type: 'string' }, address: reference('Address'), shipping: reference('Address') } },
      Customer: { allOf: [reference('NewCustomer'), { type: 'object', properties: { id: { type: 'string' }, created: { type: 'string', format: 'date-time' }, balance: { type: 'integer', default: 0 } } }] },
      NewPayout: { type: 'object', required: ['amount', 'iban'], properties: { amount: { type: 'integer' }, iban: { type: 'string' }, statement: { type: 'string', maxLength: 22 } } },
      Payout: { allOf: [reference('NewPayout'), { type: 'object', properties: { id: { type: 'string' }, arrives: { type: 'string', format: 'date' } } }] },
      Error: { type: 'object', required: ['type', 'message'], properties: { type: { type: 'string', enum: ['invalid_request', 'card_error', 'rate_limit'] }, message: { type: 'string', examples: ['The amount is too small.'] }, param: { type: 'string', examples: ['amount'] } } },
    },
  },
})
