//! The plugins that log: `logger` of the catalogue.

mod clickhouse;
mod datadog;
mod elasticsearch;
mod file;
mod google_cloud;
mod http;
mod kafka;
mod lago;
mod loggly;
mod loki;
mod rocketmq;
mod skywalking;
mod sls;
mod splunk;
mod syslog;
mod tcp;
mod tencent_cloud_cls;
mod udp;

pub use clickhouse::ClickhouseLogger;
pub use datadog::Datadog;
pub use elasticsearch::ElasticsearchLogger;
pub use file::{FileLogger, NO_PATH};
pub use google_cloud::GoogleCloudLogging;
pub use http::HttpLogger;
pub use kafka::KafkaLogger;
pub use lago::Lago;
pub use loggly::Loggly;
pub use loki::LokiLogger;
pub use rocketmq::RocketmqLogger;
pub use skywalking::SkywalkingLogger;
pub use sls::SlsLogger;
pub use splunk::SplunkHecLogging;
pub use syslog::Syslog;
pub use tcp::TcpLogger;
pub use tencent_cloud_cls::TencentCloudCls;
pub use udp::UdpLogger;

use super::{Phases, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, any, array, boolean, integer, object, text};
use crate::translate::vars;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_model::Predicate;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::layout::Layout;
use weir_plugins::logger::{Batch, Config};

/// They work on finished calls. Bodies that they log are looked at on their way.
const PHASES: Phases = Phases {
    rewrite: false,
    access: true,
    response: true,
    last: false,
};

/// The options about entries that all of them have.
#[derive(Deserialize)]
#[serde(default)]
struct EntryOptions {
    log_format: Option<Map<String, Value>>,
    log_format_extra: Option<Map<String, Value>>,
    include_req_body: bool,
    include_req_body_expr: Option<Vec<Value>>,
    include_resp_body: bool,
    include_resp_body_expr: Option<Vec<Value>>,
    max_req_body_bytes: usize,
    max_resp_body_bytes: usize,
}

impl Default for EntryOptions {
    fn default() -> Self {
        Self {
            log_format: None,
            log_format_extra: None,
            include_req_body: false,
            include_req_body_expr: None,
            include_resp_body: false,
            include_resp_body_expr: None,
            max_req_body_bytes: 524_288,
            max_resp_body_bytes: 524_288,
        }
    }
}

/// How those wait that send batches.
#[derive(Deserialize)]
struct BatchOptions {
    name: Option<String>,
    batch_max_size: usize,
    inactive_timeout: u64,
    buffer_duration: u64,
    max_retry_count: u32,
    retry_delay: u64,
}

impl BatchOptions {
    /// The form of messages if several entries are an array.
    fn form(&self) -> Form {
        match self.batch_max_size {
            1 => Form::Bare,
            _ => Form::Array,
        }
    }

    fn batch(&self) -> Batch {
        Batch {
            max_entries: self.batch_max_size,
            delay_ms: match self.batch_max_size {
                1 => 0,
                _ => self
                    .inactive_timeout
                    .min(self.buffer_duration)
                    .saturating_mul(1000),
            },
            max_pending: 8192,
            retries: self.max_retry_count,
            retry_for_ms: u64::from(u32::MAX),
            retry_delay_ms: self.retry_delay.saturating_mul(1000),
            max_retry_delay_ms: self.retry_delay.saturating_mul(1000),
            metric_name: self.name.clone(),
            ..Batch::default()
        }
    }
}

/// The configuration that all of them begin with.
fn base(
    name: &str,
    config: &Value,
    context: &PluginContext<'_>,
    notes: &mut Warnings,
) -> Result<Config, serde_json::Error> {
    let options: EntryOptions = read(config)?;
    let metadata = context.metadata.get(name);
    let of_all = |field: &str| {
        let format = metadata.and_then(|metadata| metadata.get(field));
        format
            .and_then(Value::as_object)
            .filter(|it| !it.is_empty())
            .cloned()
    };
    let mut fields = options.log_format.or_else(|| of_all("log_format"));
    // They are for the usual entry: one with a format of its own has no others.
    let mut extra_fields = match &fields {
        None => options
            .log_format_extra
            .or_else(|| of_all("log_format_extra"))
            .unwrap_or_default(),
        Some(_) => Map::new(),
    };
    for (field, format) in [
        ("log_format", fields.as_mut()),
        ("log_format_extra", Some(&mut extra_fields)),
    ] {
        if format.is_some_and(|format| flatten(format, 1)) {
            notes.warn(
                field,
                format!("objects nested deeper than {MAX_NESTING} are logged as empty ones"),
            );
        }
    }
    if let Some(fields) = &mut fields {
        for id in ["route_id", "service_id"] {
            fields.insert(id.to_owned(), format!("${id}").into());
        }
    }
    let mut when = |field: &'static str, rules: &Option<Vec<Value>>| -> Option<Predicate> {
        match vars::compile(rules.as_deref()?) {
            Ok(condition) => condition,
            Err(fault) => {
                notes.error(field, fault.to_string());
                None
            }
        }
    };
    Ok(Config {
        layout: Layout::Plain,
        own_name: "apisix".to_owned(),
        fields,
        extra_fields,
        request_body_when: when("include_req_body_expr", &options.include_req_body_expr),
        response_body_when: when("include_resp_body_expr", &options.include_resp_body_expr),
        request_body_bytes: match options.include_req_body {
            true => options.max_req_body_bytes,
            false => 0,
        },
        response_body_bytes: match options.include_resp_body {
            true => options.max_resp_body_bytes,
            false => 0,
        },
        batch: Batch::at_once(1_000),
        ..Config::default()
    })
}

/// Objects within objects that a format may have; APISIX writes what is deeper as an empty one.
const MAX_NESTING: usize = 5;

/// Empties the objects of a format that are nested too deep. Returns whether there are any.
fn flatten(format: &mut Map<String, Value>, depth: usize) -> bool {
    if depth > MAX_NESTING {
        let is_deep = !format.is_empty();
        format.clear();
        return is_deep;
    }
    let mut is_deep = false;
    for object in format.values_mut().filter_map(Value::as_object_mut) {
        is_deep |= flatten(object, depth + 1);
    }
    is_deep
}

/// Adds what all of them may say of entries to a shape.
fn with_format(shape: Schema) -> Schema {
    shape
        .field("log_format", object([]))
        .field("log_format_extra", object([]))
        .field("_meta", meta::shape())
}

/// The same for those that can log bodies.
fn with_entry(shape: Schema) -> Schema {
    let rules = || array(array(any())).min_items(1);
    with_format(shape)
        .field("include_req_body", boolean().or(false))
        .field("include_req_body_expr", rules())
        .field("include_resp_body", boolean().or(false))
        .field("include_resp_body_expr", rules())
        .field("max_req_body_bytes", integer().at_least(1).or(524_288))
        .field("max_resp_body_bytes", integer().at_least(1).or(524_288))
}

/// Adds how those wait that send batches.
fn with_batches(shape: Schema, name: &'static str) -> Schema {
    shape
        .field("name", text().or(name))
        .field("max_retry_count", integer().at_least(0).or(0))
        .field("retry_delay", integer().at_least(0).or(1))
        .field("buffer_duration", integer().at_least(1).or(60))
        .field("inactive_timeout", integer().at_least(1).or(5))
        .field("batch_max_size", integer().at_least(1).or(1000))
}

/// The shape of their metadata.
fn metadata_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("log_format", object([])),
            ("log_format_extra", object([])),
            ("max_pending_entries", integer().at_least(1)),
        ])
    });
    &SHAPE
}

/// Checks the conditions on bodies.
fn check_conditions(config: &Map<String, Value>) -> Result<(), String> {
    for field in ["include_req_body_expr", "include_resp_body_expr"] {
        if let Some(rules) = config.get(field).and_then(Value::as_array) {
            vars::check(rules)
                .map_err(|error| format!("failed to validate the '{field}' expression: {error}"))?;
        }
    }
    Ok(())
}

/// The pattern of a server's URL.
const URL: &str = r"^[^\/]+:\/\/([\da-zA-Z.-]+|\[[\da-fA-F:]+\])(:\d+)?";

/// The first of several addresses; notes that the others are not used.
fn first(field: &'static str, addresses: Vec<String>, notes: &mut Warnings) -> String {
    if addresses.len() > 1 {
        notes.warn(field, "entries are sent to the first of these addresses only");
    }
    addresses.into_iter().next().unwrap_or_default()
}

/// The part of [`PluginAdapter`](super::PluginAdapter) that is the same for all of them.
macro_rules! common {
    ($name:literal, $priority:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn priority(&self) -> i64 {
            $priority
        }

        fn phases(&self) -> $crate::plugins::Phases {
            super::PHASES
        }

        fn metadata_shape(&self) -> Option<&'static $crate::schema::Schema> {
            Some(super::metadata_shape())
        }

        fn check(&self, config: &serde_json::Map<String, Value>) -> Result<(), String> {
            super::check_conditions(config)
        }

        fn plugin(&self) -> &'static str {
            "logger"
        }
    };
    // With the shape that APISIX prints.
    ($name:literal, $priority:literal, printed) => {
        common!($name, $priority);

        fn shape(&self) -> &'static $crate::schema::Schema {
            static SHAPE: std::sync::LazyLock<$crate::schema::Schema> = std::sync::LazyLock::new(|| {
                let schemas = include_str!(concat!("../schemas/", $name, ".json"));
                $crate::plugins::printed_shape(schemas, "schema")
            });
            &SHAPE
        }
    };
}
use common;
