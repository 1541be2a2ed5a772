//! The forms of Jaeger's clients and of the first OpenTracing ones.

use super::{Extracted, Format, Injected, flag, hex, only, span_id, trace_id};
use weir_plugin::{Headers, write_hex};

const JAEGER: &[u8] = b"uber-trace-id";
const OT_TRACE: &[u8] = b"ot-tracer-traceid";
const OT_SPAN: &[u8] = b"ot-tracer-spanid";
const OT_SAMPLED: &[u8] = b"ot-tracer-sampled";

/// `TRACE:SPAN:PARENT:FLAGS`, ids without leading zeros; all or nothing.
pub fn extract_jaeger(headers: &Headers) -> Option<Extracted> {
    let mut parts = only(headers, JAEGER)?.split(|byte| *byte == b':');
    let [trace, span, parent, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let number = |digits: &[u8]| u64::try_from(hex(digits, 16)?).ok();
    let found = Extracted {
        trace_id: hex(trace, 32)?,
        span_id: number(span)?,
        parent_id: number(parent)?,
        sampled: Some(hex(flags, 2)? & 1 == 1),
        is_short: trace.len() <= 16,
        ..Extracted::default()
    };
    let is_good = parts.next().is_none() && found.trace_id != 0 && found.span_id != 0;
    is_good.then_some(found)?.of(Format::Jaeger)
}

/// Writes the header.
pub fn inject_jaeger(it: &Injected<'_>, headers: &mut Headers) {
    let mut digits = [0; 32];
    let length = it.trace_digits(&mut digits);
    let mut span = [0; 16];
    let mut value = Vec::with_capacity(70);
    value.extend_from_slice(&digits[..length]);
    value.push(b':');
    write_hex(&mut span, it.trace.upstream_id.into());
    value.extend_from_slice(&span);
    value.push(b':');
    match it.parent_id() {
        0 => value.push(b'0'),
        parent => {
            write_hex(&mut span, parent.into());
            value.extend_from_slice(&span);
        }
    }
    value.extend_from_slice(&[b':', b'0', flag(it.trace.is_sampled)]);
    headers.set(JAEGER, &value);
}

/// With one id that is broken, none is used.
pub fn extract_ot(headers: &Headers) -> Option<Extracted> {
    let sampled = match headers.get(OT_SAMPLED) {
        Some(b"1" | b"true") => Some(true),
        Some(b"0" | b"false") => Some(false),
        _ => None,
    };
    let decided = Extracted {
        sampled,
        ..Extracted::default()
    };
    let ids = (
        headers.get(OT_TRACE).and_then(trace_id),
        headers.get(OT_SPAN).map(span_id),
    );
    let found = match ids {
        (Some((trace_id, is_short)), span) if span != Some(None) => Extracted {
            trace_id,
            span_id: span.flatten().unwrap_or_default(),
            is_short,
            ..decided
        },
        _ => decided,
    };
    found.of(Format::Ot)
}

/// Writes the headers. A trace's id has 64 bits here, unless the client's had more.
pub fn inject_ot(it: &Injected<'_>, headers: &mut Headers) {
    let digits = it.trace.trace_digits();
    let is_long = it.extracted.trace_id != 0 && !it.extracted.is_short;
    headers.set(OT_TRACE, if is_long { &digits } else { &digits[16..] });
    let mut span = [0; 16];
    write_hex(&mut span, it.trace.upstream_id.into());
    headers.set(OT_SPAN, &span);
    headers.set(OT_SAMPLED, &[flag(it.trace.is_sampled)]);
}
