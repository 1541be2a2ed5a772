// What the console and the portal have to show, by number, and the tests that show it. Each point has a test in a browser
// at least, and tasks of people one by keyboard alone. Points of APIs, plans and analytics are in
// crates/weir/tests/apis/acceptance.rs.

/** What has to hold, and its tests: `FILE: NAME`. A file without an ending is one of this folder's for a browser. */
export const POINTS: [number, string, string[]][] = [
  [28, 'readers who are not signed in see public APIs only', ['portal: 28: somebody who is not signed in sees public APIs only, everywhere']],
  [
    29,
    'sign-up with confirmation; a link works once; wrong passwords slow down; answers do not tell which addresses are known',
    [
      'people: 29, 33, 34: from signing up to calls, usage and refusals',
      'people: 29: wrong passwords slow down, and no answer tells whether an address is known',
      'crates/portal/tests/people/main.rs: five_wrong_passwords_slow_down_and_reveal_nothing',
      'portal-keyboard: 53: from a search to a key, a call that is tried, usage and refusals by keyboard alone',
    ],
  ],
  [30, 'a call is tried without CORS, and leads nowhere else', ['portal: 30: a call is tried through the portal, and leads nowhere else', 'crates/portal/src/api/try_it.rs: paths_lead_nowhere_else', 'portal-keyboard: 53: from a search to a key, a call that is tried, usage and refusals by keyboard alone']],
  [
    31,
    'oneOf, recursion, multipart, 2,000 operations',
    ['portal: 31: choices, recursion, forms with files, and the same call in five languages', 'portal: 31: an API with 2,000 operations opens within a second, and search answers within 200 ms'],
  ],
  [32, 'search forgives typing errors, and shows nothing hidden', ['portal: 32: search forgives typing errors', 'portal: 28: somebody who is not signed in sees public APIs only, everywhere', 'portal-keyboard: 53: from a search to a key, a call that is tried, usage and refusals by keyboard alone']],
  [
    33,
    'usage after 100 calls of which 10 are refused; quota left as the headers of the gateway say',
    ['portal-calls: 33: a hundred calls, ten of them refused, are counted as the caller saw them', 'portal-apps: 33: what is left of a quota is what the gateway tells in its headers'],
  ],
  [
    34,
    'refused calls with time, operation, reason in words, request id',
    ['people: 29, 33, 34: from signing up to calls, usage and refusals', 'portal-calls: 34: a refused call is listed with its time, its operation, the reason in words, and the id that the caller was told'],
  ],
  [35, 'who leaves a team loses access; the application stays', ['people: 35: who leaves a team loses its applications', 'portal-keyboard: 53: from a search to a key, a call that is tried, usage and refusals by keyboard alone', 'portal-keyboard: 53: from a search to a key, a call that is tried, usage and refusals by keyboard alone', 'portal-keyboard: 53: a team with an application, an invitation and its end by keyboard alone']],
  [
    36,
    'what people write, and pictures that they upload, run nothing',
    ['portal: 36: what people write does not run', 'importing: logos are chosen as files, checked, and served so that they run nothing'],
  ],
  [
    37,
    'webhooks are signed, tried again, delivered once, and logged',
    ['portal-apps: 37: webhooks of an application are signed, tried again, and logged', 'crates/weir/tests/apis/notifications.rs: webhooks_are_signed_and_wait_for_their_receiver'],
  ],
  [
    38,
    'the listener and the sessions of the portal are its own',
    ['portal: 38: the portal answers nothing of the console and of its API', 'people: 38: the session of the portal is worth nothing to the console, and the other way round'],
  ],
  [
    39,
    'a login through a real provider: groups give rights, changed ones count with the next login, logout ends the session',
    ['logins: an identity provider: set up here, groups give rights, a session that ends keeps the page, logout', 'crates/weir/tests/rights/openid.rs: groups_of_a_real_provider_give_rights'],
  ],
  [40, 'colours with too little contrast are refused with the ratio', ['portal: 40: colours with too little contrast are refused with their ratio; good ones are used', 'portal-keyboard: 53: a webhook is added and tested, and a key rotated, by keyboard alone', 'keyboard: 53: the look of a portal: a colour without contrast is refused, a good one saved, by keyboard alone']],
  [41, 'from a fresh start in five clicks to a protected route that answers', ['editing: 41: from a fresh start in one form and one press to a protected route that answers', 'keyboard: 53: from a fresh start to a protected route by keyboard alone']],
  [42, '20,000 routes: usable in a second, searched in 200 ms, memory stays flat', ['operating: 42: twenty thousand routes: usable in a second, searched as you type, and memory stays flat', 'pages: everything is reached by keyboard']],
  [
    43,
    'opening and saving without a change makes no commit; fields that the form does not know stay',
    [
      'editing: opening without a change makes no commit, and every field stays',
      'foreign: a service of Kong: untouched it makes no commit; a change is shown, saved and undone; nothing else is lost',
      'managing: a product: what the form does not know stays, and a wrong operation is named before saving',
      'recorded.test.ts: 43: opening a recorded document of ${dialect} changes nothing',
      'keyboard: 53: a route is edited in form and text, merged with what came meanwhile, and saved by keyboard alone',
    ],
  ],
  [44, 'two edits of one route meet; what does not overlap is merged', ['editing: two edits of one route: the second sees three columns and loses nothing', 'foreign: a route of APISIX with its plugins; two edits of it meet', 'keyboard: 53: a route is edited in form and text, merged with what came meanwhile, and saved by keyboard alone']],
  [45, 'form and text say the same; a broken text stays', ['editing: form and text say the same, comments stay, and a broken text is kept', 'keyboard: 53: a route is edited in form and text, merged with what came meanwhile, and saved by keyboard alone']],
  [46, 'each plugin has a form that Weir accepts or that says what is missing', ['pages: pages made of plugins: each has a form that Weir accepts or that says what is missing', 'foreign: a plugin of Kong has the form of its schema', 'keyboard: 53: a plugin is added to a route, and a refused call is explained and sent by keyboard alone']],
  [47, 'a save shows what is stored afterwards, field by field', ['editing: a change is shown field by field, noted, committed and undone', 'keyboard: 53: a route is edited in form and text, merged with what came meanwhile, and saved by keyboard alone']],
  [48, "a reader's buttons are visible, disabled, with the reason; every write is refused", ['logins: 48: for a reader every button is visible, disabled, and says why; every write by URL is refused', 'keyboard: 53: a reader is told by keyboard alone why a button does nothing']],
  [49, 'a target that stops is unhealthy within its check interval and a second', ['operating: 49: a target that stops is shown as unhealthy within its check interval and a second, without a reload', 'keyboard: 53: a target that is unhealthy is found, and its upstream mended, by keyboard alone']],
  [50, 'the causes of 404, 401, 429 and 502', ['explain: the cause of 404, 401, 429 and 502 is named, from the live calls', 'keyboard: 53: a plugin is added to a route, and a refused call is explained and sent by keyboard alone']],
  [51, 'a rollback is previewed, committed and served', ['operating: a rollback is previewed, committed, and served', 'pages: a rollback and a selection by keyboard alone']],
  [52, '500 routes are disabled in one commit, and one press takes it back', ['explain: five hundred routes are disabled in one commit, and one press takes it back', 'pages: a rollback and a selection by keyboard alone']],
  [
    53,
    'no serious finding of axe on any page in both themes; everything by keyboard alone',
    [
      "pages: pages have no serious findings in both themes: ${isFilled ? 'filled' : 'empty'}",
      'pages: pages of API management have no serious findings in both themes',
      'portal: each page is accessible in both themes',
      'people: pages of those who are signed in are accessible in both themes',
      'pages: everything is reached by keyboard',
      'pages: a rollback and a selection by keyboard alone',
      'keyboard: 53: from a fresh start to a protected route by keyboard alone',
      'keyboard: 53: a route is edited in form and text, merged with what came meanwhile, and saved by keyboard alone',
      'keyboard: 53: a plugin is added to a route, and a refused call is explained and sent by keyboard alone',
      'dialogs: 53: dialogs of ${area} have no serious findings in both themes, fit a phone, and give the focus back',
      'list.test.ts: every page of the console is visited',
      'list.test.ts: every page of the portal is visited',
      'keyboard: 53: an edit outlives a server that restarts, by keyboard alone',
      'portal-keyboard: 53: from a search to a key, a call that is tried, usage and refusals by keyboard alone',
      'portal-keyboard: 53: a team with an application, an invitation and its end by keyboard alone',
      'portal-keyboard: 53: a webhook is added and tested, and a key rotated, by keyboard alone',
    ],
  ],
  [54, 'hostile names, and names of 1,000 characters, are text', ['editing: hostile names are text']],
  [55, 'a server that restarts, fails or is slow is named, and the edit stays', ['editing: a server that restarts is told, and the edit stays', 'following: an answer of 500 is named with its call and request, and keeps the edit', 'following: a server that is slow is named as slow, and goes on', 'keyboard: 53: an edit outlives a server that restarts, by keyboard alone']],
  [
    56,
    'no other host, no inline script, a small first view',
    ['pages: a script in the page does not run', 'pages: the first view is small', 'portal: 56: the first view of the portal is small, and no script in the page runs', 'weir.ts: watch'],
  ],
]

/** The tests of the points that run in a browser, by their whole title: `FILE.spec.ts NAME`. */
export function browserTests(): RegExp {
  const named = POINTS.flatMap(([, , tests]) => tests).filter((one) => /^[a-z-]+: /.test(one))
  const titles = [...new Set(named)].map((one) => {
    const at = one.indexOf(': ')
    // A part of a name that is computed can be anything.
    const name = one.slice(at + 2).split(/\$\{[^}]*\}/).map(escaped).join('.*')
    return `${escaped(`${one.slice(0, at)}.spec.ts`)} ${name}`
  })
  return new RegExp(`(${titles.join('|')})$`)
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
