//! Configured fields of log entries: texts with variables, at any depth of an object.

use super::layout::LogRecord;
use super::mask::{MASKED, Masks};
use super::time;
use serde_json::{Map, Value};
use weir_plugin::{CallRecord, Template, Variable};
use weir_telemetry::json;

/// Objects within objects at most.
const MAX_DEPTH: usize = 5;

/// An object's fields.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, Field)>);

#[derive(Debug)]
enum Field {
    /// JSON that is the same for every call.
    Constant(Vec<u8>),
    /// Left out if the call has no value.
    Fact(CallVariable),
    Template(Template),
    Object(Fields),
}

/// A variable: one of the finished call, or of any.
#[derive(Debug)]
enum CallVariable {
    Hostname,
    TimeIso8601,
    Msec,
    RequestTime,
    UpstreamTime,
    RequestLength,
    BytesSent,
    Status,
    UpstreamAddr,
    UpstreamStatus,
    UpstreamHost,
    RequestUri,
    RequestLine,
    Args,
    RequestBody,
    ResponseBody,
    Other(Variable),
}

impl Fields {
    /// Reads an object.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub fn compile(object: &Map<String, Value>, masks: &Masks) -> Result<Self, String> {
        Self::at_depth(object, masks, 1)
    }

    fn at_depth(object: &Map<String, Value>, masks: &Masks, depth: usize) -> Result<Self, String> {
        if depth > MAX_DEPTH && !object.is_empty() {
            return Err(format!("expected at most {MAX_DEPTH} objects within each other"));
        }
        let fields = object.iter().map(|(name, value)| {
            let field = match value {
                Value::Object(object) => Field::Object(Self::at_depth(object, masks, depth + 1)?),
                Value::String(text) if text.contains('$') => field(text, masks),
                other => Field::Constant(other.to_string().into_bytes()),
            };
            Ok((name.clone(), field))
        });
        fields.collect::<Result<Vec<_>, String>>().map(Self)
    }

    /// Whether any of them is in the request's body.
    pub fn needs_body(&self) -> bool {
        self.0.iter().any(|(_, field)| match field {
            Field::Fact(CallVariable::Other(variable)) => variable.needs_body(),
            Field::Template(template) => template.needs_body(),
            Field::Object(fields) => fields.needs_body(),
            Field::Constant(_) | Field::Fact(_) => false,
        })
    }

    /// Appends the fields, without the braces around them.
    pub fn write(&self, out: &mut Vec<u8>, account: &LogRecord<'_>) {
        for (name, field) in &self.0 {
            match field {
                Field::Constant(constant) => {
                    json::key(out, name);
                    out.extend_from_slice(constant);
                }
                Field::Fact(fact) => fact.write(name, out, account),
                Field::Template(template) => {
                    let mut text = Vec::new();
                    template.render(account.exchange, &mut text);
                    json::key(out, name);
                    json::text(out, &text);
                }
                Field::Object(fields) => {
                    json::key(out, name);
                    out.push(b'{');
                    fields.write(out, account);
                    out.push(b'}');
                }
            }
        }
    }
}

/// A text that is a single variable is left out if it has no value; any other text is a template.
fn field(text: &str, masks: &Masks) -> Field {
    let is_name = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    };
    let name = text.strip_prefix('$').map(|name| {
        name.strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
            .unwrap_or(name)
    });
    match name.filter(|name| is_name(name)) {
        Some(name) if is_hidden(name, masks) => Field::Constant(format!("\"{MASKED}\"").into_bytes()),
        Some(name) => Field::Fact(CallVariable::parse(name)),
        None => Field::Template(Template::parse(text)),
    }
}

fn is_hidden(name: &str, masks: &Masks) -> bool {
    if let Some(header) = name
        .strip_prefix("http_")
        .or_else(|| name.strip_prefix("sent_http_"))
    {
        return masks.hides_header(header.replace('_', "-").as_bytes());
    }
    name.strip_prefix("arg_")
        .is_some_and(|argument| masks.hides_argument(argument.as_bytes()))
        || name.starts_with("cookie_") && masks.hides_header(b"cookie")
}

/// The addresses that were asked, in order; `None`: none was.
fn tried(record: &CallRecord<'_>) -> Option<String> {
    let failed = record.failures.iter().filter_map(|failure| failure.address);
    let last = match record.failures.is_empty() || record.upstream_status.is_some() {
        true => record.upstream,
        false => None,
    };
    let all: Vec<String> = failed.chain(last).map(|address| address.to_string()).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

impl CallVariable {
    fn parse(name: &str) -> Self {
        match name {
            "hostname" => Self::Hostname,
            "time_iso8601" => Self::TimeIso8601,
            "msec" => Self::Msec,
            "request_time" => Self::RequestTime,
            "upstream_response_time" | "upstream_header_time" => Self::UpstreamTime,
            "request_length" => Self::RequestLength,
            "bytes_sent" | "body_bytes_sent" => Self::BytesSent,
            "status" => Self::Status,
            "upstream_addr" => Self::UpstreamAddr,
            "upstream_status" => Self::UpstreamStatus,
            "upstream_unresolved_host" => Self::UpstreamHost,
            "request_uri" => Self::RequestUri,
            "request" | "request_line" => Self::RequestLine,
            "args" | "query_string" => Self::Args,
            "request_body" => Self::RequestBody,
            "response_body" | "resp_body" => Self::ResponseBody,
            other => Self::Other(Variable::parse(other)),
        }
    }

    fn write(&self, name: &str, out: &mut Vec<u8>, account: &LogRecord<'_>) {
        let before = out.len();
        json::key(out, name);
        if self.write_value(out, account).is_none() {
            out.truncate(before);
        }
    }

    /// `None`: the call has no value.
    fn write_value(&self, out: &mut Vec<u8>, account: &LogRecord<'_>) -> Option<()> {
        let (record, request) = (account.record, &account.exchange.request);
        let mut thousandths = |count: u64| {
            out.push(b'"');
            json::thousandths(out, count);
            out.push(b'"');
        };
        let ended_ms = record.started_ms + record.total_us / 1000;
        match self {
            Self::Msec => thousandths(ended_ms),
            Self::RequestTime => thousandths(record.total_us / 1000),
            Self::UpstreamTime => thousandths(record.upstream_us? / 1000),
            Self::Hostname => json::text(out, record.hostname.as_bytes()),
            Self::TimeIso8601 => json::text(out, time::rfc3339(ended_ms, false).as_bytes()),
            Self::RequestLength => json::text(out, record.bytes_in.to_string().as_bytes()),
            Self::BytesSent => json::text(out, record.bytes_out.to_string().as_bytes()),
            Self::Status => json::number(out, record.status),
            Self::UpstreamAddr if record.failures.is_empty() => {
                json::text(out, record.upstream?.to_string().as_bytes());
            }
            Self::UpstreamAddr => json::text(out, tried(record)?.as_bytes()),
            Self::UpstreamStatus if record.failed_tries.is_empty() => {
                json::text(out, record.upstream_status?.to_string().as_bytes());
            }
            Self::UpstreamStatus => {
                let failed = record.failed_tries.iter().copied();
                let all: Vec<String> = failed
                    .chain(record.upstream_status)
                    .map(|it| it.to_string())
                    .collect();
                json::text(
                    out,
                    Some(all.join(", ")).filter(|all| !all.is_empty())?.as_bytes(),
                );
            }
            Self::UpstreamHost => json::text(out, record.upstream_host?.as_bytes()),
            Self::RequestUri => json::text(out, &account.masks.uri(request)),
            Self::RequestLine => {
                let mut line = request.method.clone();
                line.push(b' ');
                line.extend(account.masks.uri(request));
                line.extend(format!(" HTTP/{}.{}", request.version.0, request.version.1).bytes());
                json::text(out, &line);
            }
            Self::Args => json::text(out, &account.masks.query(request.query.as_deref()?)),
            Self::RequestBody => json::text(out, account.request_body?),
            Self::ResponseBody => json::text(out, account.response_body?),
            Self::Other(variable) => json::text(out, &variable.read(account.exchange)?),
        }
        Some(())
    }
}
