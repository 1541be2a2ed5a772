//! A batch as it is written, with the original's messages for its faults, and its calls in wire format.

use serde_json::{Map, Value};
use std::sync::LazyLock;
use std::time::Duration;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{Exchange, OWN_CALL_HEADER, Request, Subrequest, Verify, WorkBudget};
use weir_plugins_shared::http_request::add_form_argument;
use weir_plugins_shared::lenient_json;

/// What marks the calls of this process's batches: no caller can know it.
static MARK: LazyLock<u128> = LazyLock::new(|| {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("invariant: the system has random bits");
    u128::from_ne_bytes(bytes).max(1)
});

/// Whether a call is one of a batch.
pub fn is_of_a_batch(request: &Request) -> bool {
    request.own_call == *MARK
}

const METHODS: [&str; 10] = [
    "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PURGE",
];
/// Headers of the caller that are of its own connection or its own body.
const OWN: [&str; 8] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Calls to be made.
#[derive(Debug, PartialEq)]
pub struct Batch {
    query: Map<String, Value>,
    headers: Vec<(String, String)>,
    timeout: Duration,
    pub items: Vec<Item>,
}

/// One of them.
#[derive(Debug, PartialEq)]
pub struct Item {
    method: String,
    path: String,
    query: Map<String, Value>,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

/// What a value is called in messages.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "userdata",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "table",
    }
}

fn wrong_type(expected: &str, value: &Value) -> String {
    format!("wrong type: expected {expected}, got {}", kind_of(value))
}

fn of_property(name: &str, message: &str) -> String {
    format!("property \"{name}\" validation failed: {message}")
}

fn object(fields: &Map<String, Value>, name: &str) -> Result<Map<String, Value>, String> {
    match fields.get(name) {
        None => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        // Lua cannot distinguish an empty list from an empty map.
        Some(Value::Array(items)) if items.is_empty() => Ok(Map::new()),
        Some(other) => Err(of_property(name, &wrong_type("object", other))),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Headers as names in lower case and values; what cannot stand in a header is left out.
fn headers(map: &Map<String, Value>) -> Vec<(String, String)> {
    let lines = map.iter().filter_map(|(name, value)| {
        let value = text(value)?;
        let is_good = is_name(name.as_bytes()) && is_value(value.as_bytes());
        is_good.then(|| (name.to_ascii_lowercase(), value))
    });
    lines.collect()
}

impl Batch {
    /// Reads a batch.
    ///
    /// # Errors
    /// In the original's words.
    pub fn read(body: &[u8], work: &WorkBudget) -> Result<Self, String> {
        let value = lenient_json::parse_whole(body, work).map_err(|fault| {
            let body = String::from_utf8_lossy(body);
            format!("invalid request body: {body}, err: {fault}")
        })?;
        Self::of(&value).map_err(|message| format!("bad request body: {message}"))
    }

    fn of(value: &Value) -> Result<Self, String> {
        let fields = value.as_object().ok_or_else(|| wrong_type("object", value))?;
        let timeout = match fields.get("timeout") {
            None => 30_000,
            Some(value) => match (value.as_u64(), value.as_f64()) {
                (Some(0), _) => return Err(of_property("timeout", "expected 0 to be at least 1")),
                (Some(timeout), _) => timeout,
                (None, Some(number)) if number < 1.0 && number.fract() == 0.0 => {
                    return Err(of_property(
                        "timeout",
                        &format!("expected {value} to be at least 1"),
                    ));
                }
                _ => return Err(of_property("timeout", &wrong_type("integer", value))),
            },
        };
        let (query, lines) = (object(fields, "query")?, object(fields, "headers")?);
        let items = match fields.get("pipeline") {
            None => return Err("object matches none of the required: [\"pipeline\"]".to_owned()),
            Some(Value::Array(items)) => items,
            Some(Value::Object(map)) if map.is_empty() => &Vec::new(),
            Some(other) => return Err(of_property("pipeline", &wrong_type("array", other))),
        };
        if items.is_empty() {
            return Err(of_property("pipeline", "expect array to have at least 1 items"));
        }
        let read = |(item, number): (&Value, usize)| {
            Item::of(item).map_err(|message| {
                of_property(
                    "pipeline",
                    &format!("failed to validate item {number}: {message}"),
                )
            })
        };
        Ok(Self {
            query,
            headers: headers(&lines),
            timeout: Duration::from_millis(timeout),
            items: items.iter().zip(1..).map(read).collect::<Result<_, _>>()?,
        })
    }
}

impl Item {
    fn of(value: &Value) -> Result<Self, String> {
        const KNOWN: [&str; 7] = [
            "version",
            "method",
            "path",
            "query",
            "headers",
            "body",
            "ssl_verify",
        ];
        let fields = value.as_object().ok_or_else(|| wrong_type("object", value))?;
        if let Some(other) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(format!("additional properties forbidden, found {other}"));
        }
        let path = match fields.get("path") {
            None => return Err("property \"path\" is required".to_owned()),
            Some(Value::String(path)) if path.is_empty() => {
                return Err(of_property(
                    "path",
                    "string too short, expected at least 1, got 0",
                ));
            }
            Some(Value::String(path)) => path.clone(),
            Some(other) => return Err(of_property("path", &wrong_type("string", other))),
        };
        let method = match fields.get("method") {
            None => "GET",
            Some(Value::String(method)) if METHODS.contains(&method.as_str()) => method,
            Some(Value::String(_)) => return Err(of_property("method", "matches none of the enum values")),
            Some(other) => return Err(of_property("method", &wrong_type("string", other))),
        };
        match fields.get("version") {
            None => {}
            Some(Value::Number(version)) if [Some(1.0), Some(1.1)].contains(&version.as_f64()) => {}
            Some(Value::Number(_)) => return Err(of_property("version", "matches none of the enum values")),
            Some(other) => return Err(of_property("version", &wrong_type("number", other))),
        }
        if let Some(other) = fields.get("ssl_verify").filter(|value| !value.is_boolean()) {
            return Err(of_property("ssl_verify", &wrong_type("boolean", other)));
        }
        let body = match fields.get("body") {
            None => None,
            Some(Value::String(body)) => Some(body.clone()),
            Some(other) => return Err(of_property("body", &wrong_type("string", other))),
        };
        Ok(Self {
            method: method.to_owned(),
            path,
            query: object(fields, "query")?,
            headers: headers(&object(fields, "headers")?),
            body,
        })
    }

    /// The call to the gateway itself; `None` if its path is not valid.
    pub fn subrequest(
        &self,
        batch: &Batch,
        exchange: &Exchange,
        client_header: &str,
        max_body_bytes: usize,
    ) -> Option<Subrequest> {
        let request = &exchange.request;
        let is_good = self.path.starts_with('/') && self.path.bytes().all(|byte| byte > 0x20 && byte != 0x7f);
        if !is_good || self.path.contains('#') {
            return None;
        }
        let mut message = format!("{} {}", self.method, self.path);
        let query = self.query(batch);
        if !query.is_empty() {
            message.push(if self.path.contains('?') { '&' } else { '?' });
            message.push_str(&query);
        }
        message.push_str(" HTTP/1.1\r\n");
        let mut message = message.into_bytes();
        for (name, value) in self.lines(batch, exchange, client_header) {
            message.extend_from_slice(name.as_bytes());
            message.extend_from_slice(b": ");
            message.extend_from_slice(&value);
            message.extend_from_slice(b"\r\n");
        }
        let body = self.body.as_deref().unwrap_or_default();
        if self.body.is_some() {
            message.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        message.extend_from_slice(format!("{OWN_CALL_HEADER}: {:x}\r\n\r\n{body}", *MARK).as_bytes());
        Some(Subrequest {
            host: request.local.ip().to_string(),
            port: request.local.port(),
            tls: request.is_tls.then_some(Verify::No),
            message,
            timeout: batch.timeout,
            keep: Some((4, Duration::from_secs(5))),
            max_body_bytes,
            connector: None,
        })
    }

    fn query(&self, batch: &Batch) -> String {
        let common = batch
            .query
            .iter()
            .filter(|(name, _)| !self.query.contains_key(*name));
        let mut query = String::new();
        for (name, value) in self.query.iter().chain(common) {
            let values = match value {
                Value::Array(values) => values.iter().filter_map(text).collect(),
                value => text(value).into_iter().collect::<Vec<_>>(),
            };
            for value in values {
                add_form_argument(&mut query, name, &value);
            }
        }
        query
    }

    /// The headers: its own, then those of the batch, then those of the caller.
    fn lines(&self, batch: &Batch, exchange: &Exchange, client_header: &str) -> Vec<(String, Vec<u8>)> {
        let request = &exchange.request;
        let mut lines: Vec<(String, Vec<u8>)> = Vec::new();
        let is_own = |name: &str| OWN.contains(&name) || name == "content-length";
        let mut add = |name: &str, value: &[u8]| {
            let name = name.to_ascii_lowercase();
            let is_known = lines.iter().any(|(known, _)| *known == name);
            if !is_known && !is_own(&name) && name != OWN_CALL_HEADER.to_ascii_lowercase() {
                lines.push((name, value.to_vec()));
            }
        };
        add(client_header, request.client.to_string().as_bytes());
        for (name, value) in self.headers.iter().chain(&batch.headers) {
            add(name, value.as_bytes());
        }
        for header in request.headers.iter() {
            let name = String::from_utf8_lossy(header.name);
            if !name.to_ascii_lowercase().starts_with("content-") {
                add(&name, header.value);
            }
        }
        add("host", &request.host);
        lines
    }
}
