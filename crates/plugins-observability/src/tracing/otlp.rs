//! Spans in OTLP: Protocol Buffers, written field by field as `opentelemetry/proto/trace/v1/trace.proto` numbers them.
//!
//! An entry is the spans of one call, as fields of a `ScopeSpans`; the engine puts the entries of a batch one behind
//! the other and nests them into one `ExportTraceServiceRequest`.

use super::attributes::Value;
use super::span::Span;
use super::span_config::Kind;
use weir_plugin::{ProtobufWrapper, TraceContext};

/// Kinds of values on the wire.
const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const FIXED32: u8 = 5;

/// `ScopeSpans.spans`.
const SPANS: u8 = 2;
/// `ResourceSpans.scope_spans`.
const SCOPE_SPANS: u8 = 2;
/// `ExportTraceServiceRequest.resource_spans`.
const RESOURCE_SPANS: u8 = 1;

/// Writes the spans of a call.
pub fn write(spans: &[Span], trace: &TraceContext, out: &mut Vec<u8>) {
    for span in spans {
        message(out, SPANS, |out| write_span(span, trace, out));
    }
}

/// What stands around the spans of a batch: the scope, and the resource with these attributes.
pub fn nesting(resource: &[(String, Value)]) -> Vec<ProtobufWrapper> {
    let mut scope = Vec::new();
    message(&mut scope, 1, |out| {
        bytes(out, 1, b"weir");
        bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
    });
    let mut body = Vec::new();
    message(&mut body, 1, |out| attributes(out, 1, resource));
    vec![
        ProtobufWrapper {
            before: scope,
            key: SCOPE_SPANS << 3 | BYTES,
        },
        ProtobufWrapper {
            before: body,
            key: RESOURCE_SPANS << 3 | BYTES,
        },
    ]
}

fn write_span(span: &Span, trace: &TraceContext, out: &mut Vec<u8>) {
    bytes(out, 1, &trace.trace_id.to_be_bytes());
    bytes(out, 2, &span.id.to_be_bytes());
    if span.parent_id != 0 {
        bytes(out, 4, &span.parent_id.to_be_bytes());
    }
    bytes(out, 5, span.name.as_bytes());
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    number(out, 6, kind);
    fixed64(out, 7, span.start_us.saturating_mul(1000));
    fixed64(out, 8, span.end_us.saturating_mul(1000));
    attributes(out, 9, &span.attributes);
    for (name, at) in &span.events {
        message(out, 11, |out| {
            fixed64(out, 1, at.saturating_mul(1000));
            bytes(out, 2, name.as_bytes());
        });
    }
    if let Some(error) = &span.error {
        message(out, 15, |out| {
            bytes(out, 2, error.as_bytes());
            number(out, 3, 2);
        });
    }
    // The flags of W3C: it is sampled.
    varint(out, u64::from(16_u8) << 3 | u64::from(FIXED32));
    out.extend_from_slice(&1_u32.to_le_bytes());
}

fn attributes(out: &mut Vec<u8>, field: u8, attributes: &[(String, Value)]) {
    for (name, value) in attributes {
        message(out, field, |out| {
            bytes(out, 1, name.as_bytes());
            message(out, 2, |out| match value {
                Value::Text(text) => bytes(out, 1, text.as_bytes()),
                Value::Flag(flag) => number(out, 2, u64::from(*flag)),
                Value::Whole(whole) => number(out, 3, *whole as u64),
                Value::Fraction(fraction) => fixed64(out, 4, fraction.to_bits()),
            });
        });
    }
}

/// A field that is a message; its length is known once it is written.
fn message(out: &mut Vec<u8>, field: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(field << 3 | BYTES);
    let start = out.len();
    write(out);
    let length = out.len() - start;
    let mut prefix = [0; 10];
    let count = varint_bytes(length as u64, &mut prefix);
    out.extend_from_slice(&prefix[..count]);
    out[start..].rotate_right(count);
}

fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3 | VARINT);
    varint(out, value);
}

fn fixed64(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3 | FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; 10];
    let count = varint_bytes(value, &mut bytes);
    out.extend_from_slice(&bytes[..count]);
}

/// Groups of seven bits, the lowest first; gives their number.
fn varint_bytes(mut value: u64, bytes: &mut [u8; 10]) -> usize {
    let mut count = 0;
    while value > 0x7f {
        bytes[count] = value as u8 | 0x80;
        value >>= 7;
        count += 1;
    }
    bytes[count] = value as u8;
    count + 1
}
