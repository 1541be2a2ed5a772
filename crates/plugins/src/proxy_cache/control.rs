//! `Cache-Control` and `Expires` (RFC 9111, 5.2 and 5.3), and conditional requests.

use std::time::{Duration, UNIX_EPOCH};
use weir_plugin::Headers;

/// The directives that count here; times are in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) private: bool,
    pub(super) only_if_cached: bool,
    pub(super) max_age: Option<u64>,
    pub(super) s_maxage: Option<u64>,
    pub(super) max_stale: Option<u64>,
    pub(super) min_fresh: Option<u64>,
}

impl Control {
    /// Reads all `Cache-Control` headers.
    pub(super) fn of(headers: &Headers) -> Self {
        let mut control = Self::default();
        for value in headers.get_all(b"cache-control") {
            for directive in value.split(|byte| *byte == b',') {
                control.note(directive.trim_ascii());
            }
        }
        control
    }

    fn note(&mut self, directive: &[u8]) {
        let mut parts = directive.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let argument = parts.next().map(<[u8]>::trim_ascii);
        let seconds = || {
            let digits = argument?.strip_prefix(b"\"").unwrap_or(argument?);
            let digits = digits.strip_suffix(b"\"").unwrap_or(digits);
            std::str::from_utf8(digits).ok()?.parse().ok()
        };
        match name.to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"private" => self.private = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => self.max_age = seconds().or(self.max_age),
            b"s-maxage" => self.s_maxage = seconds().or(self.s_maxage),
            b"max-stale" => self.max_stale = seconds().or(self.max_stale),
            b"min-fresh" => self.min_fresh = seconds().or(self.min_fresh),
            _ => {}
        }
    }

    /// Whether a shared cache must not keep the response as it is.
    pub(super) fn forbids(&self) -> bool {
        self.no_store || self.no_cache || self.private
    }

    /// The seconds for which a shared cache may take the response for fresh, by what it says; 0 where it says nothing.
    pub(super) fn lifetime(&self, headers: &Headers, now_ms: u64) -> u64 {
        self.s_maxage.or(self.max_age).unwrap_or_else(|| {
            let expires = headers.get_all(b"expires").last().and_then(date);
            let now = Duration::from_millis(now_ms);
            expires.map_or(0, |expires| expires.saturating_sub(now).as_secs())
        })
    }
}

/// A date, since the Unix epoch.
fn date(text: &[u8]) -> Option<Duration> {
    let date = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok()
}

/// Whether a client that asks so has the response already (RFC 9110, 13.1.2 and 13.1.3).
pub(super) fn is_not_modified(request: &Headers, tag: Option<&[u8]>, modified: Option<&[u8]>) -> bool {
    let weak = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let mut tags = request.get_all(b"if-none-match").peekable();
    if tags.peek().is_some() {
        let Some(own) = tag.map(weak) else { return false };
        return tags
            .flat_map(|list| list.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .any(|known| known == b"*" || weak(known) == own);
    }
    let since = request.get(b"if-modified-since").and_then(date);
    since
        .zip(modified.and_then(date))
        .is_some_and(|(since, modified)| modified <= since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::default();
        lines
            .iter()
            .for_each(|(name, value)| headers.append(name.as_bytes(), value.as_bytes()));
        headers
    }

    #[test]
    fn directives_are_read() {
        let cc = |value: &str| Control::of(&headers(&[("Cache-Control", value)]));
        assert_eq!(
            cc("No-Store , max-age=5"),
            Control {
                no_store: true,
                max_age: Some(5),
                ..Control::default()
            }
        );
        assert_eq!(cc("private=\"x\", s-maxage=\"7\", max-age=x").s_maxage, Some(7));
        assert!(cc("private").forbids() && cc("no-cache").forbids() && !cc("public").forbids());
        let lifetime = |lines: &[(&str, &str)]| {
            let headers = headers(lines);
            Control::of(&headers).lifetime(&headers, 784_111_777_000)
        };
        for (lines, expected) in [
            (vec![("Cache-Control", "max-age=5, s-maxage=6")], 6),
            (vec![("Expires", "Sun, 06 Nov 1994 08:50:37 GMT")], 60),
            (vec![("Expires", "0")], 0),
            (vec![], 0),
        ] {
            assert_eq!(lifetime(&lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn conditions_are_evaluated() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let later = "Sun, 06 Nov 1994 08:50:00 GMT";
        for (request, tag, modified, expected) in [
            (
                vec![("If-None-Match", "\"a\", W/\"b\"")],
                Some("\"b\""),
                None,
                true,
            ),
            (vec![("If-None-Match", "*")], Some("\"b\""), None, true),
            (
                vec![("If-None-Match", "\"a\""), ("If-Modified-Since", later)],
                Some("\"b\""),
                Some(date),
                false,
            ),
            (vec![("If-Modified-Since", later)], None, Some(date), true),
            (vec![("If-Modified-Since", date)], None, Some(later), false),
            (vec![], Some("\"b\""), Some(date), false),
        ] {
            let found = is_not_modified(
                &headers(&request),
                tag.map(str::as_bytes),
                modified.map(str::as_bytes),
            );
            assert_eq!(found, expected, "{request:?}");
        }
    }
}
