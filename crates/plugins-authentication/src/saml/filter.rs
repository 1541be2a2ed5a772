//! An instance of `saml` at work: whose call it is, and what becomes of it.

use super::NAME;
use super::config::{Config, ConsumerRules, Unauthenticated, UserValue};
use super::user::User;
use crate::browser::own_origin;
use crate::consumer_names::ConsumerNames;
use crate::identity::Gate;
use crate::session_cookie::{Session, Sessions};
use crate::shared_revocations::{RevocationLifetime, SharedRevocations};
use crate::user_headers;
use aws_lc_rs::digest;
use std::sync::Arc;
use weir_plugin::headers::is_value;
use weir_plugin::{AuthFailure, Exchange, Filter, Identity, Outcome, Phases, RefusalKind};
use weir_plugins_shared::random::Random;
use weir_saml::{DecryptionKey, Limits, SamlError, SigningKey, Trust};

/// An instance of `saml`.
pub(super) struct SamlFilter {
    pub(super) config: Config,
    pub(super) callback_path: String,
    pub(super) logout_callback_path: Option<String>,
    pub(super) limits: Limits,
    pub(super) sessions: Sessions,
    pub(super) gate: Gate,
    pub(super) trust: Trust,
    pub(super) signing: Option<SigningKey>,
    pub(super) decryption: Option<DecryptionKey>,
    pub(super) consumers: Option<(ConsumerRules, Arc<ConsumerNames>)>,
    pub(super) marks: Arc<SharedRevocations>,
    pub(super) random: Random,
    /// Provider and callback, as a name for what belongs to them.
    pub(super) context: String,
}

/// A refusal whose reason appears only in logs and explanations.
pub(super) fn refused(fault: SamlError) -> Outcome {
    Outcome::refuse(RefusalKind::Unauthenticated {
        plugin: NAME,
        failure: AuthFailure::Rejected(fault.reason()),
    })
}

impl Filter for SamlFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let request = &exchange.request;
        if request.is_for_path(self.callback_path.as_bytes()) {
            return self.end_login(exchange).unwrap_or_else(refused);
        }
        if let Some(logout) = &self.config.logout {
            if request.is_for_path(logout.path.as_bytes()) {
                return self.log_out(exchange, logout);
            }
            let callback = self.logout_callback_path.as_deref();
            if callback.is_some_and(|callback| request.is_for_path(callback.as_bytes())) {
                return self.logout_message(exchange, logout).unwrap_or_else(refused);
            }
        }
        if self.gate.skips(exchange) {
            let names = self.config.upstream_headers.iter();
            user_headers::remove_forged(exchange, names.map(|header| header.name.as_str()));
            return Outcome::Continue;
        }
        for header in &self.config.upstream_headers {
            exchange.request.headers.remove_owned(header.name.as_bytes());
        }
        match self.session(exchange) {
            Some((mut session, user)) => {
                self.sessions.touch(&mut session, exchange);
                self.accept(exchange, &user)
            }
            None => self.without_session(exchange),
        }
    }
}

impl SamlFilter {
    /// A place of this gateway as a whole address.
    pub(super) fn address(&self, exchange: &Exchange, place: &str) -> String {
        match place.contains("://") {
            true => place.to_owned(),
            false => format!("{}{place}", own_origin(&exchange.request)),
        }
    }

    pub(super) fn leeway_s(&self) -> i64 {
        i64::from(self.config.response.leeway_seconds)
    }

    /// The session of a call, if it is good and has not been ended.
    pub(super) fn session(&self, exchange: &mut Exchange) -> Option<(Session, User)> {
        let now_ms = exchange.unix_ms();
        let session = self.sessions.open(&exchange.request, now_ms / 1_000)?;
        let user: User = serde_json::from_slice(&session.data).ok()?;
        let lasts = user
            .ends_s
            .is_none_or(|ends_s| (now_ms / 1_000) as i64 - self.leeway_s() < ends_s);
        let ended = |index: Option<&str>| {
            let ended_ms = self.marks.get(
                &self.key(&["ended", &user.name, index.unwrap_or_default()]),
                now_ms,
            );
            ended_ms.is_some_and(|ended_ms| user.began_ms <= ended_ms)
        };
        let index = user.session_index.as_deref();
        let is_over = ended(None) || (index.is_some() && ended(index));
        (lasts && !is_over).then_some((session, user))
    }

    /// Remembers that a user's session has ended; without an index: all of them.
    pub(super) fn end(&self, name: &str, index: Option<&str>, now_ms: u64) {
        let key = self.key(&["ended", name, index.unwrap_or_default()]);
        self.marks.set(&key, self.config.session.life_of_ended(), now_ms);
    }

    /// Whether this is the first use of an id. It counts as used for so many seconds.
    pub(super) fn uses(&self, id: &str, seconds: u64, now_ms: u64) -> bool {
        let key = self.key(&["used", id]);
        self.marks
            .set_first(&key, RevocationLifetime::everywhere(seconds), now_ms)
    }

    fn key(&self, parts: &[&str]) -> Vec<u8> {
        let mut text = self.context.clone();
        for part in parts {
            text.push_str(&format!("|{}|{part}", part.len()));
        }
        digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec()
    }

    fn accept(&self, exchange: &mut Exchange, user: &User) -> Outcome {
        if let Some((rules, names)) = &self.consumers {
            let name = match &rules.attribute {
                Some(attribute) => user.values(attribute).and_then(|values| values.first()),
                None => Some(&user.name),
            };
            match name.and_then(|name| names.find(name, &rules.by)) {
                Some(consumer) => {
                    let identity = Identity {
                        consumer: Arc::clone(consumer),
                        credential_id: Some(Arc::from(user.name.as_str())),
                    };
                    self.gate.accept(exchange, &identity);
                }
                None if rules.optional => self.gate.accept_unknown(exchange, &user.name),
                None => return self.gate.reject(exchange, AuthFailure::ConsumerMissing, None),
            }
        } else {
            self.gate.accept_unknown(exchange, &user.name);
        }
        for header in &self.config.upstream_headers {
            let value = match &header.value {
                UserValue::NameId => Some(user.name.clone()),
                UserValue::Attribute(name) => user.values(name).map(|values| values.join(",")),
            };
            if let Some(value) = value.filter(|value| is_value(value.as_bytes())) {
                user_headers::set_header(exchange, &header.name, value.as_bytes());
            }
        }
        exchange.add_fingerprint(user.name.as_bytes());
        self.sessions.strip(&mut exchange.request);
        Outcome::Continue
    }

    fn without_session(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.allows_anonymous() {
            return self.gate.reject(exchange, AuthFailure::Missing, None);
        }
        let logs_in = match self.config.unauthenticated {
            Unauthenticated::Login => true,
            Unauthenticated::Refuse => false,
            Unauthenticated::LoginPages => accepts_html(exchange),
        };
        match logs_in {
            true => self.begin_login(exchange).unwrap_or_else(refused),
            false => self.gate.reject(exchange, AuthFailure::Missing, None),
        }
    }
}

/// Whether the caller is a browser that shows pages. Programs accept other types than HTML.
fn accepts_html(exchange: &Exchange) -> bool {
    let accepted = exchange.request.headers.get(b"accept").unwrap_or_default();
    accepted
        .split(|byte| *byte == b',')
        .any(|it| it.trim_ascii().to_ascii_lowercase().starts_with(b"text/html"))
}
