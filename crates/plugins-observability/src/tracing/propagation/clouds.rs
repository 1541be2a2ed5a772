//! The forms of Amazon's, Google's and Datadog's tracing.

use super::{Extracted, Format, Injected, decimal, flag, hex, only, span_id};
use weir_plugin::{Headers, write_hex};

const AWS: &[u8] = b"x-amzn-trace-id";
const GCP: &[u8] = b"x-cloud-trace-context";
const DATADOG_TRACE: &[u8] = b"x-datadog-trace-id";
const DATADOG_PARENT: &[u8] = b"x-datadog-parent-id";
const DATADOG_PRIORITY: &[u8] = b"x-datadog-sampling-priority";

/// `Root=1-8 digits-24 digits;Parent=16 digits;Sampled=0|1`, in any order and with other pairs among them.
pub fn extract_aws(headers: &Headers) -> Option<Extracted> {
    let mut found = Extracted::default();
    for pair in only(headers, AWS)?.split(|byte| *byte == b';') {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        match name {
            b"Root" => {
                let is_good = value.len() == 35 && value.starts_with(b"1-") && value[10] == b'-';
                let digits = is_good.then(|| (hex(&value[2..10], 8), hex(&value[11..], 24)));
                let (Some(time), Some(rest)) = digits? else {
                    return None;
                };
                found.trace_id = time << 96 | rest;
            }
            b"Parent" => found.span_id = span_id(value)?,
            b"Sampled" => match value {
                b"0" | b"1" => found.sampled = Some(value == b"1"),
                _ => return None,
            },
            _ => {}
        }
    }
    found.of(Format::Aws)
}

/// Writes the header.
pub fn inject_aws(it: &Injected<'_>, headers: &mut Headers) {
    let digits = it.trace.trace_digits();
    let mut span = [0; 16];
    write_hex(&mut span, it.trace.upstream_id.into());
    let mut value = Vec::with_capacity(74);
    value.extend_from_slice(b"Root=1-");
    value.extend_from_slice(&digits[..8]);
    value.push(b'-');
    value.extend_from_slice(&digits[8..]);
    value.extend_from_slice(b";Parent=");
    value.extend_from_slice(&span);
    value.extend_from_slice(b";Sampled=");
    value.push(flag(it.trace.is_sampled));
    headers.set(AWS, &value);
}

/// `32 digits/DECIMAL`, and then perhaps `;o=0|1`.
pub fn extract_gcp(headers: &Headers) -> Option<Extracted> {
    let text = only(headers, GCP)?;
    let (trace, rest) = text.split_at_checked(32)?;
    let mut parts = rest.strip_prefix(b"/")?.splitn(2, |byte| *byte == b';');
    let found = Extracted {
        trace_id: hex(trace, 32)?,
        span_id: decimal(parts.next()?)?,
        sampled: Some(match parts.next() {
            None => false,
            Some(options) => match options.strip_prefix(b"o=")? {
                [digit] if digit.is_ascii_digit() => *digit == b'1',
                _ => return None,
            },
        }),
        ..Extracted::default()
    };
    (found.trace_id != 0).then_some(found)?.of(Format::Gcp)
}

/// Writes the header.
pub fn inject_gcp(it: &Injected<'_>, headers: &mut Headers) {
    let mut value = Vec::with_capacity(60);
    value.extend_from_slice(&it.trace.trace_digits());
    value.push(b'/');
    value.extend_from_slice(itoa::Buffer::new().format(it.trace.upstream_id).as_bytes());
    value.extend_from_slice(b";o=");
    value.push(flag(it.trace.is_sampled));
    headers.set(GCP, &value);
}

/// Ids are decimal numbers of 64 bits.
pub fn extract_datadog(headers: &Headers) -> Option<Extracted> {
    let sampled = match headers.get(DATADOG_PRIORITY) {
        Some(b"1" | b"2") => Some(true),
        Some(b"0" | b"-1") => Some(false),
        Some(_) => return None,
        None => None,
    };
    let id = |name: &[u8]| headers.get(name).and_then(decimal);
    let trace_id = id(DATADOG_TRACE).unwrap_or_default();
    let found = Extracted {
        trace_id: trace_id.into(),
        span_id: id(DATADOG_PARENT).filter(|_| trace_id != 0).unwrap_or_default(),
        sampled,
        is_short: true,
        ..Extracted::default()
    };
    found.of(Format::Datadog)
}

/// Writes the headers: of a long trace id its lower half.
pub fn inject_datadog(it: &Injected<'_>, headers: &mut Headers) {
    let mut number = itoa::Buffer::new();
    headers.set(DATADOG_TRACE, number.format(it.trace.trace_id as u64).as_bytes());
    headers.set(DATADOG_PARENT, number.format(it.trace.upstream_id).as_bytes());
    headers.set(DATADOG_PRIORITY, &[flag(it.trace.is_sampled)]);
}
