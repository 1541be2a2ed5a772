//! Requests that callouts make: templates, read once, and filled in for each call.

use super::{Callout, OnError, Parts, header_fault};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weir_model::UpstreamTls;
use weir_plugin::headers::is_value;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Connector, Exchange, Headers, Request, Subrequest, WorkBudget};
use weir_plugins_shared::expression::{self, EvaluationError, Expression, Interpolated, RequestScope, Scope};
use weir_plugins_shared::http_request::{
    HttpServer, ServerCallRules, add_form_argument, http_proxy, is_of_call,
};

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;
/// The most bytes that templates make for one request.
const MAX_MADE: usize = 1 << 20;

/// A text made ready.
pub(super) struct Text(Interpolated);

impl Text {
    fn new(text: &str) -> Result<Self, String> {
        Interpolated::parse(text).map(Self)
    }

    fn render(&self, scope: &dyn Scope) -> Result<String, EvaluationError> {
        let mut out = Vec::new();
        self.0.render(scope, &mut out)?;
        if out.len() > MAX_MADE {
            return Err(EvaluationError("a text is too long"));
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

/// What is put into a request.
pub(super) struct Custom {
    pub(super) forward_headers: bool,
    pub(super) forward_query: bool,
    pub(super) forward_body: bool,
    headers: Vec<(String, Text)>,
    query: Vec<(String, Text)>,
    body: Vec<(String, Text)>,
}

impl Custom {
    /// # Errors
    /// What is wrong.
    pub(super) fn new(of: &Parts) -> Result<Self, String> {
        if let Some(fault) = header_fault(&of.headers) {
            return Err(fault);
        }
        let texts = |of: &BTreeMap<String, String>| {
            let texts = of.iter().map(|(name, text)| Ok((name.clone(), Text::new(text)?)));
            texts.collect::<Result<Vec<_>, String>>()
        };
        Ok(Self {
            forward_headers: of.forward_headers,
            forward_query: of.forward_query,
            forward_body: of.forward_body,
            headers: texts(&of.headers)?,
            query: texts(&of.query)?,
            body: texts(&of.body)?,
        })
    }

    pub(super) fn has_query(&self) -> bool {
        !self.query.is_empty()
    }

    pub(super) fn has_body(&self) -> bool {
        !self.body.is_empty()
    }

    /// The headers that are put in. One whose value cannot stand in a header fails.
    pub(super) fn headers(&self, scope: &dyn Scope) -> Result<Vec<(&str, String)>, EvaluationError> {
        let rendered = self.headers.iter().map(|(name, text)| {
            let value = text.render(scope)?;
            match is_value(value.as_bytes()) {
                true => Ok((name.as_str(), value)),
                false => Err(EvaluationError("a value is not allowed in a header")),
            }
        });
        rendered.collect()
    }

    /// The query: that of the call, if it is in it, with what is put in.
    pub(super) fn query(&self, request: &Request, scope: &dyn Scope) -> Result<Vec<u8>, EvaluationError> {
        let query = request.query.as_deref().unwrap_or_default();
        if self.query.is_empty() {
            return Ok(if self.forward_query {
                query.to_vec()
            } else {
                Vec::new()
            });
        }
        let mut out = String::new();
        if self.forward_query {
            for (name, value) in query_pairs(query) {
                let name = decode_form(name);
                if self.query.iter().any(|(own, _)| own.as_bytes() == name.as_ref()) {
                    continue;
                }
                let value = value.map(|value| decode_form(value)).unwrap_or_default();
                add_form_argument(
                    &mut out,
                    &String::from_utf8_lossy(&name),
                    &String::from_utf8_lossy(&value),
                );
            }
        }
        for (name, text) in &self.query {
            add_form_argument(&mut out, name, &text.render(scope)?);
        }
        Ok(out.into_bytes())
    }

    /// The body: that of the call, if it is in it, with what is put in. `Err` as well if that is not an object.
    pub(super) fn body(&self, request: &Request, scope: &dyn Scope) -> Result<Vec<u8>, EvaluationError> {
        let own = request
            .body
            .as_deref()
            .filter(|_| self.forward_body)
            .unwrap_or_default();
        if self.body.is_empty() {
            return Ok(own.to_vec());
        }
        let mut members: Map<String, Value> = match own.is_empty() {
            true => Map::new(),
            false => serde_json::from_slice(own)
                .map_err(|_| EvaluationError("the body of the call is not a JSON object"))?,
        };
        for (name, text) in &self.body {
            members.insert(name.clone(), text.render(scope)?.into());
        }
        Ok(Value::Object(members).to_string().into_bytes())
    }
}

/// The address of a callout: a server, and behind it a text in which values are escaped.
struct Address {
    server: HttpServer,
    parts: Vec<AddressPart>,
}

enum AddressPart {
    Plain(String),
    Value(Text),
}

impl Address {
    fn new(url: &str) -> Result<Self, String> {
        let expected =
            "expected an address that begins with http:// or https://, without expressions before its path";
        let scheme = url.find("://").ok_or(expected)? + 3;
        let end = url[scheme..].find(['/', '?']).map_or(url.len(), |at| scheme + at);
        let server = HttpServer::parse(&url[..end]).ok_or(expected)?;
        if url[..end].contains('$') {
            return Err(expected.to_owned());
        }
        let mut rest = &url[end..];
        let mut parts = Vec::new();
        if !rest.starts_with('/') {
            parts.push(AddressPart::Plain("/".to_owned()));
        }
        while let Some(start) = rest.find("$(") {
            parts.push(AddressPart::Plain(rest[..start].to_owned()));
            let length = closing(&rest[start..]).ok_or("an expression of the address is not closed")?;
            let text = &rest[start..start + length];
            parts.push(AddressPart::Value(Text::new(text)?));
            rest = &rest[start + length..];
        }
        parts.push(AddressPart::Plain(rest.to_owned()));
        let is_clean = |part: &AddressPart| match part {
            AddressPart::Plain(text) => text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'),
            AddressPart::Value(_) => true,
        };
        match parts.iter().all(is_clean) {
            true => Ok(Self { server, parts }),
            false => Err("expected an address that a request line can hold".to_owned()),
        }
    }

    /// The path with the query.
    fn target(&self, scope: &dyn Scope) -> Result<String, EvaluationError> {
        let mut target = String::new();
        // Where the values of the path stand in it.
        let mut values = Vec::new();
        let mut is_path = true;
        for part in &self.parts {
            match part {
                AddressPart::Plain(text) => {
                    target.push_str(text);
                    is_path &= !text.contains('?');
                }
                AddressPart::Value(text) => {
                    let value = text.render(scope)?;
                    if is_path && value.is_empty() {
                        return Err(EvaluationError("a value of the path is empty"));
                    }
                    let start = target.len();
                    escape(value.as_bytes(), &mut target);
                    if is_path {
                        values.push(start..target.len());
                    }
                }
            }
        }
        match leads_elsewhere(&target, &values) {
            true => Err(EvaluationError("a value leads to another folder")),
            false => Ok(target),
        }
    }
}

/// Where the expression at the beginning of a text ends.
fn closing(text: &str) -> Option<usize> {
    let ends = text.match_indices(')').map(|(at, _)| at + 1);
    let mut whole = ends.filter(|end| Expression::parse(&text[2..end - 1]).is_ok());
    whole.next()
}

/// Whether a segment of the path is `.` or `..`, also with `%2e`, and values at these places are in it. Several values, or a
/// value and the text beside it, can make one together.
fn leads_elsewhere(target: &str, values: &[std::ops::Range<usize>]) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let mut start = 0;
    path.split('/').any(|segment| {
        let end = start + segment.len();
        let is_made = values
            .iter()
            .any(|value| start <= value.start && value.end <= end);
        start = end + 1;
        is_made
            && matches!(
                segment.to_ascii_lowercase().replace("%2e", ".").as_str(),
                "." | ".."
            )
    })
}

/// Puts a value behind an address, as a part of one segment or of one value of an argument.
fn escape(value: &[u8], out: &mut String) {
    for byte in value {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte))
            }
            byte => {
                let digits = b"0123456789ABCDEF";
                out.push('%');
                out.push(digits[usize::from(byte >> 4)].into());
                out.push(digits[usize::from(byte & 15)].into());
            }
        }
    }
}

/// A callout made ready for many calls.
pub(super) struct CompiledCallout {
    pub(super) name: String,
    /// Distinguishes its cached answers from those of other callouts.
    pub(super) key: String,
    address: Address,
    method: String,
    pub(super) send: Custom,
    pub(super) on_error: OnError,
    pub(super) retries: u32,
    pub(super) error_statuses: Option<Vec<u16>>,
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) cache: bool,
    pub(super) decode: bool,
    pub(super) rules: ServerCallRules,
}

impl CompiledCallout {
    /// # Errors
    /// The field that is wrong, and what was expected.
    pub(super) fn new(of: &Callout, instance: &str) -> Result<Self, (&'static str, String)> {
        let is_name = !of.name.is_empty()
            && of
                .name
                .bytes()
                .all(|byte| byte == b'_' || byte == b'-' || byte.is_ascii_alphanumeric());
        if !is_name {
            return Err((
                "name",
                "expected a name of letters, digits, `_` and `-`".to_owned(),
            ));
        }
        if of.method.is_empty() || !of.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(("method", "expected a method in capital letters".to_owned()));
        }
        if of.retries > 10 {
            return Err(("retries", "expected at most 10".to_owned()));
        }
        if !(200..=599).contains(&of.status) {
            return Err(("status", "expected a status from 200 to 599".to_owned()));
        }
        if !(1..=60_000).contains(&of.timeout_ms) {
            return Err(("timeout_ms", "expected 1 to 60000 milliseconds".to_owned()));
        }
        Ok(Self {
            name: of.name.clone(),
            key: format!("{instance}\n{}", of.name),
            address: Address::new(&of.url).map_err(|message| ("url", message))?,
            method: of.method.clone(),
            send: Custom::new(&of.send).map_err(|message| ("send", message))?,
            on_error: of.on_error,
            retries: of.retries,
            error_statuses: of.error_statuses.clone(),
            status: of.status,
            message: of.message.clone(),
            cache: of.cache,
            decode: of.decode,
            rules: ServerCallRules {
                verify_tls: of.verify_tls,
                timeout: Duration::from_millis(of.timeout_ms),
                pool_size: 16,
                pool_idle_timeout: Duration::from_secs(60),
                max_answer_bytes: MAX_ANSWER,
                connector: connector(of).map_err(|message| ("proxy", message))?,
            },
        })
    }

    /// The request for this call.
    pub(super) fn request(
        &self,
        request: &Request,
        scope: &dyn Scope,
    ) -> Result<Subrequest, EvaluationError> {
        let mut target = self.address.target(scope)?;
        let query = self.send.query(request, scope)?;
        if !query.is_empty() {
            target.push(if target.contains('?') { '&' } else { '?' });
            let mut escaped = Vec::new();
            weir_plugin::uri::escape_controls(&query, &mut escaped);
            target.push_str(&String::from_utf8_lossy(&escaped));
        }
        let mut headers = Headers::default();
        if self.send.forward_headers {
            for header in request.headers.iter() {
                if !is_of_call(header.name) {
                    headers.append(header.name, header.value);
                }
            }
        }
        let body = self.send.body(request, scope)?;
        if self.send.has_body() {
            headers.set(b"Content-Type", b"application/json");
            headers.remove(b"Content-Encoding");
        } else if !self.send.forward_body {
            headers.remove(b"Content-Type");
            headers.remove(b"Content-Encoding");
        }
        for (name, value) in self.send.headers(scope)? {
            headers.set(name.as_bytes(), value.as_bytes());
        }
        let server = &self.address.server;
        Ok(server.request_with((&self.method, &target), &headers, &body, &self.rules))
    }
}

fn connector(of: &Callout) -> Result<Option<Arc<Connector>>, String> {
    let Some(proxy) = &of.proxy else { return Ok(None) };
    let proxy = http_proxy(proxy, of.proxy_authorization.as_deref())
        .ok_or("expected an address that begins with http://")?;
    if of
        .proxy_authorization
        .as_ref()
        .is_some_and(|it| !is_value(it.as_bytes()))
    {
        return Err("expected a `proxy_authorization` that a header can hold".to_owned());
    }
    let tls = UpstreamTls {
        verify: of.verify_tls,
        ..UpstreamTls::default()
    };
    Ok(Some(Arc::new(Connector::new(tls, Some(proxy)))))
}

/// Answers by the names of callouts, each as `{"response": …}`. Calls share those that are kept.
pub(super) type CalloutResponses = BTreeMap<String, Arc<Value>>;

/// What expressions know: the call, and the answers so far.
pub(super) struct Names<'n> {
    pub(super) exchange: &'n Exchange,
    pub(super) answers: &'n CalloutResponses,
}

impl Scope for Names<'_> {
    fn json_parts(&self, name: &str) -> Option<&CalloutResponses> {
        (name == "callouts").then_some(self.answers)
    }

    fn name(&self, name: &str) -> expression::Value {
        match name {
            "callouts" => {
                let all = self.answers.iter();
                let all: Map<String, Value> =
                    all.map(|(name, it)| (name.clone(), Value::clone(it))).collect();
                expression::Value::of(&Value::Object(all))
            }
            _ => RequestScope(self.exchange).name(name),
        }
    }

    fn work(&self) -> &WorkBudget {
        &self.exchange.request.work
    }

    fn member(&self, table: &str, key: &expression::Value) -> expression::Value {
        RequestScope(self.exchange).member(table, key)
    }
}
