//! `kafka-consume`: answers calls with the records of topics of Kafka, instead of the upstream.
//!
//! ```yaml
//! brokers: [{host: kafka.internal}]
//! topics: [orders]
//! ```
//!
//! A `GET` is answered with the next records, or with a stream of server-sent events that goes on for as long as the
//! client stays. Brokers keep how far a group has come, so that the next call goes on from there. The group has no
//! members: all partitions are read by each call, and no partition is assigned to a gateway.
//!
//! Security: who may call the route can read the topics.

mod form;

use form::RecordForm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, KafkaAnswer, KafkaEvents, KafkaFailure, KafkaRead, KafkaSource,
    KafkaStart, KafkaWork, Outcome, Permit, Phases, Plugin, Refusal, RefusalKind, Reply, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::kafka_target::{self, Broker, Sasl};

/// The plugin's name.
const NAME: &str = "kafka-consume";
/// Topics of an instance at most: all are looked up and read by each call.
const MAX_TOPICS: usize = 32;
/// The most bytes that are asked for at once.
pub const MAX_BYTES: usize = 8 << 20;
/// The most records of an answer.
const MAX_RECORDS: usize = 10_000;
/// The longest time that a call waits for a record.
const MAX_WAIT_MS: u64 = 60_000;
/// The longest name of a group.
const MAX_GROUP: usize = 200;
/// What keeps a stream alive, and how often: proxies mostly close connections after a minute.
const IDLE: (Duration, &[u8]) = (Duration::from_secs(15), b":\n\n");

/// Configuration of `kafka-consume`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Brokers that know where the topics are.
    #[schemars(length(min = 1))]
    pub brokers: Vec<Broker>,
    /// Whether brokers are reached over TLS.
    pub tls: bool,
    /// Whether their certificates are verified.
    pub verify_tls: bool,
    /// Who the gateway is to the brokers; absent: it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sasl: Option<Sasl>,
    /// The topics.
    #[schemars(length(min = 1, max = 32))]
    pub topics: Vec<String>,
    /// How calls are answered.
    pub mode: Mode,
    /// What the values of records are.
    pub values: Values,
    /// Where a group begins in a partition that it has not read yet, or whose records at its offset are deleted.
    pub start: Start,
    /// Whether brokers keep how far the group has come. Else each call begins at `start`.
    pub store_offsets: bool,
    /// The name of the group; absent: one that is made from the instance's id. Each client of `events` has a group of
    /// its own, whose name ends with the consumer's id; one without a consumer has none, and begins at `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub group: Option<String>,
    /// Records that are given at once at most.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_records: usize,
    /// Bytes of records that are given at once; the last record may go beyond it.
    #[schemars(range(min = 1, max = 8_388_608))]
    pub max_bytes: usize,
    /// Milliseconds that a call waits for a record if there is none; then it is answered without records. Not for
    /// `events`.
    #[schemars(range(max = 60_000))]
    pub wait_ms: u64,
    /// Milliseconds that brokers may take beyond that.
    #[schemars(range(min = 1))]
    pub timeout_ms: u64,
    /// Clients that read at the same time at most, in each mode; others get 503.
    #[schemars(range(min = 1))]
    pub max_clients: u64,
}

/// How calls are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// With the next records, as JSON. Calls of a gateway take turns, and each record is given to one of them.
    #[default]
    Once,
    /// With a stream of server-sent events.
    Events,
}

/// What the values of records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// Text.
    #[default]
    Text,
    /// JSON, which is given as such.
    Json,
}

/// Where a group begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// With the oldest record.
    Earliest,
    /// With the records that come after the first call.
    #[default]
    Latest,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            brokers: Vec::new(),
            tls: false,
            verify_tls: true,
            sasl: None,
            topics: Vec::new(),
            mode: Mode::Once,
            values: Values::Text,
            start: Start::Latest,
            store_offsets: true,
            group: None,
            max_records: 500,
            max_bytes: 1 << 20,
            wait_ms: 500,
            timeout_ms: 10_000,
            max_clients: 100,
        }
    }
}

impl Config {
    fn check(&self, faults: &mut ConfigErrors) {
        if self.topics.is_empty() || self.topics.len() > MAX_TOPICS {
            faults.add("topics", format!("expected 1 to {MAX_TOPICS}"));
        }
        let mut known = HashSet::new();
        for (place, topic) in self.topics.iter().enumerate() {
            let fault = match kafka_target::is_topic(topic) {
                false => kafka_target::TOPIC_EXPECTED,
                true if !known.insert(topic) => "this topic is named twice",
                true => continue,
            };
            let path = DocPath::root().field("topics").index(place);
            faults.extend(vec![Diagnostic::error(path, fault)]);
        }
        if (self.group.as_ref()).is_some_and(|group| !(1..=MAX_GROUP).contains(&group.len())) {
            faults.add("group", format!("expected 1 to {MAX_GROUP} bytes"));
        }
        for (field, value, least, most) in [
            ("max_records", self.max_records as u64, 1, MAX_RECORDS as u64),
            ("max_bytes", self.max_bytes as u64, 1, MAX_BYTES as u64),
            ("wait_ms", self.wait_ms, 0, MAX_WAIT_MS),
            ("timeout_ms", self.timeout_ms, 1, u64::MAX),
            ("max_clients", self.max_clients, 1, u64::MAX),
        ] {
            if value < least {
                faults.add(field, format!("expected at least {least}"));
            }
            if value > most {
                faults.add(field, format!("expected at most {most}"));
            }
        }
    }
}

/// The plugin `kafka-consume`.
#[derive(Debug)]
pub struct KafkaConsume;

impl Plugin for KafkaConsume {
    fn name(&self) -> &'static str {
        "kafka-consume"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        config.check(&mut faults);
        let tls = config.tls.then_some(config.verify_tls);
        let cluster = kafka_target::cluster(&config.brokers, tls, config.sasl.as_ref())
            .map_err(|(field, message)| faults.add(field, message));
        let done = faults.done();
        let (Ok(cluster), Ok(())) = (cluster, &done) else {
            return Err(done.err().unwrap_or_default());
        };
        let source = KafkaSource {
            cluster,
            topics: config.topics,
            start: match config.start {
                Start::Earliest => KafkaStart::Earliest,
                Start::Latest => KafkaStart::Latest,
            },
            keeps_offsets: config.store_offsets,
            max_bytes: config.max_bytes,
            max_records: config.max_records,
            wait: Duration::from_millis(config.wait_ms),
            timeout: Duration::from_millis(config.timeout_ms),
        };
        Ok(Arc::new(ReadFilter {
            unstored: Arc::new(KafkaSource {
                keeps_offsets: false,
                ..source.clone()
            }),
            source: Arc::new(source),
            group: match config.group {
                Some(group) => group,
                None => format!("weir.{}", context.instance_id),
            },
            form: Arc::new(RecordForm {
                is_json: config.values == Values::Json,
            }),
            mode: config.mode,
            clients: Arc::default(),
            max_clients: config.max_clients,
        }))
    }
}

/// An instance.
struct ReadFilter {
    source: Arc<KafkaSource>,
    /// The same without groups at the brokers.
    unstored: Arc<KafkaSource>,
    group: String,
    form: Arc<RecordForm>,
    mode: Mode,
    /// Clients that read now.
    clients: Arc<AtomicU64>,
    max_clients: u64,
}

/// Marks that the engine was asked for records.
struct ReadRequested;

impl ReadFilter {
    fn stream(&self, exchange: &Exchange) -> Outcome {
        let (source, client) = match &exchange.identity {
            Some(identity) => (&self.source, identity.consumer.id.to_string()),
            // Each address would be a group at the brokers, and a client may have as many addresses as it likes.
            None => (&self.unstored, exchange.request.client.to_string()),
        };
        let reply = Reply::new(200, "text/event-stream", IDLE.1).with_header("Cache-Control", "no-cache");
        Outcome::Kafka(KafkaWork::Events(Box::new(KafkaEvents {
            read: KafkaRead {
                source: Arc::clone(source),
                group: format!("{}.{client}", self.group),
            },
            reply,
            form: self.form.clone(),
            idle: IDLE,
        })))
    }

    fn answered(&self, answer: Option<Box<KafkaAnswer>>) -> Outcome {
        match answer.map(|answer| *answer) {
            Some(Ok(partitions)) => {
                let body = self.form.whole(&self.source.topics, &partitions);
                let reply = Reply::new(200, "application/json", body);
                Outcome::Reply(Box::new(reply.with_header("Cache-Control", "no-store")))
            }
            Some(Err(KafkaFailure::Timeout)) => failed("the brokers do not answer", 504),
            Some(Err(KafkaFailure::Unreadable)) => failed("the records have a form that cannot be read", 502),
            Some(Err(KafkaFailure::Unavailable)) | None => failed("the brokers give no records", 502),
        }
    }
}

fn failed(reason: &'static str, status: u16) -> Outcome {
    let kind = RefusalKind::PluginFailed { plugin: NAME, reason };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

impl Filter for ReadFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if exchange.filter_state.take::<_, ReadRequested>(self).is_some() {
            return self.answered(exchange.filter_state.take_answer().flatten());
        }
        if exchange.request.method != b"GET" {
            let mut refusal = Refusal::with_status(RefusalKind::Answered { plugin: NAME }, 405);
            refusal.headers.push(("Allow".into(), "GET".into()));
            return Outcome::Refuse(Box::new(refusal));
        }
        let Some((place, _)) = Permit::take(&self.clients, self.max_clients) else {
            return Outcome::Refuse(Box::new(Refusal::with_status(RefusalKind::Overloaded, 503)));
        };
        // It is given back when the call is over.
        exchange.filter_state.put(self, place);
        exchange.filter_state.put(self, ReadRequested);
        match self.mode {
            Mode::Events => self.stream(exchange),
            Mode::Once => Outcome::Kafka(KafkaWork::Read(KafkaRead {
                source: Arc::clone(&self.source),
                group: self.group.clone(),
            })),
        }
    }
}

#[cfg(test)]
mod tests;
