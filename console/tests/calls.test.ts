// Each call of /api/v1 is made by a page of the console, or is named here with the reason why not. A new call that is in
// neither list fails the test, so that nothing can be done by the API only without a decision.
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** The file below `src` that makes the call. */
const USED: Record<string, string> = {
  listResources: 'pages/detail.tsx',
  createResource: 'pages/detail.tsx',
  getResource: 'pages/detail.tsx',
  putResource: 'pages/detail.tsx',
  deleteResource: 'pages/detail.tsx',
  changeResources: 'api/changes.ts',
  getSchema: 'api/hooks.ts',
  importOpenapi: 'pages/import.tsx',
  viewList: 'pages/list.tsx',
  explainCall: 'pages/explain.tsx',
  listTests: 'api/apis.ts',
  putTest: 'pages/apis/test-form.tsx',
  deleteTest: 'pages/apis/tests.tsx',
  runTests: 'pages/apis/tests.tsx',
  listUpstreamHealth: 'api/hooks.ts',
  listPlugins: 'pages/plugins.tsx',
  getState: 'api/rights.ts',
  listCommits: 'pages/detail.tsx',
  getDiff: 'pages/commit.tsx',
  rollback: 'pages/commit.tsx',
  listGateways: 'pages/gateways.tsx',
  listUsers: 'pages/users.tsx',
  addUser: 'pages/users.tsx',
  removeUser: 'pages/users.tsx',
  setUserRights: 'pages/users.tsx',
  setUserPassword: 'pages/users.tsx',
  endUserSessions: 'pages/users.tsx',
  listAudit: 'pages/audit.tsx',
  getLoginOptions: 'api/session.ts',
  logIn: 'api/client.ts',
  logOut: 'api/client.ts',
  startOpenidLogin: 'api/session.ts',
  finishOpenidLogin: 'pages/identity-providers.tsx',
  getMe: 'pages/account.tsx',
  setMyPassword: 'pages/account.tsx',
  listMySessions: 'pages/account.tsx',
  endMySession: 'pages/account.tsx',
  listMyTokens: 'pages/account.tsx',
  createMyToken: 'pages/account.tsx',
  removeMyToken: 'pages/account.tsx',
  listIdentityProviders: 'pages/identity-providers.tsx',
  putIdentityProvider: 'pages/identity-providers.tsx',
  removeIdentityProvider: 'pages/identity-providers.tsx',
  followEvents: 'api/events.ts',
  getAnalyticsDefinition: 'pages/explorer.tsx',
  queryAnalytics: 'pages/analytics.tsx',
  searchCalls: 'pages/explain.tsx',
  followCalls: 'pages/live.tsx',
  listReports: 'api/reports.ts',
  createReport: 'pages/reports/edit.tsx',
  putReport: 'pages/reports/edit.tsx',
  removeReport: 'pages/reports/edit.tsx',
  previewReport: 'pages/reports/edit.tsx',
  sendReport: 'pages/reports/edit.tsx',
  listAlertRules: 'pages/alerts/list.tsx',
  createAlertRule: 'pages/alerts/edit.tsx',
  getAlertRule: 'pages/alerts/edit.tsx',
  putAlertRule: 'pages/alerts/edit.tsx',
  removeAlertRule: 'pages/alerts/list.tsx',
  listBoards: 'pages/analytics.tsx',
  createBoard: 'pages/analytics.tsx',
  getBoard: 'pages/analytics.tsx',
  putBoard: 'pages/analytics.tsx',
  removeBoard: 'pages/analytics.tsx',
  listEnvironments: 'pages/apis/environments.tsx',
  createEnvironment: 'pages/apis/environments.tsx',
  getEnvironment: 'pages/apis/environments.tsx',
  putEnvironment: 'pages/apis/environments.tsx',
  deleteEnvironment: 'pages/apis/environments.tsx',
  listApis: 'pages/apis/list.tsx',
  createApi: 'pages/apis/list.tsx',
  getApi: 'pages/apis/adopt.tsx',
  putApi: 'pages/apis/adopt.tsx',
  deleteApi: 'pages/apis/adopt.tsx',
  listVersions: 'pages/apis/api.tsx',
  createVersion: 'pages/apis/api.tsx',
  listAllVersions: 'pages/apis/list.tsx',
  getSpec: 'pages/apis/design.tsx',
  getVersion: 'pages/apis/design-draft.ts',
  putDraft: 'pages/apis/design-draft.ts',
  listRevisions: 'pages/apis/revisions.tsx',
  createRevision: 'pages/apis/revisions.tsx',
  compareRevisions: 'pages/apis/revisions.tsx',
  adoptService: 'pages/apis/adopt.tsx',
  listPlans: 'pages/apis/plans.tsx',
  getPlan: 'pages/apis/plans.tsx',
  putPlan: 'pages/apis/plans.tsx',
  setPlanState: 'pages/apis/plans.tsx',
  listPublications: 'pages/apis/api.tsx',
  getPublication: 'pages/apis/publication-steps.tsx',
  publish: 'pages/apis/publication-steps.tsx',
  removePublication: 'pages/apis/publication-steps.tsx',
  rollbackPublication: 'pages/apis/publication-steps.tsx',
  promotePublication: 'pages/apis/publish-check.ts',
  deprecatePublication: 'pages/apis/publication-steps.tsx',
  undeprecatePublication: 'pages/apis/publication-steps.tsx',
  retirePublication: 'pages/apis/publication-steps.tsx',
  startCanary: 'pages/apis/publication-steps.tsx',
  abortCanary: 'pages/apis/publication-steps.tsx',
  disablePublication: 'pages/apis/publication-steps.tsx',
  enablePublication: 'pages/apis/publication-steps.tsx',
  listProducts: 'pages/products/list.tsx',
  getProduct: 'pages/products/edit.tsx',
  putProduct: 'pages/products/edit.tsx',
  deleteProduct: 'pages/products/edit.tsx',
  listProductPlans: 'pages/products/product.tsx',
  putProductPlan: 'pages/products/product.tsx',
  listApplications: 'pages/apis/applications.tsx',
  createApplication: 'pages/apis/applications.tsx',
  getApplication: 'pages/apis/application.tsx',
  putApplication: 'pages/apis/application.tsx',
  deleteApplication: 'pages/apis/application.tsx',
  listSubscriptions: 'pages/apis/application.tsx',
  subscribe: 'pages/apis/application.tsx',
  getSubscription: 'pages/apis/subscription.tsx',
  setSubscriptionState: 'pages/apis/subscriptions.tsx',
  listCredentials: 'pages/apis/public-key.tsx',
  addCredential: 'pages/apis/public-key.tsx',
  revokeCredential: 'pages/apis/subscription.tsx',
  listApprovals: 'pages/apis/approvals.tsx',
  requestApproval: 'pages/apis/approvals.tsx',
  decideApproval: 'pages/apis/approvals.tsx',
  listDeliveries: 'pages/deliveries.tsx',
  retryDelivery: 'pages/deliveries.tsx',
  listPortals: 'api/developers.ts',
  listDevelopers: 'api/developers.ts',
  createDeveloper: 'api/developers.ts',
  changeDeveloper: 'pages/developers/dialogs.tsx',
  deleteDeveloper: 'pages/developers/dialogs.tsx',
  approveDeveloper: 'pages/developers/dialogs.tsx',
  refuseDeveloper: 'pages/developers/dialogs.tsx',
  suspendDeveloper: 'pages/developers/dialogs.tsx',
  resumeDeveloper: 'pages/developers/dialogs.tsx',
  exportVersion: 'pages/apis/export.tsx',
  getReport: 'pages/reports/edit.tsx',
  listHooks: 'api/webhooks.ts',
  getHook: 'api/webhooks.ts',
  putHook: 'pages/hooks/edit.tsx',
  deleteHook: 'pages/hooks/edit.tsx',
  getPortal: 'api/portals.ts',
  putPortal: 'pages/portals/portal.tsx',
  deletePortal: 'pages/portals/portal.tsx',
  listPages: 'api/portals.ts',
  getPage: 'api/portals.ts',
  putPage: 'pages/portals/page.tsx',
  deletePage: 'pages/portals/page.tsx',
  getMyPermissions: 'pages/account.tsx',
}

/** Why no page makes the call. */
const NOT_USED: Record<string, string> = {
  getTest: 'the list of tests holds the same',
  getPlugin: 'the list of plugins and the schema hold the same',
  reportGateway: 'gateways make it',
  settleLimits: 'gateways make it',
  followConfiguration: 'gateways make it',
  deliverAnalytics: 'gateways make it',
  lintVersion: 'the dry run of a draft lints, too',
  getDeveloper: 'the list of developers holds the same',
  getOpenapi: 'it describes the API to programs',
}

interface Operation {
  operationId: string
}

const { paths } = JSON.parse(readFileSync('../docs/schema/api.openapi.json', 'utf8')) as { paths: Record<string, Record<string, Operation>> }
const METHODS = ['get', 'put', 'post', 'delete']
const operations = Object.entries(paths).flatMap(([path, methods]) => METHODS.flatMap((method) => (methods[method] ? [{ id: methods[method].operationId, method: method.toUpperCase(), path }] : [])))

test('each call of the API is made by a page, or named with a reason', () => {
  const known = [...Object.keys(USED), ...Object.keys(NOT_USED)]
  expect(new Set(known).size, 'a call is in both lists').toBe(known.length)
  expect(operations.map((it) => it.id).filter((id) => !known.includes(id)), 'calls that nothing is said of').toEqual([])
  expect(known.filter((id) => !operations.some((it) => it.id === id)), 'calls that are gone').toEqual([])
})

/** Helpers that make a path say its words for the file that uses them. */
const HELPERS: Record<string, string> = {
  apiPath: 'apis',
  versionPath: 'versions',
  publicationPath: 'publications',
  subscriptionPath: 'subscriptions',
  applicationPath: 'applications',
  productPath: 'products',
  productPlanPath: 'plans',
  planPath: 'plans',
  boardPath: 'boards',
  reportPath: 'reports',
  documentPath: 'resources',
  viewPath: 'view',
  developersPath: 'developers',
  developerPath: 'developers',
  rulePath: 'alerts',
  hookPath: 'hooks',
  portalPath: 'portals',
  pagesPath: 'pages',
  pagePath: 'pages',
}

test('the file that is named for a call makes it', () => {
  for (const { id, path } of operations) {
    const file = USED[id]
    if (file === undefined) continue
    expect(existsSync(`src/${file}`), `${id}: src/${file}`).toBe(true)
    const text = readFileSync(`src/${file}`, 'utf8')
    const word = path.split('/').filter((it) => it !== '' && !it.startsWith('{')).at(-1) ?? ''
    const helpers = Object.entries(HELPERS).filter(([, says]) => says === word).map(([helper]) => `${helper}(`)
    expect([`/${word}`, `'${word}'`, ...helpers].some((it) => text.includes(it)), `${id}: src/${file} does not name ${word}`).toBe(true)
  }
})
