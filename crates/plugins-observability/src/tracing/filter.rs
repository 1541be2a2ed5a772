//! An instance of `tracing`: finds or creates a call's trace context, forwards it to the upstream, and makes the log
//! records of sampled calls.

use super::attributes::Value;
use super::export::Destination;
use super::otlp;
use super::propagation::{Extracted, Format, Inject, Injected};
use super::sampling::Sampler;
use super::span::Builder;
use super::zipkin::{self, Local};
use crate::logger::WaitingName;
use std::sync::{Arc, OnceLock};
use weir_plugin::{CallRecord, Exchange, Filter, LogEntry, LogTarget, Outcome, Phases, TraceContext};

/// An instance.
pub struct TraceFilter {
    pub sampler: Sampler,
    pub extract: Vec<Format>,
    pub inject: Vec<Inject>,
    pub default_format: Format,
    pub clear: Vec<Vec<u8>>,
    /// The request header that gives a new trace its id; without one, the call's id is used.
    pub id_header: Option<Vec<u8>>,
    pub short_ids: bool,
    /// Whether the gateway's span takes over the client's, if the format carries both the span and its parent.
    pub shares_spans: bool,
    pub echo: Option<Vec<u8>>,
    pub has_leader: bool,
    pub builder: Builder,
    pub service: String,
    pub resource: Vec<(String, Value)>,
    /// The attribute of the resource that names the machine.
    pub host_attribute: Option<String>,
    /// `None`: the call's trace context is passed on, and the call is not exported.
    pub destination: Option<Destination>,
    pub waiting_name: WaitingName,
    /// Made with the first call that is exported, when the machine's name is known.
    pub target: OnceLock<Arc<LogTarget>>,
}

/// Marks a call that this instance exports.
struct Sampled;

impl TraceFilter {
    /// Finds the call's trace context, or creates one. If another instance has already done so, its ids hold, and only
    /// the sampling decision is this instance's own.
    fn begin(&self, exchange: &mut Exchange) -> (Extracted, TraceContext) {
        let headers = &exchange.request.headers;
        let extracted = self.extract.iter().find_map(|format| format.extract(headers));
        let extracted = extracted.unwrap_or_default();
        let mut trace = match exchange.trace {
            Some(trace) => trace,
            None => self.new_place(&extracted, exchange),
        };
        let is_sampled = self.sampler.samples(&extracted, trace.trace_id);
        let is_told_of = is_sampled && self.destination.is_some();
        exchange.trace = Some(TraceContext {
            is_sampled: trace.is_sampled || is_told_of,
            ..trace
        });
        if is_told_of {
            exchange.filter_state.put(self, Sampled);
        }
        trace.is_sampled = is_sampled;
        (extracted, trace)
    }

    fn new_place(&self, extracted: &Extracted, exchange: &mut Exchange) -> TraceContext {
        let trace_id = match extracted.trace_id {
            0 => self.new_trace_id(exchange),
            known => known,
        };
        // B3 and Jaeger have spans that caller and callee share.
        let is_shared = matches!(
            extracted.format,
            Some(Format::B3 | Format::B3Single | Format::Jaeger)
        );
        let shares = self.shares_spans && is_shared && extracted.span_id != 0;
        let (span_id, parent_id) = match shares && extracted.trace_id != 0 {
            true => (extracted.span_id, extracted.parent_id),
            false => (exchange.random_u64().max(1), extracted.span_id),
        };
        let upstream_id = match self.has_leader {
            true => exchange.random_u64().max(1),
            false => span_id,
        };
        TraceContext {
            trace_id,
            span_id,
            parent_id,
            upstream_id,
            is_sampled: false,
        }
    }

    fn new_trace_id(&self, exchange: &mut Exchange) -> u128 {
        if let Some(header) = &self.id_header {
            let text = match exchange.request.headers.get(header) {
                Some(text) => text,
                None => exchange.ensure_request_id().as_bytes(),
            };
            let text = std::str::from_utf8(text).unwrap_or_default();
            let is_id = text.len() == 32 && !text.starts_with('+');
            if let Some(id) = u128::from_str_radix(text, 16).ok().filter(|id| is_id && *id != 0) {
                return id;
            }
        }
        let low = u128::from(exchange.random_u64().max(1));
        match self.short_ids {
            true => low,
            false => u128::from(exchange.random_u64()) << 64 | low,
        }
    }

    fn target(&self, destination: &Destination, hostname: &str) -> Arc<LogTarget> {
        let target = self.target.get_or_init(|| {
            let mut resource = self.resource.clone();
            if let Some(name) = &self.host_attribute {
                resource.push((name.clone(), Value::Text(hostname.to_owned())));
            }
            Arc::new(destination.target(&resource))
        });
        Arc::clone(target)
    }
}

impl Filter for TraceFilter {
    fn is_observer(&self) -> bool {
        true
    }

    fn phases(&self) -> Phases {
        Phases {
            request: true,
            response: self.echo.is_some(),
            log: self.destination.is_some(),
        }
    }

    fn needs_body(&self) -> bool {
        self.builder.needs_body()
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let (extracted, trace) = self.begin(exchange);
        let headers = &mut exchange.request.headers;
        for name in &self.clear {
            headers.remove(name);
        }
        let injected = Injected {
            trace: &trace,
            extracted: &extracted,
        };
        for inject in &self.inject {
            let format = match inject {
                Inject::Preserve => extracted.format.unwrap_or(self.default_format),
                Inject::Form(format) => *format,
            };
            format.inject(&injected, headers);
        }
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if exchange.trace.is_none() {
            self.begin(exchange);
        }
        if let (Some(header), Some(trace)) = (&self.echo, exchange.trace) {
            let digits = trace.trace_digits();
            let is_short = self.short_ids && trace.trace_id >> 64 == 0;
            let digits = &digits[if is_short { 16 } else { 0 }..];
            exchange.response.headers.set(header, digits);
        }
    }

    /// A filter in front of this one may have answered; such a call has its place in a trace, too.
    fn wants_log(&self, exchange: &mut Exchange) -> bool {
        if exchange.trace.is_none() {
            self.begin(exchange);
        }
        exchange.filter_state.get_mut::<_, Sampled>(self).is_some()
    }

    fn on_log(&self, exchange: &mut Exchange, record: &CallRecord<'_>, out: &mut Vec<LogEntry>) {
        let (Some(trace), Some(destination)) = (exchange.trace, &self.destination) else {
            return;
        };
        if exchange.filter_state.take::<_, Sampled>(self).is_none() {
            return;
        }
        let spans = self.builder.build(exchange, record, &trace);
        let mut bytes = Vec::with_capacity(1024);
        match &destination.zipkin {
            None => otlp::write(&spans, &trace, &mut bytes),
            Some(target) => {
                let local = exchange.request.local;
                let address = target.local_endpoint.then_some(local.ip());
                let address = target.local_address.or(address);
                let service = exchange.route.as_deref().map(|route| route.service.as_str());
                let about = Local {
                    service: &self.service,
                    address: address.map(|ip| (ip, local.port())),
                    remote_service: service
                        .filter(|name| !name.is_empty())
                        .or(target.default_service.as_deref()),
                    shortens: target.short_ids,
                };
                zipkin::write(&spans, &trace, &about, &mut bytes);
            }
        }
        out.push(LogEntry {
            target: self.target(destination, record.hostname),
            bytes,
            origin: self.waiting_name.origin(exchange),
            receipt: None,
        });
    }
}
