//! `Cache-Control`, `Expires` and `Age` (RFC 9111, 5).

use std::time::{Duration, UNIX_EPOCH};
use weir_plugin::Headers;

/// The directives that count here; times are in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) private: bool,
    pub(super) public: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) only_if_cached: bool,
    pub(super) max_age: Option<u64>,
    pub(super) s_maxage: Option<u64>,
    pub(super) max_stale: Option<u64>,
    pub(super) min_fresh: Option<u64>,
    pub(super) stale_while_revalidate: Option<u64>,
    pub(super) stale_if_error: Option<u64>,
}

impl Control {
    /// Reads all `Cache-Control` headers.
    pub(super) fn of(headers: &Headers) -> Self {
        let mut control = Self::default();
        for value in headers.get_all(b"cache-control") {
            let mut rest = value;
            while !rest.is_empty() {
                let end = directive_end(rest);
                control.note(rest[..end].trim_ascii());
                rest = rest.get(end + 1..).unwrap_or_default();
            }
        }
        control
    }

    /// What a response says to the caches before its service alone, in `CDN-Cache-Control` (RFC 9213): in its place, and
    /// that of `Expires`. `None`: nothing, or nothing of that field's form.
    pub(super) fn targeted(headers: &Headers) -> Option<Self> {
        let mut control = Self::default();
        let mut is_there = false;
        for value in headers.get_all(b"cdn-cache-control") {
            for directive in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                let mut parts = directive.splitn(2, |byte| *byte == b'=');
                let name = parts.next().unwrap_or_default();
                let is_name = name.first().is_some_and(u8::is_ascii_lowercase);
                let is_number = |text: &[u8]| text.len() <= 15 && text.iter().all(u8::is_ascii_digit);
                let argument = parts.next();
                // Times are integers, and names stand in small letters (RFC 8941).
                let is_time = matches!(
                    name,
                    b"max-age" | b"s-maxage" | b"stale-while-revalidate" | b"stale-if-error"
                );
                if !is_name || is_time && !argument.is_some_and(|text| !text.is_empty() && is_number(text)) {
                    return None;
                }
                is_there = true;
                control.note(directive);
            }
        }
        is_there.then_some(control)
    }

    fn note(&mut self, directive: &[u8]) {
        let mut parts = directive.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default();
        let argument = parts.next();
        // Of several, the one that lets a response live shortest counts; one that makes no sense is as good as 0.
        let shortest = |known: Option<u64>| {
            let found = argument.map_or(0, seconds);
            Some(known.map_or(found, |known| known.min(found)))
        };
        match name.to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"private" => self.private = true,
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => self.max_age = shortest(self.max_age),
            b"s-maxage" => self.s_maxage = shortest(self.s_maxage),
            // Without a time, any will do.
            b"max-stale" if argument.is_none() => self.max_stale = Some(u64::MAX),
            b"max-stale" => self.max_stale = shortest(self.max_stale),
            b"min-fresh" => self.min_fresh = argument.map(seconds).max(self.min_fresh),
            b"stale-while-revalidate" => {
                self.stale_while_revalidate = shortest(self.stale_while_revalidate);
            }
            b"stale-if-error" => self.stale_if_error = shortest(self.stale_if_error),
            _ => {}
        }
    }

    /// Whether a shared cache must not keep the response at all.
    pub(super) fn forbids(&self) -> bool {
        self.no_store || self.private
    }

    /// Whether a response to a call with `Authorization` may answer calls of others (RFC 9111, 3.5).
    pub(super) fn allows_sharing(&self) -> bool {
        self.public || self.s_maxage.is_some() || self.must_revalidate
    }

    /// Whether a shared cache must not use the response once it is too old (RFC 9111, 4.2.4).
    pub(super) fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache || self.s_maxage.is_some()
    }

    /// The seconds for which a shared cache may take the response for fresh, by what it says; `None`: it does not say.
    pub(super) fn lifetime(&self, headers: &Headers, now_ms: u64) -> Option<u64> {
        self.s_maxage.or(self.max_age).or_else(|| {
            let mut expires = headers.get_all(b"expires");
            let first = expires.next()?;
            // Anything that is no date is in the past (RFC 9111, 5.3), as is more than one.
            let Some(expires) = date(first).filter(|_| expires.next().is_none()) else {
                return Some(0);
            };
            let now = headers.get(b"date").and_then(date);
            let now = now.unwrap_or(Duration::from_millis(now_ms));
            Some(expires.saturating_sub(now).as_secs())
        })
    }
}

/// The milliseconds that a response is old already when it comes (RFC 9111, 4.2.3).
pub(super) fn age_ms(headers: &Headers, now_ms: u64) -> u64 {
    let received_age = headers.get(b"age").map_or(0, |age| {
        let first = age.split(|byte| *byte == b',').next().unwrap_or_default();
        seconds(first.trim_ascii()).saturating_mul(1000)
    });
    let made = headers.get(b"date").and_then(date);
    let apparent = made.map_or(0, |made| {
        Duration::from_millis(now_ms).saturating_sub(made).as_secs()
    });
    received_age.max(apparent.saturating_mul(1000))
}

/// Where the first directive of a list ends: at a comma that is in no quotes.
fn directive_end(list: &[u8]) -> usize {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let end = list.iter().position(|byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            b'"' if !was_escaped => is_quoted = !is_quoted,
            b'\\' if is_quoted && !was_escaped => is_escaped = true,
            b',' if !is_quoted => return true,
            _ => {}
        }
        false
    });
    end.unwrap_or(list.len())
}

/// A number of seconds, perhaps in quotes; 0 for anything else, and the largest there is for what is larger
/// (RFC 9111, 1.2.2).
fn seconds(text: &[u8]) -> u64 {
    let text = text.trim_ascii();
    let bare = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
    let digits = bare.unwrap_or(text);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok().filter(|_| is_number);
    number.map_or(0, |number| number.parse().unwrap_or(u64::MAX / 2_000))
}

/// A date, since the Unix epoch.
pub(super) fn date(text: &[u8]) -> Option<Duration> {
    let date = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::header_fields as headers;

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
        assert_eq!(
            cc("ext=\"a, max-age=1\\\", no-store\", max-age=9").max_age,
            Some(9)
        );
        assert_eq!(cc("max-age=9, max-age=3").max_age, Some(3));
        assert_eq!(cc("max-stale").max_stale, Some(u64::MAX));
        assert!(cc("max-age=99999999999999999999999").max_age > Some(1 << 40));
        assert!(cc("private").forbids() && !cc("no-cache").forbids() && !cc("public").forbids());
    }

    #[test]
    fn lifetimes_and_ages_are_computed() {
        let now = 784_111_777_000;
        let (date, later) = (
            ("Date", "Sun, 06 Nov 1994 08:49:27 GMT"),
            ("Expires", "Sun, 06 Nov 1994 08:50:37 GMT"),
        );
        for (lines, lifetime, age) in [
            (
                vec![("Cache-Control", "max-age=5, s-maxage=6"), later],
                Some(6),
                0,
            ),
            (vec![("Cache-Control", "max-age=no"), later], Some(0), 0),
            (vec![later], Some(60), 0),
            (vec![later, date], Some(70), 10_000),
            (vec![later, date, ("Age", "40")], Some(70), 40_000),
            (vec![("Age", "7, 9")], None, 7_000),
            (vec![("Expires", "0")], Some(0), 0),
            (vec![], None, 0),
        ] {
            let headers = headers(&lines);
            let control = Control::of(&headers);
            assert_eq!(control.lifetime(&headers, now), lifetime, "{lines:?}");
            assert_eq!(age_ms(&headers, now), age, "{lines:?}");
        }
    }
}
