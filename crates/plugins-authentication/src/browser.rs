//! Shared parts of the plugins that log browsers in: the page that a browser asked for, redirects, and refusals with a
//! plugin's own message.

use std::borrow::Cow;
use weir_plugin::{AuthFailure, Exchange, Outcome, Refusal, RefusalKind, Reply, Request};

/// Path and query of a call, as a browser is sent back to it: never to another host.
pub(crate) fn own_url(exchange: &Exchange) -> String {
    let request = &exchange.request;
    let mut url = String::from_utf8_lossy(&request.raw_path).into_owned();
    url.retain(|character| !character.is_control());
    if !url.starts_with('/') {
        url.insert(0, '/');
    }
    // Browsers take what begins with two slashes for the name of a host.
    if url[1..].starts_with(['/', '\\']) {
        url.insert_str(0, "/.");
    }
    if let Some(query) = &request.query {
        url.push('?');
        url.push_str(&String::from_utf8_lossy(query));
    }
    url.retain(|character| !character.is_control());
    url
}

/// Scheme, host and port of a call, as its browser sees them.
pub(crate) fn own_origin(request: &Request) -> String {
    let proto = request.headers.get(b"x-forwarded-proto");
    let scheme = match proto {
        Some(b"https") => "https",
        Some(b"http") => "http",
        _ => request.scheme(),
    };
    let host = String::from_utf8_lossy(&request.host);
    match request.host_port {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Sends the browser elsewhere. The answer is for this browser alone.
pub(crate) fn redirect(status: u16, location: &str) -> Outcome {
    let reply = Reply::new(status, "", Vec::new())
        .with_header("Location", location)
        .with_header("Cache-Control", "no-cache, no-store, max-age=0");
    Outcome::Reply(Box::new(reply))
}

/// Refuses with words of a plugin's own, in the form of the dialect.
pub(crate) fn refused(plugin: &'static str, status: u16, message: impl Into<Cow<'static, str>>) -> Outcome {
    let kind = match status {
        401 => RefusalKind::Unauthenticated {
            plugin,
            failure: AuthFailure::Invalid,
        },
        500.. => RefusalKind::PluginFailed {
            plugin,
            reason: "another server gives no answer that can be used",
        },
        _ => RefusalKind::Forbidden { plugin },
    };
    let mut refusal = Refusal::with_status(kind, status);
    let message = message.into();
    refusal.message = (!message.is_empty()).then(|| message.into_owned());
    Outcome::Refuse(Box::new(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::{exchange, prepare};

    #[test]
    fn browsers_are_sent_back_to_the_same_host_only() {
        for (target, expected) in [
            ("/a?b=c", "/a?b=c"),
            ("//evil.test/a", "/.//evil.test/a"),
            ("/\\evil.test", "/./\\evil.test"),
            ("/\t/evil.test", "/.//evil.test"),
            ("https://evil.test/", "/https://evil.test/"),
            ("/a?b=\r\nX: y", "/a?b=X: y"),
        ] {
            let mut call = exchange();
            prepare(&mut call, &format!("GET {target}"), &[]);
            assert_eq!(own_url(&call), expected, "{target:?}");
        }
    }
}
