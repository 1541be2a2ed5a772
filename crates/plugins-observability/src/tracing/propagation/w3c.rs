//! W3C Trace Context: <https://www.w3.org/TR/trace-context-1/>.

use super::{Extracted, Format, Injected, hex, only};
use weir_plugin::Headers;

const NAME: &[u8] = b"traceparent";
/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const LENGTH: usize = 55;

/// Section 3.2. Two headers count as none, and so does one with invalid syntax.
pub fn extract(headers: &Headers) -> Option<Extracted> {
    let text = only(headers, NAME)?;
    let (known, rest) = text.split_at_checked(LENGTH)?;
    let is_delimited = [2, 35, 52].into_iter().all(|place| known[place] == b'-');
    let is_lower = !known.iter().any(u8::is_ascii_uppercase);
    let version = hex(&known[..2], 2)?;
    // A later version may say more behind a further delimiter (4.3).
    let is_whole = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest[0] == b'-',
    };
    let trace_id = hex(&known[3..35], 32)?;
    let span_id = u64::try_from(hex(&known[36..52], 16)?).ok()?;
    let flags = hex(&known[53..], 2)?;
    let is_good = is_delimited && is_lower && is_whole && trace_id != 0 && span_id != 0;
    let found = is_good.then_some(Extracted {
        trace_id,
        span_id,
        sampled: Some(flags & 1 == 1),
        ..Extracted::default()
    });
    found?.of(Format::W3c)
}

/// `tracestate` belongs to a `traceparent` that was understood, and goes with it otherwise (4.3).
pub fn inject(it: &Injected<'_>, headers: &mut Headers) {
    if it.extracted.format != Some(Format::W3c) {
        headers.remove(b"tracestate");
    }
    headers.set(NAME, &it.trace.traceparent(it.trace.upstream_id));
}
