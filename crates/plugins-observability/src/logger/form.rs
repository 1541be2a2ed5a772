//! Forms: what an entry looks like within a message, and how entries stand together.

use super::cloud;
pub use super::cloud::GoogleForm;
use super::layout::LogRecord;
use super::target::quoted;
use super::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_plugin::{LogFraming, Template};
use weir_telemetry::json;

/// The form of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Form {
    /// A line for each entry, ended by a line feed.
    #[default]
    Lines,
    /// Entries with a line feed between them.
    Separated,
    /// Entries one after the other.
    Bare,
    /// A JSON list.
    Array,
    /// A JSON list, or an object if there is only one entry.
    ArrayOrObject,
    /// RFC 5424, ended by a line feed; the application's name.
    Syslog(String),
    /// RFC 5424 with structured data, and a severity by the call's status.
    StructuredSyslog(StructuredSyslog),
    /// RFC 3164 without a host, as sockets of the machine take it.
    LocalSyslog(LocalSyslog),
    /// Elasticsearch's bulk requests.
    Elasticsearch(ElasticsearchForm),
    /// ClickHouse's `JSONEachRow`; the table.
    Clickhouse(String),
    /// Loki's push requests; the labels of an entry, with variables.
    Loki(BTreeMap<String, String>),
    /// Splunk's HTTP event collector; `source` of the entries.
    Splunk(String),
    /// SkyWalking's logs.
    Skywalking(SkywalkingForm),
    /// An object with the list `events`.
    Events,
    /// Google's Cloud Logging.
    Google(GoogleForm),
    /// Tencent's Cloud Log Service; fields of all entries.
    TencentCls(Map<String, Value>),
}

/// The service that reports calls to SkyWalking.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkywalkingForm {
    /// The service.
    pub service: String,
    /// The service's instance; absent: the gateway's host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// Entries for the machine's own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LocalSyslog {
    /// The application's name.
    pub name: String,
    /// The facility's number, 0 to 23.
    #[schemars(range(min = 0, max = 23))]
    pub facility: u8,
    /// Severity of entries on calls that were answered with a status below 400, 0 to 7.
    #[schemars(range(min = 0, max = 7))]
    pub success: u8,
    /// The same for 400 to 499.
    #[schemars(range(min = 0, max = 7))]
    pub client_error: u8,
    /// The same for 500 and above.
    #[schemars(range(min = 0, max = 7))]
    pub server_error: u8,
    /// Entries that are less severe than this (have a higher number) are left out.
    #[schemars(range(min = 0, max = 7))]
    pub least: u8,
}

impl Default for LocalSyslog {
    fn default() -> Self {
        Self {
            name: "weir".into(),
            facility: 1,
            success: 6,
            client_error: 6,
            server_error: 6,
            least: 7,
        }
    }
}

impl LocalSyslog {
    /// The severities of success, of client and server errors, and the least severity that is reported.
    fn severities(&self) -> [u8; 4] {
        [self.success, self.client_error, self.server_error, self.least]
    }
}

/// Entries of RFC 5424 with structured data. `Debug` does not show the data, which may hold a token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StructuredSyslog {
    /// The application's name.
    pub name: String,
    /// The facility's number, 0 to 23.
    #[schemars(range(min = 0, max = 23))]
    pub facility: u8,
    /// Severity of entries on calls that were answered with a status below 400, 0 to 7.
    #[schemars(range(min = 0, max = 7))]
    pub success: u8,
    /// The same for 400 to 499.
    #[schemars(range(min = 0, max = 7))]
    pub client_error: u8,
    /// The same for 500 and above.
    #[schemars(range(min = 0, max = 7))]
    pub server_error: u8,
    /// Entries that are less severe than this (have a higher number) are left out.
    #[schemars(range(min = 0, max = 7))]
    pub least: u8,
    /// The id of the data: a name, or one with `@` and an enterprise number.
    pub data_id: String,
    /// The data: names and values.
    pub data: Vec<(String, String)>,
    /// Entries end with a line feed, as servers over TCP want them.
    pub line_end: bool,
}

impl std::fmt::Debug for StructuredSyslog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StructuredSyslog")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Default for StructuredSyslog {
    fn default() -> Self {
        Self {
            name: "weir".into(),
            facility: 1,
            success: 6,
            client_error: 6,
            server_error: 6,
            least: 7,
            data_id: "weir".into(),
            data: Vec::new(),
            line_end: false,
        }
    }
}

impl StructuredSyslog {
    /// The data as it stands in an entry (RFC 5424, 6.3).
    fn element(&self) -> String {
        let mut element = format!("[{}", self.data_id);
        for (name, value) in &self.data {
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace(']', "\\]");
            element.push_str(&format!(" {name}=\"{value}\""));
        }
        element + "]"
    }

    /// The severities of success, of client and server errors, and the least severity that is reported.
    fn severities(&self) -> [u8; 4] {
        [self.success, self.client_error, self.server_error, self.least]
    }

    fn is_good(&self) -> bool {
        let is_name = |name: &str| {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"');
            !name.is_empty() && name.bytes().all(is_plain)
        };
        self.facility <= 23
            && self.severities().iter().all(|severity| *severity <= 7)
            && is_name(&self.data_id)
            && is_name(&self.name)
            && self
                .data
                .iter()
                .all(|(name, value)| is_name(name) && !value.contains(['\n', '\r']))
    }
}

/// The place of entries in Elasticsearch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ElasticsearchForm {
    /// The index, with variables.
    pub index: String,
    /// The entries' type, for servers before version 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc_type: Option<String>,
}

/// A form, ready for use.
#[derive(Debug)]
pub enum Wrapper {
    /// The text after the entry.
    Fixed(&'static str),
    /// The application's name.
    Syslog(String),
    /// What each entry is made by, and its data as it stands in each.
    StructuredSyslog(StructuredSyslog, String),
    /// Name, facility and severities.
    LocalSyslog(LocalSyslog),
    /// The index and the text after it.
    Elasticsearch(Template, String),
    /// The labels.
    Loki(Vec<(String, Template)>),
    /// The source.
    Splunk(String),
    /// The service and its instance.
    Skywalking(SkywalkingForm),
    /// The entries of a cloud.
    Google(GoogleForm),
    /// Fields of all entries.
    TencentCls(Map<String, Value>),
}

impl Form {
    /// Whether its numbers are within their bounds.
    pub fn is_good(&self) -> bool {
        match self {
            Self::LocalSyslog(it) => {
                it.facility <= 23 && it.severities().iter().all(|severity| *severity <= 7)
            }
            Self::StructuredSyslog(options) => options.is_good(),
            _ => true,
        }
    }

    /// What stands between entries.
    pub fn joint(&self) -> LogFraming {
        let joint = |before: &str, between, after, bare_single| LogFraming {
            before: before.to_owned().into(),
            between,
            after,
            bare_single,
            nesting: Vec::new(),
        };
        match self {
            Self::Array | Self::Skywalking(_) => joint("[", ",", "]", false),
            Self::Events => joint("{\"events\":[", ",", "]}", false),
            Self::Google(_) => joint("{\"entries\":[", ",", "],\"partialSuccess\":false}", false),
            Self::TencentCls(_) => cloud::tencent_framing(),
            Self::ArrayOrObject => joint("[", ",", "]", true),
            Self::Separated => joint("", "\n", "", false),
            Self::Clickhouse(table) => joint(
                &format!("INSERT INTO {table} FORMAT JSONEachRow "),
                " ",
                "",
                false,
            ),
            Self::Loki(_) => joint("{\"streams\":[", ",", "]}", false),
            _ => LogFraming::default(),
        }
    }

    /// What makes entries of this form.
    pub fn wrapper(&self) -> Wrapper {
        match self {
            Self::Lines => Wrapper::Fixed("\n"),
            Self::Bare
            | Self::Separated
            | Self::Array
            | Self::ArrayOrObject
            | Self::Events
            | Self::Clickhouse(_) => Wrapper::Fixed(""),
            Self::Syslog(name) => Wrapper::Syslog(name.clone()),
            Self::StructuredSyslog(options) => Wrapper::StructuredSyslog(options.clone(), options.element()),
            Self::LocalSyslog(options) => Wrapper::LocalSyslog(options.clone()),
            Self::Elasticsearch(options) => {
                let kind = options.doc_type.as_deref();
                let kind = kind.map_or_else(String::new, |kind| format!(",\"_type\":{}", quoted(kind)));
                Wrapper::Elasticsearch(Template::parse(&options.index), format!("{kind}}}}}\n"))
            }
            Self::Loki(labels) => Wrapper::Loki(
                labels
                    .iter()
                    .map(|(name, value)| (name.clone(), Template::parse(value)))
                    .collect(),
            ),
            Self::Splunk(source) => Wrapper::Splunk(source.clone()),
            Self::Skywalking(options) => Wrapper::Skywalking(options.clone()),
            Self::Google(options) => Wrapper::Google(options.clone()),
            Self::TencentCls(tags) => Wrapper::TencentCls(tags.clone()),
        }
    }
}

impl Wrapper {
    /// An entry; `write` appends its JSON. `None`: it is left out.
    pub fn entry(&self, account: &LogRecord<'_>, write: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(1536);
        let record = account.record;
        match self {
            Self::Fixed(end) => {
                write(&mut out);
                out.extend_from_slice(end.as_bytes());
            }
            Self::Syslog(name) => {
                let at = time::rfc3339(record.started_ms + record.total_us / 1000, true);
                // Facility syslog, severity informational; a hyphen means unknown.
                let host = String::from_utf8_lossy(&account.exchange.request.host);
                let host = if host.is_empty() { "-" } else { &host };
                out.extend(format!("<46>1 {at} {host} {name} - - - ").bytes());
                write(&mut out);
                out.push(b'\n');
            }
            Self::StructuredSyslog(options, data) => {
                let priority = priority(options.facility, options.severities(), record.status)?;
                let at = time::rfc3339(record.started_ms + record.total_us / 1000, true);
                let host = if record.hostname.is_empty() {
                    "-"
                } else {
                    record.hostname
                };
                out.extend(format!("<{priority}>1 {at} {host} {} - - {data} ", options.name).bytes());
                write(&mut out);
                if options.line_end {
                    out.push(b'\n');
                }
            }
            Self::LocalSyslog(options) => {
                let priority = priority(options.facility, options.severities(), record.status)?;
                let at = time::rfc3164(record.started_ms + record.total_us / 1000);
                out.extend(format!("<{priority}>{at} {}: ", options.name).bytes());
                write(&mut out);
            }
            Self::Elasticsearch(index, end) => {
                let mut name = Vec::new();
                index.render(account.exchange, &mut name);
                out.extend_from_slice(b"{\"create\":{\"_index\":");
                json::text(&mut out, &name);
                out.extend_from_slice(end.as_bytes());
                write(&mut out);
                out.push(b'\n');
            }
            Self::Loki(labels) => {
                push_labels(&mut out, labels, account);
                out.extend(format!("}},\"values\":[[\"{}000000\",", record.started_ms).bytes());
                let mut line = Vec::with_capacity(1024);
                write(&mut line);
                json::text(&mut out, &line);
                out.extend_from_slice(b"]]}");
            }
            Self::Skywalking(options) => {
                let mut line = Vec::with_capacity(1024);
                write(&mut line);
                out.extend_from_slice(b"{\"body\":{\"json\":{\"json\":");
                json::text(&mut out, &line);
                out.extend_from_slice(b"}},\"service\":");
                json::text(&mut out, options.service.as_bytes());
                out.extend_from_slice(b",\"serviceInstance\":");
                let instance = options.instance.as_deref().unwrap_or(record.hostname);
                json::text(&mut out, instance.as_bytes());
                out.extend_from_slice(b",\"endpoint\":");
                json::text(&mut out, &account.exchange.request.raw_path);
                out.push(b'}');
            }
            Self::Google(options) => {
                let mut written = Vec::with_capacity(1024);
                write(&mut written);
                options.entry(account, &written, &mut out);
            }
            Self::TencentCls(tags) => {
                let mut written = Vec::with_capacity(1024);
                write(&mut written);
                cloud::tencent_entry(account, tags, &written, &mut out);
            }
            Self::Splunk(source) => {
                out.extend_from_slice(b"{\"time\":");
                json::thousandths(&mut out, record.started_ms + record.total_us / 1000);
                json::name(&mut out, "host");
                json::text(&mut out, record.hostname.as_bytes());
                json::name(&mut out, "source");
                json::text(&mut out, source.as_bytes());
                out.extend_from_slice(b",\"sourcetype\":\"_json\",\"event\":");
                write(&mut out);
                out.push(b'}');
            }
        }
        Some(out)
    }
}

/// The priority (RFC 5424, 6.2.1) of an entry on a call that was answered with this status; `None`: it is not severe
/// enough.
fn priority(facility: u8, severities: [u8; 4], status: u16) -> Option<u16> {
    let [success, client_error, server_error, least] = severities;
    let severity = match status {
        0..400 => success,
        400..500 => client_error,
        _ => server_error,
    };
    (severity <= least).then(|| u16::from(facility) * 8 + u16::from(severity))
}

/// Appends the beginning of a stream of Loki's, up to what is in its labels.
fn push_labels(out: &mut Vec<u8>, labels: &[(String, Template)], account: &LogRecord<'_>) {
    out.extend_from_slice(b"{\"stream\":{");
    for (label, value) in labels {
        let mut text = Vec::new();
        value.render(account.exchange, &mut text);
        json::key(out, label);
        json::text(out, &text);
    }
}
