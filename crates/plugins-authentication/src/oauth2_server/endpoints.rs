//! The endpoints of the server: what a call gets, and what is changed for that. With a store, the call waits until the change is
//! there: a code is good once, whatever gateway it comes to.

use super::parameters::{self, Parameters};
use super::records::{Change, Hash, hash};
use super::shared::{ChangeResult, STORE_TIMEOUT};
use super::{MAX_BODY, NAME, Server, may_be_made_here, responses};
use std::time::Duration;
use weir_plugin::{Exchange, Outcome, PendingResult, Refusal, RefusalKind, Reply, StoreUnavailable, Suspend};

/// How long a call waits for news of the store: another gateway may have given its refresh token just now.
const GRACE: Duration = Duration::from_millis(100);

/// What an endpoint answers, and what it changes for that.
pub(super) struct Decision {
    pub(super) reply: Reply,
    pub(super) change: Change,
    /// The answer if another call was faster.
    pub(super) otherwise: Reply,
}

impl Decision {
    /// An answer that changes nothing.
    pub(super) fn only(reply: Reply) -> Self {
        Self {
            reply,
            change: Change::default(),
            otherwise: Reply::default(),
        }
    }
}

/// A path with which the server itself is called.
pub(super) enum Endpoint {
    Authorize,
    Token,
}

impl Endpoint {
    pub(super) fn of(path: &[u8]) -> Option<Self> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        match path {
            _ if path.ends_with(b"/oauth2/token") => Some(Self::Token),
            _ if path.ends_with(b"/oauth2/authorize") => Some(Self::Authorize),
            _ => None,
        }
    }
}

/// What a call waits for.
pub(super) struct PendingReply {
    result: PendingResult<Result<bool, StoreUnavailable>>,
    reply: Reply,
    otherwise: Reply,
}

/// The call has looked into the store.
pub(super) struct StoreRead(Option<PendingResult<Result<(), StoreUnavailable>>>);

/// The answer of a call whose change has been made, or not.
pub(super) fn answer(waiting: PendingReply) -> Outcome {
    match waiting.result.take() {
        Some(Ok(true)) => Outcome::Reply(Box::new(waiting.reply)),
        Some(Ok(false)) => Outcome::Reply(Box::new(waiting.otherwise)),
        Some(Err(StoreUnavailable)) | None => store_unavailable(),
    }
}

/// Nothing is said about a token that may be a good one.
fn store_unavailable() -> Outcome {
    let kind = RefusalKind::PluginFailed {
        plugin: NAME,
        reason: "the store does not answer",
    };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, 503)))
}

impl Server {
    pub(super) fn serve(&self, endpoint: &Endpoint, exchange: &mut Exchange) -> Outcome {
        let realm = self.config.realm.as_deref();
        if exchange.request.method != b"POST" {
            let name = match endpoint {
                Endpoint::Authorize => "authorization",
                Endpoint::Token => "token",
            };
            let reply = responses::wrong_method(&exchange.request.method, name, realm);
            return Outcome::Reply(Box::new(reply));
        }
        if parameters::need_body(&exchange.request) {
            return Outcome::NeedBody { max_bytes: MAX_BODY };
        }
        let now_ms = exchange.unix_ms();
        let decision = match endpoint {
            Endpoint::Authorize => self.authorize(exchange, now_ms),
            Endpoint::Token => {
                if let Some(outcome) = self.look_for_texts(exchange, now_ms) {
                    return outcome;
                }
                self.issue(exchange, now_ms)
            }
        };
        match self.records.commit(decision.change, now_ms) {
            ChangeResult::Now(true) => Outcome::Reply(Box::new(decision.reply)),
            ChangeResult::Now(false) => Outcome::Reply(Box::new(decision.otherwise)),
            ChangeResult::Later(result) => {
                let suspend = result.suspend(STORE_TIMEOUT);
                let waiting = PendingReply {
                    result,
                    reply: decision.reply,
                    otherwise: decision.otherwise,
                };
                exchange.filter_state.put(self, waiting);
                Outcome::Suspend(suspend)
            }
        }
    }

    /// Another gateway may have given the code or the refresh token of a call a moment ago.
    fn look_for_texts(&self, exchange: &mut Exchange, now_ms: u64) -> Option<Outcome> {
        let parameters = Parameters::read(&exchange.request);
        if let Some(code) = parameters.text("code") {
            return match may_be_made_here(code) {
                true => self.look_for(&hash(code), exchange, now_ms),
                false => None,
            };
        }
        let refresh = hash(parameters.text("refresh_token")?);
        let is_known = || self.find_refresh(&refresh, now_ms).is_some();
        if self.records.sharing.get().is_none() || is_known() {
            return None;
        }
        match exchange.filter_state.take::<_, StoreRead>(self) {
            None => Some(self.wait(exchange)),
            Some(_) => (!self.records.is_followed()).then(store_unavailable),
        }
    }

    /// Waits briefly until the store has been read for the first time. Before that, the changes of other gateways are
    /// not known. `None`: the call can go on.
    pub(super) fn wait_for_first_news(&self, exchange: &mut Exchange) -> Option<Outcome> {
        let has_waited = exchange.filter_state.take::<_, StoreRead>(self).is_some();
        match (self.records.is_followed(), has_waited) {
            (true, _) => None,
            (false, true) => Some(store_unavailable()),
            (false, false) => Some(self.wait(exchange)),
        }
    }

    fn wait(&self, exchange: &mut Exchange) -> Outcome {
        exchange.filter_state.put(self, StoreRead(None));
        Outcome::Suspend(Suspend::time(GRACE))
    }

    /// Looks for a record in the store, once for a call. `None`: the call can go on.
    pub(super) fn look_for(&self, hash: &Hash, exchange: &mut Exchange, now_ms: u64) -> Option<Outcome> {
        if let Some(StoreRead(result)) = exchange.filter_state.take(self) {
            let found = result.and_then(|result| result.take());
            return match found {
                Some(Ok(())) => None,
                Some(Err(StoreUnavailable)) | None => Some(store_unavailable()),
            };
        }
        let result = self.records.fetch(hash, exchange.request.client, now_ms)?;
        let suspend = result.suspend(STORE_TIMEOUT);
        exchange.filter_state.put(self, StoreRead(Some(result)));
        Some(Outcome::Suspend(suspend))
    }
}
