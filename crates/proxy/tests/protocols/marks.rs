//! What the gateway says to upstreams about a call, and to clients about itself, and what neither side can say in its
//! place.

use super::client::ALL;
use super::stand::{Stand, address};
use super::support::answer;
use serde_json::{Value, json};

/// `(fields of the client, field that the upstream sees, its values)`.
type Marked = (
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static [&'static str],
);

#[rustfmt::skip]
const MARKED: &[Marked] = &[
    (&[], "Via", &["VERSION weir"]),
    (&[("via", "1.0 first, 1.1 second")], "Via", &["1.0 first, 1.1 second, VERSION weir"]),
    (&[], "X-Forwarded-For", &["127.0.0.1"]),
    (&[("x-forwarded-for", "1.2.3.4")], "X-Forwarded-For", &["1.2.3.4, 127.0.0.1"]),
    (&[("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "5.6.7.8")], "X-Forwarded-For", &["1.2.3.4, 5.6.7.8, 127.0.0.1"]),
    (&[("x-forwarded-proto", "gopher")], "X-Forwarded-Proto", &["SCHEME"]),
    (&[("x-forwarded-host", "evil")], "X-Forwarded-Host", &["client.example"]),
    (&[("x-forwarded-port", "1")], "X-Forwarded-Port", &["PORT"]),
    (&[("x-real-ip", "1.2.3.4")], "X-Real-IP", &["127.0.0.1"]),
    (&[("x-odd!#$%&*+-.^_`|~9", "v")], "X-Odd!#$%&*+-.^_`|~9", &["v"]),
    (&[("x-inner", "a \t b")], "X-Inner", &["a \\t b"]),
    (&[("accept", "a"), ("x", "y"), ("accept", "b")], "Accept", &["a", "b"]),
    (&[("proxy-authorization", "Basic eA==")], "Proxy-Authorization", &["Basic eA=="]),
];

const HOST: (&str, &str) = ("host", "Client.Example:8000");

#[test]
fn headers_about_a_call_are_the_gateways_own() {
    for protocol in ALL {
        let stand = Stand::new();
        let port = address(&stand.gateway, protocol).port().to_string();
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|_| answer("ok"));
        for (fields, name, wanted) in MARKED {
            let fields = [&[HOST][..], *fields].concat();
            assert_eq!(
                client.call("GET", "/path", &fields, b"").unwrap().head.status,
                200
            );
            let request = seen.lock().unwrap().pop().unwrap();
            let scheme = if protocol.is_tls() { "https" } else { "http" };
            let found = request.head.all(name);
            let wanted: Vec<_> = wanted
                .iter()
                .map(|value| value.replace("SCHEME", scheme).replace("PORT", &port))
                .collect();
            let is_via = |(found, wanted): (&String, &String)| match wanted.split_once("VERSION") {
                Some((first, rest)) => found
                    .strip_prefix(first)
                    .is_some_and(|found| found.ends_with(rest) && found.len() <= rest.len() + 3),
                None => found == wanted,
            };
            assert!(
                found.len() == wanted.len() && found.iter().zip(&wanted).all(is_via),
                "{protocol:?} {name} for {fields:?}: {found:?}"
            );
        }
    }
}

/// `(field, what an outer gateway says in it, what this one says in its place)`.
#[rustfmt::skip]
const FORWARDED_FIELDS: &[(&str, &str, Option<&str>)] = &[
    ("x-forwarded-proto", "OTHER", Some("SCHEME")),
    ("x-forwarded-host", "outer.example", Some("client.example")),
    ("x-forwarded-port", "444", Some("PORT")),
    ("x-real-ip", "1.2.3.4", Some("127.0.0.1")),
    ("x-forwarded-path", "/outer", Some("/path")),
    ("x-forwarded-prefix", "/pre", None),
];

#[test]
fn what_a_trusted_peer_says_is_kept() {
    for protocol in ALL {
        let (scheme, other) = match protocol.is_tls() {
            true => ("https", "http"),
            false => ("http", "https"),
        };
        for (networks, is_kept) in [
            (json!(["127.0.0.0/8"]), true),
            (json!(["10.0.0.0/8"]), false),
            (json!([]), false),
        ] {
            let forwarded = json!({"path": true, "prefix": true, "trusted": networks});
            let stand = Stand::with(&json!({"routes": {"forwarded": forwarded}}), |_| ());
            let port = address(&stand.gateway, protocol).port().to_string();
            let fill = |value: &str| {
                value
                    .replace("OTHER", other)
                    .replace("SCHEME", scheme)
                    .replace("PORT", &port)
            };
            let client = stand.client(protocol);
            let seen = stand.upstream.serve(|_| answer("ok"));
            let headers: Vec<_> = FORWARDED_FIELDS
                .iter()
                .map(|(name, outer, _)| (*name, fill(outer)))
                .collect();
            let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
            let fields: Vec<_> = headers.chain([HOST, ("x-forwarded-for", "1.2.3.4")]).collect();
            client.call("GET", "/path", &fields, b"").unwrap();
            let head = seen.lock().unwrap().pop().unwrap().head;
            for (name, outer, own) in FORWARDED_FIELDS {
                let wanted = if is_kept { Some(*outer) } else { *own };
                assert_eq!(head.get(name), wanted.map(fill), "{protocol:?} {name} {networks}");
            }
            let hops = head.get("x-forwarded-for");
            assert_eq!(
                hops.as_deref(),
                Some("1.2.3.4, 127.0.0.1"),
                "{protocol:?} {networks}"
            );
        }
    }
}

#[test]
fn what_a_stranger_says_of_others_may_be_dropped() {
    for (networks, hops, forwarded) in [
        (json!(["127.0.0.0/8"]), "1.2.3.4, 127.0.0.1", Some("for=1.2.3.4")),
        (json!(["10.0.0.0/8"]), "127.0.0.1", None),
        (json!([]), "1.2.3.4, 127.0.0.1", None),
    ] {
        let rules = json!({"trusted": networks, "drop_forwarded": true});
        for protocol in ALL {
            let stand = Stand::with(&json!({"routes": {"forwarded": &rules}}), |_| ());
            let client = stand.client(protocol);
            let port = address(&stand.gateway, protocol).port().to_string();
            let seen = stand.upstream.serve(|_| answer("ok"));
            let fields = [
                HOST,
                ("x-forwarded-for", "1.2.3.4"),
                ("forwarded", "for=1.2.3.4"),
                ("x-forwarded-port", ""),
            ];
            client.call("GET", "/path", &fields, b"").unwrap();
            let head = seen.lock().unwrap().pop().unwrap().head;
            assert_eq!(
                head.get("x-forwarded-for").as_deref(),
                Some(hops),
                "{protocol:?} {networks}"
            );
            assert_eq!(
                head.get("forwarded").as_deref(),
                forwarded,
                "{protocol:?} {networks}"
            );
            assert_eq!(
                head.get("x-forwarded-port"),
                Some(port),
                "{protocol:?} {networks}"
            );
        }
    }
}

#[test]
fn routes_may_leave_their_marks_out() {
    let changes: Value = json!({"routes": {"forwarded": {"standard": false, "via": null}}});
    for protocol in ALL {
        let stand = Stand::with(&changes, |_| ());
        let client = stand.client(protocol);
        let seen = stand.upstream.serve(|_| answer("ok"));
        let response = client.call("GET", "/", &[("x-real-ip", "9.9.9.9")], b"").unwrap();
        let request = seen.lock().unwrap().pop().unwrap();
        for name in [
            "Via",
            "X-Forwarded-For",
            "X-Forwarded-Proto",
            "X-Forwarded-Host",
            "X-Forwarded-Port",
        ] {
            assert_eq!(request.head.all(name), [""; 0], "{protocol:?} {name}");
        }
        assert_eq!(
            request.head.get("X-Real-IP").as_deref(),
            Some("9.9.9.9"),
            "{protocol:?}"
        );
        assert_eq!(response.get("via"), None, "{protocol:?}");
    }
}

#[test]
fn the_upstreams_host_is_as_the_route_says() {
    for protocol in ALL {
        for host in [
            json!("target"),
            json!("client"),
            json!({"fixed": "fixed.example"}),
        ] {
            let stand = Stand::with(&json!({"routes": {"upstream_host": host}}), |_| ());
            let own = stand.upstream.address.to_string();
            let client = stand.client(protocol);
            let seen = stand.upstream.serve(|_| answer("ok"));
            client.call("GET", "/", &[HOST], b"").unwrap();
            let wanted = match host.as_str() {
                Some("target") => own.as_str(),
                Some(_) => HOST.1,
                None => "fixed.example",
            };
            let request = seen.lock().unwrap().pop().unwrap();
            assert_eq!(
                request.head.get("Host").as_deref(),
                Some(wanted),
                "{protocol:?} {host}"
            );
        }
    }
}

#[test]
fn answers_are_marked_too() {
    for protocol in ALL {
        for (given, wanted) in [
            ("Content-Length: 0\r\n", "1.1 weir"),
            ("Via: 1.1 inner\r\nContent-Length: 0\r\n", "1.1 inner, 1.1 weir"),
        ] {
            let stand = Stand::new();
            let client = stand.client(protocol);
            stand.upstream.serve(move |_| {
                format!("HTTP/1.1 299 Odd\r\nServer: own\r\nDate: x\r\n{given}\r\n").into_bytes()
            });
            let response = client.get("/");
            assert_eq!(response.head.status, 299, "{protocol:?}");
            for (name, value) in [("via", wanted), ("server", "own"), ("date", "x")] {
                assert_eq!(response.get(name).as_deref(), Some(value), "{protocol:?} {name}");
            }
        }
    }
}
