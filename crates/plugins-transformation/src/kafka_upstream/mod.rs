//! `kafka-upstream`: sends each call as a record to a topic of Kafka and answers it, instead of the upstream.
//!
//! ```yaml
//! kafka: {brokers: [{host: kafka.internal}], topic: orders}
//! ```
//!
//! A record is a JSON object with the chosen parts of the call: `method`, `uri` and `uri_args`, `headers`, `body` and
//! `body_args`. With `wait`, a call is answered when brokers have its record, and refused if they do not take it;
//! without, it is answered at once, and its record waits with those of other calls.
//!
//! Security: with `headers`, what callers are known by reaches the topic.

use crate::call_parts::{CallParts, body_fields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, LogBatching, LogDelivery, LogEntry, LogFraming, LogTarget, Outcome,
    Phases, Plugin, Refusal, RefusalKind, Reply, Suspend, log_receipt, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::kafka_target::KafkaTarget;

/// The plugin's name.
const NAME: &str = "kafka-upstream";
/// Bytes of the records that wait at most.
const MAX_PENDING_BYTES: usize = 64 << 20;
/// The most bytes that a record can have.
pub const MAX_RECORD_BYTES: usize = 16 << 20;

/// Configuration of `kafka-upstream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The topic, and where it is. Each call is a record of its own, whatever `record_per_entry` says.
    pub kafka: KafkaTarget,
    /// Whether records have the call's `method`.
    pub method: bool,
    /// Whether records have `uri`, with the query, and `uri_args`.
    pub uri: bool,
    /// Whether records have `headers`.
    pub headers: bool,
    /// Whether records have `body`, and `body_args` if it is a form or JSON. A body that is neither, and no text, is
    /// encoded in Base64, and `body_base64` is true.
    pub body: bool,
    /// Whether calls wait until brokers have their records.
    pub wait: bool,
    /// The most bytes of a record; calls with a larger one are refused with 413. Brokers take about 1 MB, unless they are
    /// told otherwise. A body that is a form or JSON counts twice, because `body_args` has it too.
    pub max_record_bytes: usize,
    /// Records that are sent together at most.
    pub max_entries: usize,
    /// Milliseconds that a record waits for further ones; calls that wait do not wait for others.
    pub delay_ms: u64,
    /// Records that wait at most; calls that come then are refused if they wait, and else their records are dropped.
    pub max_pending: usize,
    /// How often records are sent again at most.
    pub retries: u32,
    /// Milliseconds before they are sent again.
    pub retry_delay_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            kafka: KafkaTarget::default(),
            method: false,
            uri: false,
            headers: false,
            body: true,
            wait: true,
            max_record_bytes: 1_000_000,
            max_entries: 200,
            delay_ms: 1_000,
            max_pending: 50_000,
            retries: 10,
            retry_delay_ms: 100,
        }
    }
}

/// The plugin `kafka-upstream`.
#[derive(Debug)]
pub struct KafkaUpstream;

impl Plugin for KafkaUpstream {
    fn name(&self) -> &'static str {
        "kafka-upstream"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if config.max_record_bytes > MAX_RECORD_BYTES {
            faults.add("max_record_bytes", format!("expected at most {MAX_RECORD_BYTES}"));
        }
        if ![config.method, config.uri, config.headers, config.body].contains(&true) {
            faults.add("body", "expected at least one of method, uri, headers and body");
        }
        config.kafka.record_per_entry = true;
        let sink = match config.kafka.sink() {
            Ok(sink) => sink,
            Err((field, message)) => {
                let path = DocPath::root().field("kafka").field(field);
                return Err(vec![Diagnostic::error(path, message)]);
            }
        };
        faults.done()?;
        let timeout = Duration::from_millis(config.kafka.timeout_ms.max(1));
        let retry_delay = Duration::from_millis(config.retry_delay_ms);
        let delay = match config.wait {
            true => Duration::ZERO,
            false => Duration::from_millis(config.delay_ms),
        };
        Ok(Arc::new(RecordFilter {
            target: Arc::new(LogTarget {
                sink,
                joint: LogFraming {
                    between: "\n",
                    ..LogFraming::default()
                },
                batching: LogBatching {
                    max_entries: config.max_entries.max(1),
                    delay,
                    max_pending: config.max_pending,
                    max_pending_bytes: MAX_PENDING_BYTES,
                    retries: config.retries,
                    retry_for: timeout,
                    retry_delay,
                    max_retry_delay: retry_delay,
                },
            }),
            parts: CallParts {
                method: config.method,
                headers: config.headers,
                uri: config.uri,
                body: config.body,
                base64_body: true,
            },
            wait: config.wait.then_some(timeout.saturating_mul(2)),
            max_record_bytes: config.max_record_bytes,
        }))
    }
}

/// An instance.
struct RecordFilter {
    target: Arc<LogTarget>,
    parts: CallParts,
    /// How long calls wait for their records to be taken; `None`: not at all.
    wait: Option<Duration>,
    max_record_bytes: usize,
}

impl RecordFilter {
    /// Sends the record of a call whose body has these fields.
    fn send(&self, exchange: &mut Exchange, fields: Option<Value>) -> Outcome {
        let record = Value::Object(self.parts.of(&exchange.request, fields, "")).to_string();
        if record.len() > self.max_record_bytes {
            return refused(413);
        }
        let (receipt, delivery) = self.wait.map(|_| log_receipt()).unzip();
        let sent = PendingRecord {
            delivery,
            waited: false,
        };
        exchange.filter_state.put(self, sent);
        Outcome::Publish(Box::new(LogEntry {
            target: Arc::clone(&self.target),
            bytes: record.into_bytes(),
            origin: None,
            receipt,
        }))
    }

    /// What becomes of a call whose record is on its way.
    fn sent(&self, exchange: &mut Exchange, record: PendingRecord) -> Outcome {
        let (Some(delivery), Some(most)) = (record.delivery, self.wait) else {
            return taken();
        };
        match delivery.is_taken() {
            Some(true) => taken(),
            Some(false) => failed("the brokers do not take the record", 502),
            None if record.waited => failed("the brokers do not answer", 504),
            None => {
                let known = delivery.known();
                let sent = PendingRecord {
                    delivery: Some(delivery),
                    waited: true,
                };
                exchange.filter_state.put(self, sent);
                Outcome::Suspend(Suspend::event(known, most))
            }
        }
    }
}

/// A record that is on its way.
struct PendingRecord {
    /// What becomes of it, if the call waits for that.
    delivery: Option<LogDelivery>,
    /// Whether the call has waited for it already.
    waited: bool,
}

fn taken() -> Outcome {
    let body = r#"{"message":"message sent"}"#;
    Outcome::Reply(Box::new(Reply::new(200, "application/json; charset=utf-8", body)))
}

fn refused(status: u16) -> Outcome {
    let kind = RefusalKind::Answered { plugin: NAME };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

fn failed(reason: &'static str, status: u16) -> Outcome {
    let kind = RefusalKind::PluginFailed { plugin: NAME, reason };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

impl Filter for RecordFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(record) = exchange.filter_state.take(self) {
            return self.sent(exchange, record);
        }
        let request = &exchange.request;
        if self.parts.body && request.body.is_none() && request.has_body {
            if !exchange.filter_state.mark_body_requested(self) {
                return refused(413);
            }
            return Outcome::NeedBody {
                max_bytes: self.max_record_bytes,
            };
        }
        let fields = match self.parts.body {
            true => body_fields(request),
            false => Ok(None),
        };
        match fields {
            Ok(fields) => self.send(exchange, fields),
            Err(_) => refused(400),
        }
    }
}

#[cfg(test)]
mod tests;
