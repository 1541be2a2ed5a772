//! Sessions: what a gateway remembers of a caller from one call to the next, in a sealed cookie. All gateways with the same
//! secret know the session. What it remembers is for the plugins that have sessions.
//!
//! Three clocks end a session: so long after its last use (idling), so long after it was renewed last (rolling), and so
//! long after it began (absolute).

use crate::shared_revocations::{RevocationLifetime, SharedRevocations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{Exchange, Headers, Request};
use weir_plugins_shared::config_checks::{ConfigErrors, within};
use weir_plugins_shared::cookie::{CookieRules, SameSite};
use weir_plugins_shared::random::{self, Random};
use weir_plugins_shared::sealed::Sealer;

/// How long a session is used at most before its cookie says so.
const TOUCH_S: u64 = 60;
/// So long an ended session is remembered, unless it lasts for a shorter time.
const MAX_ENDED_S: u64 = 7 * 86_400;
/// The most bytes that ended sessions take, for all instances of a plugin.
const ENDED_BYTES: usize = 8 << 20;
/// The bytes before what a plugin remembers.
const HEAD: usize = 3 * 8 + 16;

/// Configuration of sessions.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionConfig {
    /// The secret that seals cookies. All gateways that share sessions have the same.
    #[schemars(length(min = 1))]
    pub secret: String,
    /// Former secrets: cookies that were sealed with them are still accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_secrets: Vec<String>,
    /// The purpose of the session; a cookie is not accepted for another audience.
    #[serde(default = "standard_audience")]
    pub audience: String,
    /// The cookie's name.
    #[serde(default = "standard_name")]
    pub cookie_name: String,
    /// The paths for which browsers send the cookie.
    #[serde(default = "root_path")]
    pub cookie_path: String,
    /// The domain whose hosts get the cookie; absent: the host that sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie_domain: Option<String>,
    /// Which calls from other sites carry the cookie.
    #[serde(default)]
    pub cookie_same_site: SameSite,
    /// Whether scripts of pages cannot read the cookie.
    #[serde(default = "weir_plugins_shared::yes")]
    pub cookie_http_only: bool,
    /// Whether the cookie is only sent over TLS.
    #[serde(default = "weir_plugins_shared::yes")]
    pub cookie_secure: bool,
    /// Whether browsers keep the cookie when they are closed, as long as the session lasts.
    #[serde(default)]
    pub persistent: bool,
    /// How long a session lasts without being used, in seconds; 0: as long as the others say.
    #[serde(default = "fifteen_minutes")]
    pub idling_timeout_seconds: u64,
    /// How long a session lasts without being renewed, in seconds; it is renewed when it is used in the last quarter of
    /// that time. 0: as long as the others say.
    #[serde(default = "one_hour")]
    pub rolling_timeout_seconds: u64,
    /// How long a session lasts, in seconds; 0: as long as the others say.
    #[serde(default = "one_day")]
    pub absolute_timeout_seconds: u64,
}

/// The secrets are left out.
impl std::fmt::Debug for SessionConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionConfig")
            .field("cookie_name", &self.cookie_name)
            .finish_non_exhaustive()
    }
}

impl SessionConfig {
    /// The defaults of all options, with this secret.
    pub fn new(secret: String) -> Self {
        Self {
            secret,
            former_secrets: Vec::new(),
            audience: standard_audience(),
            cookie_name: standard_name(),
            cookie_path: root_path(),
            cookie_domain: None,
            cookie_same_site: SameSite::default(),
            cookie_http_only: true,
            cookie_secure: true,
            persistent: false,
            idling_timeout_seconds: fifteen_minutes(),
            rolling_timeout_seconds: one_hour(),
            absolute_timeout_seconds: one_day(),
        }
    }

    /// What is wrong with it, with paths that begin at it.
    pub(crate) fn faults(&self, place: &weir_model::DocPath) -> Vec<Diagnostic> {
        let mut faults = ConfigErrors::default();
        if self.secret.is_empty() {
            faults.add("secret", "expected a secret");
        }
        if !is_name(self.cookie_name.as_bytes()) {
            faults.add("cookie_name", "expected the name of a cookie");
        }
        let is_attribute = |text: &str| is_value(text.as_bytes()) && !text.contains(';');
        if !is_attribute(&self.cookie_path) || !self.cookie_path.starts_with('/') {
            faults.add("cookie_path", "expected a path");
        }
        if !self.cookie_domain.as_deref().is_none_or(is_attribute) {
            faults.add("cookie_domain", "expected a domain");
        }
        match faults.done() {
            Ok(()) => Vec::new(),
            Err(faults) => within(place, faults).collect(),
        }
    }
}

fn standard_audience() -> String {
    "default".into()
}

fn standard_name() -> String {
    "session".into()
}

fn root_path() -> String {
    "/".into()
}

fn fifteen_minutes() -> u64 {
    900
}

fn one_hour() -> u64 {
    3_600
}

fn one_day() -> u64 {
    86_400
}

/// Remembers the ids of sessions that have ended before their time, so that copies of their cookies are no longer good.
pub(crate) fn ended_sessions() -> Arc<SharedRevocations> {
    SharedRevocations::new(ENDED_BYTES)
}

impl SessionConfig {
    /// How long it is remembered that a session has ended. A gateway of its own cannot know whether a copy of the cookie is
    /// still in use at others; those that know of its end by the store let none be used, so that it is over with the first of its
    /// times.
    pub(crate) fn life_of_ended(&self) -> RevocationLifetime {
        let absolute = self.absolute_timeout_seconds;
        let times = [
            absolute,
            self.rolling_timeout_seconds,
            self.idling_timeout_seconds,
        ];
        let first = times.into_iter().filter(|seconds| *seconds > 0).min();
        RevocationLifetime {
            here_s: if absolute == 0 {
                MAX_ENDED_S
            } else {
                absolute.min(MAX_ENDED_S)
            },
            shared_s: first.unwrap_or(MAX_ENDED_S).min(MAX_ENDED_S),
        }
    }
}

/// Opens and writes sessions.
pub(crate) struct Sessions {
    config: SessionConfig,
    sealer: Sealer,
    cookie: CookieRules,
    random: Random,
    ended: Option<Arc<SharedRevocations>>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// Tells it from all others.
    pub(crate) id: [u8; 16],
    created_s: u64,
    renewed_s: u64,
    used_s: u64,
    /// What is remembered.
    pub(crate) data: Vec<u8>,
}

impl Session {
    /// Its id in hexadecimal digits.
    pub(crate) fn id_text(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.id)
    }
}

impl Sessions {
    pub(crate) fn new(config: SessionConfig, random: Random) -> Self {
        let former = config.former_secrets.iter().map(String::as_bytes);
        Self {
            sealer: Sealer::new(config.secret.as_bytes(), former),
            cookie: CookieRules {
                name: config.cookie_name.clone(),
                path: config.cookie_path.clone(),
                domain: config.cookie_domain.clone(),
                same_site: config.cookie_same_site,
                http_only: config.cookie_http_only,
                secure: config.cookie_secure,
            },
            random,
            config,
            ended: None,
        }
    }

    /// Refuses sessions that [`Sessions::end`] has ended, here and on every gateway that shares these marks.
    pub(crate) fn remembering(self, ended: &Arc<SharedRevocations>) -> Self {
        Self {
            ended: Some(Arc::clone(ended)),
            ..self
        }
    }

    /// Seals the value of another cookie of the same plugin.
    pub(crate) fn seal(&self, purpose: &[&[u8]], value: &[u8]) -> String {
        self.sealer.seal(purpose, value, self.random)
    }

    /// What opens its cookies, for other cookies of the same plugin.
    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// How its cookie is set, for other cookies of the same plugin.
    pub(crate) fn cookie(&self) -> &CookieRules {
        &self.cookie
    }

    /// The audience.
    pub(crate) fn audience(&self) -> &str {
        &self.config.audience
    }

    /// A new session. It always has a new id, so that no caller can choose it.
    pub(crate) fn begin(&self, data: Vec<u8>, now_s: u64) -> Session {
        Session {
            id: random::bytes(self.random),
            created_s: now_s,
            renewed_s: now_s,
            used_s: now_s,
            data,
        }
    }

    fn purpose(&self) -> [&[u8]; 2] {
        [
            self.config.cookie_name.as_bytes(),
            self.config.audience.as_bytes(),
        ]
    }

    /// The session of a call, if it has one that is good.
    pub(crate) fn open(&self, request: &Request, now_s: u64) -> Option<Session> {
        let sealed = self.cookie.read(request)?;
        let mut plain = self.sealer.open(&self.purpose(), &sealed)?;
        let number = |at: usize| Some(u64::from_be_bytes(plain.get(at..at + 8)?.try_into().ok()?));
        let (created_s, renewed_s, used_s) = (number(0)?, number(8)?, number(16)?);
        let id: [u8; 16] = plain.get(24..HEAD)?.try_into().ok()?;
        let config = &self.config;
        let lasts = |from: u64, seconds: u64| seconds == 0 || now_s < from.saturating_add(seconds);
        let is_good = lasts(created_s, config.absolute_timeout_seconds)
            && lasts(renewed_s, config.rolling_timeout_seconds)
            && lasts(used_s, config.idling_timeout_seconds);
        let has_ended = |ended: &Arc<SharedRevocations>| ended.get(&id, now_s * 1_000).is_some();
        if !is_good || self.ended.as_ref().is_some_and(has_ended) {
            return None;
        }
        Some(Session {
            id,
            created_s,
            renewed_s,
            used_s,
            data: plain.split_off(HEAD),
        })
    }

    /// Writes a session that a call uses, if its cookie should say so.
    pub(crate) fn touch(&self, session: &mut Session, exchange: &mut Exchange) {
        if self.renew(session, exchange.unix_ms() / 1_000) {
            self.write(session, exchange);
        }
    }

    /// How long a session is used before its cookie says so: one that is in use must not idle for too long by then.
    fn touch_s(&self) -> u64 {
        match self.config.idling_timeout_seconds {
            0 => TOUCH_S,
            idling => TOUCH_S.min(idling / 4),
        }
    }

    /// Renews a session that is used late. Returns whether its cookie should be sent again.
    fn renew(&self, session: &mut Session, now_s: u64) -> bool {
        let rolling = self.config.rolling_timeout_seconds;
        let is_late = rolling > 0 && now_s >= session.renewed_s.saturating_add(rolling - rolling / 4);
        if is_late {
            session.renewed_s = now_s;
        }
        is_late || now_s >= session.used_s.saturating_add(self.touch_s())
    }

    /// Writes a session before there is a response. Says whether it is short enough for cookies.
    pub(crate) fn write(&self, session: &mut Session, exchange: &mut Exchange) -> bool {
        let now_s = exchange.unix_ms() / 1_000;
        self.write_to(session, &exchange.request, &mut exchange.response_headers, now_s)
    }

    /// Writes a session. Says whether it is short enough for cookies.
    pub(crate) fn write_to(
        &self,
        session: &mut Session,
        request: &Request,
        out: &mut Headers,
        now_s: u64,
    ) -> bool {
        session.used_s = now_s;
        let mut plain = Vec::with_capacity(HEAD + session.data.len());
        for number in [session.created_s, session.renewed_s, session.used_s] {
            plain.extend_from_slice(&number.to_be_bytes());
        }
        plain.extend_from_slice(&session.id);
        plain.extend_from_slice(&session.data);
        let sealed = self.sealer.seal(&self.purpose(), &plain, self.random);
        let max_age = self.config.persistent.then(|| self.left(session, now_s));
        self.cookie.write(request, &sealed, max_age.flatten(), out)
    }

    /// For how many seconds it lasts if it is not used again.
    pub(crate) fn left(&self, session: &Session, now_s: u64) -> Option<u64> {
        let config = &self.config;
        let ends = [
            (session.created_s, config.absolute_timeout_seconds),
            (session.renewed_s, config.rolling_timeout_seconds),
            (session.used_s, config.idling_timeout_seconds),
        ];
        let ends = ends.into_iter().filter(|(_, seconds)| *seconds > 0);
        let end = ends.map(|(from, seconds)| from.saturating_add(seconds)).min()?;
        Some(end.saturating_sub(now_s))
    }

    /// Ends a session: no copy of its cookie is good any more.
    pub(crate) fn end(&self, session: &Session, exchange: &mut Exchange) {
        if let Some(ended) = &self.ended {
            ended.set(&session.id, self.config.life_of_ended(), exchange.unix_ms());
        }
        self.close(exchange);
    }

    /// Removes the session's cookie.
    pub(crate) fn close(&self, exchange: &mut Exchange) {
        self.cookie
            .remove(&exchange.request, &mut exchange.response_headers);
    }

    /// Takes the cookie out of the request, so that upstreams do not see it.
    pub(crate) fn strip(&self, request: &mut Request) {
        self.cookie.strip(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_shared::random::system_random;
    use weir_plugins_testkit::{exchange, lines, prepare};

    fn sessions(change: impl FnOnce(&mut SessionConfig)) -> Sessions {
        let mut config = SessionConfig::new("0123456789abcdef".into());
        change(&mut config);
        Sessions::new(config, system_random)
    }

    /// The cookies that a response sets, as a browser sends them back.
    fn sent_back(out: &Headers) -> String {
        let pairs = lines(out).into_iter().map(|line| {
            let pair = line.strip_prefix("Set-Cookie: ").unwrap_or_default();
            pair.split(';').next().unwrap_or_default().to_owned()
        });
        pairs.collect::<Vec<_>>().join("; ")
    }

    fn cookie(sessions: &Sessions, session: &mut Session, now_s: u64) -> String {
        let mut out = Headers::default();
        assert!(sessions.write_to(session, &exchange().request, &mut out, now_s));
        sent_back(&out)
    }

    fn opened(sessions: &Sessions, cookie: &str, now_s: u64) -> Option<Session> {
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Cookie", cookie)]);
        sessions.open(&call.request, now_s)
    }

    #[test]
    fn three_clocks_end_a_session() {
        let own = sessions(|_| {});
        let mut session = own.begin(b"alice".to_vec(), 1_000);
        let first = cookie(&own, &mut session, 1_000);
        for (now_s, is_good) in [(1_000, true), (1_899, true), (1_900, false)] {
            assert_eq!(opened(&own, &first, now_s).is_some(), is_good, "idling {now_s}");
        }
        let used = cookie(&own, &mut session, 4_500);
        for (now_s, is_good) in [(4_599, true), (4_600, false)] {
            assert_eq!(opened(&own, &used, now_s).is_some(), is_good, "rolling {now_s}");
        }
        let unlimited = sessions(|config| {
            (config.idling_timeout_seconds, config.rolling_timeout_seconds) = (0, 0);
        });
        let cookie = cookie(&unlimited, &mut session, 1_000);
        for (now_s, is_good) in [(87_399, true), (87_400, false)] {
            assert_eq!(
                opened(&unlimited, &cookie, now_s).is_some(),
                is_good,
                "absolute {now_s}"
            );
        }
    }

    #[test]
    fn use_is_noted_now_and_then_and_late_sessions_are_renewed() {
        let own = sessions(|_| {});
        let mut session = own.begin(Vec::new(), 1_000);
        for (now_s, writes, left) in [(1_059, false, 841), (1_060, true, 900), (3_700, true, 900)] {
            assert_eq!(own.renew(&mut session, now_s), writes, "{now_s}");
            if writes {
                cookie(&own, &mut session, now_s);
            }
            assert_eq!(own.left(&session, now_s), Some(left), "{now_s}");
        }
        assert_eq!(session.renewed_s, 3_700);
    }

    /// The defect: with a short idling timeout, the cookie of a session in use was not written again in time.
    #[test]
    fn sessions_in_use_do_not_idle() {
        for (idling, every, writes) in [
            (40, 9, 4),
            (40, 10, 8),
            (20, 5, 8),
            (60, 15, 8),
            (2, 1, 8),
            (0, 30, 4),
        ] {
            let own = sessions(|config| config.idling_timeout_seconds = idling);
            let mut session = own.begin(Vec::new(), 1_000);
            let mut sent = cookie(&own, &mut session, 1_000);
            let mut written = 0;
            for step in 1..=8 {
                let now_s = 1_000 + step * every;
                let mut session = opened(&own, &sent, now_s).expect("it is in use");
                if own.renew(&mut session, now_s) {
                    sent = cookie(&own, &mut session, now_s);
                    written += 1;
                }
            }
            assert_eq!(written, writes, "{idling} {every}");
        }
    }

    #[test]
    fn cookies_are_good_for_their_audience_and_secret_only() {
        let own = sessions(|_| {});
        let mut session = own.begin(vec![b'x'; 10_000], 1_000);
        let written = cookie(&own, &mut session, 1_000);
        assert!(written.contains("session_2=") && written.contains("session_4="));
        assert_eq!(opened(&own, &written, 1_001), Some(session));
        for other in [
            sessions(|config| config.audience = "other".into()),
            sessions(|config| config.secret = "another secret".into()),
        ] {
            assert_eq!(opened(&other, &written, 1_001), None);
        }
        let rotated = sessions(|config| {
            config.former_secrets = vec![std::mem::replace(&mut config.secret, "new".into())];
        });
        assert!(opened(&rotated, &written, 1_001).is_some());
        // A part that is missing, or of another session.
        let parts: Vec<&str> = written.split("; ").collect();
        assert_eq!(opened(&own, &parts[..2].join("; "), 1_001), None);
        let mut other = own.begin(vec![b'y'; 10_000], 1_000);
        let swapped = cookie(&own, &mut other, 1_000).replace("session_2=", "session_9=");
        assert_eq!(opened(&own, &format!("{swapped}; {}", parts[1]), 1_001), None);
    }
}
