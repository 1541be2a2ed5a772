//! The destinations of traces: collectors, and the format of each. The content of a trace is made elsewhere.

use super::attributes::Value;
use super::otlp;
use crate::logger::Batch;
use crate::logger::target::HttpTarget;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{LogFraming, LogGrpc, LogHttp, LogSink, LogTarget};

/// The method of collectors.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Who takes traces, and in which form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Export {
    /// OTLP over HTTP: `http://host:4318/v1/traces`.
    OtlpHttp(HttpTarget),
    /// OTLP over gRPC.
    OtlpGrpc(GrpcTarget),
    /// Zipkin's JSON over HTTP: `http://host:9411/api/v2/spans`.
    Zipkin(ZipkinTarget),
}

/// A collector that speaks gRPC.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrpcTarget {
    /// `http://host:port` or `https://…`.
    pub url: String,
    /// Metadata of the calls, such as `authorization`.
    pub metadata: BTreeMap<String, String>,
    /// The longest that a call may take, in milliseconds.
    pub timeout_ms: u64,
    /// Whether the server's certificate is verified.
    pub verify_tls: bool,
}

impl Default for GrpcTarget {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:4317".into(),
            metadata: BTreeMap::new(),
            timeout_ms: 10_000,
            verify_tls: true,
        }
    }
}

/// Metadata may be secrets.
impl std::fmt::Debug for GrpcTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrpcTarget").finish_non_exhaustive()
    }
}

/// A Zipkin server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZipkinTarget {
    /// The server.
    pub http: HttpTarget,
    /// Whether spans contain the address at which the gateway accepted the call.
    pub local_endpoint: bool,
    /// The address that they contain instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_address: Option<IpAddr>,
    /// The name of the service behind the gateway, for calls that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_service: Option<String>,
    /// Whether trace ids whose upper half is 0 are written with 16 digits.
    pub short_ids: bool,
}

/// The checked destination of traces.
#[derive(Debug, Clone)]
pub struct Destination {
    sink: LogSink,
    batch: Batch,
    /// The form; `None`: OTLP.
    pub zipkin: Option<ZipkinTarget>,
}

/// What of an export is wrong: its form, the field, and what was expected.
pub type ExportConfigError = (&'static str, &'static str, &'static str);

impl Export {
    /// Checks it.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn destination(&self, batch: &Batch) -> Result<Destination, ExportConfigError> {
        let of =
            |kind: &'static str| move |(field, message): (&'static str, &'static str)| (kind, field, message);
        let (sink, zipkin) = match self {
            Self::OtlpHttp(http) => {
                let target = HttpTarget {
                    content_type: "application/x-protobuf".into(),
                    ..http.clone()
                };
                (target.sink().map_err(of("otlp_http"))?, None)
            }
            Self::OtlpGrpc(grpc) => (grpc.sink().map_err(of("otlp_grpc"))?, None),
            Self::Zipkin(zipkin) => {
                let sink = zipkin.http.sink().map_err(of("zipkin"))?;
                (sink, Some(zipkin.clone()))
            }
        };
        Ok(Destination {
            sink,
            batch: batch.clone(),
            zipkin,
        })
    }
}

impl GrpcTarget {
    fn sink(&self) -> Result<LogSink, (&'static str, &'static str)> {
        let http = HttpTarget {
            url: self.url.clone(),
            verify_tls: self.verify_tls,
            ..HttpTarget::default()
        };
        let LogSink::Http(LogHttp { host, port, tls, .. }) = http.sink()? else {
            return Err(("url", "expected http://host:port or https://…"));
        };
        let is_good =
            |(name, value): (&String, &String)| is_name(name.as_bytes()) && is_value(value.as_bytes());
        if !self.metadata.iter().all(is_good) {
            return Err(("metadata", "expected names and values of metadata"));
        }
        Ok(LogSink::Grpc(LogGrpc {
            host,
            port,
            tls,
            method: EXPORT.into(),
            metadata: (self.metadata.iter())
                .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                .collect(),
            timeout: Duration::from_millis(self.timeout_ms.max(1)),
        }))
    }
}

impl Destination {
    /// The description for the engine; `resource` describes the gateway.
    pub fn target(&self, resource: &[(String, Value)]) -> LogTarget {
        let joint = match self.zipkin {
            Some(_) => LogFraming {
                before: "[".into(),
                between: ",",
                after: "]",
                ..LogFraming::default()
            },
            None => LogFraming {
                nesting: otlp::nesting(resource),
                ..LogFraming::default()
            },
        };
        LogTarget {
            sink: self.sink.clone(),
            joint,
            batching: self.batch.batching(),
        }
    }
}
