//! `skywalking`: takes part in traces of Apache SkyWalking, forwards the trace to upstreams in `sw8`, and sends a
//! segment of each sampled call to SkyWalking's server (OAP) over HTTP.
//!
//! ```yaml
//! service: edge
//! server: {url: "http://127.0.0.1:12800/v3/segments"}
//! sample_ratio: 0.1
//! ```
//!
//! It is not `tracing`: ids of SkyWalking are texts, and the server gets a segment with two spans. Security:
//! well-formed ids of callers are trusted. A segment holds the call's URL with its query.

mod sw8;
#[cfg(test)]
mod tests;

use crate::logger::target::HttpTarget;
use crate::logger::{Batch, MAX_PENDING_BYTES, WaitingName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use sw8::Caller;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, CallRecord, Exchange, Filter, LogEntry, LogFraming, LogTarget, Outcome, Phases, Plugin,
    Template, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `skywalking`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The gateway's name.
    pub service: String,
    /// The gateway's instance; absent: its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The server for segments.
    pub server: HttpTarget,
    /// The share of calls that is sampled, by chance, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub sample_ratio: f64,
    /// What upstreams are called.
    pub peer: String,
    /// The number of the gateway's kind among SkyWalking's components.
    pub component: u32,
    /// How segments wait to be sent.
    pub batch: Batch,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            service: "weir".into(),
            instance: None,
            server: HttpTarget {
                url: "http://127.0.0.1:12800/v3/segments".into(),
                ..HttpTarget::default()
            },
            sample_ratio: 1.0,
            peer: "upstream service".into(),
            component: 6000,
            batch: Batch::default(),
        }
    }
}

/// The plugin `skywalking`.
#[derive(Default)]
pub struct Skywalking {
    /// The gateway's host name, known after the first finished call.
    hostname: Arc<OnceLock<String>>,
}

impl Plugin for Skywalking {
    fn name(&self) -> &'static str {
        "skywalking"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if !(0.0..=1.0).contains(&config.sample_ratio) {
            faults.add("sample_ratio", "expected a share from 0 to 1");
        }
        if config.batch.max_pending_bytes > MAX_PENDING_BYTES {
            let message = format!("expected at most {MAX_PENDING_BYTES} bytes that wait");
            faults.add("batch", message);
        }
        faults.done()?;
        let sink = config.server.sink().map_err(|(field, message)| {
            let path = DocPath::root().field("server").field(field);
            vec![Diagnostic::error(path, message)]
        })?;
        let template = Template::parse;
        Ok(Arc::new(SkywalkingFilter {
            waiting_name: config.batch.waiting_name(),
            target: Arc::new(LogTarget {
                sink,
                joint: LogFraming {
                    before: "[".into(),
                    between: ",",
                    after: "]",
                    ..LogFraming::default()
                },
                batching: config.batch.batching(),
            }),
            endpoint: template("$uri"),
            tags: [
                ("http.method", template("$request_method")),
                ("http.params", template("$scheme://$host$request_uri")),
            ],
            hostname: Arc::clone(&self.hostname),
            config,
        }))
    }
}

/// An instance.
struct SkywalkingFilter {
    config: Config,
    waiting_name: WaitingName,
    target: Arc<LogTarget>,
    /// The purpose of a call.
    endpoint: Template,
    /// Tags of the first span.
    tags: [(&'static str, Template); 2],
    /// The gateway's host name.
    hostname: Arc<OnceLock<String>>,
}

/// A call that is sampled.
struct Segment {
    trace_id: String,
    id: String,
    endpoint: String,
    caller: Option<Caller>,
}

impl SkywalkingFilter {
    /// The gateway's instance. The first calls of a process do not know the host name yet: they name the service.
    fn instance(&self) -> &str {
        let known = self.config.instance.as_ref().or_else(|| self.hostname.get());
        known.unwrap_or(&self.config.service)
    }

    fn is_sampled(&self, exchange: &mut Exchange) -> bool {
        let ratio = self.config.sample_ratio;
        let chance = |exchange: &mut Exchange| (exchange.random_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        ratio >= 1.0 || chance(exchange) < ratio
    }

    fn span(&self, segment: &Segment, record: &CallRecord<'_>, is_entry: bool) -> Map<String, Value> {
        let end_us = record.started_us + record.total_us;
        let (start_us, end_us) = match is_entry {
            true => (record.started_us, end_us),
            false => {
                let start_us = record.started_us + record.forwarded_us.unwrap_or(0);
                let waited_us = record.upstream_us.unwrap_or(end_us.saturating_sub(start_us));
                (start_us, (start_us + waited_us).min(end_us.max(start_us)))
            }
        };
        let status = match is_entry {
            true => Some(record.status),
            false => record.upstream_status,
        };
        let span = json!({
            "operationName": segment.endpoint,
            "startTime": start_us / 1000,
            "endTime": end_us / 1000,
            "spanType": if is_entry { "Entry" } else { "Exit" },
            "spanId": u8::from(!is_entry),
            "parentSpanId": if is_entry { -1 } else { 0 },
            "isError": status.is_none_or(|status| status >= 500),
            "spanLayer": "Http",
            "componentId": self.config.component,
        });
        match span {
            Value::Object(span) => span,
            _ => Map::new(),
        }
    }
}

/// An id of 32 hexadecimal digits.
fn new_id(exchange: &mut Exchange) -> String {
    format!("{:016x}{:016x}", exchange.random_u64(), exchange.random_u64())
}

fn rendered(template: &Template, exchange: &Exchange) -> String {
    let mut text = Vec::with_capacity(64);
    template.render(exchange, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

impl Filter for SkywalkingFilter {
    fn is_observer(&self) -> bool {
        true
    }

    fn phases(&self) -> Phases {
        Phases {
            request: true,
            response: false,
            log: true,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if !self.is_sampled(exchange) {
            return Outcome::Continue;
        }
        let headers = &exchange.request.headers;
        // Of two headers, none can be believed.
        let only = headers
            .get(b"sw8")
            .filter(|_| headers.get_all(b"sw8").count() == 1);
        let caller = only.and_then(Caller::read);
        let trace_id = match &caller {
            Some(caller) => caller.trace_id.clone(),
            None => new_id(exchange),
        };
        let segment = Segment {
            trace_id,
            id: new_id(exchange),
            endpoint: rendered(&self.endpoint, exchange),
            caller,
        };
        let own = Caller {
            trace_id: segment.trace_id.clone(),
            segment_id: segment.id.clone(),
            span_id: 1,
            service: self.config.service.clone(),
            instance: self.instance().to_owned(),
            endpoint: segment.endpoint.clone(),
            peer: self.config.peer.clone(),
        };
        exchange.request.headers.set(b"sw8", own.header().as_bytes());
        exchange.filter_state.put(self, segment);
        Outcome::Continue
    }

    fn wants_log(&self, exchange: &mut Exchange) -> bool {
        exchange.filter_state.get_mut::<_, Segment>(self).is_some()
    }

    fn on_log(&self, exchange: &mut Exchange, record: &CallRecord<'_>, out: &mut Vec<LogEntry>) {
        let Some(segment) = exchange.filter_state.take::<_, Segment>(self) else {
            return;
        };
        self.hostname.get_or_init(|| record.hostname.to_owned());
        let mut entry = self.span(&segment, record, true);
        let mut tags: Vec<Value> = (self.tags.iter())
            .map(|(name, template)| json!({"key": name, "value": rendered(template, exchange)}))
            .collect();
        tags.push(json!({"key": "http.status", "value": record.status.to_string()}));
        entry.insert("tags".into(), tags.into());
        if let Some(caller) = &segment.caller {
            entry.insert("refs".into(), json!([caller.reference()]));
        }
        let mut spans = vec![Value::Object(entry)];
        if record.upstream.is_some() || !record.failures.is_empty() {
            let mut exit = self.span(&segment, record, false);
            exit.insert("peer".into(), self.config.peer.as_str().into());
            // The innermost span comes first, as it ends first.
            spans.insert(0, Value::Object(exit));
        }
        let body = json!({
            "traceId": segment.trace_id,
            "traceSegmentId": segment.id,
            "service": self.config.service,
            "serviceInstance": self.instance(),
            "spans": spans,
        });
        out.push(LogEntry {
            target: Arc::clone(&self.target),
            bytes: body.to_string().into_bytes(),
            origin: self.waiting_name.origin(exchange),
            receipt: None,
        });
    }
}
