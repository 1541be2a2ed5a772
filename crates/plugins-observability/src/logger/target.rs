//! The targets of entries: their configuration, and their description for the engine.

use super::authorization::Authorization;
use super::folder::LogFolder;
pub use super::rocketmq::{Credentials, Nameserver, RocketmqTarget, usual_port as nameserver_port};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{LogHttp, LogSink};
pub use weir_plugins_shared::kafka_target::{Broker, KafkaTarget, Mechanism, Sasl};
use weir_telemetry::json;

/// The target of entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// A file that entries are appended to.
    File(FileTarget),
    /// An HTTP server that gets a request for each batch.
    Http(HttpTarget),
    /// A topic of a Kafka cluster.
    Kafka(KafkaTarget),
    /// A topic of a RocketMQ cluster.
    Rocketmq(RocketmqTarget),
    /// A TCP server.
    Tcp(TcpTarget),
    /// A UDP server; batches are kept below the size of a datagram.
    Udp(UdpTarget),
    /// A socket of this machine, which gets a datagram for each entry.
    Local(LocalTarget),
}

impl Default for Target {
    fn default() -> Self {
        Self::File(FileTarget::default())
    }
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileTarget {
    /// Its path, relative to the folder of `--log-dir` or in it. It is created if need be. `/dev/stdout` and `/dev/stderr`
    /// are those of Weir.
    pub path: String,
    /// It is opened again for each batch, so that it can be moved away while the gateway runs.
    pub reopen: bool,
}

/// An HTTP server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpTarget {
    /// `http://` or `https://`, with path and query.
    pub url: String,
    /// The method.
    pub method: String,
    /// The body's `Content-Type`.
    pub content_type: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// The longest that a request and its answer may take, in milliseconds.
    pub timeout_ms: u64,
    /// Whether the server's certificate is verified.
    pub verify_tls: bool,
    /// The authentication of requests, if it is more than a fixed header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,
}

/// Headers and the URL's user may be secrets.
impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTarget").finish_non_exhaustive()
    }
}

impl Default for HttpTarget {
    fn default() -> Self {
        Self {
            url: String::new(),
            method: "POST".into(),
            content_type: "application/json".into(),
            headers: BTreeMap::new(),
            timeout_ms: 10_000,
            verify_tls: true,
            authorization: None,
        }
    }
}

/// A TCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpTarget {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether it is reached over TLS.
    pub tls: bool,
    /// The name that its certificate must have; absent: `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Whether its certificate is verified.
    pub verify_tls: bool,
    /// The longest that connecting and sending may take, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for TcpTarget {
    fn default() -> Self {
        Self {
            host: String::new(),
            port: 0,
            tls: false,
            server_name: None,
            verify_tls: true,
            timeout_ms: 10_000,
        }
    }
}

/// A UDP server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UdpTarget {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Lines are sent in datagrams of at most this many bytes, and a longer line alone; absent: one datagram for each
    /// batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_bytes: Option<usize>,
}

/// A socket of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LocalTarget {
    /// Its path: `/dev/log`, or the socket on which the machine accepts log entries.
    pub path: String,
}

impl Default for LocalTarget {
    fn default() -> Self {
        Self {
            path: "/dev/log".into(),
        }
    }
}

impl Target {
    /// Its name in configurations.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Http(_) => "http",
            Self::Kafka(_) => "kafka",
            Self::Rocketmq(_) => "rocketmq",
            Self::Tcp(_) => "tcp",
            Self::Udp(_) => "udp",
            Self::Local(_) => "local",
        }
    }

    /// The description for the engine. Files are in that folder; files of workspaces other than the operator's are not
    /// written.
    ///
    /// # Errors
    /// Says which field is wrong, and what was expected.
    pub fn sink(
        &self,
        files: &LogFolder,
        is_of_workspace: bool,
    ) -> Result<LogSink, (&'static str, &'static str)> {
        match self {
            Self::File(file) => Ok(LogSink::File {
                file: (files.file(&file.path, is_of_workspace)).map_err(|reason| ("path", reason))?,
                reopen: file.reopen,
            }),
            Self::Http(http) => http.sink(),
            Self::Kafka(kafka) => kafka.sink(),
            Self::Rocketmq(rocketmq) => rocketmq.sink(),
            Self::Tcp(tcp) => {
                check_host(&tcp.host)?;
                let name = || tcp.server_name.clone().unwrap_or_else(|| tcp.host.clone());
                Ok(LogSink::Tcp {
                    host: tcp.host.clone(),
                    port: tcp.port,
                    tls: tcp.tls.then(|| (name(), tcp.verify_tls)),
                    timeout: Duration::from_millis(tcp.timeout_ms),
                })
            }
            Self::Udp(udp) => {
                check_host(&udp.host)?;
                Ok(LogSink::Udp {
                    host: udp.host.clone(),
                    port: udp.port,
                    line_bytes: udp.line_bytes,
                })
            }
            Self::Local(local) if SOCKETS.contains(&local.path.as_str()) => Ok(LogSink::Local {
                path: local.path.clone(),
            }),
            Self::Local(_) => Err(("path", "expected /dev/log or another socket of the machine's log")),
        }
    }
}

/// Where machines take entries for their own logs. Other sockets belong to other programs.
const SOCKETS: [&str; 5] = [
    "/dev/log",
    "/run/log",
    "/var/run/log",
    "/var/run/syslog",
    "/run/systemd/journal/dev-log",
];

fn check_host(host: &str) -> Result<(), (&'static str, &'static str)> {
    match host.is_empty() || host.contains(['/', '@', ' ']) {
        true => Err(("host", "expected a name or an address")),
        false => Ok(()),
    }
}

impl HttpTarget {
    /// The description for the engine.
    ///
    /// # Errors
    /// Says which field is wrong, and what was expected.
    pub fn sink(&self) -> Result<LogSink, (&'static str, &'static str)> {
        let url = Url::parse(&self.url).ok_or(("url", "expected http://host:port/path or https://…"))?;
        if !is_name(self.method.as_bytes()) {
            return Err(("method", "expected a method"));
        }
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\n",
            self.method, url.target, url.authority, self.content_type
        )
        .into_bytes();
        if !is_value(self.content_type.as_bytes()) {
            return Err(("content_type", "expected a media type"));
        }
        for (name, value) in &self.headers {
            if !is_name(name.as_bytes()) || !is_value(value.as_bytes()) {
                return Err(("headers", "expected names and values of headers"));
            }
            head.extend(format!("{name}: {value}\r\n").bytes());
        }
        if let Some(user) = url.user {
            use base64::Engine;
            let encoded = base64::engine::general_purpose::STANDARD.encode(user);
            head.extend(format!("Authorization: Basic {encoded}\r\n").bytes());
        }
        let signer = self
            .authorization
            .as_ref()
            .map(|authorization| authorization.signer(self));
        Ok(LogSink::Http(LogHttp {
            signer: signer.transpose().map_err(|reason| ("authorization", reason))?,
            host: url.host,
            port: url.port,
            tls: url.is_tls.then_some(self.verify_tls),
            head,
            timeout: Duration::from_millis(self.timeout_ms.max(1)),
        }))
    }
}

/// The parts of a URL.
struct Url {
    is_tls: bool,
    user: Option<Vec<u8>>,
    authority: String,
    host: String,
    port: u16,
    target: String,
}

impl Url {
    fn parse(text: &str) -> Option<Self> {
        let (is_tls, rest) = match text.split_once("://")? {
            ("http", rest) => (false, rest),
            ("https", rest) => (true, rest),
            _ => return None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (whole, target) = rest.split_at(end);
        let target = target.split('#').next().unwrap_or_default();
        let (user, authority) = match whole.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, whole),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, if is_tls { 443 } else { 80 }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_good = !host.is_empty() && !text.contains([' ', '\r', '\n', '\t']) && text.is_ascii();
        let slash = if target.starts_with('/') { "" } else { "/" };
        is_good.then(|| Self {
            is_tls,
            user: user.map(|user| weir_plugin::uri::unescape(user.as_bytes()).into_owned()),
            authority: authority.to_owned(),
            host: host.to_owned(),
            port,
            target: format!("{slash}{target}"),
        })
    }
}

/// How a text stands in JSON.
pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::text(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}
