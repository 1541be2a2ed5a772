//! Calls that a filter sends to another upstream, host or port than their service's.

use super::support::{TestGateway, Upstream, answer, dead};
use super::{GET, status_and_body};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A server that answers with its name, and with the path and the `Host` of the request.
fn server(name: &'static str) -> SocketAddr {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(move |request| {
        let host = request.head.get("Host").unwrap_or_default();
        answer(format!("{name} {} {host}", request.head.line))
    });
    address
}

fn model(own: SocketAddr, upstreams: &[(&str, SocketAddr)], elsewhere: &Value) -> Value {
    let upstreams: Vec<Value> = upstreams
        .iter()
        .map(|(name, address)| {
            let target = json!({"host": address.ip().to_string(), "port": address.port()});
            json!({"name": name, "targets": [target]})
        })
        .collect();
    json!({
        "upstreams": upstreams,
        "services": [{"name": "service", "url": format!("http://{own}/base"), "retries": 0}],
        "routes": [{
            "name": "route",
            "match": [{}],
            "to": {"service": "service"},
            "upstream_host": "target",
            "plugins": [{"use": {"name": "puppet", "config": {"elsewhere": elsewhere}}}],
        }],
    })
}

#[test]
fn calls_go_where_the_filter_says() {
    let (own, other) = (server("own"), server("other"));
    let upstreams = [("other", other)];
    let (host, port) = (other.ip().to_string(), other.port());
    for (elsewhere, name, at) in [
        (json!({"upstream": "other"}), "other", other),
        (json!({"upstream": "none"}), "own", own),
        (
            json!({"upstream": "none", "host": host, "port": port}),
            "other",
            other,
        ),
        (json!({"port": port}), "other", other),
        (json!({}), "own", own),
    ] {
        let gateway = TestGateway::start(model(own, &upstreams, &elsewhere));
        // Twice: the second call finds an idle connection.
        for _ in 0..2 {
            let body = format!("{name} GET /base HTTP/1.1 {at}");
            assert_eq!(status_and_body(&gateway, GET), (200, body), "{elsewhere}");
        }
    }
}

#[test]
fn a_target_that_cannot_be_reached_is_reported_and_hurts_nothing_else() {
    let own = server("own");
    let port = dead().port();
    let gateway = TestGateway::start(model(own, &[], &json!({"port": port})));
    assert_eq!(status_and_body(&gateway, GET).0, 502);
    gateway.publish(model(own, &[], &json!({})));
    assert_eq!(status_and_body(&gateway, GET).0, 200);
}
