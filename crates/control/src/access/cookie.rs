//! The cookie of a session, and whether a call that shows it comes from a page of this server.
//!
//! Over TLS it is `__Host-weir`: browsers send it to this host alone, and take it over TLS alone. Over cleartext, which
//! is for this machine only, it is `weir`.

use axum::http::HeaderMap;
use std::time::Duration;

/// A cookie, under two names.
#[derive(Debug, Clone, Copy)]
pub struct Cookie {
    over_tls: &'static str,
    over_cleartext: &'static str,
}

/// The cookie of a session.
pub const SESSION: Cookie = Cookie {
    over_tls: "__Host-weir",
    over_cleartext: "weir",
};
/// The cookie of a browser whose user logs in at an identity provider.
pub const LOGIN: Cookie = Cookie {
    over_tls: "__Host-weir-login",
    over_cleartext: "weir-login",
};

impl Cookie {
    fn name(self, is_secure: bool) -> &'static str {
        match is_secure {
            true => self.over_tls,
            false => self.over_cleartext,
        }
    }

    /// The value that a call shows.
    pub fn value_in(self, headers: &HeaderMap, is_secure: bool) -> Option<&str> {
        let lines = headers.get_all("cookie").iter();
        let pairs = lines
            .filter_map(|it| it.to_str().ok())
            .flat_map(|it| it.split(';'));
        let mut named = pairs.filter_map(|it| it.trim().split_once('='));
        let (_, value) = named.find(|(known, _)| *known == self.name(is_secure))?;
        Some(value)
    }

    /// The header that makes a browser keep it. Pages cannot read it. It comes with links from elsewhere, as from mails
    /// and identity providers, but not with other requests of other sites.
    pub fn set(self, value: &str, is_secure: bool, lasts: Duration) -> String {
        let (name, secure) = (self.name(is_secure), if is_secure { "; Secure" } else { "" });
        let seconds = lasts.as_secs();
        format!("{name}={value}; Path=/; HttpOnly{secure}; SameSite=Lax; Max-Age={seconds}")
    }

    /// The header that makes a browser forget it.
    pub fn clear(self, is_secure: bool) -> String {
        self.set("", is_secure, Duration::ZERO)
    }
}

/// Whether a page of this server has sent this, as far as the browser says: by `Sec-Fetch-Site`, and by an `Origin`
/// that is the call's `Host`. One of them has to be there.
pub fn is_of_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| {
        let mut all = headers.get_all(name).iter();
        let first = all.next().map(|it| it.to_str().unwrap_or("?"));
        // Of several, each reader may take another.
        match all.next() {
            Some(_) => Some("?"),
            None => first,
        }
    };
    let is_site_own = text("sec-fetch-site").map(|site| site == "same-origin");
    let is_origin_own = text("origin").map(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|it| text("host").is_some_and(|host| it.eq_ignore_ascii_case(host)))
    });
    match (is_site_own, is_origin_own) {
        (None, None) => false,
        (is_same_site, origin) => is_same_site.unwrap_or(true) && origin.unwrap_or(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().expect("a value"));
        }
        map
    }

    #[test]
    fn only_pages_of_this_server_may_write_with_a_cookie() {
        const HOST: (&str, &str) = ("host", "weir.test:8002");
        for (pairs, expected) in [
            (&[HOST][..], false),
            (&[HOST, ("sec-fetch-site", "same-origin")], true),
            (&[HOST, ("sec-fetch-site", "same-site")], false),
            (&[HOST, ("sec-fetch-site", "cross-site")], false),
            (&[HOST, ("sec-fetch-site", "none")], false),
            (&[HOST, ("origin", "https://weir.test:8002")], true),
            (&[HOST, ("origin", "https://WEIR.test:8002")], true),
            (&[HOST, ("origin", "https://weir.test")], false),
            (&[HOST, ("origin", "null")], false),
            (&[("origin", "https://weir.test")], false),
            (
                &[
                    HOST,
                    ("origin", "https://evil.test"),
                    ("sec-fetch-site", "same-origin"),
                ],
                false,
            ),
            (
                &[
                    HOST,
                    ("origin", "https://weir.test:8002"),
                    ("origin", "https://evil.test"),
                ],
                false,
            ),
            (
                &[
                    HOST,
                    ("origin", "https://weir.test:8002"),
                    ("sec-fetch-site", "cross-site"),
                ],
                false,
            ),
        ] {
            assert_eq!(is_of_own_page(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn cookies_are_written_and_found() {
        assert_eq!(
            SESSION.set("x", true, Duration::from_secs(60)),
            "__Host-weir=x; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=60"
        );
        assert_eq!(
            SESSION.clear(false),
            "weir=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"
        );
        for (lines, is_secure, expected) in [
            (&[("cookie", "a=b; weir=x; __Host-weir=y")][..], false, Some("x")),
            (&[("cookie", "a=b; weir=x; __Host-weir=y")], true, Some("y")),
            (&[("cookie", "a=b"), ("cookie", "weir=x=z")], false, Some("x=z")),
            (&[("cookie", "xweir=x; weir")], false, None),
            (&[], false, None),
        ] {
            assert_eq!(
                SESSION.value_in(&headers(lines), is_secure),
                expected,
                "{lines:?}"
            );
        }
    }
}
