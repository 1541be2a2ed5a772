//! The callouts of a call at work: one after the other, each from the answers that are kept or from its server.

use super::message::{CalloutResponses, CompiledCallout, Custom, Names};
use super::redis::{LookupResult, RedisStore};
use super::{NAME, OnError, upstream};
use serde_json::{Map, Value, json};
use std::rc::Rc;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Fetch, Lifetime, Lookup};
use weir_plugin::{
    Exchange, Filter, Outcome, Phases, RedisPublisher, Refusal, RefusalKind, Reply, Subrequest,
    SubrequestResponse, Suspend,
};

/// Answers that are kept, by a digest of the whole request.
pub(super) type ResponseCache = ExpiringMap<Arc<Value>>;

/// After a failed request, calls that would share its answer each send their own for this long, in milliseconds.
const RETRY_MS: u64 = 1_000;
/// Bytes of a value, and of a name, besides those of texts.
const NODE_BYTES: usize = 32;

/// An instance of `callout`.
pub(super) struct CalloutFilter {
    /// In the order in which they are asked.
    pub(super) callouts: Vec<CompiledCallout>,
    pub(super) upstream: Custom,
    pub(super) cache_ms: u64,
    pub(super) max_body_bytes: usize,
    pub(super) answers: Arc<ResponseCache>,
    /// The cache for answers, if they are not cached in memory.
    pub(super) redis: Option<RedisStore>,
}

/// How far a call has come.
#[derive(Default)]
struct Progress {
    /// The callout that is next, or is being asked.
    next: usize,
    /// How often that has been asked.
    tries: u32,
    /// The request that is being answered.
    asked: Option<Subrequest>,
    /// The duty to store its answer.
    fetch: Option<Fetch<Arc<Value>>>,
    /// The request for whose answer the Redis is being asked.
    looked: Option<Subrequest>,
    /// Over which the answer is kept in the Redis.
    outlet: Option<Rc<dyn RedisPublisher>>,
    /// The answers so far.
    answers: CalloutResponses,
}

impl Progress {
    /// Takes in the answer of a callout, and goes on to the next.
    fn take(&mut self, name: &str, answer: Arc<Value>) {
        self.answers.insert(name.to_owned(), answer);
        self.next += 1;
        self.tries = 0;
        self.asked = None;
        self.outlet = None;
    }

    /// Asks the server of the next callout.
    fn ask(&mut self, subrequest: Subrequest) -> Outcome {
        self.tries = 1;
        self.asked = Some(subrequest.clone());
        Outcome::Subrequest(Box::new(subrequest))
    }
}

/// What a callout's answer is.
enum CalloutResult {
    Good(Value),
    /// It is an error; what there is of it.
    Error(Value),
}

impl CalloutFilter {
    fn needs_body(&self) -> bool {
        let of_callouts = self.callouts.iter().any(|it| it.send.forward_body);
        of_callouts || !self.upstream.forward_body || self.upstream.has_body()
    }

    /// Goes on with the callouts; `None`: all are done.
    fn go_on(&self, exchange: &mut Exchange, progress: &mut Progress) -> Option<Outcome> {
        while let Some(callout) = self.callouts.get(progress.next) {
            let now = exchange.unix_ms();
            let subrequest = {
                let names = Names {
                    exchange,
                    answers: &progress.answers,
                };
                callout.request(&exchange.request, &names)
            };
            let Ok(subrequest) = subrequest else {
                if let Some(refusal) = self.failed(callout, Value::Null, progress) {
                    return Some(refusal);
                }
                continue;
            };
            if self.cache_ms > 0 && callout.cache {
                match self.answers.lookup(&digest(&callout.key, &subrequest), now) {
                    Lookup::Hit(answer) => {
                        progress.take(&callout.name, answer);
                        continue;
                    }
                    Lookup::Pending(pending) => {
                        return Some(Outcome::Suspend(Suspend::event(pending, callout.rules.timeout)));
                    }
                    Lookup::Stale(_, fetch) | Lookup::Miss(fetch) => {
                        progress.fetch = Some(fetch);
                        if let Some(redis) = &self.redis {
                            let look = redis.look(&digest(&callout.key, &subrequest));
                            progress.looked = Some(subrequest);
                            return Some(look);
                        }
                    }
                    Lookup::Failed => {}
                }
            }
            return Some(progress.ask(subrequest));
        }
        None
    }

    /// Takes in what the Redis has said; `Some`: the server is asked.
    fn take_found(
        &self,
        subrequest: Subrequest,
        exchange: &mut Exchange,
        progress: &mut Progress,
    ) -> Option<Outcome> {
        let callout = self.callouts.get(progress.next)?;
        match RedisStore::found(exchange) {
            LookupResult::Answer(answer) => {
                let answer = Arc::new(answer);
                self.keep_in_memory(progress.fetch.take(), &answer, exchange);
                progress.take(&callout.name, answer);
                None
            }
            LookupResult::Nothing(outlet) => {
                progress.outlet = Some(outlet);
                Some(progress.ask(subrequest))
            }
            LookupResult::Unavailable => Some(progress.ask(subrequest)),
        }
    }

    /// Keeps an answer for calls that wait for it, and for those that come soon.
    fn keep_in_memory(&self, fetch: Option<Fetch<Arc<Value>>>, answer: &Arc<Value>, exchange: &mut Exchange) {
        if let Some(fetch) = fetch {
            fetch.store(
                Arc::clone(answer),
                size(answer),
                self.lifetime(),
                exchange.unix_ms(),
            );
        }
    }

    /// How long answers are kept in memory. With a Redis, they only serve the calls that wait for them.
    fn lifetime(&self) -> Lifetime {
        Lifetime::fresh(if self.redis.is_some() { 1 } else { self.cache_ms })
    }

    /// Takes in the result of a request; `Some`: the outcome of the call.
    fn take_in(
        &self,
        answer: Option<SubrequestResponse>,
        exchange: &mut Exchange,
        progress: &mut Progress,
    ) -> Option<Outcome> {
        let callout = self.callouts.get(progress.next)?;
        let fetch = progress.fetch.take();
        match evaluate(callout, answer) {
            CalloutResult::Good(answer) => {
                let answer = Arc::new(json!({ "response": answer }));
                if let (Some(redis), Some(outlet), Some(asked)) =
                    (&self.redis, progress.outlet.take(), &progress.asked)
                {
                    redis.keep(&outlet, &digest(&callout.key, asked), &answer, self.cache_ms);
                }
                self.keep_in_memory(fetch, &answer, exchange);
                progress.take(&callout.name, answer);
                None
            }
            CalloutResult::Error(_)
                if callout.on_error == OnError::Retry && progress.tries <= callout.retries =>
            {
                progress.tries += 1;
                progress.fetch = fetch;
                let subrequest = progress.asked.clone()?;
                Some(Outcome::Subrequest(Box::new(subrequest)))
            }
            CalloutResult::Error(answer) => {
                if let Some(fetch) = fetch {
                    fetch.fail(RETRY_MS, exchange.unix_ms());
                }
                self.failed(callout, answer, progress)
            }
        }
    }

    /// What happens to a call whose callout has failed; `None`: it goes on.
    fn failed(&self, callout: &CompiledCallout, answer: Value, progress: &mut Progress) -> Option<Outcome> {
        if callout.on_error == OnError::Continue {
            let answer = if answer.is_null() { json!({}) } else { answer };
            progress.take(&callout.name, Arc::new(json!({ "response": answer })));
            return None;
        }
        let body = format!("{}\n", json!({ "message": callout.message }));
        Some(Outcome::Reply(Box::new(Reply::new(
            callout.status,
            "application/json; charset=utf-8",
            body,
        ))))
    }
}

/// Whether an answer is good, and what expressions know of it.
fn evaluate(callout: &CompiledCallout, answer: Option<SubrequestResponse>) -> CalloutResult {
    let Some(answer) = answer else {
        return CalloutResult::Error(Value::Null);
    };
    let mut is_error = match &callout.error_statuses {
        Some(statuses) => statuses.contains(&answer.status),
        // A server that says "not modified" has sent no body.
        None => answer.status == 304 || answer.status >= 400,
    };
    let body = match callout.decode && !answer.body.is_empty() {
        true => serde_json::from_slice(&answer.body).unwrap_or_else(|_| {
            is_error = true;
            Value::Null
        }),
        false => String::from_utf8_lossy(&answer.body).into_owned().into(),
    };
    let mut headers = Map::new();
    for header in answer.headers.iter() {
        let name = String::from_utf8_lossy(header.name).to_ascii_lowercase();
        let value = String::from_utf8_lossy(header.value).into_owned();
        headers.entry(name).or_insert_with(|| value.into());
    }
    let known = json!({"status": answer.status, "headers": headers, "body": body});
    match is_error {
        true => CalloutResult::Error(known),
        false => CalloutResult::Good(known),
    }
}

/// About how many bytes a value takes in memory: far more than its text if it has many parts.
fn size(value: &Value) -> usize {
    NODE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size).sum(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| NODE_BYTES + name.len() + size(value))
                .sum(),
            _ => 0,
        }
}

/// What the answer to a request is kept by: all that the server is sent, and who asks.
pub(super) fn digest(key: &str, subrequest: &Subrequest) -> Vec<u8> {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    for part in [
        key.as_bytes(),
        subrequest.host.as_bytes(),
        &subrequest.port.to_be_bytes(),
        &subrequest.message,
    ] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context.finish().as_ref().to_vec()
}

impl Filter for CalloutFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.needs_body() && exchange.request.has_body && exchange.request.body.is_none() {
            if !exchange.filter_state.mark_body_requested(self) {
                let kind = RefusalKind::Answered { plugin: NAME };
                return Outcome::Refuse(Box::new(Refusal::with_status(kind, 413)));
            }
            return Outcome::NeedBody {
                max_bytes: self.max_body_bytes,
            };
        }
        let mut progress: Progress = exchange.filter_state.take(self).unwrap_or_default();
        if let Some(subrequest) = progress.looked.take() {
            if let Some(outcome) = self.take_found(subrequest, exchange, &mut progress) {
                return self.keep(outcome, progress, exchange);
            }
        } else if progress.asked.is_some() {
            let answer = exchange.subrequest_response.take().flatten();
            if let Some(outcome) = self.take_in(answer, exchange, &mut progress) {
                return self.keep(outcome, progress, exchange);
            }
        }
        if let Some(outcome) = self.go_on(exchange, &mut progress) {
            return self.keep(outcome, progress, exchange);
        }
        match upstream::put(&self.upstream, exchange, &progress.answers) {
            Ok(()) => Outcome::Continue,
            Err(_) => Outcome::refuse(RefusalKind::PluginFailed {
                plugin: NAME,
                reason: "the request to the upstream cannot be made of the answers",
            }),
        }
    }
}

impl CalloutFilter {
    fn keep(&self, outcome: Outcome, progress: Progress, exchange: &mut Exchange) -> Outcome {
        if matches!(
            outcome,
            Outcome::Subrequest(_) | Outcome::Suspend(_) | Outcome::Redis(_)
        ) {
            exchange.filter_state.put(self, progress);
        }
        outcome
    }
}
