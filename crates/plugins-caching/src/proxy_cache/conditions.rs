//! Conditional requests (RFC 9110, 13) and requests for parts (RFC 9110, 14), answered from what is kept.

use super::control::date;
use std::ops::Range;
use weir_plugin::Headers;

/// Request headers that make a call conditional, or one for a part.
pub(super) const CONDITIONS: [&[u8]; 6] = [
    b"if-none-match",
    b"if-modified-since",
    b"if-match",
    b"if-unmodified-since",
    b"if-range",
    b"range",
];

/// Those that a cache can answer from what it keeps.
pub(super) const ANSWERABLE: [&[u8]; 2] = [b"if-none-match", b"if-modified-since"];

/// Whether the call has a condition that only the service can judge.
pub(super) fn is_for_service(request: &Headers) -> bool {
    CONDITIONS[2..].iter().any(|name| request.contains(name))
}

/// Whether a client that asks so has the response already (RFC 9110, 13.1.2 and 13.1.3).
pub(super) fn is_not_modified(request: &Headers, response: &Headers) -> bool {
    let mut tags = request.get_all(b"if-none-match").peekable();
    if tags.peek().is_some() {
        let Some(own) = response.get(b"etag").map(weak) else {
            return false;
        };
        return tags
            .flat_map(|list| list.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .any(|known| known == b"*" || weak(known) == own);
    }
    let Some(since) = request.get(b"if-modified-since").and_then(date) else {
        return false;
    };
    let modified = response.get(b"last-modified").or_else(|| response.get(b"date"));
    modified.and_then(date).is_some_and(|modified| modified <= since)
}

/// A tag without the sign that it is a weak one.
fn weak(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The part of a response that a call wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RangeResult {
    /// All of it.
    Whole,
    /// These bytes.
    Bytes(Range<usize>),
    /// One that it does not have.
    Beyond,
}

/// The requested part of a stored response of `length` bytes. If several parts are requested, the whole is returned,
/// which is valid too (RFC 9110, 14.2).
pub(super) fn part(request: &Headers, response: &Headers, length: usize) -> RangeResult {
    let Some(range) = request.get(b"range") else {
        return RangeResult::Whole;
    };
    if let Some(condition) = request.get(b"if-range") {
        // Only a strong tag, or the very date, shows that it is the same representation (RFC 9110, 13.1.5).
        let is_same = match condition.starts_with(b"\"") {
            true => response.get(b"etag") == Some(condition),
            false => !condition.starts_with(b"W/") && response.get(b"last-modified") == Some(condition),
        };
        if !is_same {
            return RangeResult::Whole;
        }
    }
    let Some(spec) = range
        .strip_prefix(b"bytes=")
        .and_then(|spec| std::str::from_utf8(spec).ok())
    else {
        return RangeResult::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-').filter(|_| !spec.contains(',')) else {
        return RangeResult::Whole;
    };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<usize>().unwrap_or(usize::MAX))
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => RangeResult::Whole,
        (Some(first), _) if first >= length => RangeResult::Beyond,
        (Some(first), Some(last)) => RangeResult::Bytes(first..last.saturating_add(1).min(length)),
        (Some(first), None) if last.is_empty() => RangeResult::Bytes(first..length),
        (None, Some(0)) if first.is_empty() => RangeResult::Beyond,
        (None, Some(_)) if first.is_empty() && length == 0 => RangeResult::Beyond,
        (None, Some(count)) if first.is_empty() => RangeResult::Bytes(length.saturating_sub(count)..length),
        _ => RangeResult::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::header_fields as headers;

    #[test]
    fn conditions_are_evaluated() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let later = "Sun, 06 Nov 1994 08:50:00 GMT";
        let (tag, modified) = (("ETag", "\"b\""), ("Last-Modified", date));
        for (request, response, expected) in [
            (vec![("If-None-Match", "\"a\", W/\"b\"")], vec![tag], true),
            (vec![("If-None-Match", "*")], vec![tag], true),
            (
                vec![("If-None-Match", "\"a\""), ("If-Modified-Since", later)],
                vec![tag, modified],
                false,
            ),
            (vec![("If-Modified-Since", later)], vec![modified], true),
            (vec![("If-Modified-Since", later)], vec![("Date", date)], true),
            (
                vec![("If-Modified-Since", date)],
                vec![("Last-Modified", later)],
                false,
            ),
            (vec![], vec![tag, modified], false),
        ] {
            let found = is_not_modified(&headers(&request), &headers(&response));
            assert_eq!(found, expected, "{request:?}");
        }
    }

    #[test]
    fn parts_are_found() {
        let response = headers(&[("ETag", "\"b\"")]);
        for (range, condition, expected) in [
            ("bytes=0-4", "", RangeResult::Bytes(0..5)),
            ("bytes=5-", "", RangeResult::Bytes(5..10)),
            ("bytes=-3", "", RangeResult::Bytes(7..10)),
            ("bytes=-30", "", RangeResult::Bytes(0..10)),
            ("bytes=8-99999999999999999999999", "", RangeResult::Bytes(8..10)),
            ("bytes=10-", "", RangeResult::Beyond),
            ("bytes=-0", "", RangeResult::Beyond),
            ("bytes=4-3", "", RangeResult::Whole),
            ("bytes=0-1,3-4", "", RangeResult::Whole),
            ("lines=0-1", "", RangeResult::Whole),
            ("bytes=a-", "", RangeResult::Whole),
            ("bytes=0-4", "\"b\"", RangeResult::Bytes(0..5)),
            ("bytes=0-4", "W/\"b\"", RangeResult::Whole),
            ("bytes=0-4", "\"c\"", RangeResult::Whole),
        ] {
            let mut request = vec![("Range", range)];
            if !condition.is_empty() {
                request.push(("If-Range", condition));
            }
            assert_eq!(part(&headers(&request), &response, 10), expected, "{request:?}");
        }
        assert_eq!(part(&headers(&[]), &response, 10), RangeResult::Whole);
    }
}
