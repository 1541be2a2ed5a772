//! What peers say of others, which the gateway replaces before it looks for routes; and whose `Host` counts.

use crate::support::{TestGateway, Upstream, answer, patch, simple_model};
use serde_json::{Value, json};
use std::net::SocketAddr;

const FORGED: &str = "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.test\r\n\
                      X-Forwarded-Port: 8443\r\nForwarded: for=1.2.3.4\r\n";

/// A gateway that settles what peers say, and has one route for calls of which this holds.
fn gateway(upstream: SocketAddr, trusted: &Value, when: &Value) -> TestGateway {
    let changes = json!({
        "dialect_settings": [{"forwarded_from": trusted}],
        "routes": {
            "match": [{"when": when}],
            "upstream_host": "client",
            "forwarded": {"host_as_written": true, "drop_forwarded": true, "default_host": "localhost", "trusted": trusted},
        },
    });
    TestGateway::start(patch(simple_model(upstream), &changes))
}

#[test]
fn what_untrusted_peers_say_is_gone_before_anything_looks() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let (none, others, this) = (json!([]), json!(["10.0.0.0/8"]), json!(["127.0.0.0/8"]));
    for (trusted, when, status) in [
        (&none, json!(["http_x_forwarded_for", "==", "9.9.9.9"]), 200),
        (&none, json!(["http_x_forwarded_proto", "==", "https"]), 404),
        (&none, json!(["http_x_forwarded_proto", "==", "http"]), 200),
        (&none, json!(["http_forwarded", "~~", "for="]), 404),
        (&others, json!(["http_x_forwarded_for", "==", "9.9.9.9"]), 404),
        (
            &others,
            json!(["http_x_forwarded_host", "==", "Client.Example:8000"]),
            200,
        ),
        (&others, json!(["http_x_forwarded_port", "==", "8000"]), 200),
        (&this, json!(["http_x_forwarded_for", "==", "9.9.9.9"]), 200),
        (&this, json!(["http_x_forwarded_proto", "==", "https"]), 200),
        (&this, json!(["http_forwarded", "~~", "for="]), 200),
    ] {
        let gateway = gateway(address, trusted, &when);
        let mut client = gateway.connect();
        client.send(format!(
            "GET /path HTTP/1.1\r\nHost: Client.Example:8000\r\n{FORGED}\r\n"
        ));
        let response = client.response_to("GET").unwrap();
        assert_eq!(response.head.status(), status, "{trusted} {when}");
    }
}

/// Routes and plugins see paths as a servlet container does, which gets them as they came.
#[test]
fn path_parameters_count_for_the_upstream_only() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let service = |name: &str| json!({"name": name, "url": format!("http://{address}")});
    let route = |name: &str, path: &str, strip: bool| {
        json!({
            "name": name, "match": [{"path": path}], "to": {"service": name},
            "path": {"strip_matched": strip, "base": (name == "based").then_some("/base")},
        })
    };
    let gateway = TestGateway::start(json!({
        "dialect_settings": [{"strips_path_parameters": true}],
        "services": [service("plain"), service("based"), service("stripped")],
        "routes": [
            route("plain", "=/a/b", false),
            route("based", "=/based", false),
            route("stripped", "/stripped", true),
        ],
    }));
    let mut client = gateway.connect();
    for (target, wanted) in [
        ("/a/b", Ok("/a/b")),
        ("/a;x=1/b;y?q;z", Ok("/a;x=1/b;y?q;z")),
        ("/a/b;", Ok("/a/b;")),
        ("/based;x", Ok("/base/based;x")),
        ("/stripped;x/y;z", Ok("/y")),
        ("/a/b;x/", Err(404)),
        ("/c/..;/a/b", Err(400)),
        ("/a/.;/b", Err(400)),
        ("/a/;/b", Err(400)),
    ] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let status = client.response_to("GET").unwrap().head.status();
        match wanted {
            Ok(line) => {
                assert_eq!(status, 200, "{target}");
                let found = seen.lock().unwrap().pop().expect("a call").head.line;
                assert_eq!(found, format!("GET {line} HTTP/1.1"), "{target}");
            }
            Err(wanted) => assert_eq!(status, wanted, "{target}"),
        }
    }
}

/// Routes, plugins and variables see paths without it; the upstream gets paths as they came.
#[test]
fn a_slash_at_the_end_counts_for_the_upstream_only() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let mark = |path: &str, status: u16| json!({"use": {"name": "puppet", "when": ["uri", "==", path], "config": {"status": status}}});
    let gateway = TestGateway::start(json!({
        "dialect_settings": [{"drops_tail_slash": true}],
        "services": [{"name": "s", "url": format!("http://{address}")}],
        "routes": [
            {"name": "r", "match": [{"path": "/a"}], "to": {"service": "s"}},
            {"name": "x", "match": [{"path": "=/x"}], "to": {"service": "s"},
             "plugins": [mark("/x", 201), mark("/x/", 202)]},
            {"name": "y", "match": [{"path": "=/y/"}], "to": {"service": "s"}},
        ],
    }));
    let mut client = gateway.connect();
    for (target, wanted) in [
        ("/a/", Ok((200, "/a/"))),
        ("/a/b/?q", Ok((200, "/a/b/?q"))),
        ("/a/./b/", Ok((200, "/a/b/"))),
        ("/x", Ok((201, "/x"))),
        ("/x/?q", Ok((201, "/x/?q"))),
        ("/y", Err(404)),
        ("/y/", Err(404)),
        ("/", Err(404)),
    ] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let status = client.response_to("GET").unwrap().head.status();
        match wanted {
            Ok((wanted, line)) => {
                assert_eq!(status, wanted, "{target}");
                let found = seen.lock().unwrap().pop().expect("a call").head.line;
                assert_eq!(found, format!("GET {line} HTTP/1.1"), "{target}");
            }
            Err(wanted) => assert_eq!(status, wanted, "{target}"),
        }
    }
}

/// For conditions and keys of limits, `-` and `_` are one.
#[test]
fn twins_of_what_untrusted_peers_say_are_gone_too() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let (others, this) = (json!(["10.0.0.0/8"]), json!(["127.0.0.0/8"]));
    for (name, variable) in [
        ("X_Forwarded_For", "http_x_forwarded_for"),
        ("x-forwarded_for", "http_x_forwarded_for"),
        ("X_Forwarded_Host", "http_x_forwarded_host"),
        ("X-Forwarded_Proto", "http_x_forwarded_proto"),
        ("X_FORWARDED_PORT", "http_x_forwarded_port"),
    ] {
        for (trusted, status) in [(&others, 404), (&this, 200)] {
            let gateway = gateway(address, trusted, &json!([variable, "==", "forged"]));
            let mut client = gateway.connect();
            client.send(format!(
                "GET /path HTTP/1.1\r\nHost: client.example\r\n{name}: forged\r\n\r\n"
            ));
            let response = client.response_to("GET").unwrap();
            let is_settled = name != "X_Forwarded_For" && name != "x-forwarded_for";
            // What a trusted peer leaves out is filled in, and read first.
            let status = if is_settled { 404 } else { status };
            assert_eq!(response.head.status(), status, "{trusted} {name}");
        }
    }
}

#[test]
fn upstreams_get_the_forwarded_headers_that_routes_saw() {
    let names = [
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "X-Forwarded-Port",
        "Forwarded",
    ];
    let (none, others, this) = (json!([]), json!(["10.0.0.0/8"]), json!(["127.0.0.0/8"]));
    let authority = "Client.Example:8000";
    for (trusted, version, fields, wanted) in [
        (
            &none,
            "1.1",
            FORGED,
            ["9.9.9.9, 127.0.0.1", "http", authority, "8000", ""],
        ),
        (
            &others,
            "1.1",
            FORGED,
            ["127.0.0.1", "http", authority, "8000", ""],
        ),
        (
            &this,
            "1.1",
            FORGED,
            ["9.9.9.9, 127.0.0.1", "https", "evil.test", "8443", "for=1.2.3.4"],
        ),
        (
            &this,
            "1.1",
            "X-Forwarded-Proto:\r\n",
            ["127.0.0.1", "http", authority, "8000", ""],
        ),
        (&none, "1.0", "", ["127.0.0.1", "http", "localhost", "PORT", ""]),
        (
            &others,
            "1.0",
            FORGED,
            ["127.0.0.1", "http", "localhost", "PORT", ""],
        ),
    ] {
        let upstream = Upstream::bind();
        let gateway = gateway(upstream.address, trusted, &json!(["uri", "==", "/path"]));
        let host = if version == "1.0" {
            String::new()
        } else {
            format!("Host: {authority}\r\n")
        };
        let mut client = gateway.connect();
        client.send(format!("GET /path HTTP/{version}\r\n{host}{fields}\r\n"));
        let mut server = upstream.accept();
        let seen = server.request().unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let port = gateway.address.port().to_string();
        for (name, wanted) in names.iter().zip(wanted) {
            let wanted = wanted.replace("PORT", &port);
            assert_eq!(
                seen.head.get(name).unwrap_or_default(),
                wanted,
                "{name} {trusted} {version} {fields}"
            );
        }
    }
}

#[test]
fn a_filters_host_may_give_way_to_the_upstreams() {
    let upstream = Upstream::bind();
    let own = upstream.address.to_string();
    for (route_host, yields, wanted) in [
        (json!("client"), true, "filter.test"),
        (json!("target"), false, "filter.test"),
        (json!("target"), true, own.as_str()),
        (json!({"fixed": "fixed.test"}), true, "fixed.test"),
    ] {
        let changes = json!({"routes": {
            "upstream_host": route_host,
            "plugins": [{"use": {"name": "puppet", "config": {"host": "filter.test", "host_yields": yields}}}],
        }});
        let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
        let mut client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: client.test\r\n\r\n");
        let mut server = upstream.accept();
        let seen = server.request().unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(
            seen.head.get("Host").as_deref(),
            Some(wanted),
            "{route_host} {yields}"
        );
    }
}

#[test]
fn a_reply_has_one_content_type() {
    let upstream = Upstream::bind();
    let changes = json!({"routes": {"plugins": [{"use": {"name": "puppet", "config": {
        "reply": "own", "reply_headers": [["content-type", "application/xml"], ["X-A", "1"], ["X-A", "2"]],
    }}}]}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: client.test\r\n\r\n");
    let response = client.response_to("GET").unwrap();
    assert_eq!(
        response.head.get("Content-Type").as_deref(),
        Some("application/xml")
    );
    assert_eq!(response.head.all("X-A"), ["1", "2"]);
}

/// The rules of one dialect must not change what the tables of others see.
#[test]
fn what_one_table_settles_the_next_one_does_not_see() {
    let upstream = Upstream::bind();
    let changes = json!({
        "dialect_settings": [{"dialect": "apisix", "forwarded_from": []}],
        "routes": [
            {
                "name": "of another dialect",
                "dialect": "apisix",
                "match": [{"when": ["http_x_forwarded_proto", "==", "https"]}],
                "to": {"service": "service"},
            },
            {
                "name": "route",
                "dialect": "kong",
                "match": [{"when": ["http_x_forwarded_proto", "==", "https"]}],
                "forwarded": {"trusted": ["127.0.0.0/8"]},
                "to": {"service": "service"},
            },
        ],
    });
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut client = gateway.connect();
    client.send(format!("GET /path HTTP/1.1\r\nHost: client.test\r\n{FORGED}\r\n"));
    let mut server = upstream.accept();
    let seen = server.request().unwrap();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    for (name, wanted) in [
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.test"),
        ("Forwarded", "for=1.2.3.4"),
    ] {
        assert_eq!(seen.head.get(name).as_deref(), Some(wanted), "{name}");
    }
}

/// Kong's: the gateway adds itself to the list of either direction.
#[test]
fn the_gateway_adds_itself_to_via() {
    let upstream = Upstream::bind();
    let changes = json!({"routes": {"forwarded": {"via": "gate"}}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut client = gateway.connect();
    let mut server = None;
    for (line, wanted) in [
        ("", "1.1 gate"),
        ("Via: 1.0 a\r\nvia: 1.1 b\r\n", "1.0 a, 1.1 b, 1.1 gate"),
    ] {
        client.send(format!("GET / HTTP/1.1\r\nHost: client.test\r\n{line}\r\n"));
        let server = server.get_or_insert_with(|| upstream.accept());
        let seen = server.request().unwrap();
        assert_eq!(seen.head.all("Via"), [wanted], "{line}");
        server.send(format!("HTTP/1.1 200 OK\r\n{line}Content-Length: 0\r\n\r\n"));
        let response = client.response_to("GET").unwrap();
        assert_eq!(response.head.all("Via"), [wanted], "{line}");
    }
}
