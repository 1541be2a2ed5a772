//! Spans of a call that is sampled: built from its shape once it is over, in no format yet.

use super::attributes::{Attributes, Value, lossy};
use super::span_config::{self, Kind, Moment};
use std::net::{IpAddr, SocketAddr};
use weir_plugin::{CallRecord, Exchange, Template, TraceContext};

/// Most attributes that a header of the request can add.
const MAX_TAGS: usize = 32;

/// A span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub kind: Kind,
    /// Its id.
    pub id: u64,
    /// Its parent's; 0: it has none.
    pub parent_id: u64,
    /// Its beginning, in Unix microseconds.
    pub start_us: u64,
    /// Its end.
    pub end_us: u64,
    /// Its attributes.
    pub attributes: Vec<(String, Value)>,
    /// What happened when, in Unix microseconds.
    pub events: Vec<(String, u64)>,
    /// The error, if there was one.
    pub error: Option<String>,
    /// The other side: the client's address, or the target's.
    pub peer: Option<(IpAddr, u16)>,
    /// Whether the other side is the service.
    pub is_to_service: bool,
}

/// A span between two moments, ready for use.
struct PhaseSpan {
    shape: span_config::PhaseSpanOptions,
    name: Template,
    attributes: Attributes,
}

/// Tries, ready for use.
struct AttemptSpan {
    shape: span_config::AttemptSpanOptions,
    name: Template,
    attributes: Attributes,
}

/// The shape of a call's spans, ready for use.
pub struct Builder {
    root: span_config::Root,
    name: Template,
    attributes: Attributes,
    parts: Vec<PhaseSpan>,
    attempts: Option<AttemptSpan>,
    /// Request headers that become attributes, in lower case; a `*` at the end stands for anything.
    headers: Vec<String>,
    /// The request header with further attributes: `name=value; …`.
    tags_header: Option<Vec<u8>>,
}

impl Builder {
    /// Of a shape.
    pub fn new(spans: span_config::Spans, headers: &[String], tags_header: Option<&String>) -> Self {
        Self {
            name: Template::parse(&spans.root.name),
            attributes: Attributes::compile(&spans.root.attributes),
            root: spans.root,
            parts: (spans.parts.into_iter())
                .map(|shape| PhaseSpan {
                    name: Template::parse(&shape.name),
                    attributes: Attributes::compile(&shape.attributes),
                    shape,
                })
                .collect(),
            attempts: spans.attempts.map(|shape| AttemptSpan {
                name: Template::parse(&shape.name),
                attributes: Attributes::compile(&shape.attributes),
                shape,
            }),
            headers: headers.iter().map(|name| name.to_ascii_lowercase()).collect(),
            tags_header: tags_header.map(|name| name.clone().into_bytes()),
        }
    }

    /// Whether any of its variables is in the request's body.
    pub fn needs_body(&self) -> bool {
        let parts = self.parts.iter().map(|part| &part.attributes);
        let attempts = self.attempts.iter().map(|attempts| &attempts.attributes);
        let mut all = parts.chain(attempts).chain([&self.attributes]);
        self.name.needs_body() || all.any(Attributes::need_body)
    }

    /// The spans of a finished call, the root first. `random` gives ids.
    pub fn build(&self, exchange: &mut Exchange, record: &CallRecord<'_>, trace: &TraceContext) -> Vec<Span> {
        let mut spans = Vec::with_capacity(2 + self.parts.len());
        spans.push(self.root(exchange, record, trace));
        for part in &self.parts {
            let id = match part.shape.leads {
                true => trace.upstream_id,
                false => exchange.random_u64() | 1,
            };
            spans.push(part.build(exchange, record, trace, id));
        }
        if let (Some(attempts), Some(forwarded)) = (&self.attempts, record.forwarded_us) {
            attempts.build(exchange, record, trace, forwarded, &mut spans);
        }
        spans
    }

    fn root(&self, exchange: &Exchange, record: &CallRecord<'_>, trace: &TraceContext) -> Span {
        let mut attributes = Vec::with_capacity(16);
        self.attributes.write(exchange, &mut attributes);
        let fixed = self.root.fixed.iter();
        attributes.extend(fixed.map(|(name, value)| (name.clone(), Value::Text(value.clone()))));
        let is_own = exchange.response.is_gateway;
        if let Some(source) = &self.root.source {
            let text = if is_own { &source.gateway } else { &source.upstream };
            attributes.push((source.name.clone(), Value::Text(text.clone())));
        }
        self.add_headers(exchange, &mut attributes);
        self.add_tags(exchange, &mut attributes);
        add_durations(&self.root.durations, record, &mut attributes);
        if record.status != exchange.response.status {
            correct_status(&mut attributes, record.status);
        }
        let request = &exchange.request;
        Span {
            name: rendered(&self.name, exchange),
            kind: Kind::Server,
            id: trace.span_id,
            parent_id: trace.parent_id,
            start_us: record.started_us,
            end_us: record.started_us + record.total_us,
            attributes,
            events: events(&self.root.events, record),
            error: (record.status >= 500).then(|| {
                let source = self.root.source.as_ref();
                let source = match (source, is_own) {
                    (Some(source), true) => source.gateway.as_str(),
                    (Some(source), false) => source.upstream.as_str(),
                    (None, true) => "gateway",
                    (None, false) => "upstream",
                };
                format!("{source} error: {}", record.status)
            }),
            peer: Some((request.client, request.peer.port())),
            is_to_service: false,
        }
    }

    fn add_headers(&self, exchange: &Exchange, out: &mut Vec<(String, Value)>) {
        for wanted in &self.headers {
            let prefix = wanted.strip_suffix('*');
            for header in exchange.request.headers.iter() {
                let name = String::from_utf8_lossy(header.name).to_ascii_lowercase();
                let fits = match prefix {
                    Some(prefix) => name.starts_with(prefix),
                    None => name == *wanted,
                };
                if fits && out.len() < 128 {
                    out.push((name, Value::Text(lossy(header.value))));
                }
            }
        }
    }

    fn add_tags(&self, exchange: &Exchange, out: &mut Vec<(String, Value)>) {
        let Some(header) = &self.tags_header else { return };
        let lines = exchange.request.headers.get_all(header);
        let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
        for pair in pairs.take(MAX_TAGS) {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let (name, value) = (
                halves.next().unwrap_or_default(),
                halves.next().unwrap_or_default(),
            );
            let (name, value) = (name.trim_ascii(), value.trim_ascii());
            if !name.is_empty() && !value.is_empty() && !name.contains(&b' ') {
                out.push((lossy(name), Value::Text(lossy(value))));
            }
        }
    }
}

impl PhaseSpan {
    fn build(&self, exchange: &Exchange, record: &CallRecord<'_>, trace: &TraceContext, id: u64) -> Span {
        let mut attributes = Vec::new();
        self.attributes.write(exchange, &mut attributes);
        add_durations(&self.shape.durations, record, &mut attributes);
        let (start_us, end_us) = (at(self.shape.from, record), at(self.shape.to, record));
        let is_to_service = self.shape.kind == Kind::Client;
        Span {
            name: rendered(&self.name, exchange),
            kind: self.shape.kind,
            id,
            parent_id: trace.span_id,
            start_us,
            end_us: end_us.max(start_us),
            attributes,
            events: events(&self.shape.events, record),
            error: None,
            peer: record.upstream.filter(|_| is_to_service).map(pair),
            is_to_service,
        }
    }
}

impl AttemptSpan {
    /// Each try begins when the one before it has ended.
    fn build(
        &self,
        exchange: &mut Exchange,
        record: &CallRecord<'_>,
        trace: &TraceContext,
        forwarded_us: u64,
        out: &mut Vec<Span>,
    ) {
        let mut start_us = forwarded_us;
        let mut number = 1;
        for failure in record.failures {
            let is_last = record.upstream_status.is_none() && number == record.failures.len() as i64;
            let id = match is_last && self.shape.leads {
                true => trace.upstream_id,
                false => exchange.random_u64() | 1,
            };
            let times = (start_us, failure.ended_us);
            let outcome = (failure.address, Some(failure.status), true);
            out.push(self.one(exchange, record, (trace.span_id, id), times, number, outcome));
            start_us = failure.ended_us;
            number += 1;
        }
        let is_answered = record.upstream_status.is_some();
        if is_answered || record.failures.is_empty() && record.upstream.is_some() {
            let id = match self.shape.leads {
                true => trace.upstream_id,
                false => exchange.random_u64() | 1,
            };
            let times = (start_us, record.total_us);
            let outcome = (record.upstream, record.upstream_status, false);
            out.push(self.one(exchange, record, (trace.span_id, id), times, number, outcome));
        }
    }

    fn one(
        &self,
        exchange: &Exchange,
        record: &CallRecord<'_>,
        (parent_id, id): (u64, u64),
        (start_us, end_us): (u64, u64),
        number: i64,
        (address, status, has_failed): (Option<SocketAddr>, Option<u16>, bool),
    ) -> Span {
        let shape = &self.shape;
        let mut attributes = vec![(shape.number.clone(), Value::Whole(number))];
        if let Some(address) = address {
            attributes.push((shape.address.clone(), Value::Text(address.ip().to_string())));
            attributes.push((shape.port.clone(), Value::Whole(address.port().into())));
        }
        if let Some(status) = status.filter(|_| has_failed || !shape.status_on_failure_only) {
            attributes.push((shape.status.clone(), Value::Whole(status.into())));
        }
        if let Some(failure) = shape.failure.as_ref().filter(|_| has_failed) {
            attributes.push((failure.clone(), Value::Flag(true)));
        }
        attributes.retain(|(name, _)| !name.is_empty());
        self.attributes.write(exchange, &mut attributes);
        let mut name = rendered(&self.name, exchange);
        if shape.number_in_name {
            name.push_str(&format!(" {number})"));
        }
        Span {
            name,
            kind: Kind::Client,
            id,
            parent_id,
            start_us: record.started_us + start_us,
            end_us: record.started_us + end_us.max(start_us),
            attributes,
            events: Vec::new(),
            error: has_failed.then(|| format!("no answer: {}", status.unwrap_or_default())),
            peer: address.map(pair),
            is_to_service: true,
        }
    }
}

fn pair(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip(), address.port())
}

/// In Unix microseconds.
fn at(moment: Moment, record: &CallRecord<'_>) -> u64 {
    let end = record.total_us;
    let since = match moment {
        Moment::Start => 0,
        Moment::Forward => record.forwarded_us.unwrap_or(end),
        Moment::Answer => match (record.forwarded_us, record.upstream_us, record.upstream_status) {
            (Some(forwarded), Some(upstream), Some(_)) => forwarded + upstream,
            _ => end,
        },
        Moment::End => end,
    };
    record.started_us + since.min(end)
}

fn events(events: &[span_config::Event], record: &CallRecord<'_>) -> Vec<(String, u64)> {
    let events = events.iter();
    events
        .map(|event| (event.name.clone(), at(event.at, record)))
        .collect()
}

fn add_durations(
    durations: &[span_config::DurationAttribute],
    record: &CallRecord<'_>,
    out: &mut Vec<(String, Value)>,
) {
    for duration in durations {
        let micros = at(duration.to, record).saturating_sub(at(duration.from, record));
        let whole = i64::try_from(micros / 1000).unwrap_or(i64::MAX);
        out.push((duration.name.clone(), Value::Whole(whole)));
    }
}

/// A client that went has not seen the status that it was meant to get.
fn correct_status(attributes: &mut [(String, Value)], status: u16) {
    for (name, value) in attributes {
        if name.ends_with("status_code") {
            *value = Value::Whole(status.into());
        }
    }
}

fn rendered(template: &Template, exchange: &Exchange) -> String {
    let mut text = Vec::with_capacity(64);
    template.render(exchange, &mut text);
    lossy(text.trim_ascii_end())
}
