//! Whether a browser may have been made to send a request by another site. It matters as long as there are no users:
//! calls from this machine may do everything then.

use axum::http::HeaderMap;

/// Whether another site may have made a browser send this. Browsers say so for most requests. `Host` shows a name that
/// was made to lead here, and `Origin` a page elsewhere.
pub fn is_cross_site(headers: &HeaderMap) -> bool {
    // Of several, each reader may take another.
    let is_doubled = |name: &str| headers.get_all(name).iter().nth(1).is_some();
    if ["sec-fetch-site", "host", "origin"].into_iter().any(is_doubled) {
        return true;
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_foreign_site = text("sec-fetch-site").is_some_and(|site| !matches!(site, "none" | "same-origin"));
    let host = text("host").unwrap_or_default();
    let is_misled = !host.is_empty() && !is_here(host);
    let is_from_elsewhere = text("origin").is_some_and(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority != Some(host)
    });
    is_foreign_site || is_misled || is_from_elsewhere
}

/// Whether a `Host` names this machine by an address or as `localhost`, which no other site can make lead here.
fn is_here(host: &str) -> bool {
    let (name, rest) = match host.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((name, rest)) if name.contains(':') => (name, rest),
            _ => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let has_port_at_most = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    let is_local = name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok();
    has_port_at_most && is_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_meant_for_this_machine_is_accepted_by_an_open_admin_api() {
        for (headers, is_refused) in [
            (&[("host", "127.0.0.1:8001")][..], false),
            (&[("host", "localhost")], false),
            (&[("host", "LOCALHOST:80")], false),
            (&[("host", "[::1]")], false),
            (&[("host", "[::1]:8001")], false),
            (&[("host", "[::1].evil")], true),
            (&[("host", "[::1]evil:80")], true),
            (&[("host", "[::1]:80.evil")], true),
            (&[("host", "[::1")], true),
            (&[("host", "[localhost]")], true),
            (&[("host", "localhost:80.evil")], true),
            (&[("host", "127.0.0.1:80:evil")], true),
            (&[("host", "evil.test")], true),
            (&[("host", "127.0.0.1"), ("host", "evil.test")], true),
            (&[("host", "127.0.0.1"), ("host", "127.0.0.1")], true),
            (&[("host", "127.0.0.1"), ("origin", "http://127.0.0.1")], false),
            (&[("host", "127.0.0.1"), ("origin", "http://evil.test")], true),
            (
                &[
                    ("host", "127.0.0.1"),
                    ("origin", "http://127.0.0.1"),
                    ("origin", "http://evil.test"),
                ],
                true,
            ),
            (&[("host", "127.0.0.1"), ("sec-fetch-site", "none")], false),
            (&[("host", "127.0.0.1"), ("sec-fetch-site", "cross-site")], true),
            (
                &[
                    ("host", "127.0.0.1"),
                    ("sec-fetch-site", "none"),
                    ("sec-fetch-site", "cross-site"),
                ],
                true,
            ),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().expect("a value"));
            }
            assert_eq!(is_cross_site(&map), is_refused, "{headers:?}");
        }
    }
}
