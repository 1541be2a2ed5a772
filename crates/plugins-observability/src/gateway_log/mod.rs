//! `gateway-log`: sends lines of the gateway's own log (what it writes on standard error) to a server.
//!
//! ```yaml
//! level: warn
//! target: {tcp: {host: 127.0.0.1, port: 9000}}
//! ```
//!
//! It works on no call: an instance under `plugins` of the document is enough, and no chain needs to name it. Lines wait
//! with the entries of `logger` in a queue that is bounded in number and bytes; what finds no room is dropped, and
//! counted by `weir_log_entries_total`. Lines about the sending of entries are not sent, so that a target that is away
//! begets none.
//!
//! Security: the gateway's log is the operator's. An instance of a workspace is refused. Lines hold no secrets, but names
//! of routes, servers and files.

#[cfg(test)]
mod tests;

use crate::logger::target::{Target, TcpTarget};
use crate::logger::{Batch, LogFolder, MAX_PENDING_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Filter, GatewayLogLevel, LogEntry, LogFraming, LogTarget, Phases, Plugin, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_telemetry::json;

/// Configuration of `gateway-log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The level of the lines that are sent; those that matter more are sent too. Lines that `WEIR_LOG` keeps out of
    /// standard error are not sent.
    pub level: Level,
    /// The target of lines: `file`, `http`, `kafka`, `rocketmq`, `tcp`, `udp` or `local`.
    pub target: Target,
    /// The form of messages.
    pub form: Form,
    /// How lines wait to be sent.
    pub batch: Batch,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            level: Level::default(),
            target: Target::Tcp(TcpTarget::default()),
            form: Form::default(),
            batch: Batch::default(),
        }
    }
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something is worth a look.
    #[default]
    Warn,
    /// What the gateway does.
    Info,
    /// All the rest.
    Debug,
}

/// The form of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Form {
    /// The lines as they are.
    #[default]
    Lines,
    /// A text in JSON for each line.
    Json,
    /// An array of SkyWalking's log data.
    Skywalking(SkywalkingSource),
    /// An `INSERT` of ClickHouse into this table, whose column `data` gets the line.
    Clickhouse(String),
}

/// The identity of the gateway in SkyWalking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkywalkingSource {
    /// The service.
    pub service: String,
    /// Its instance; absent: the machine's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

impl Form {
    fn framing(&self) -> LogFraming {
        let (before, between, after) = match self {
            Self::Lines | Self::Json => ("".into(), "", ""),
            Self::Skywalking(_) => ("[".into(), ",", "]"),
            Self::Clickhouse(table) => (format!("INSERT INTO {table} FORMAT JSONEachRow ").into(), " ", ""),
        };
        LogFraming {
            before,
            between,
            after,
            ..LogFraming::default()
        }
    }

    fn entry(&self, line: &str, hostname: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(line.len() + 128);
        match self {
            Self::Lines => {
                out.extend_from_slice(line.as_bytes());
                out.push(b'\n');
            }
            Self::Json => {
                json::text(&mut out, line.as_bytes());
                out.push(b'\n');
            }
            Self::Skywalking(source) => {
                out.extend_from_slice(b"{\"service\":");
                json::text(&mut out, source.service.as_bytes());
                out.extend_from_slice(b",\"serviceInstance\":");
                let instance = source.instance.as_deref().unwrap_or(hostname);
                json::text(&mut out, instance.as_bytes());
                out.extend_from_slice(b",\"endpoint\":\"\",\"body\":{\"text\":{\"text\":");
                json::text(&mut out, line.as_bytes());
                out.extend_from_slice(b"}}}");
            }
            Self::Clickhouse(_) => {
                out.extend_from_slice(b"{\"data\":");
                json::text(&mut out, line.as_bytes());
                out.push(b'}');
            }
        }
        out
    }
}

/// The plugin `gateway-log`.
#[derive(Debug, Default)]
pub struct GatewayLog {
    files: LogFolder,
}

impl GatewayLog {
    /// Writes files in this folder.
    pub fn writing_to(files: LogFolder) -> Self {
        Self { files }
    }
}

impl Plugin for GatewayLog {
    fn name(&self) -> &'static str {
        "gateway-log"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if context.workspace.is_some() {
            faults.add(
                "target",
                "the gateway's own log is the operator's: a workspace cannot have it sent",
            );
        }
        if config.batch.max_pending_bytes > MAX_PENDING_BYTES {
            faults.add(
                "batch",
                format!("expected at most {MAX_PENDING_BYTES} bytes that wait"),
            );
        }
        if config.batch.metric_name.is_some() {
            faults.add(
                "batch",
                "`metric_name` counts entries of routes' calls, and these belong to none",
            );
        }
        faults.done()?;
        let sink = config
            .target
            .sink(&self.files, false)
            .map_err(|(field, message)| {
                let path = DocPath::root().field("target").field(config.target.kind());
                vec![Diagnostic::error(path.field(field), message)]
            })?;
        let target = LogTarget {
            sink,
            joint: config.form.framing(),
            batching: config.batch.batching(),
        };
        Ok(Arc::new(GatewayLogFilter(Arc::new(Sending {
            level: match config.level {
                Level::Error => GatewayLogLevel::Error,
                Level::Warn => GatewayLogLevel::Warn,
                Level::Info => GatewayLogLevel::Info,
                Level::Debug => GatewayLogLevel::Debug,
            },
            form: config.form,
            target: Arc::new(target),
        }))))
    }
}

/// Works on no call.
struct GatewayLogFilter(Arc<Sending>);

struct Sending {
    level: GatewayLogLevel,
    form: Form,
    target: Arc<LogTarget>,
}

impl Filter for GatewayLogFilter {
    fn phases(&self) -> Phases {
        Phases::default()
    }

    fn is_observer(&self) -> bool {
        true
    }

    fn gateway_log(&self) -> Option<Arc<dyn weir_plugin::GatewayLog>> {
        Some(Arc::clone(&self.0) as Arc<dyn weir_plugin::GatewayLog>)
    }
}

impl weir_plugin::GatewayLog for Sending {
    fn level(&self) -> GatewayLogLevel {
        self.level
    }

    fn entry(&self, line: &str, hostname: &str) -> LogEntry {
        LogEntry {
            target: Arc::clone(&self.target),
            bytes: self.form.entry(line, hostname),
            origin: None,
            receipt: None,
        }
    }
}
