//! `logger`: sends a log record of every call to a file, a server or the machine's log.
//!
//! ```yaml
//! target: {http: {url: "https://logs.internal/ingest", headers: {Authorization: "Bearer t"}}}
//! form: array
//! fields: {at: $time_iso8601, client: $remote_addr, request: {uri: $request_uri, status: $status}}
//! batch: {max_entries: 500, delay_ms: 1000}
//! ```
//!
//! Entries are rendered when a call is over, and sent in batches by a thread of the gateway's own. A target that is
//! slow or unavailable costs no call anything: its entries wait in a queue with a limit of entries and bytes, are
//! retried for a while, and are then dropped; `weir_log_entries_total` and `weir_log_retries_total` count both.
//!
//! Security: values of `mask_headers` and `mask_query` are never logged, nor is a URL's user. Bodies are logged only
//! if the configuration asks for them. Configured fields can name any variable.

pub mod authorization;
mod cloud;
mod fields;
mod filter;
mod folder;
pub mod form;
pub mod layout;
mod mask;
mod rocketmq;
pub mod target;
#[cfg(test)]
mod tests;
mod time;

use fields::Fields;
use filter::{Body, LoggerFilter};
pub use folder::{LogFolder, is_good as is_good_path};
use form::Form;
use layout::Layout;
use mask::Masks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use target::Target;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::{
    BuildContext, Condition, Exchange, Filter, LogBatching, LogFile as Place, LogOrigin, LogTarget, Plugin,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `logger`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The target of entries: `file`, `http`, `kafka`, `rocketmq`, `tcp`, `udp` or `local`.
    pub target: Target,
    /// The form of messages.
    pub form: Form,
    /// The calls that are logged; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// The share of these calls that is logged, by chance, 0 to 1; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub sample_ratio: Option<f64>,
    /// The fields of an entry, unless `fields` says otherwise.
    pub layout: Layout,
    /// The gateway's name in layouts: in `full` a part of `latencies` and the `source` of its own responses, in `plain`
    /// the text before `_latency`.
    pub own_name: String,
    /// The entry's fields: texts, with variables (`$remote_addr`), within objects if need be. A text that is one
    /// variable without a value is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Map<String, Value>>,
    /// Further fields.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_fields: Map<String, Value>,
    /// Headers whose values are hidden.
    pub mask_headers: Vec<String>,
    /// Query arguments whose values are hidden.
    pub mask_query: Vec<String>,
    /// The most bytes of the request's body that are logged; 0: none.
    pub request_body_bytes: usize,
    /// The calls whose request body is logged; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_body_when: Option<Predicate>,
    /// The most bytes of the response's body that are logged; 0: none.
    pub response_body_bytes: usize,
    /// The calls whose response body is logged; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_body_when: Option<Predicate>,
    /// How entries wait to be sent.
    pub batch: Batch,
}

impl Default for Config {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            target: Target::default(),
            form: Form::default(),
            when: None,
            sample_ratio: None,
            layout: Layout::default(),
            own_name: "gateway".into(),
            fields: None,
            extra_fields: Map::new(),
            mask_headers: names(&[
                "authorization",
                "proxy-authorization",
                "cookie",
                "set-cookie",
                "apikey",
                "x-api-key",
            ]),
            mask_query: names(&[
                "apikey",
                "api_key",
                "access_token",
                "refresh_token",
                "id_token",
                "client_secret",
                "provision_key",
                "jwt",
                "token",
                "password",
            ]),
            request_body_bytes: 0,
            request_body_when: None,
            response_body_bytes: 0,
            response_body_when: None,
            batch: Batch::default(),
        }
    }
}

/// How entries wait to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Batch {
    /// Entries of a message at most.
    pub max_entries: usize,
    /// Milliseconds that the first entry of a message waits for further ones.
    pub delay_ms: u64,
    /// Entries that wait at most; what comes then is dropped.
    pub max_pending: usize,
    /// Bytes that wait at most.
    pub max_pending_bytes: usize,
    /// How often a message is sent again at most.
    pub retries: u32,
    /// Milliseconds for which a message is sent again.
    pub retry_for_ms: u64,
    /// Milliseconds before the first retry; each further one waits twice as long.
    pub retry_delay_ms: u64,
    /// The longest wait before a retry, in milliseconds.
    pub max_retry_delay_ms: u64,
    /// The label `name` of these entries in `apisix_batch_process_entries`, which tells how many of a route wait to be
    /// sent; absent: it does not tell of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            max_entries: 200,
            delay_ms: 1_000,
            max_pending: 10_000,
            max_pending_bytes: 16 << 20,
            retries: 20,
            retry_for_ms: 60_000,
            retry_delay_ms: 100,
            max_retry_delay_ms: 10_000,
            metric_name: None,
        }
    }
}

/// The name under which entries are counted while they wait; none: they are not.
#[derive(Debug, Clone, Default)]
pub struct WaitingName(Option<Arc<str>>);

impl WaitingName {
    /// What an entry of this call is counted as; calls without a route are not counted.
    pub fn origin(&self, exchange: &Exchange) -> Option<LogOrigin> {
        Some(LogOrigin {
            name: Arc::clone(self.0.as_ref()?),
            route: Arc::clone(exchange.route.as_ref()?),
            address: exchange.request.local.ip(),
        })
    }
}

impl Batch {
    /// The name under which its entries are counted. Entries that are sent one by one do not wait.
    pub fn waiting_name(&self) -> WaitingName {
        let name = self.metric_name.as_deref().filter(|_| self.max_entries > 1);
        WaitingName(name.map(Into::into))
    }

    /// For targets that get entries as they come.
    pub fn at_once(max_entries: usize) -> Self {
        Self {
            max_entries,
            delay_ms: 0,
            ..Self::default()
        }
    }

    /// The settings for the engine.
    pub fn batching(&self) -> LogBatching {
        LogBatching {
            max_entries: self.max_entries.max(1),
            delay: Duration::from_millis(self.delay_ms),
            max_pending: self.max_pending,
            max_pending_bytes: self.max_pending_bytes,
            retries: self.retries,
            retry_for: Duration::from_millis(self.retry_for_ms),
            retry_delay: Duration::from_millis(self.retry_delay_ms),
            max_retry_delay: Duration::from_millis(self.max_retry_delay_ms),
        }
    }
}

/// The most bytes of a body that can be logged.
const MAX_BODY: usize = 16 << 20;
/// Bytes that can wait for a target at most.
pub(crate) const MAX_PENDING_BYTES: usize = 1 << 30;

/// The plugin `logger`.
#[derive(Debug, Default)]
pub struct Logger {
    files: LogFolder,
}

impl Logger {
    /// Writes files in this folder.
    pub fn writing_to(files: LogFolder) -> Self {
        Self { files }
    }
}

impl Plugin for Logger {
    fn name(&self) -> &'static str {
        "logger"
    }

    fn works_on_streams(&self) -> bool {
        true
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn warnings(&self, config: &Value, context: &BuildContext<'_>) -> Vec<Diagnostic> {
        let config: Result<Config, _> = parse_config(config);
        let Ok(Target::File(file)) = config.map(|config| config.target) else {
            return Vec::new();
        };
        match self.files.file(&file.path, context.workspace.is_some()) {
            Ok(Place::Forbidden(path, reason)) => {
                let place = DocPath::root().field("target").field("file").field("path");
                let message = format!("nothing is written to {path}: {reason}");
                vec![Diagnostic::warning(place, message)]
            }
            _ => Vec::new(),
        }
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let masks = Masks {
            headers: lower(&config.mask_headers),
            query: lower(&config.mask_query),
        };
        let mut compile = |field: &str, object: &Map<String, Value>| {
            Fields::compile(object, &masks).unwrap_or_else(|message| {
                faults.add(field, message);
                Fields::default()
            })
        };
        let fields = config.fields.as_ref().map(|object| compile("fields", object));
        let extra = compile("extra_fields", &config.extra_fields);
        let (bytes, when) = (config.request_body_bytes, &config.request_body_when);
        let request_body = logged_body(&mut faults, "request_body_bytes", bytes, when);
        let (bytes, when) = (config.response_body_bytes, &config.response_body_when);
        let response_body = logged_body(&mut faults, "response_body_bytes", bytes, when);
        if config.batch.max_pending_bytes > MAX_PENDING_BYTES {
            faults.add(
                "batch",
                format!("expected at most {MAX_PENDING_BYTES} bytes that wait"),
            );
        }
        let sink = match (config.target).sink(&self.files, context.workspace.is_some()) {
            Ok(sink) => sink,
            Err((field, message)) => {
                let path = DocPath::root().field("target").field(config.target.kind());
                return Err(vec![Diagnostic::error(path.field(field), message)]);
            }
        };
        let when = config.when.as_ref().map(Condition::compile).transpose();
        if let Err(message) = &when {
            faults.add("when", message.clone());
        }
        if !config.form.is_good() {
            faults.add("form", "expected a facility up to 23 and severities up to 7");
        }
        if config
            .sample_ratio
            .is_some_and(|ratio| !(0.0..=1.0).contains(&ratio))
        {
            faults.add("sample_ratio", "expected a number from 0 to 1");
        }
        faults.done()?;
        let when = when.ok().flatten();
        let needs = |body: &Option<Body>| {
            let when = body.as_ref().and_then(|body| body.when.as_ref());
            when.is_some_and(Condition::needs_body)
        };
        Ok(Arc::new(LoggerFilter {
            target: Arc::new(LogTarget {
                sink,
                joint: config.form.joint(),
                batching: config.batch.batching(),
            }),
            waiting_name: config.batch.waiting_name(),
            wrapper: config.form.wrapper(),
            needs_body: fields.as_ref().is_some_and(Fields::needs_body)
                || extra.needs_body()
                || when.as_ref().is_some_and(Condition::needs_body)
                || needs(&request_body)
                || needs(&response_body),
            when,
            sample_ratio: config.sample_ratio,
            fields,
            extra,
            layout: config.layout,
            own_name: config.own_name,
            masks,
            request_body,
            response_body,
        }))
    }
}

/// What is logged of a body; `None`: nothing.
fn logged_body(
    faults: &mut ConfigErrors,
    field: &str,
    bytes: usize,
    when: &Option<Predicate>,
) -> Option<Body> {
    if bytes > MAX_BODY {
        faults.add(field, format!("expected at most {MAX_BODY}"));
    }
    let when = when.as_ref().map(Condition::compile).transpose();
    let when = when.unwrap_or_else(|message| {
        faults.add(&field.replace("bytes", "when"), message);
        None
    });
    (bytes > 0).then_some(Body { bytes, when })
}
