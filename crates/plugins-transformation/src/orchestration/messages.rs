//! What nodes read of the messages of a call, and what is put into these. What it is not: the nodes in between.

use super::data::{
    Datum, EncodedBody, HeaderChanges, Mismatch, encode_body, header_changes, headers_object, query_object,
    query_text, read_body,
};
use crate::buffered_rewrite::remove_validators;
use crate::compression::{Coding, unpacked};
use crate::request_rewrite::set_body;
use std::borrow::Cow;
use std::collections::BTreeMap;
use weir_plugin::{Exchange, Headers, Reply};

/// The outputs of `request` or `service_response` that are used, by name.
pub(super) type MessageParts = BTreeMap<&'static str, Datum>;

/// The parts of the request that are used.
pub(super) fn request_parts(exchange: &Exchange, names: &[&'static str]) -> Result<MessageParts, Mismatch> {
    let request = &exchange.request;
    let text = |bytes: &[u8]| Datum::of_bytes(bytes.to_vec());
    let part = |name: &'static str| -> Result<_, Mismatch> {
        let value = match name {
            "body" => {
                let body = request.body.as_deref().unwrap_or_default();
                read_body(request.headers.get(b"content-type"), body, &request.work)?
            }
            "headers" => headers_object(&request.headers),
            "query" => query_object(request.query.as_deref().unwrap_or_default()),
            "method" => text(&request.method),
            "path" => text(&request.path),
            "raw_path" => text(&request.raw_path),
            "port" => Datum::json(request.host_port.unwrap_or(request.local.port())),
            "scheme" => Datum::json(request.scheme()),
            _ => match request.version {
                (1, 0) => Datum::json(1.0),
                (1, _) => Datum::json(1.1),
                (major, _) => Datum::json(major),
            },
        };
        Ok((name, value))
    };
    names.iter().map(|name| part(name)).collect()
}

/// The parts of the service's response that are used.
pub(super) fn response_parts(
    exchange: &Exchange,
    names: &[&'static str],
    max_bytes: usize,
) -> Result<MessageParts, Mismatch> {
    let response = &exchange.response;
    let body = response.replaced_body.as_deref().unwrap_or_default();
    let plain;
    let body = match response.headers.joined(b"content-encoding") {
        Some(coding) if names.iter().any(|name| name.ends_with("body")) && !body.is_empty() => {
            let unpacked = Coding::of(&coding).and_then(|coding| unpacked(coding, body, max_bytes));
            plain = unpacked.ok_or(Mismatch("a response without a coding, or in gzip or br"))?;
            plain.as_slice()
        }
        _ => body,
    };
    let part = |name: &'static str| -> Result<_, Mismatch> {
        let value = match name {
            "body" => {
                let content_type = response.headers.get(b"content-type");
                read_body(content_type, body, &exchange.request.work)?
            }
            "raw_body" => Datum::of_bytes(body.to_vec()),
            "headers" => headers_object(&response.headers),
            _ => Datum::json(response.status),
        };
        Ok((name, value))
    };
    names.iter().map(|name| part(name)).collect()
}

/// Has the service answer in a coding that can be undone here.
pub(super) fn accept_known_codings(headers: &mut Headers) {
    let Some(accepted) = headers.joined(b"accept-encoding").map(Cow::into_owned) else {
        return;
    };
    let is_known = |item: &&[u8]| {
        let end = memchr::memchr(b';', item).unwrap_or(item.len());
        let name = item[..end].trim_ascii();
        name.eq_ignore_ascii_case(b"identity") || Coding::of(name).is_some()
    };
    let items = accepted.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let known: Vec<&[u8]> = items.filter(is_known).collect();
    // Without the header, all would be accepted.
    let known = match known.is_empty() {
        true => b"identity".to_vec(),
        false => known.join(&b", "[..]),
    };
    if known != accepted {
        headers.set(b"Accept-Encoding", &known);
    }
}

/// The value of `Content-Type` among these headers.
fn content_type(changes: &HeaderChanges) -> Option<&str> {
    let own = changes
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    own.and_then(|(_, values)| values.first()).map(String::as_str)
}

/// Headers, and a body in the form that they name.
pub(super) struct Message {
    pub(super) headers: HeaderChanges,
    pub(super) body: Option<EncodedBody>,
}

impl Message {
    /// # Errors
    /// Which input is not what it must be.
    pub(super) fn of(headers: &Datum, body: &Datum) -> Result<Self, String> {
        let headers = header_changes(headers).map_err(|error| format!("`headers`: {error}"))?;
        let body = encode_body(body, content_type(&headers)).map_err(|error| format!("`body`: {error}"))?;
        Ok(Self { headers, body })
    }

    fn put_headers(&self, headers: &mut Headers) {
        if let Some(of_body) = self.body.as_ref().and_then(|body| body.content_type)
            && content_type(&self.headers).is_none()
        {
            headers.set(b"Content-Type", of_body.as_bytes());
        }
        for (name, values) in &self.headers {
            headers.remove(name.as_bytes());
            values
                .iter()
                .for_each(|value| headers.append(name.as_bytes(), value.as_bytes()));
        }
    }

    /// The answer that this is.
    pub(super) fn into_reply(self, status: u16) -> Reply {
        let content_type = match (&self.body, content_type(&self.headers)) {
            (None, _) | (_, Some(_)) => "",
            (Some(body), None) => body.content_type.unwrap_or("text/plain; charset=utf-8"),
        };
        let body = self.body.map(|body| body.bytes).unwrap_or_default();
        let mut reply = Reply::new(status, content_type, body);
        for (name, values) in self.headers {
            for value in values {
                reply = reply.with_header(name.clone(), value);
            }
        }
        reply
    }

    /// Puts it into the request to the service. Headers replace those of the call, or remove them.
    pub(super) fn put_into_request(mut self, exchange: &mut Exchange, query: &Datum) -> Result<(), String> {
        if let Some(query) = query_text(query).map_err(|error| format!("`query`: {error}"))? {
            exchange.upstream_query = Some(query.into_bytes());
        }
        // The name of the host is not a header of this call, but says which host is called.
        self.headers.retain(|(name, values)| {
            let is_host = name.eq_ignore_ascii_case("host");
            if is_host && let Some(host) = values.first() {
                exchange.upstream_host = Some(host.clone().into_bytes());
            }
            !is_host
        });
        for (name, _) in &self.headers {
            // Servers may take one with `_` for it.
            exchange.request.headers.remove_owned(name.as_bytes());
        }
        self.put_headers(&mut exchange.request.headers);
        if let Some(body) = self.body {
            exchange.request.headers.remove(b"Content-Encoding");
            set_body(&mut exchange.request, body.bytes);
        }
        Ok(())
    }

    /// Puts it into the response. One without a body has none now.
    pub(super) fn put_into_response(mut self, exchange: &mut Exchange, is_bodyless: bool) {
        let response = &mut exchange.response;
        if is_bodyless {
            self.body = None;
        }
        self.put_headers(&mut response.headers);
        if let Some(body) = self.body {
            response.headers.remove(b"Content-Encoding");
            remove_validators(&mut response.headers);
            response.content_length = Some(body.bytes.len() as u64);
            response.replaced_body = Some(body.bytes);
        }
    }
}
