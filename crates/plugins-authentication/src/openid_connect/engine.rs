//! What all parts of an instance have in common: the configuration made ready, requests that belong to one call, and
//! answers to callers.

use super::answer_keys::AnswerKeys;
use super::client::Client;
use super::config::{ClientAuth, Config};
use super::provider::{Caches, Directory, Provider, Step, require_value};
use crate::jose::KeySet;
use crate::session_cookie::Sessions;
use crate::shared_fetch::{FetchRequest, KeyParts, SharedKey};
use std::sync::Arc;
use std::time::Duration;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_plugin::{Exchange, Outcome, Refusal, RefusalKind, Reply, Subrequest, SubrequestResponse, Suspend};
use weir_plugins_shared::random::Random;

/// The plugin's name.
pub(super) const NAME: &str = "openid-connect";
/// How long the provider is not asked about the same token or secret after a failure.
const RETRY_MS: u64 = 1_000;

/// The parts of an instance.
pub(super) struct Engine {
    pub(super) config: Config,
    pub(super) directory: Directory,
    pub(super) client: Client,
    pub(super) caches: Arc<Caches>,
    /// What the keys of all that is asked begin with: the provider and the client.
    pub(super) client_key: KeyParts,
    pub(super) answer_keys: AnswerKeys,
    pub(super) sessions: Option<Sessions>,
    /// The key of the configuration, instead of the provider's keys.
    pub(super) own_keys: Option<KeySet>,
    /// Whether what access tokens of sessions say is needed.
    pub(super) reads_access_tokens: bool,
    pub(super) random: Random,
}

/// A request that belongs to one call only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProviderCall {
    Push,
    Code,
    Userinfo,
    RevokeRefresh,
    RevokeAccess,
}

/// What one call has asked, and the answers.
#[derive(Default)]
struct ProviderCalls {
    waiting: Option<ProviderCall>,
    answers: Vec<(ProviderCall, Option<SubrequestResponse>)>,
}

impl Engine {
    /// Asks once in a call; the answer is kept until the call is over.
    pub(super) fn once(
        &self,
        exchange: &mut Exchange,
        ask: ProviderCall,
        request: impl FnOnce() -> Option<Subrequest>,
    ) -> Step<Option<SubrequestResponse>> {
        let mut asked = exchange
            .filter_state
            .take::<_, ProviderCalls>(self)
            .unwrap_or_default();
        if asked.waiting == Some(ask) {
            asked.waiting = None;
            asked
                .answers
                .push((ask, exchange.subrequest_response.take().flatten()));
        }
        let known = asked.answers.iter().find(|(it, _)| *it == ask);
        let known = known.map(|(_, answer)| answer.clone());
        let request = match known {
            Some(_) => None,
            None => request(),
        };
        if request.is_some() {
            asked.waiting = Some(ask);
        }
        exchange.filter_state.put(self, asked);
        match request {
            Some(request) => Err(Box::new(Outcome::Subrequest(Box::new(request)))),
            None => Ok(known.flatten()),
        }
    }

    /// Asks once for all calls that want the same of one of the shared caches; `None`: it cannot be had. `read` takes the
    /// answer out of the exchange: the value, its size in bytes, and how long it is good.
    pub(super) fn fetched<V: Clone + 'static>(
        &self,
        exchange: &mut Exchange,
        map: &Arc<ExpiringMap<V>>,
        key: &[u8],
        request: impl FnOnce(&mut Exchange) -> Option<Subrequest>,
        read: impl FnOnce(&mut Exchange) -> Option<(V, usize, Lifetime)>,
    ) -> Step<Option<V>> {
        let wanted = FetchRequest {
            map,
            key,
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.directory.rules.timeout,
        };
        let ask = |exchange: &mut Exchange| match request(exchange) {
            Some(request) => Outcome::Subrequest(Box::new(request)),
            // The call sees that it has no answer.
            None => Outcome::Suspend(Suspend::time(Duration::ZERO)),
        };
        require_value(wanted.find(self, exchange, ask, read))
    }

    /// What is asked of the provider with a secret, as a key that does not show it.
    pub(super) fn key(&self, what: &str, parts: &[&[u8]]) -> SharedKey {
        let mut key = self.client_key.clone();
        key.add(what.as_bytes());
        key.finish(parts)
    }

    /// The provider's document, or an answer that says that it cannot be had.
    pub(super) fn provider(&self, exchange: &mut Exchange) -> Step<Arc<Provider>> {
        let provider = self.directory.provider(exchange)?;
        provider.ok_or_else(|| unavailable("the provider's discovery document is not available"))
    }

    /// A form for one of the provider's endpoints.
    pub(super) fn post(
        &self,
        exchange: &mut Exchange,
        endpoint: &str,
        auth: ClientAuth,
        arguments: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Option<Subrequest> {
        let now_s = exchange.unix_ms() / 1_000;
        let rules = &self.directory.rules;
        self.client
            .post(endpoint, auth, arguments, headers, (rules, now_s))
    }

    /// An answer for calls whose token is not good, or that have none.
    pub(super) fn unauthorized(&self, error: Option<(&str, &str)>) -> Box<Outcome> {
        let mut challenge = match &self.config.realm {
            Some(realm) => format!("Bearer realm=\"{realm}\""),
            None => "Bearer".to_owned(),
        };
        if let Some((error, description)) = error {
            let separator = if challenge == "Bearer" { " " } else { ", " };
            challenge.push_str(&format!("{separator}error=\"{error}\""));
            if self.config.explain {
                challenge.push_str(&format!(", error_description=\"{description}\""));
            }
        }
        let mut refusal = Refusal::with_status(RefusalKind::Answered { plugin: NAME }, 401);
        refusal.challenge = Some(challenge);
        refusal.message.clone_from(&self.config.unauthorized_message);
        Box::new(Outcome::Refuse(Box::new(refusal)))
    }

    /// An answer for callers who lack a right.
    pub(super) fn forbidden(&self, words: &str) -> Box<Outcome> {
        if self.config.explain {
            let body = serde_json::json!({ "error": words }).to_string();
            return Box::new(Outcome::Reply(Box::new(Reply::new(
                403,
                "application/json",
                body,
            ))));
        }
        let kind = RefusalKind::Answered { plugin: NAME };
        let mut refusal = Refusal::with_status(kind, 403);
        refusal.message.clone_from(&self.config.forbidden_message);
        Box::new(Outcome::Refuse(Box::new(refusal)))
    }
}

/// An answer while the provider does not give what is needed.
pub(super) fn unavailable(reason: &'static str) -> Box<Outcome> {
    let kind = RefusalKind::PluginFailed { plugin: NAME, reason };
    Box::new(Outcome::Refuse(Box::new(Refusal::with_status(kind, 503))))
}

/// Sends a browser elsewhere. The answer is not kept by caches.
pub(super) fn redirect(location: &str) -> Box<Outcome> {
    let reply = Reply::new(302, "", Vec::new())
        .with_header("Location", location)
        .with_header("Cache-Control", "no-cache, no-store, max-age=0");
    Box::new(Outcome::Reply(Box::new(reply)))
}
