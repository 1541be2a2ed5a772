//! Masks: the headers and query arguments that must not reach a log. Logged bodies are not masked.

use crate::data_mask::MaskedNames;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Headers, Request};
use weir_telemetry::json;

/// The replacement for a masked value.
pub const MASKED: &str = "REDACTED";
/// The most headers and query arguments that are logged.
const MAX_FIELDS: usize = 200;

/// The names whose values are hidden.
#[derive(Debug, Default)]
pub struct Masks {
    /// Of headers, in lower case.
    pub headers: Vec<String>,
    /// Of query arguments, in lower case.
    pub query: Vec<String>,
}

impl Masks {
    /// These, but for names whose values a rule of `data-mask` has changed already.
    pub fn without(&self, masked: &MaskedNames) -> Self {
        let left = |hidden: &[String], masked: &[String]| {
            let is_left = |name: &&String| !masked.iter().any(|it| it.eq_ignore_ascii_case(name));
            hidden.iter().filter(is_left).cloned().collect()
        };
        Self {
            headers: left(&self.headers, &masked.headers),
            query: left(&self.query, &masked.arguments),
        }
    }

    /// Whether a header's value is hidden.
    pub fn hides_header(&self, name: &[u8]) -> bool {
        self.headers
            .iter()
            .any(|hidden| hidden.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether a query argument's value is hidden.
    pub fn hides_argument(&self, name: &[u8]) -> bool {
        self.query
            .iter()
            .any(|hidden| hidden.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Appends the headers of a request as an object. The `Host` is there also where the upstream has got another one.
    pub fn write_request_headers(&self, out: &mut Vec<u8>, request: &Request) {
        out.push(b'{');
        if !request.headers.contains(b"host") && !request.host.is_empty() {
            json::token_key(out, b"host");
            let mut host = request.host.clone();
            if let Some(port) = request.host_port {
                host.extend_from_slice(format!(":{port}").as_bytes());
            }
            match self.hides_header(b"host") {
                true => json::text(out, MASKED.as_bytes()),
                false => json::text(out, &host),
            }
        }
        self.write_fields(out, &request.headers);
        out.push(b'}');
    }

    /// Appends the headers as an object. Names are in lower case; of a name that comes several times, there is a list.
    pub fn write_headers(&self, out: &mut Vec<u8>, headers: &Headers) {
        out.push(b'{');
        self.write_fields(out, headers);
        out.push(b'}');
    }

    fn write_fields(&self, out: &mut Vec<u8>, headers: &Headers) {
        for header in headers.iter().take(MAX_FIELDS) {
            let mut same = headers.get_all(header.name);
            let is_first = same.next().is_some_and(|first| std::ptr::eq(first, header.value));
            if !is_first {
                continue;
            }
            json::token_key(out, header.name);
            if self.hides_header(header.name) {
                json::text(out, MASKED.as_bytes());
            } else if same.next().is_some() {
                out.push(b'[');
                for value in headers.get_all(header.name).take(MAX_FIELDS) {
                    json::comma(out);
                    json::text(out, value);
                }
                out.push(b']');
            } else {
                json::text(out, header.value);
            }
        }
    }

    /// Appends the query's arguments as an object; one without `=` is `true`.
    pub fn write_arguments(&self, out: &mut Vec<u8>, query: &[u8]) {
        type Argument<'q> = (std::borrow::Cow<'q, [u8]>, Option<&'q [u8]>);
        let arguments: Vec<Argument<'_>> = query_pairs(query)
            .take(MAX_FIELDS)
            .map(|(name, value)| (decode_form(name), value))
            .collect();
        let write = |out: &mut Vec<u8>, value: &Option<&[u8]>| match value {
            Some(value) => json::text(out, &decode_form(value)),
            None => out.extend_from_slice(b"true"),
        };
        out.push(b'{');
        for (place, (name, value)) in arguments.iter().enumerate() {
            if arguments[..place].iter().any(|(other, _)| other == name) {
                continue;
            }
            json::key(out, &String::from_utf8_lossy(name));
            let further = arguments[place + 1..].iter().any(|(other, _)| other == name);
            if self.hides_argument(name) {
                json::text(out, MASKED.as_bytes());
            } else if further {
                out.push(b'[');
                for (_, value) in arguments.iter().filter(|(other, _)| other == name) {
                    json::comma(out);
                    write(out, value);
                }
                out.push(b']');
            } else {
                write(out, value);
            }
        }
        out.push(b'}');
    }

    /// The query as the client wrote it, but for hidden values.
    pub fn query(&self, query: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(query.len());
        for (place, pair) in query.split(|byte| *byte == b'&').enumerate() {
            if place > 0 {
                out.push(b'&');
            }
            match pair.iter().position(|byte| *byte == b'=') {
                Some(end) if self.hides_argument(&decode_form(&pair[..end])) => {
                    out.extend_from_slice(&pair[..=end]);
                    out.extend_from_slice(MASKED.as_bytes());
                }
                _ => out.extend_from_slice(pair),
            }
        }
        out
    }

    /// Path and query as the client wrote them, but for hidden values.
    pub fn uri(&self, request: &Request) -> Vec<u8> {
        let mut uri = request.raw_path.clone();
        if let Some(query) = &request.query {
            uri.push(b'?');
            uri.extend(self.query(query));
        }
        uri
    }

    /// Appends the whole URL as a text, with the port that the call came in on; `uri` is what [`Self::uri`] has said.
    pub fn write_url(out: &mut Vec<u8>, request: &Request, uri: &[u8]) {
        out.push(b'"');
        out.extend_from_slice(request.scheme().as_bytes());
        out.extend_from_slice(b"://");
        json::part(out, &request.host);
        out.push(b':');
        json::number(out, request.local.port());
        json::part(out, uri);
        out.push(b'"');
    }
}
