//! Who is met and shown what: certificates of clients, and of upstreams.

use crate::support::{SignedPair, TestGateway, Upstream, answer, simple_model, text};
use serde_json::{Value, json};

const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// The status that calls get through a gateway whose upstream shows `shown` (and asks clients for a certificate of
/// `asked`), and is met by the rules of `tls`.
fn status(shown: &SignedPair, asked: Option<&SignedPair>, tls: Value) -> u16 {
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    model["certificates"] = json!([{"names": ["*"], "key_pairs": [shown.pair()]}]);
    if let Some(asked) = asked {
        model["certificates"][0]["client"] = json!({"authorities": asked.authority});
    }
    let behind = TestGateway::start(model);
    let mut model = simple_model(behind.address);
    model["services"][0]["url"] = json!(format!("https://{}", behind.address));
    model["services"][0]["tls"] = tls;
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    client.send(GET);
    let answer = client.response().unwrap();
    if answer.status() == 200 {
        assert_eq!(text(&answer.body), "ok");
    }
    answer.status()
}

#[test]
fn upstreams_are_verified_by_default() {
    let (good, other, own) = (
        SignedPair::signed_for("a.test"),
        SignedPair::signed_for("a.test"),
        SignedPair::self_signed_authority("a.test"),
    );
    for (shown, asked, tls, wanted) in [
        (
            &good,
            None,
            json!({"authorities": good.authority, "server_name": "a.test"}),
            200,
        ),
        // The name comes from Host: the address of the server, for which the certificate is not good.
        (&good, None, json!({"authorities": good.authority}), 502),
        (
            &good,
            None,
            json!({"authorities": good.authority, "server_name": "b.test"}),
            502,
        ),
        (
            &good,
            None,
            json!({"authorities": other.authority, "server_name": "a.test"}),
            502,
        ),
        (&good, None, json!({"server_name": "a.test"}), 502),
        (&good, None, json!({"verify": false}), 200),
        (
            &own,
            None,
            json!({"authorities": own.authority, "server_name": "a.test"}),
            200,
        ),
        (
            &own,
            None,
            json!({"authorities": own.authority, "server_name": "b.test"}),
            502,
        ),
        (
            &own,
            None,
            json!({"authorities": good.authority, "server_name": "a.test"}),
            502,
        ),
        (
            &good,
            Some(&other),
            json!({"verify": false, "certificate": other.pair()}),
            200,
        ),
        (
            &good,
            Some(&other),
            json!({"verify": false, "certificate": good.pair()}),
            502,
        ),
        (&good, Some(&other), json!({"verify": false}), 502),
    ] {
        assert_eq!(status(shown, asked, tls.clone()), wanted, "{tls}");
    }
}

#[test]
fn connections_made_by_other_rules_are_not_shared() {
    let good = SignedPair::signed_for("a.test");
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    model["certificates"] = json!([{"names": ["*"], "key_pairs": [good.pair()]}]);
    let behind = TestGateway::start(model);
    let url = format!("https://{}", behind.address);
    let gateway = TestGateway::start(json!({
        "services": [
            {"name": "lax", "url": url, "tls": {"verify": false}},
            {"name": "strict", "url": url, "tls": {"authorities": good.authority}},
        ],
        "routes": [
            {"name": "lax", "match": [{"path": "/lax"}], "to": {"service": "lax"}},
            {"name": "strict", "match": [{"path": "/strict"}], "to": {"service": "strict"}},
        ],
    }));
    let mut client = gateway.connect();
    for (path, wanted) in [("/lax", 200), ("/strict", 502), ("/lax", 200), ("/strict", 502)] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        assert_eq!(client.response().unwrap().status(), wanted, "{path}");
    }
}

#[test]
fn names_from_calls_hold_for_these_calls_only() {
    let good = SignedPair::signed_for("a.test");
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    model["certificates"] = json!([{"names": ["*"], "key_pairs": [good.pair()]}]);
    let behind = TestGateway::start(model);
    let mut model = simple_model(behind.address);
    model["services"][0]["url"] = json!(format!("https://{}", behind.address));
    model["services"][0]["tls"] = json!({"authorities": good.authority});
    model["routes"][0]["match"] = json!([{"path": "/client"}]);
    model["routes"][0]["upstream_host"] = json!("client");
    let mut fixed = model["routes"][0].clone();
    fixed["name"] = json!("fixed");
    fixed["match"] = json!([{"path": "/fixed"}]);
    fixed["upstream_host"] = json!({"fixed": "a.test"});
    let mut target = fixed.clone();
    target["name"] = json!("target");
    target["match"] = json!([{"path": "/target"}]);
    target["upstream_host"] = json!("target");
    model["routes"].as_array_mut().unwrap().extend([fixed, target]);
    let gateway = TestGateway::start(model);
    let mut client = gateway.connect();
    // The certificate is good for `a.test`, and not for the target's address.
    for (path, host, wanted) in [
        ("/client", "a.test", 200),
        ("/client", "b.test", 502),
        ("/target", "a.test", 502),
        ("/fixed", "b.test", 200),
        ("/target", "a.test", 502),
        ("/client", "b.test", 502),
        ("/client", "a.test", 200),
    ] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.response().unwrap().status(), wanted, "{path} {host}");
    }
}

#[test]
fn a_host_that_asks_for_certificates_is_met_by_its_own_name_only() {
    let good = SignedPair::signed_for("a.test");
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    model["certificates"] = json!([
        {"names": ["open.test"], "key_pairs": [good.pair()]},
        {"names": ["closed.test"], "key_pairs": [good.pair()], "client": {"authorities": good.authority}},
    ]);
    let behind = TestGateway::start(model);
    for (name, host, wanted) in [
        ("open.test", "open.test", 200),
        ("open.test", "other.test", 200),
        ("open.test", "closed.test", 421),
        ("open.test", "Closed.test:443", 421),
        ("closed.test", "closed.test", 200),
        ("closed.test", "open.test", 200),
    ] {
        let mut model = simple_model(behind.address);
        model["services"][0]["url"] = json!(format!("https://{}", behind.address));
        model["services"][0]["tls"] =
            json!({"verify": false, "server_name": name, "certificate": good.pair()});
        model["routes"][0]["upstream_host"] = json!("client");
        let gateway = TestGateway::start(model);
        let mut client = gateway.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.response().unwrap().status(), wanted, "{name} {host}");
    }
}

#[test]
fn connections_that_were_made_before_a_certificate_was_asked_for_do_not_get_by_without() {
    let (good, other) = (SignedPair::signed_for("a.test"), SignedPair::signed_for("a.test"));
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let model = |asked: Option<&SignedPair>| {
        let mut model = simple_model(address);
        model["certificates"] = json!([{"names": ["a.test"], "key_pairs": [good.pair()]}]);
        if let Some(asked) = asked {
            model["certificates"][0]["client"] = json!({"authorities": asked.authority});
        }
        model
    };
    let behind = TestGateway::start(model(None));
    let mut front = simple_model(behind.address);
    front["services"][0]["url"] = json!(format!("https://{}", behind.address));
    front["services"][0]["tls"] =
        json!({"verify": false, "server_name": "a.test", "certificate": good.pair()});
    front["routes"][0]["upstream_host"] = json!("client");
    let gateway = TestGateway::start(front);
    let mut client = gateway.connect();
    let mut call = || {
        client.send(GET);
        client.response().unwrap().status()
    };
    assert_eq!(call(), 200);
    behind.publish(model(Some(&good)));
    // The connection between the gateways is an old one; it ends with this answer.
    assert_eq!([call(), call(), call()], [421, 200, 200]);
    behind.publish(model(Some(&good)));
    assert_eq!(call(), 200, "the same is asked for");
    behind.publish(model(Some(&other)));
    assert_eq!([call(), call()], [421, 502], "another authority is asked for");
}

#[test]
fn a_plugin_asks_clients_of_its_own_names_only_and_takes_any_certificate() {
    let good = SignedPair::signed_for("a.test");
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    upstream.serve(|request| answer(request.head.get("x-shown").unwrap_or_else(|| "not asked".into())));
    model["certificates"] = json!([{"names": ["open.test", "closed.test"], "key_pairs": [good.pair()]}]);
    let ask = json!([{"use": {"name": "puppet", "config": {"ask_certificate": true}}}]);
    let mut closed = model["routes"][0].clone();
    closed["name"] = json!("closed");
    closed["match"] = json!([{"hosts": ["closed.test"]}]);
    closed["plugins"] = ask;
    model["routes"].as_array_mut().unwrap().push(closed);
    let behind = TestGateway::start(model);
    // The certificate is of an authority that the gateway does not know.
    let shown = SignedPair::signed_for("client.test").pair();
    for (name, host, certificate, wanted) in [
        ("open.test", "open.test", Some(&shown), (200, "not asked")),
        ("open.test", "closed.test", Some(&shown), (421, "")),
        ("closed.test", "closed.test", Some(&shown), (200, "1")),
        ("closed.test", "closed.test", None, (200, "0")),
        ("closed.test", "open.test", None, (200, "not asked")),
    ] {
        let mut model = simple_model(behind.address);
        model["services"][0]["url"] = json!(format!("https://{}", behind.address));
        model["services"][0]["tls"] = json!({"verify": false, "server_name": name});
        if let Some(certificate) = certificate {
            model["services"][0]["tls"]["certificate"] = certificate.clone();
        }
        model["routes"][0]["upstream_host"] = json!("client");
        let gateway = TestGateway::start(model);
        let mut client = gateway.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let answer = client.response().unwrap();
        let body = if wanted.0 == 200 {
            text(&answer.body)
        } else {
            String::new()
        };
        assert_eq!(
            (answer.status(), body.as_str()),
            wanted,
            "{name} {host} {}",
            certificate.is_some()
        );
    }
}

#[test]
fn clients_without_a_certificate_get_to_exempt_paths_only() {
    let (good, other) = (SignedPair::signed_for("a.test"), SignedPair::signed_for("a.test"));
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    upstream.serve(|_| answer("ok"));
    let client = json!({"authorities": good.authority, "exempt_paths": ["^/open/", "^/health$"]});
    model["certificates"] = json!([
        {"names": ["a.test"], "key_pairs": [good.pair()], "client": client},
        {"names": ["b.test"], "key_pairs": [good.pair()]},
    ]);
    let behind = TestGateway::start(model);
    for (host, path, shown, wanted) in [
        ("a.test", "/open/a", None, 200),
        ("a.test", "/health", None, 200),
        ("a.test", "/healthy", None, 400),
        ("a.test", "/closed", None, 400),
        ("a.test", "/closed?/open/", None, 400),
        ("a.test", "/open/../closed", None, 400),
        ("a.test", "/open/%2e%2e/closed", None, 400),
        ("a.test", "/closed", Some(&good), 200),
        // Another host does not lead around it.
        ("b.test", "/closed", None, 400),
        ("b.test", "/open/a", None, 200),
        // What is shown must be good for all paths.
        ("a.test", "/open/a", Some(&other), 502),
    ] {
        let mut model = simple_model(behind.address);
        model["services"][0]["url"] = json!(format!("https://{}", behind.address));
        model["services"][0]["tls"] = json!({"verify": false, "server_name": "a.test"});
        if let Some(shown) = shown {
            model["services"][0]["tls"]["certificate"] = shown.pair();
        }
        model["routes"][0]["upstream_host"] = json!("client");
        let gateway = TestGateway::start(model);
        let mut client = gateway.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.response().unwrap().status(), wanted, "{host} {path}");
    }
}
