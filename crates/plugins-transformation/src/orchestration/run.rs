//! The nodes of a call at work, one after the other. What it is not: how they are connected, and what becomes of the values
//! that messages get.

use super::cache::{CacheLookup, CacheStep, Store};
use super::call::{CompiledCall, RequestParts};
use super::data::Datum;
use super::graph::{Graph, Inputs, Origin, Source};
use super::memory::MemoryBudget;
use super::messages::{Message, MessageParts, accept_known_codings, request_parts, response_parts};
use super::progress::{Output, Pending, Progress, Stage, object};
use super::property::{Property, TargetRules};
use super::{CacheNode, MOST_TTL, NAME};
use crate::buffered_body::buffer_whole;
use crate::jq::{Input, Program, STEPS};
use crate::xml::{self, XmlForm};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_plugin::{Exchange, Filter, Outcome, Phases, Refusal, RefusalKind, Reply, WorkBudget};

/// Steps of all programs of a call together, before the service is called and after it.
const ALL_STEPS: u64 = 4 * STEPS;
/// A key of the cache has at most so many bytes.
const MAX_KEY: usize = 64 << 10;

/// A node made ready.
pub(super) struct Task {
    pub(super) name: String,
    pub(super) work: Work,
}

/// What a node does.
pub(super) enum Work {
    Call(Box<CompiledCall>),
    Jq(Program),
    Static(Datum),
    Exit(u16),
    Property {
        property: Property,
        json: bool,
        required: bool,
        is_set: bool,
        rules: TargetRules,
    },
    Cache(CacheNode),
    Branch,
    XmlToJson(Box<XmlForm>),
    JsonToXml(Box<XmlForm>, Option<String>),
}

impl Work {
    fn name(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Jq(_) => "jq",
            Self::Static(_) => "static",
            Self::Exit(_) => "exit",
            Self::Property { .. } => "property",
            Self::Cache(_) => "cache",
            Self::Branch => "branch",
            Self::XmlToJson(_) => "xml_to_json",
            Self::JsonToXml(..) => "json_to_xml",
        }
    }
}

/// An instance of `orchestration`.
pub(super) struct OrchestrationFilter {
    /// By the nodes' places.
    pub(super) tasks: Vec<Task>,
    pub(super) graph: Graph,
    pub(super) store: Store,
    pub(super) held: MemoryBudget,
    pub(super) secrets: BTreeMap<String, String>,
    pub(super) debug: bool,
    pub(super) max_body_bytes: usize,
    pub(super) timeout: Duration,
}

/// Why a node has failed.
struct Failure {
    node: usize,
    message: String,
}

/// How a call goes on after a node.
enum Step {
    Done(Output),
    Wait(Outcome, Pending),
    Exit(Reply),
}

/// The values of a node's inputs.
struct NodeInputs<'f> {
    filter: &'f OrchestrationFilter,
    inputs: &'f Inputs,
    progress: &'f Progress,
    work: &'f WorkBudget,
    /// The value of the whole.
    whole: Datum,
}

impl NodeInputs<'_> {
    /// A value as it is used, which is work each time.
    fn value(&self, source: &Source) -> Result<Datum, String> {
        self.filter.resolve(source, self.progress, self.work)
    }

    /// Takes the work of reading a text of so many bytes from the call's budget.
    fn spend(&self, bytes: usize) -> Result<(), String> {
        let spent = self.work.spend(bytes / 8);
        spent.map_err(|exhausted| exhausted.to_string())
    }

    /// The value of an input that has a name.
    fn input(&self, name: &str) -> Result<Datum, String> {
        if let Some(source) = self.inputs.named.get(name) {
            return self.value(source);
        }
        match &self.whole {
            Datum::Json(value) if value.is_object() || value.is_null() => Ok(self.whole.member(name)),
            _ => Err("expected an object as the input".to_owned()),
        }
    }

    /// The values that have names.
    fn members(&self) -> Result<Vec<(String, Arc<Value>)>, String> {
        let named = self.inputs.named.iter();
        named
            .map(|(name, source)| Ok((name.clone(), self.value(source)?.value())))
            .collect()
    }

    fn message(&self) -> Result<Message, String> {
        let mut message = Message::of(&self.input("headers")?, &self.input("body")?)?;
        let body = self.inputs.named.get("body");
        if let (
            Some(Source {
                from: Origin::Node(index),
                ..
            }),
            Some(body),
        ) = (body, &mut message.body)
            && matches!(self.filter.tasks[*index].work, Work::JsonToXml(..))
        {
            body.content_type = Some("application/xml");
        }
        Ok(message)
    }
}

impl OrchestrationFilter {
    fn begin(&self) -> Progress {
        Progress::new(self.tasks.len(), ALL_STEPS)
    }

    fn works_on_response(&self) -> bool {
        !self.graph.after.is_empty() || !self.graph.response.is_empty()
    }

    /// The value of a source, as it is used. The work of that is taken from the call's budget.
    fn resolve(&self, source: &Source, progress: &Progress, work: &WorkBudget) -> Result<Datum, String> {
        let of_message = |parts: &MessageParts| match &source.field {
            Some(field) => parts.get(field.as_str()).cloned().unwrap_or_else(Datum::null),
            None => object(parts.iter().map(|(name, value)| (*name, value))),
        };
        let value = match source.from {
            Origin::Request => of_message(&progress.request),
            Origin::ServiceResponse => of_message(&progress.response),
            Origin::Node(index) => progress.outputs[index].value(source.field.as_deref()),
            Origin::Secrets => self.secret(source.field.as_deref()),
        };
        let spend = |value: &Datum| {
            work.spend(value.weight())
                .map_err(|exhausted| exhausted.to_string())
        };
        spend(&value)?;
        if !matches!(value, Datum::Packed(_)) {
            return Ok(value);
        }
        let value = value.unpacked();
        spend(&value)?;
        Ok(value)
    }

    fn secret(&self, name: Option<&str>) -> Datum {
        match name {
            Some(name) => {
                let text = self.secrets.get(name);
                text.map_or_else(Datum::null, |text| Datum::json(text.as_str()))
            }
            None => {
                let all = self.secrets.iter();
                let all = all.map(|(name, text)| (name.clone(), text.clone().into()));
                Datum::json(Value::Object(all.collect()))
            }
        }
    }

    fn given<'f>(
        &'f self,
        inputs: &'f Inputs,
        progress: &'f Progress,
        work: &'f WorkBudget,
    ) -> Result<NodeInputs<'f>, String> {
        let whole = match &inputs.whole {
            Some(source) => self.resolve(source, progress, work)?,
            None => Datum::null(),
        };
        Ok(NodeInputs {
            filter: self,
            inputs,
            progress,
            work,
            whole,
        })
    }

    /// Runs a node.
    fn step(&self, index: usize, exchange: &mut Exchange, progress: &mut Progress) -> Result<Step, String> {
        let one = |value: Datum| Ok(Step::Done(Output::One(value)));
        let task = &self.tasks[index].work;
        if matches!(task, Work::Call(_)) {
            progress.began.get_or_insert_with(Instant::now);
        }
        let given = self.given(&self.graph.inputs[index], progress, &exchange.request.work)?;
        match task {
            Work::Static(values) => one(values.clone()),
            Work::Jq(program) => {
                let input = match given.inputs.named.is_empty() {
                    true => Input::Whole(given.whole.value()),
                    false => Input::Members(given.members()?),
                };
                let (output, left) = program.transform(&input, progress.steps);
                progress.steps = left;
                one(Datum::json(output.map_err(|failure| failure.to_string())?))
            }
            Work::Branch => {
                let condition = given.whole.truth().map_err(|error| error.to_string())?;
                Ok(Step::Done(Output::Condition(condition)))
            }
            Work::Exit(status) => Ok(Step::Exit(given.message()?.into_reply(*status))),
            Work::XmlToJson(form) => match given.whole.text().map_err(|error| error.to_string())? {
                None => one(Datum::null()),
                Some(text) => {
                    given.spend(text.len())?;
                    one(Datum::json(xml::parse(&text, form)?))
                }
            },
            Work::JsonToXml(form, root) => {
                let value = match given.inputs.named.is_empty() {
                    true => given.whole.value(),
                    false => {
                        let members = given.members()?.into_iter();
                        let members = members.map(|(name, value)| (name, Arc::unwrap_or_clone(value)));
                        Arc::new(Value::Object(members.collect()))
                    }
                };
                let value = match &*value {
                    Value::String(text) => {
                        given.spend(text.len())?;
                        Arc::new(serde_json::from_str(text).map_err(|_| "expected JSON")?)
                    }
                    _ => value,
                };
                if value.is_null() {
                    return one(Datum::null());
                }
                let text = xml::write(&value, root.as_deref(), form, self.max_body_bytes)?;
                given.spend(text.len())?;
                one(Datum::json(text))
            }
            Work::Property { .. } => {
                let whole = given.whole;
                self.property(task, whole, exchange, progress).map(Step::Done)
            }
            Work::Call(call) => self.call(call, &given),
            Work::Cache(node) => self.cache(node, &given, exchange.now_ms()),
        }
    }

    fn property(
        &self,
        work: &Work,
        given: Datum,
        exchange: &mut Exchange,
        progress: &mut Progress,
    ) -> Result<Output, String> {
        let Work::Property {
            property,
            json,
            required,
            is_set,
            rules,
        } = work
        else {
            return Ok(Output::Nothing);
        };
        let value = match is_set {
            true => given,
            false => property.read(exchange, &progress.own),
        };
        if *required && value.is_null() {
            return Err("the value is null".to_owned());
        }
        if !is_set {
            if !*json {
                return Ok(Output::One(value));
            }
            let spent = exchange.request.work.spend(value.weight() * 8);
            spent.map_err(|exhausted| exhausted.to_string())?;
            return Ok(Output::One(decoded(&value)?));
        }
        let value = if *json {
            Datum::json(value.value().to_string())
        } else {
            value
        };
        property
            .set(exchange, &mut progress.own, value.clone(), rules)
            .map_err(|error| error.to_string())?;
        Ok(Output::One(value))
    }

    fn call(&self, call: &CompiledCall, given: &NodeInputs<'_>) -> Result<Step, String> {
        let message = given.message()?;
        let query = super::data::query_text(&given.input("query")?);
        let url = given.input("url")?;
        let url = url.text().map_err(|error| format!("`url`: {error}"))?;
        let parts = RequestParts {
            url: url.map(|url| String::from_utf8_lossy(&url).into_owned()),
            headers: message.headers,
            query: query.map_err(|error| format!("`query`: {error}"))?,
            body: message.body,
        };
        let elapsed = given.progress.began.map(|began| began.elapsed());
        let left = self.timeout.saturating_sub(elapsed.unwrap_or_default());
        if left.is_zero() {
            return Err("the servers take too long together".to_owned());
        }
        let subrequest = call.request(&parts, left)?;
        Ok(Step::Wait(
            Outcome::Subrequest(Box::new(subrequest)),
            Pending::Call,
        ))
    }

    fn cache(&self, node: &CacheNode, given: &NodeInputs<'_>, now_ms: u64) -> Result<Step, String> {
        let key = given.input("key")?;
        let key = key
            .text()
            .map_err(|error| format!("`key`: {error}"))?
            .filter(|key| !key.is_empty());
        let key = key
            .filter(|key| key.len() <= MAX_KEY)
            .ok_or("`key`: expected a text, of at most 64 KiB")?;
        let data = given.input("data")?;
        if data.is_null() {
            return Ok(match self.store.look(&key, now_ms) {
                CacheStep::Done(found) => Step::Done(looked_up(found, node.bypass_on_error)?),
                CacheStep::Wait(outcome) => Step::Wait(outcome, Pending::Lookup),
            });
        }
        let ttl = given.input("ttl")?.whole_number();
        let ttl = ttl
            .map_err(|error| format!("`ttl`: {error}"))?
            .unwrap_or(node.ttl_seconds);
        let ttl_ms = ttl.min(MOST_TTL) * 1_000;
        Ok(match self.store.keep(&key, &data, ttl_ms, now_ms) {
            CacheStep::Done(is_kept) => Step::Done(kept(is_kept, data)),
            CacheStep::Wait(outcome) => Step::Wait(outcome, Pending::Store(data)),
        })
    }

    /// Takes in what a node has waited for.
    fn take_in(&self, index: usize, pending: Pending, exchange: &mut Exchange) -> Result<Output, String> {
        let task = &self.tasks[index].work;
        let bypasses = matches!(task, Work::Cache(node) if node.bypass_on_error);
        match pending {
            Pending::Call => {
                let answer = exchange.subrequest_response.take().flatten();
                let Work::Call(call) = task else {
                    return Ok(Output::Nothing);
                };
                let answer = call.response(answer, &exchange.request.work)?;
                let values = [
                    ("body", Some(answer.body)),
                    ("headers", Some(answer.headers)),
                    ("status", Some(Datum::json(answer.status))),
                    ("raw_body", answer.raw_body),
                ];
                let values = values.into_iter();
                let given = values.filter_map(|(name, value)| Some((name, value?)));
                Ok(Output::Named(given.collect()))
            }
            Pending::Lookup => looked_up(Store::looked_up(exchange), bypasses),
            Pending::Store(data) => match Store::kept(exchange) {
                Some(is_kept) => Ok(kept(is_kept, data)),
                None if bypasses => Ok(kept(false, data)),
                None => Err("the Redis is unavailable".to_owned()),
            },
        }
    }

    /// Whether a node is left out: its branch has another result, or is left out itself; or it works on a body and there is none.
    fn is_left_out(&self, index: usize, progress: &Progress) -> bool {
        if progress.is_bodyless && self.graph.of_body[index] {
            return true;
        }
        self.graph.guards[index].is_some_and(|guard| match progress.outputs[guard.branch] {
            Output::Condition(condition) => condition != guard.runs_if,
            _ => true,
        })
    }

    /// Goes on with the nodes of one stage; `None`: all are done.
    fn go_on(&self, exchange: &mut Exchange, progress: &mut Progress) -> Result<Option<Outcome>, Failure> {
        let nodes = match progress.nodes {
            Stage::Request => &self.graph.before,
            Stage::Response => &self.graph.after,
        };
        while let Some(index) = nodes.get(progress.next).copied() {
            let failed = |message| Failure { node: index, message };
            let step = match progress.pending.take() {
                Some(pending) => Step::Done(self.take_in(index, pending, exchange).map_err(failed)?),
                None if self.is_left_out(index, progress) => Step::Done(Output::Nothing),
                None => self.step(index, exchange, progress).map_err(failed)?,
            };
            match step {
                Step::Done(output) => {
                    progress.outputs[index] = output;
                    progress.next += 1;
                }
                Step::Wait(outcome, pending) => {
                    progress.pending = Some(pending);
                    return Ok(Some(outcome));
                }
                Step::Exit(reply) => return Ok(Some(Outcome::Reply(Box::new(reply)))),
            }
        }
        Ok(None)
    }

    /// The refusal of a call whose node has failed.
    fn refuse(&self, failure: &Failure) -> Outcome {
        let task = &self.tasks[failure.node];
        let (name, kind, message) = (&task.name, task.work.name(), &failure.message);
        if self.graph.of_secrets[failure.node] {
            tracing::warn!(plugin = NAME, node = %name, kind, "a node that gets secrets has failed; its message is not logged");
        } else {
            tracing::warn!(plugin = NAME, node = %name, kind, "a node has failed: {message}");
        }
        self.refusal(format!(
            "node {} ({name}, {kind}) has failed: {message}",
            failure.node + 1
        ))
    }

    fn refusal(&self, message: String) -> Outcome {
        let mut refusal = Refusal::new(RefusalKind::PluginFailed {
            plugin: NAME,
            reason: "a node has failed",
        });
        refusal.message = self.debug.then_some(message);
        Outcome::Refuse(Box::new(refusal))
    }

    /// The refusal of a call whose values do not fit a message.
    fn refuse_message(&self, name: &str, message: &str) -> Outcome {
        tracing::warn!(plugin = NAME, node = name, "a node has failed: {message}");
        self.refusal(format!("node {name} has failed: {message}"))
    }

    /// Works on the response of the service.
    fn work_on_response(
        &self,
        exchange: &mut Exchange,
        progress: &mut Progress,
    ) -> Result<Option<Outcome>, Outcome> {
        if progress.nodes == Stage::Request {
            // What stood before it in the chain has answered: its nodes have not run yet, or not all of them.
            if progress.request.is_empty() {
                progress.request = (request_parts(exchange, &self.graph.of_request))
                    .map_err(|error| self.refuse_message("request", &error.to_string()))?;
            }
            if let Some(outcome) = self
                .go_on(exchange, progress)
                .map_err(|failure| self.refuse(&failure))?
            {
                return Ok(Some(outcome));
            }
            progress.nodes = Stage::Response;
            progress.next = 0;
        }
        if progress.next == 0 && progress.pending.is_none() {
            progress.is_bodyless = is_bodyless(exchange);
            progress.response = response_parts(exchange, &self.graph.of_response, self.max_body_bytes)
                .map_err(|error| self.refuse_message("service_response", &error.to_string()))?;
        }
        if let Some(outcome) = self
            .go_on(exchange, progress)
            .map_err(|failure| self.refuse(&failure))?
        {
            return Ok(Some(outcome));
        }
        let response = &self.graph.response;
        if !response.is_empty() {
            let given = self.given(response, progress, &exchange.request.work);
            given
                .and_then(|given| given.message())
                .map_err(|message| self.refuse_message("response", &message))?
                .put_into_response(exchange, progress.is_bodyless);
        }
        Ok(None)
    }

    /// Keeps how far a call has come while something is waited for.
    ///
    /// # Errors
    /// The refusal if calls hold too much already.
    fn keep(&self, mut progress: Progress, exchange: &mut Exchange) -> Result<(), Outcome> {
        progress.held = None;
        let bytes = progress.shrink(&self.graph);
        let Some(held) = self.held.hold(bytes) else {
            tracing::warn!(
                plugin = NAME,
                "a call is refused: waiting calls hold too many bytes of values"
            );
            let refusal = Refusal::with_status(RefusalKind::Overloaded, 503);
            return Err(Outcome::Refuse(Box::new(refusal)));
        };
        progress.held = Some(held);
        exchange.filter_state.put(self, progress);
        Ok(())
    }

    /// Gives an outcome, and keeps how far the call has come if it waits.
    fn give(&self, outcome: Outcome, progress: Progress, exchange: &mut Exchange) -> Outcome {
        if matches!(outcome, Outcome::Subrequest(_) | Outcome::Redis(_))
            && let Err(refusal) = self.keep(progress, exchange)
        {
            return refusal;
        }
        outcome
    }

    /// Puts the values for the service into the request.
    fn put_into_request(&self, exchange: &mut Exchange, progress: &Progress) -> Result<(), String> {
        let inputs = &self.graph.service_request;
        if inputs.is_empty() {
            return Ok(());
        }
        let given = self.given(inputs, progress, &exchange.request.work)?;
        let (query, message) = (given.input("query")?, given.message()?);
        message.put_into_request(exchange, &query)
    }

    fn reads_response_body(&self) -> bool {
        self.graph.of_response.iter().any(|name| name.ends_with("body"))
    }
}

/// Whether the response has no body, whatever its headers say (RFC 9110, 6.4.1).
fn is_bodyless(exchange: &Exchange) -> bool {
    exchange.request.method == b"HEAD" || matches!(exchange.response.status, 204 | 304)
}

/// What a look-up gives.
fn looked_up(found: CacheLookup, bypasses: bool) -> Result<Output, String> {
    let value = match found {
        CacheLookup::Hit(value) => Some(value),
        CacheLookup::Away if !bypasses => return Err("the Redis is unavailable".to_owned()),
        CacheLookup::Away | CacheLookup::Miss => None,
    };
    Ok(Output::Named(vec![
        ("hit", Datum::json(value.is_some())),
        ("miss", Datum::json(value.is_none())),
        ("stored", Datum::json(false)),
        ("data", value.unwrap_or_else(Datum::null)),
    ]))
}

/// What keeping a value gives.
fn kept(is_kept: bool, data: Datum) -> Output {
    Output::Named(vec![
        ("hit", Datum::json(false)),
        ("miss", Datum::json(false)),
        ("stored", Datum::json(is_kept)),
        ("data", data),
    ])
}

/// The value of a text of JSON.
fn decoded(value: &Datum) -> Result<Datum, String> {
    match value.text() {
        Ok(None) => Ok(Datum::null()),
        Ok(Some(text)) => match serde_json::from_slice::<Value>(&text) {
            Ok(value) => Ok(Datum::json(value)),
            Err(_) => Err("expected a text of JSON".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    }
}

impl Filter for OrchestrationFilter {
    fn phases(&self) -> Phases {
        Phases {
            request: true,
            response: self.works_on_response(),
            log: false,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let mut progress = match exchange.filter_state.take::<_, Progress>(self) {
            Some(progress) => progress,
            None => {
                let names = &self.graph.of_request;
                let request = &exchange.request;
                if names.contains(&"body") && request.has_body && request.body.is_none() {
                    if !exchange.filter_state.mark_body_requested(self) {
                        let kind = RefusalKind::Unacceptable { plugin: NAME };
                        return Outcome::Refuse(Box::new(Refusal::with_status(kind, 413)));
                    }
                    return Outcome::NeedBody {
                        max_bytes: self.max_body_bytes,
                    };
                }
                let mut progress = self.begin();
                match request_parts(exchange, names) {
                    Ok(parts) => progress.request = parts,
                    // It is the caller who says that it is JSON.
                    Err(_) => return Outcome::refuse(RefusalKind::Unacceptable { plugin: NAME }),
                }
                progress
            }
        };
        match self.go_on(exchange, &mut progress) {
            Err(failure) => return self.refuse(&failure),
            Ok(Some(outcome)) => return self.give(outcome, progress, exchange),
            Ok(None) => {}
        }
        if let Err(message) = self.put_into_request(exchange, &progress) {
            return self.refuse_message("service_request", &message);
        }
        if self.reads_response_body() {
            accept_known_codings(&mut exchange.request.headers);
        }
        if self.works_on_response() {
            progress.nodes = Stage::Response;
            progress.next = 0;
            if let Err(refusal) = self.keep(progress, exchange) {
                return refusal;
            }
        }
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let is_bodyless = is_bodyless(exchange);
        let response = &mut exchange.response;
        if response.is_gateway && !response.is_from_cache {
            return;
        }
        let body = &self.graph.response;
        let is_made = body.whole.is_some() || body.named.contains_key("body");
        if !is_bodyless && (is_made || self.reads_response_body()) {
            buffer_whole(response, self.max_body_bytes);
        }
        response.waits = true;
        let mut progress = exchange
            .filter_state
            .take::<_, Progress>(self)
            .unwrap_or_else(|| self.begin());
        progress.awaits_response = true;
        progress.began = None;
        progress.steps = ALL_STEPS;
        exchange.filter_state.put(self, progress);
    }

    fn on_waiting_response(&self, exchange: &mut Exchange) -> Outcome {
        let progress = exchange.filter_state.take::<_, Progress>(self);
        let Some(mut progress) = progress.filter(|progress| progress.awaits_response) else {
            return Outcome::Continue;
        };
        let outcome = match self.work_on_response(exchange, &mut progress) {
            Ok(None) => return Outcome::Continue,
            Ok(Some(outcome)) | Err(outcome) => outcome,
        };
        self.give(outcome, progress, exchange)
    }
}
