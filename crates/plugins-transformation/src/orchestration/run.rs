//! The nodes of a call at work, one after the other. What it is not: how they are connected, and what becomes of the values
//! that messages get.

use super::cache::{CacheLookup, CacheStep, Store};
use super::call::{CompiledCall, RequestParts, response};
use super::data::Datum;
use super::graph::{Graph, Inputs, Origin, Source};
use super::messages::{Message, MessageParts, request_parts, response_parts};
use super::ports::RAW;
use super::property::{OwnValues, Property};
use super::{CacheNode, NAME};
use crate::buffered_body::buffer_whole;
use crate::jq::{Program, STEPS};
use crate::xml::{self, XmlForm};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_plugin::{Exchange, Filter, Outcome, Phases, Refusal, RefusalKind, Reply};

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
    pub(super) secrets: BTreeMap<String, String>,
    pub(super) debug: bool,
    pub(super) max_body_bytes: usize,
    pub(super) timeout: Duration,
}

/// What a node has given.
#[derive(Debug, Clone, Default)]
enum Output {
    /// Nothing yet, or it was left out: all of it is null.
    #[default]
    Nothing,
    One(Datum),
    Named(Vec<(&'static str, Datum)>),
    /// The condition of a branch.
    Condition(bool),
}

impl Output {
    fn value(&self, field: Option<&str>) -> Datum {
        match (self, field) {
            (Self::Nothing | Self::Condition(_), _) => Datum::null(),
            (Self::One(value), None) => value.clone(),
            (Self::One(value), Some(field)) => value.member(field),
            (Self::Named(values), Some(field)) => {
                let found = values.iter().find(|(name, _)| *name == field);
                found.map_or_else(Datum::null, |(_, value)| value.clone())
            }
            (Self::Named(values), None) => object(values.iter().map(|(name, value)| (*name, value))),
        }
    }
}

/// All values of a node as one; other forms of the same are left out.
fn object<'v>(values: impl Iterator<Item = (&'static str, &'v Datum)>) -> Datum {
    let plain = values.filter(|(name, _)| !RAW.contains(name));
    let map: Map<String, Value> = plain
        .map(|(name, value)| (name.to_owned(), value.to_json()))
        .collect();
    Datum::json(Value::Object(map))
}

/// When nodes run: before the service is called, or when it has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Request,
    Response,
}

/// What a node waits for.
enum Pending {
    Call,
    Lookup,
    Store(Datum),
}

/// How far a call has come.
struct Progress {
    /// The nodes that run are those of this stage.
    nodes: Stage,
    /// The place of the next node among them.
    next: usize,
    outputs: Vec<Output>,
    pending: Option<Pending>,
    request: MessageParts,
    response: MessageParts,
    own: OwnValues,
    steps: u64,
    began: Instant,
    /// The response is to be worked on.
    awaits_response: bool,
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

impl OrchestrationFilter {
    fn begin(&self) -> Progress {
        Progress {
            nodes: Stage::Request,
            next: 0,
            outputs: vec![Output::Nothing; self.tasks.len()],
            pending: None,
            request: MessageParts::new(),
            response: MessageParts::new(),
            own: OwnValues::new(),
            steps: ALL_STEPS,
            began: Instant::now(),
            awaits_response: false,
        }
    }

    fn works_on_response(&self) -> bool {
        !self.graph.after.is_empty() || !self.graph.response.is_empty()
    }

    fn resolve(&self, source: Option<&Source>, progress: &Progress) -> Datum {
        let Some(source) = source else {
            return Datum::null();
        };
        let of_message = |parts: &MessageParts| match &source.field {
            Some(field) => parts.get(field.as_str()).cloned().unwrap_or_else(Datum::null),
            None => object(parts.iter().map(|(name, value)| (*name, value))),
        };
        match source.from {
            Origin::Request => of_message(&progress.request),
            Origin::ServiceResponse => of_message(&progress.response),
            Origin::Node(index) => progress.outputs[index].value(source.field.as_deref()),
            Origin::Secrets => match &source.field {
                Some(field) => self
                    .secrets
                    .get(field)
                    .map_or_else(Datum::null, |text| Datum::json(text.as_str())),
                None => {
                    let all = self
                        .secrets
                        .iter()
                        .map(|(name, text)| (name.clone(), text.clone().into()));
                    Datum::json(Value::Object(all.collect()))
                }
            },
        }
    }

    /// The value of an input that has a name.
    fn input(&self, inputs: &Inputs, name: &str, progress: &Progress) -> Result<Datum, String> {
        if let Some(source) = inputs.named.get(name) {
            return Ok(self.resolve(Some(source), progress));
        }
        let whole = self.resolve(inputs.whole.as_ref(), progress);
        match &whole {
            Datum::Json(value) if value.is_object() || value.is_null() => Ok(whole.member(name)),
            _ => Err("expected an object as the input".to_owned()),
        }
    }

    /// The one value of a node that takes any.
    fn free_input(&self, inputs: &Inputs, progress: &Progress) -> Datum {
        if inputs.named.is_empty() {
            return self.resolve(inputs.whole.as_ref(), progress);
        }
        let members = inputs.named.iter();
        let members =
            members.map(|(name, source)| (name.clone(), self.resolve(Some(source), progress).to_json()));
        Datum::json(Value::Object(members.collect()))
    }

    fn message(&self, inputs: &Inputs, progress: &Progress) -> Result<Message, String> {
        let headers = self.input(inputs, "headers", progress)?;
        let mut message = Message::of(&headers, &self.input(inputs, "body", progress)?)?;
        let body = inputs.named.get("body");
        if let (
            Some(Source {
                from: Origin::Node(index),
                ..
            }),
            Some(body),
        ) = (body, &mut message.body)
            && matches!(self.tasks[*index].work, Work::JsonToXml(..))
        {
            body.content_type = Some("application/xml");
        }
        Ok(message)
    }

    /// Runs a node.
    fn step(&self, index: usize, exchange: &mut Exchange, progress: &mut Progress) -> Result<Step, String> {
        let inputs = &self.graph.inputs[index];
        let one = |value: Datum| Ok(Step::Done(Output::One(value)));
        match &self.tasks[index].work {
            Work::Static(values) => one(values.clone()),
            Work::Jq(program) => {
                let input = self.free_input(inputs, progress).to_json();
                let (output, left) = program.transform(input, progress.steps);
                progress.steps = left;
                one(Datum::json(output.map_err(|failure| failure.to_string())?))
            }
            Work::Branch => {
                let condition = self.resolve(inputs.whole.as_ref(), progress);
                let condition = condition.truth().map_err(|error| error.to_string())?;
                Ok(Step::Done(Output::Condition(condition)))
            }
            Work::Exit(status) => Ok(Step::Exit(self.message(inputs, progress)?.into_reply(*status))),
            Work::XmlToJson(form) => {
                let text = self.resolve(inputs.whole.as_ref(), progress);
                let text = text.text().map_err(|error| error.to_string())?;
                match text {
                    None => one(Datum::null()),
                    Some(text) => one(Datum::json(xml::parse(&text, form)?)),
                }
            }
            Work::JsonToXml(form, root) => {
                let mut value = self.free_input(inputs, progress).to_json();
                if let Value::String(text) = &value {
                    value = serde_json::from_str(text).map_err(|_| "expected JSON")?;
                }
                match value {
                    Value::Null => one(Datum::null()),
                    value => {
                        let most = self.max_body_bytes;
                        one(Datum::json(xml::write(&value, root.as_deref(), form, most)?))
                    }
                }
            }
            Work::Property {
                property,
                json,
                required,
                is_set,
            } => {
                let is_json = *json;
                let value = match is_set {
                    true => self.resolve(inputs.whole.as_ref(), progress),
                    false => property.read(exchange, &progress.own),
                };
                if *required && value.is_null() {
                    return Err("the value is null".to_owned());
                }
                if !is_set {
                    return one(if is_json { decoded(&value)? } else { value });
                }
                let value = if is_json {
                    Datum::json(value.to_json().to_string())
                } else {
                    value
                };
                property
                    .set(exchange, &mut progress.own, value.clone())
                    .map_err(|error| error.to_string())?;
                one(value)
            }
            Work::Call(call) => self.call(call, inputs, progress),
            Work::Cache(node) => self.cache(node, inputs, exchange, progress),
        }
    }

    fn call(&self, call: &CompiledCall, inputs: &Inputs, progress: &Progress) -> Result<Step, String> {
        let message = self.message(inputs, progress)?;
        let query = super::data::query_text(&self.input(inputs, "query", progress)?);
        let url = self.input(inputs, "url", progress)?;
        let url = url.text().map_err(|error| format!("`url`: {error}"))?;
        let parts = RequestParts {
            url: url.map(|url| String::from_utf8_lossy(&url).into_owned()),
            headers: message.headers,
            query: query.map_err(|error| format!("`query`: {error}"))?,
            body: message.body,
        };
        let left = self.timeout.saturating_sub(progress.began.elapsed());
        if left.is_zero() {
            return Err("the servers take too long together".to_owned());
        }
        let subrequest = call.request(&parts, left)?;
        Ok(Step::Wait(
            Outcome::Subrequest(Box::new(subrequest)),
            Pending::Call,
        ))
    }

    fn cache(
        &self,
        node: &CacheNode,
        inputs: &Inputs,
        exchange: &mut Exchange,
        progress: &Progress,
    ) -> Result<Step, String> {
        let key = self.input(inputs, "key", progress)?;
        let key = key
            .text()
            .map_err(|error| format!("`key`: {error}"))?
            .filter(|key| !key.is_empty());
        let key = key
            .filter(|key| key.len() <= MAX_KEY)
            .ok_or("`key`: expected a text, of at most 64 KiB")?;
        let data = self.input(inputs, "data", progress)?;
        if data.is_null() {
            return Ok(match self.store.look(&key, exchange.now_ms()) {
                CacheStep::Done(found) => Step::Done(looked_up(found, node.bypass_on_error)?),
                CacheStep::Wait(outcome) => Step::Wait(outcome, Pending::Lookup),
            });
        }
        let ttl = self.input(inputs, "ttl", progress)?.whole_number();
        let ttl = ttl
            .map_err(|error| format!("`ttl`: {error}"))?
            .unwrap_or(node.ttl_seconds);
        let ttl_ms = ttl.saturating_mul(1_000);
        Ok(match self.store.keep(&key, &data, ttl_ms, exchange.now_ms()) {
            CacheStep::Done(is_kept) => Step::Done(kept(is_kept, data)),
            CacheStep::Wait(outcome) => Step::Wait(outcome, Pending::Store(data)),
        })
    }

    /// Takes in what a node has waited for.
    fn take_in(&self, index: usize, pending: Pending, exchange: &mut Exchange) -> Result<Output, String> {
        let bypasses = matches!(&self.tasks[index].work, Work::Cache(node) if node.bypass_on_error);
        match pending {
            Pending::Call => {
                let answer = response(exchange.subrequest_response.take().flatten())?;
                Ok(Output::Named(vec![
                    ("body", answer.body),
                    ("headers", answer.headers),
                    ("status", Datum::json(answer.status)),
                    ("raw_body", answer.raw_body),
                ]))
            }
            Pending::Lookup => looked_up(Store::looked_up(exchange), bypasses),
            Pending::Store(data) => match Store::kept(exchange) {
                Some(is_kept) => Ok(kept(is_kept, data)),
                None if bypasses => Ok(kept(false, data)),
                None => Err("the Redis is unavailable".to_owned()),
            },
        }
    }

    /// Whether a node is left out: its branch has another result, or is left out itself.
    fn is_left_out(&self, index: usize, progress: &Progress) -> bool {
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
        tracing::warn!(plugin = NAME, node = %name, kind, "a node has failed: {message}");
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
            let message = self.message(response, progress);
            message
                .map_err(|message| self.refuse_message("response", &message))?
                .put_into_response(exchange);
        }
        Ok(None)
    }

    /// Gives an outcome, and keeps how far the call has come if it waits.
    fn keep(&self, outcome: Outcome, progress: Progress, exchange: &mut Exchange) -> Outcome {
        if matches!(outcome, Outcome::Subrequest(_) | Outcome::Redis(_)) {
            exchange.filter_state.put(self, progress);
        }
        outcome
    }

    /// Puts the values for the service into the request.
    fn put_into_request(&self, exchange: &mut Exchange, progress: &Progress) -> Result<(), String> {
        let inputs = &self.graph.service_request;
        if inputs.is_empty() {
            return Ok(());
        }
        let query = self.input(inputs, "query", progress)?;
        self.message(inputs, progress)?.put_into_request(exchange, &query)
    }
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
            Ok(Some(outcome)) => return self.keep(outcome, progress, exchange),
            Ok(None) => {}
        }
        if let Err(message) = self.put_into_request(exchange, &progress) {
            return self.refuse_message("service_request", &message);
        }
        if self.works_on_response() {
            progress.nodes = Stage::Response;
            progress.next = 0;
            exchange.filter_state.put(self, progress);
        }
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let response = &mut exchange.response;
        if response.is_gateway && !response.is_from_cache {
            return;
        }
        let is_read = self.graph.of_response.iter().any(|name| name.ends_with("body"));
        let body = &self.graph.response;
        if is_read || body.whole.is_some() || body.named.contains_key("body") {
            buffer_whole(response, self.max_body_bytes);
        }
        response.waits = true;
        let mut progress = exchange
            .filter_state
            .take::<_, Progress>(self)
            .unwrap_or_else(|| self.begin());
        progress.awaits_response = true;
        progress.began = Instant::now();
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
        self.keep(outcome, progress, exchange)
    }
}
