//! `error-log-logger`: `gateway-log` of the catalogue, by the plugin's metadata. On routes it has nothing to do: as in
//! the original, all that it needs stands in its metadata.

use super::no_op::no_op_parts;
use super::{PluginAdapter, read};
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_model::PluginInstance;
use weir_plugins::gateway_log::{Config, Form, Level, SkywalkingSource};
use weir_plugins::logger::Batch;
use weir_plugins::logger::target::{Broker, HttpTarget, KafkaTarget, Mechanism, Sasl, Target, TcpTarget};

/// The plugin `error-log-logger`.
pub struct ErrorLogLogger;

/// Its name.
pub const NAME: &str = "error-log-logger";

#[derive(Deserialize)]
struct Options {
    tcp: Option<Tcp>,
    skywalking: Option<Skywalking>,
    clickhouse: Option<Clickhouse>,
    kafka: Option<Kafka>,
    /// The target of lines if nothing else is named, in the schema's old form.
    #[serde(flatten)]
    old: Map<String, Value>,
    level: String,
    timeout: u64,
    batch_max_size: usize,
    max_retry_count: u32,
    retry_delay: u64,
    buffer_duration: u64,
    inactive_timeout: u64,
}

#[derive(Deserialize)]
struct Tcp {
    host: String,
    port: u64,
    #[serde(default)]
    tls: bool,
    tls_server_name: Option<String>,
}

#[derive(Deserialize)]
struct Skywalking {
    endpoint_addr: String,
    service_name: String,
    service_instance_name: String,
}

#[derive(Deserialize)]
struct Clickhouse {
    endpoint_addr: String,
    user: String,
    password: String,
    database: String,
    logtable: String,
}

#[derive(Deserialize)]
struct Kafka {
    brokers: Vec<KafkaBroker>,
    kafka_topic: String,
    key: Option<String>,
    required_acks: i16,
    tls: Option<KafkaTls>,
}

#[derive(Deserialize)]
struct KafkaBroker {
    host: String,
    port: u16,
    sasl_config: Option<KafkaUser>,
}

#[derive(Deserialize)]
struct KafkaUser {
    user: String,
    password: String,
}

#[derive(Deserialize)]
struct KafkaTls {
    #[serde(default)]
    verify: bool,
}

impl PluginAdapter for ErrorLogLogger {
    no_op_parts!("error-log-logger", 1091, metadata);

    fn plugin(&self) -> &'static str {
        "gateway-log"
    }
}

/// The instance that sends the gateway's log, if the metadata of plugins say so. Metadata have been checked by their
/// schema.
pub fn instance(metadata: &Map<String, Value>) -> Result<Option<PluginInstance>, serde_json::Error> {
    let Some(metadata) = metadata.get(NAME) else {
        return Ok(None);
    };
    let config = config(read(metadata)?)?;
    Ok(Some(PluginInstance {
        id: format!("plugin_metadata/{NAME}/gateway-log"),
        name: "gateway-log".to_owned(),
        config: serde_json::to_value(config)?,
        when: None,
        on_refusal: None,
        workspace: None,
        state: None,
        placeholder_for: None,
    }))
}

fn config(options: Options) -> Result<Config, serde_json::Error> {
    let timeout_ms = options.timeout.saturating_mul(1000);
    let retry_delay_ms = options.retry_delay.saturating_mul(1000);
    let wait = options.inactive_timeout.min(options.buffer_duration);
    let batch = Batch {
        max_entries: options.batch_max_size,
        delay_ms: wait.saturating_mul(1000),
        max_pending: 8192,
        retries: options.max_retry_count,
        retry_for_ms: u64::from(u32::MAX),
        retry_delay_ms,
        max_retry_delay_ms: retry_delay_ms,
        ..Batch::default()
    };
    let level = match options.level.as_str() {
        "DEBUG" => Level::Debug,
        "INFO" | "NOTICE" => Level::Info,
        "WARN" => Level::Warn,
        _ => Level::Error,
    };
    // As in the original, the first of these counts.
    let (target, form) = if let Some(skywalking) = options.skywalking {
        skywalking.target(timeout_ms)
    } else if let Some(clickhouse) = options.clickhouse {
        clickhouse.target(timeout_ms)
    } else if let Some(kafka) = options.kafka {
        kafka.target(timeout_ms)
    } else {
        let tcp = match options.tcp {
            Some(tcp) => tcp,
            None => read(&Value::Object(options.old))?,
        };
        tcp.target(timeout_ms)
    };
    Ok(Config {
        level,
        target,
        form,
        batch,
    })
}

impl Tcp {
    fn target(self, timeout_ms: u64) -> (Target, Form) {
        let target = TcpTarget {
            host: self.host,
            // An invalid port is refused when the instance is built.
            port: self.port.try_into().unwrap_or(0),
            tls: self.tls,
            server_name: self.tls_server_name,
            verify_tls: false,
            timeout_ms,
        };
        (Target::Tcp(target), Form::Lines)
    }
}

impl Skywalking {
    fn target(self, timeout_ms: u64) -> (Target, Form) {
        let target = HttpTarget {
            url: self.endpoint_addr,
            timeout_ms,
            ..HttpTarget::default()
        };
        let source = SkywalkingSource {
            service: self.service_name,
            instance: Some(self.service_instance_name).filter(|name| name != "$hostname"),
        };
        (Target::Http(target), Form::Skywalking(source))
    }
}

impl Clickhouse {
    fn target(self, timeout_ms: u64) -> (Target, Form) {
        let headers = [
            ("X-ClickHouse-User", self.user),
            ("X-ClickHouse-Key", self.password),
            ("X-ClickHouse-Database", self.database),
        ];
        let target = HttpTarget {
            url: self.endpoint_addr,
            headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
            timeout_ms,
            ..HttpTarget::default()
        };
        (Target::Http(target), Form::Clickhouse(self.logtable))
    }
}

impl Kafka {
    fn target(mut self, timeout_ms: u64) -> (Target, Form) {
        let mut brokers = self.brokers.iter_mut();
        let user = brokers.find_map(|broker| broker.sasl_config.take());
        let target = KafkaTarget {
            brokers: (self.brokers.into_iter())
                .map(|broker| Broker {
                    host: broker.host,
                    port: broker.port,
                })
                .collect(),
            topic: self.kafka_topic,
            key: self.key,
            acks: self.required_acks,
            tls: self.tls.is_some(),
            verify_tls: self.tls.is_some_and(|tls| tls.verify),
            sasl: user.map(|user| Sasl {
                mechanism: Mechanism::Plain,
                user: user.user,
                password: user.password,
            }),
            record_per_entry: true,
            timeout_ms,
        };
        (Target::Kafka(target), Form::Json)
    }
}
