//! Spans in Zipkin's JSON, version 2: <https://zipkin.io/zipkin-api/>.

use super::attributes::Value;
use super::span::Span;
use super::span_config::Kind;
use std::net::IpAddr;
use weir_plugin::{TraceContext, write_hex};
use weir_telemetry::json;

/// What Zipkin receives about the gateway itself.
pub struct Local<'l> {
    /// The name of its service.
    pub service: &'l str,
    /// Its address and port, if they are reported.
    pub address: Option<(IpAddr, u16)>,
    /// The name of the service behind it, if it is known.
    pub remote_service: Option<&'l str>,
    /// Whether trace ids have 16 digits if their upper half is 0.
    pub shortens: bool,
}

/// Writes the spans of a call, with commas between them.
pub fn write(spans: &[Span], trace: &TraceContext, local: &Local<'_>, out: &mut Vec<u8>) {
    for (place, span) in spans.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.push(b'{');
        write_span(span, trace, local, out);
        out.push(b'}');
    }
}

fn write_span(span: &Span, trace: &TraceContext, local: &Local<'_>, out: &mut Vec<u8>) {
    let digits = trace.trace_digits();
    let is_short = local.shortens && trace.trace_id >> 64 == 0;
    field(out, "traceId", &digits[if is_short { 16 } else { 0 }..]);
    let id = |id: u64| {
        let mut digits = [0; 16];
        write_hex(&mut digits, id.into());
        digits
    };
    field(out, "id", &id(span.id));
    if span.parent_id != 0 {
        field(out, "parentId", &id(span.parent_id));
    }
    field(out, "name", span.name.as_bytes());
    match span.kind {
        Kind::Internal => {}
        Kind::Server => field(out, "kind", b"SERVER"),
        Kind::Client => field(out, "kind", b"CLIENT"),
    }
    json::name(out, "timestamp");
    json::number(out, span.start_us);
    json::name(out, "duration");
    // Zero would mean that it is not known.
    json::number(out, (span.end_us - span.start_us).max(1));
    json::name(out, "localEndpoint");
    endpoint(out, Some(local.service), local.address);
    let service = local.remote_service.filter(|_| span.is_to_service);
    if service.is_some() || span.peer.is_some() {
        json::name(out, "remoteEndpoint");
        endpoint(out, service, span.peer);
    }
    if !span.attributes.is_empty() {
        json::name(out, "tags");
        tags(out, &span.attributes);
    }
    if !span.events.is_empty() {
        json::name(out, "annotations");
        out.push(b'[');
        for (name, at) in &span.events {
            json::comma(out);
            out.push(b'{');
            json::name(out, "timestamp");
            json::number(out, *at);
            field(out, "value", name.as_bytes());
            out.push(b'}');
        }
        out.push(b']');
    }
}

/// All values are texts.
fn tags(out: &mut Vec<u8>, attributes: &[(String, Value)]) {
    out.push(b'{');
    for (place, (name, value)) in attributes.iter().enumerate() {
        // Of two with one name, JSON has room for one: the last.
        if attributes[place + 1..].iter().any(|(later, _)| later == name) {
            continue;
        }
        let text = match value {
            Value::Text(text) => text.clone(),
            Value::Whole(whole) => whole.to_string(),
            Value::Fraction(fraction) => fraction.to_string(),
            Value::Flag(flag) => flag.to_string(),
        };
        if !text.is_empty() {
            field(out, name, text.as_bytes());
        }
    }
    out.push(b'}');
}

fn endpoint(out: &mut Vec<u8>, service: Option<&str>, address: Option<(IpAddr, u16)>) {
    out.push(b'{');
    if let Some(service) = service {
        field(out, "serviceName", service.as_bytes());
    }
    if let Some((ip, port)) = address {
        let name = if ip.is_ipv4() { "ipv4" } else { "ipv6" };
        field(out, name, ip.to_string().as_bytes());
        json::name(out, "port");
        json::number(out, port);
    }
    out.push(b'}');
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    json::key(out, name);
    json::text(out, value);
}
