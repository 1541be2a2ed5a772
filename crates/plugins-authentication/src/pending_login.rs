//! Logins that are under way: what a gateway remembers of a browser from the moment that it is sent to a provider until it
//! comes back.
//!
//! Each login has a sealed cookie of its own, so that several tabs can log in at the same time. It binds the answer to the
//! browser that asked, and is good for ten minutes. Plugins whose browsers have one login at a time use
//! [`login_cookie`](crate::login_cookie).

use crate::login_cookie::{LOGIN_S, login_rules};
use crate::session_cookie::Sessions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_plugin::{Exchange, Request};
use weir_plugins_shared::cookie::{CookieRules, SameSite};
use weir_plugins_shared::random::{self, Random};

/// Logins of one browser that are under way at once.
const MAX_LOGINS: usize = 6;
/// The length of a state.
const STATE: usize = 32;

/// What is remembered of a login.
pub(crate) trait PendingLogin: Serialize + DeserializeOwned {
    /// When it has begun, in seconds since the Unix epoch.
    fn began_s(&self) -> u64;
}

/// Reads and writes the cookies of logins, beside those of sessions.
pub(crate) struct PendingLogins<'s> {
    sessions: &'s Sessions,
    /// Which calls from other sites carry the cookies: one of them brings the answer.
    same_site: SameSite,
}

/// A new state: hexadecimal digits that cannot be guessed.
pub(crate) fn new_state(random: Random) -> String {
    data_encoding::HEXLOWER.encode(&random::bytes::<{ STATE / 2 }>(random))
}

impl<'s> PendingLogins<'s> {
    /// For answers that a redirect brings.
    pub(crate) fn redirected(sessions: &'s Sessions) -> Self {
        let same_site = login_rules(sessions, String::new()).same_site;
        Self { sessions, same_site }
    }

    /// For answers that a page of another site may post. Browsers take `None` over TLS alone; without any word they carry
    /// a new cookie with a form for two minutes.
    pub(crate) fn posted(sessions: &'s Sessions) -> Self {
        let same_site = match sessions.cookie().secure {
            true => SameSite::None,
            false => SameSite::Default,
        };
        Self { sessions, same_site }
    }

    /// The cookie of a login with this state. `None`: it is not a state.
    pub(crate) fn cookie(&self, state: &str) -> Option<CookieRules> {
        let short = state
            .get(..16)
            .filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let name = format!("{}_login_{short}", self.sessions.cookie().name);
        Some(CookieRules {
            same_site: self.same_site,
            ..login_rules(self.sessions, name)
        })
    }

    fn purpose<'p>(&'p self, cookie: &'p CookieRules) -> [&'p [u8]; 3] {
        let audience = self.sessions.audience();
        [b"login", cookie.name.as_bytes(), audience.as_bytes()]
    }

    /// Remembers a login. Of too many, the oldest are forgotten.
    pub(crate) fn remember<L: PendingLogin>(&self, exchange: &mut Exchange, state: &str, login: &L) {
        let Some(cookie) = self.cookie(state) else {
            return;
        };
        let now_s = exchange.unix_ms() / 1_000;
        let mut known: Vec<(CookieRules, L)> = self.all(&exchange.request, now_s);
        known.sort_by_key(|(_, login)| std::cmp::Reverse(login.began_s()));
        self.write(exchange, &cookie, state, login);
        let Exchange {
            request,
            response_headers,
            ..
        } = exchange;
        for (old, _) in known.iter().skip(MAX_LOGINS - 1) {
            old.remove(request, response_headers);
        }
    }

    /// Writes the cookie of a login.
    pub(crate) fn write<L: PendingLogin>(
        &self,
        exchange: &mut Exchange,
        cookie: &CookieRules,
        state: &str,
        login: &L,
    ) {
        let text = format!("{state}{}", serde_json::to_string(login).unwrap_or_default());
        let sealed = self.sessions.seal(&self.purpose(cookie), text.as_bytes());
        let Exchange {
            request,
            response_headers,
            ..
        } = exchange;
        cookie.write(request, &sealed, Some(LOGIN_S), response_headers);
    }

    /// The logins of a browser that are under way.
    pub(crate) fn all<L: PendingLogin>(&self, request: &Request, now_s: u64) -> Vec<(CookieRules, L)> {
        let start = format!("{}_login_", self.sessions.cookie().name);
        let fields = request.headers.get_all(b"cookie");
        let mut states: Vec<String> = fields
            .flat_map(|value| value.split(|byte| *byte == b';'))
            .filter_map(|pair| pair.trim_ascii().strip_prefix(start.as_bytes())?.get(..16))
            .filter_map(|state| String::from_utf8(state.to_vec()).ok())
            .collect();
        states.sort_unstable();
        states.dedup();
        states.truncate(4 * MAX_LOGINS);
        let opened = states.into_iter().filter_map(|state| {
            let cookie = self.cookie(&state)?;
            let (_, login) = self.open(request, &cookie, now_s)?;
            Some((cookie, login))
        });
        opened.collect()
    }

    /// The login of a cookie, with its whole state, if it is good.
    pub(crate) fn open<L: PendingLogin>(
        &self,
        request: &Request,
        cookie: &CookieRules,
        now_s: u64,
    ) -> Option<(String, L)> {
        let sealed = cookie.read(request)?;
        let opened = self.sessions.sealer().open(&self.purpose(cookie), &sealed)?;
        let (state, json) = opened.split_at_checked(STATE)?;
        let login: L = serde_json::from_slice(json).ok()?;
        let is_good = now_s < login.began_s().saturating_add(LOGIN_S);
        is_good.then_some((String::from_utf8(state.to_vec()).ok()?, login))
    }

    /// The login with this very state, with its cookie.
    pub(crate) fn find<L: PendingLogin>(
        &self,
        request: &Request,
        state: &str,
        now_s: u64,
    ) -> Option<(CookieRules, L)> {
        let cookie = self.cookie(state)?;
        let (own, login) = self.open(request, &cookie, now_s)?;
        (own == state).then_some((cookie, login))
    }
}
