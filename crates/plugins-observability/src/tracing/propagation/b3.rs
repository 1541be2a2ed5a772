//! B3: <https://github.com/openzipkin/b3-propagation>, in several headers and in one.

use super::{Extracted, Format, Injected, flag, span_id, trace_id};
use weir_plugin::{Headers, write_hex};

const TRACE: &[u8] = b"x-b3-traceid";
const SPAN: &[u8] = b"x-b3-spanid";
const PARENT: &[u8] = b"x-b3-parentspanid";
const SAMPLED: &[u8] = b"x-b3-sampled";
const FLAGS: &[u8] = b"x-b3-flags";
const SINGLE: &[u8] = b"b3";

/// Values that are missing in `b3` are taken from the other headers.
pub fn extract(headers: &Headers) -> Option<Extracted> {
    let single = headers.get(SINGLE).or_else(|| in_state(headers));
    let one = single.map(read_single).unwrap_or_default();
    let several = read_several(headers);
    let mut found = if one.trace_id != 0 { one } else { several };
    found.sampled = one.sampled.or(several.sampled);
    found.debug = one.debug || several.debug;
    found.of(match single {
        Some(_) => Format::B3Single,
        None => Format::B3,
    })
}

/// `b3=…` in `tracestate`, where some clients put it.
fn in_state(headers: &Headers) -> Option<&[u8]> {
    headers
        .get_all(b"tracestate")
        .find_map(|state| state.strip_prefix(b"b3="))
}

/// `TRACE-SPAN`, `TRACE-SPAN-SAMPLED`, `TRACE-SPAN-SAMPLED-PARENT`, or a decision alone.
fn read_single(text: &[u8]) -> Extracted {
    let decision = |text: &[u8]| match text {
        b"1" => (Some(true), false),
        b"0" => (Some(false), false),
        b"d" => (Some(true), true),
        _ => (None, false),
    };
    let mut parts = text.splitn(4, |byte| *byte == b'-');
    let first = parts.next().unwrap_or_default();
    let Some(second) = parts.next() else {
        let (sampled, debug) = decision(first);
        return Extracted {
            sampled,
            debug,
            ..Extracted::default()
        };
    };
    let (sampled, debug) = parts.next().map_or((None, false), decision);
    let parent = parts.next().map(span_id);
    let ids = (trace_id(first), span_id(second), parent);
    let (Some((trace_id, is_short)), Some(span_id), None | Some(Some(_))) = ids else {
        return Extracted::default();
    };
    Extracted {
        trace_id,
        span_id,
        parent_id: parent.flatten().unwrap_or_default(),
        sampled,
        debug,
        is_short,
        format: None,
    }
}

/// With one id that is broken, none is used.
fn read_several(headers: &Headers) -> Extracted {
    let debug = headers.get(FLAGS) == Some(b"1");
    let sampled = match headers.get(SAMPLED) {
        Some(b"1" | b"true") => Some(true),
        Some(b"0" | b"false") => Some(false),
        _ => None,
    };
    let decided = Extracted {
        sampled: if debug { Some(true) } else { sampled },
        debug,
        ..Extracted::default()
    };
    let ids = (
        headers.get(TRACE).map(trace_id),
        headers.get(SPAN).map(span_id),
        headers.get(PARENT).map(span_id),
    );
    let (Some(Some((trace_id, is_short))), span, parent) = ids else {
        return decided;
    };
    if span == Some(None) || parent == Some(None) {
        return decided;
    }
    Extracted {
        trace_id,
        span_id: span.flatten().unwrap_or_default(),
        parent_id: parent.flatten().unwrap_or_default(),
        is_short,
        ..decided
    }
}

/// Writes the headers.
pub fn inject(it: &Injected<'_>, headers: &mut Headers) {
    let mut digits = [0; 32];
    let length = it.trace_digits(&mut digits);
    headers.set(TRACE, &digits[..length]);
    headers.set(SPAN, &span(it.trace.upstream_id));
    match it.parent_id() {
        0 => drop(headers.remove(PARENT)),
        parent => headers.set(PARENT, &span(parent)),
    }
    // Debugging implies the decision, and not every server knows that.
    headers.set(SAMPLED, &[flag(it.trace.is_sampled || it.extracted.debug)]);
    if it.extracted.debug {
        headers.set(FLAGS, b"1");
    }
}

/// Writes the header.
pub fn inject_single(it: &Injected<'_>, headers: &mut Headers) {
    let mut digits = [0; 32];
    let length = it.trace_digits(&mut digits);
    let mut value = Vec::with_capacity(70);
    value.extend_from_slice(&digits[..length]);
    value.push(b'-');
    value.extend_from_slice(&span(it.trace.upstream_id));
    value.extend_from_slice(&[
        b'-',
        if it.extracted.debug {
            b'd'
        } else {
            flag(it.trace.is_sampled)
        },
    ]);
    let parent = it.parent_id();
    if parent != 0 {
        value.push(b'-');
        value.extend_from_slice(&span(parent));
    }
    headers.set(SINGLE, &value);
}

fn span(id: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    write_hex(&mut digits, id.into());
    digits
}
