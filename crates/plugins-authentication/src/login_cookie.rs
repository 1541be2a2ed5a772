//! A login of a browser that is under way, in a sealed cookie: what another server answers is bound to the browser that was sent
//! there. A login is good for ten minutes, and a browser has one at a time. The session that it ends with is that of
//! [`session_cookie`](crate::session_cookie).

use crate::browser::own_url;
use crate::session_cookie::Sessions;
use serde::{Deserialize, Serialize};
use weir_plugin::Exchange;
use weir_plugins_shared::cookie::{CookieRules, SameSite};

/// How long a browser may take to log in, in seconds.
pub(crate) const LOGIN_S: u64 = 600;

/// A login that is under way.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Login {
    /// What the browser has to bring back; empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) state: String,
    /// Where the browser wanted to go.
    pub(crate) url: String,
    began_s: u64,
}

/// The cookie of logins, and the session that they end with.
pub(crate) struct LoginCookie<'s> {
    sessions: &'s Sessions,
    rules: CookieRules,
    purpose: [&'s [u8]; 2],
}

/// How a cookie of logins is set: as that of sessions, but it always comes back with a redirect from another site.
pub(crate) fn login_rules(sessions: &Sessions, name: String) -> CookieRules {
    let cookie = sessions.cookie();
    CookieRules {
        name,
        same_site: match cookie.same_site {
            SameSite::Strict => SameSite::Lax,
            other => other,
        },
        ..cookie.clone()
    }
}

impl<'s> LoginCookie<'s> {
    /// The cookie with this name. What one purpose has sealed is not good for another.
    pub(crate) fn new(sessions: &'s Sessions, name: &str, purpose: [&'s [u8]; 2]) -> Self {
        Self {
            sessions,
            rules: login_rules(sessions, name.to_owned()),
            purpose,
        }
    }

    /// Begins a login of the browser. After it, the browser returns to the page that it asked for.
    pub(crate) fn begin(&self, exchange: &mut Exchange, state: String) {
        let login = Login {
            state,
            url: own_url(exchange),
            began_s: exchange.unix_ms() / 1_000,
        };
        let text = serde_json::to_vec(&login).unwrap_or_default();
        let sealed = self.sessions.seal(&self.purpose, &text);
        let Exchange {
            request,
            response_headers,
            ..
        } = exchange;
        self.rules
            .write(request, &sealed, Some(LOGIN_S), response_headers);
    }

    /// The login that the browser has begun; `None`: none that is still good.
    pub(crate) fn read(&self, exchange: &mut Exchange) -> Option<Login> {
        let now_s = exchange.unix_ms() / 1_000;
        let sealed = self.rules.read(&exchange.request)?;
        let text = self.sessions.sealer().open(&self.purpose, &sealed)?;
        let login: Login = serde_json::from_slice(&text).ok()?;
        (now_s < login.began_s.saturating_add(LOGIN_S)).then_some(login)
    }

    /// Ends the login with a new session, whatever the browser had before. Says whether the session is short enough for cookies.
    pub(crate) fn end(&self, exchange: &mut Exchange, remembered: &impl Serialize) -> bool {
        let data = serde_json::to_vec(remembered).unwrap_or_default();
        let mut session = self.sessions.begin(data, exchange.unix_ms() / 1_000);
        self.rules
            .remove(&exchange.request, &mut exchange.response_headers);
        self.sessions.write(&mut session, exchange)
    }
}
