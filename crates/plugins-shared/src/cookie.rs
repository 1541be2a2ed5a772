//! Cookies that a gateway sets (RFC 6265). A long value is cut into several: `name`, `name_2`, `name_3`, … What they hold is
//! others' business.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plugin::{Headers, Request};

/// The most bytes of a cookie's value; browsers take at least 4,096 for name, value and attributes.
const CHUNK: usize = 4_000;
/// The most cookies of one value.
const MAX_CHUNKS: usize = 9;

/// Which calls from other sites carry a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum SameSite {
    /// None.
    Strict,
    /// Those that lead the browser here, such as a link.
    #[default]
    Lax,
    /// All of them; needs `secure`.
    None,
    /// As the browser decides: the cookie says nothing.
    Default,
}

/// How a cookie is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieRules {
    /// Its name.
    pub name: String,
    /// The paths for which browsers send it.
    pub path: String,
    /// The domain whose hosts get it; `None`: only the host that sets it.
    pub domain: Option<String>,
    /// Which calls from other sites carry it.
    pub same_site: SameSite,
    /// Whether scripts of pages cannot read it.
    pub http_only: bool,
    /// Whether it is only sent over TLS.
    pub secure: bool,
}

impl CookieRules {
    /// The value that a call carries, joined from its parts; `None` if there is none, or a part is missing.
    pub fn read(&self, request: &Request) -> Option<Vec<u8>> {
        let mut value = request.cookie(self.name.as_bytes())?.to_vec();
        if value.len() < CHUNK {
            return Some(value);
        }
        for number in 2..=MAX_CHUNKS {
            let Some(part) = request.cookie(self.part(number).as_bytes()) else {
                break;
            };
            value.extend_from_slice(part);
            if part.len() < CHUNK {
                break;
            }
        }
        Some(value)
    }

    /// Sets the value on a response; it lasts for `max_age` seconds, or until the browser is closed. Parts that the call
    /// carried and that are not needed any more are removed. Says whether the value is short enough.
    pub fn write(&self, request: &Request, value: &str, max_age: Option<u64>, out: &mut Headers) -> bool {
        let count = value.len().div_ceil(CHUNK).max(1);
        if count > MAX_CHUNKS {
            return false;
        }
        for (index, part) in value.as_bytes().chunks(CHUNK).enumerate() {
            self.set(index + 1, part, max_age, out);
        }
        self.remove_from(count + 1, request, out);
        true
    }

    /// Removes the cookie from the browser.
    pub fn remove(&self, request: &Request, out: &mut Headers) {
        self.remove_from(1, request, out);
    }

    /// Takes the cookie out of the request, so that upstreams do not see it. Other cookies stay.
    pub fn strip(&self, request: &mut Request) {
        let is_own = |name: &[u8]| {
            let rest = name.strip_prefix(self.name.as_bytes());
            rest.is_some_and(|rest| {
                rest.is_empty() || matches!(rest, [b'_', digit] if (b'2'..=b'9').contains(digit))
            })
        };
        let Some(cookies) = stripped(request, is_own) else {
            return;
        };
        if cookies.is_empty() {
            request.headers.remove(b"cookie");
        } else {
            request.headers.set(b"cookie", &cookies);
        }
    }

    fn part(&self, number: usize) -> String {
        match number {
            1 => self.name.clone(),
            _ => format!("{}_{number}", self.name),
        }
    }

    fn remove_from(&self, first: usize, request: &Request, out: &mut Headers) {
        for number in first..=MAX_CHUNKS {
            if request.cookie(self.part(number).as_bytes()).is_none() {
                break;
            }
            self.set(number, b"", Some(0), out);
        }
    }

    fn set(&self, number: usize, value: &[u8], max_age: Option<u64>, out: &mut Headers) {
        let mut line = self.part(number).into_bytes();
        let mut add = |parts: &[&[u8]]| parts.iter().for_each(|part| line.extend_from_slice(part));
        add(&[b"=", value, b"; Path=", self.path.as_bytes()]);
        if let Some(domain) = &self.domain {
            add(&[b"; Domain=", domain.as_bytes()]);
        }
        if let Some(seconds) = max_age {
            add(&[b"; Max-Age=", itoa::Buffer::new().format(seconds).as_bytes()]);
        }
        if self.secure {
            add(&[b"; Secure"]);
        }
        if self.http_only {
            add(&[b"; HttpOnly"]);
        }
        add(&[match self.same_site {
            SameSite::Strict => b"; SameSite=Strict".as_slice(),
            SameSite::Lax => b"; SameSite=Lax",
            SameSite::None => b"; SameSite=None",
            SameSite::Default => b"",
        }]);
        out.append(b"Set-Cookie", &line);
    }
}

/// The cookies of a call without some; `None`: it has none of these.
fn stripped(request: &Request, is_gone: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let mut is_changed = false;
    let fields = request.headers.get_all(b"cookie");
    for pair in fields.flat_map(|value| value.split(|byte| *byte == b';')) {
        let pair = pair.trim_ascii();
        let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        if is_gone(name) {
            is_changed = true;
        } else if !pair.is_empty() {
            if !kept.is_empty() {
                kept.extend_from_slice(b"; ");
            }
            kept.extend_from_slice(pair);
        }
    }
    is_changed.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::{exchange, lines, prepare};

    fn rules() -> CookieRules {
        CookieRules {
            name: "session".into(),
            path: "/".into(),
            domain: None,
            same_site: SameSite::Lax,
            http_only: true,
            secure: true,
        }
    }

    fn cookies(out: &Headers) -> String {
        let pairs = lines(out).into_iter().map(|line| {
            let line = line.strip_prefix("Set-Cookie: ").expect("a cookie").to_owned();
            line.split(';').next().unwrap_or_default().to_owned()
        });
        pairs.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn attributes_are_written() {
        let exchange = exchange();
        let mut out = Headers::default();
        assert!(rules().write(&exchange.request, "v", Some(9), &mut out));
        let other = CookieRules {
            path: "/a".into(),
            domain: Some("example.com".into()),
            same_site: SameSite::Default,
            http_only: false,
            secure: false,
            ..rules()
        };
        assert!(other.write(&exchange.request, "v", None, &mut out));
        assert_eq!(
            lines(&out),
            [
                "Set-Cookie: session=v; Path=/; Max-Age=9; Secure; HttpOnly; SameSite=Lax",
                "Set-Cookie: session=v; Path=/a; Domain=example.com",
            ]
        );
    }

    #[test]
    fn long_values_are_cut_and_put_together() {
        for length in [1, 3_999, 4_000, 4_001, 8_000, 13_000, 36_000] {
            let value = "abcdefghij".repeat(3_600)[..length].to_owned();
            let mut call = exchange();
            let mut out = Headers::default();
            assert!(rules().write(&call.request, &value, None, &mut out));
            prepare(
                &mut call,
                "GET /",
                &[("Cookie", &cookies(&out)), ("Cookie", "b=c")],
            );
            assert_eq!(
                rules().read(&call.request).as_deref(),
                Some(value.as_bytes()),
                "{length}"
            );
            // A shorter value removes what it does not need.
            let mut out = Headers::default();
            assert!(rules().write(&call.request, "x", None, &mut out));
            assert_eq!(lines(&out).len(), length.div_ceil(4_000), "{length}");
            rules().strip(&mut call.request);
            assert_eq!(lines(&call.request.headers), ["cookie: b=c"]);
        }
        let too_long = "x".repeat(36_001);
        assert!(!rules().write(&exchange().request, &too_long, None, &mut Headers::default()));
    }

    #[test]
    fn only_its_own_cookie_is_taken_out() {
        for (sent, left) in [
            ("session=x", None),
            ("a=1; session=x; b=2", Some("a=1; b=2")),
            (
                "session_x=1; xsession=2; session_1=3; session_2=4",
                Some("session_x=1; xsession=2; session_1=3"),
            ),
            ("a=1", Some("a=1")),
        ] {
            let mut call = exchange();
            prepare(&mut call, "GET /", &[("cookie", sent)]);
            rules().strip(&mut call.request);
            let found = call.request.headers.get(b"cookie");
            assert_eq!(found, left.map(str::as_bytes), "{sent}");
        }
    }
}
