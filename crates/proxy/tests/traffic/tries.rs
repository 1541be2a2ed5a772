//! Retries on a status.

use super::support::{TestGateway, Upstream, answer, balanced};
use super::{GET, status_and_body};
use serde_json::{Value, json};
use std::net::SocketAddr;

const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";

fn server(play: &'static [u8]) -> (SocketAddr, impl Fn() -> usize) {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(move |_| play.to_vec());
    (address, move || seen.lock().unwrap().len())
}

#[test]
fn a_status_is_tried_elsewhere() {
    const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    const CHUNKED: &[u8] = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n";
    // `(what the bad one answers, request, service, budget, answers out of ten that are good)`
    let none = || json!(null);
    for (bad, request, service, budget, good) in [
        (
            BUSY,
            GET,
            json!({"retries": 1, "retry_statuses": [503]}),
            none(),
            10,
        ),
        (
            CHUNKED,
            GET,
            json!({"retries": 1, "retry_statuses": [502, 503]}),
            none(),
            10,
        ),
        (
            BUSY,
            GET,
            json!({"retries": 1, "retry_statuses": [502]}),
            none(),
            5,
        ),
        (
            BUSY,
            GET,
            json!({"retries": 0, "retry_statuses": [503]}),
            none(),
            5,
        ),
        (
            BUSY,
            POST,
            json!({"retries": 1, "retry_statuses": [503]}),
            none(),
            5,
        ),
        (
            BUSY,
            POST,
            json!({"retries": 1, "retry_statuses": [503], "retry_non_idempotent": true}),
            none(),
            10,
        ),
        (
            BUSY,
            GET,
            json!({"retries": 1, "retry_statuses": [503]}),
            json!({"percent": 0, "burst": 2}),
            6,
        ),
    ] {
        let ((bad, _), (fine, _)) = (
            server(bad),
            server(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"),
        );
        let changes = json!({"services": service, "upstreams": {"retry_budget": budget}});
        let gateway = TestGateway::start(balanced(&[(bad, 1), (fine, 1)], &changes));
        let answers: Vec<(u16, String)> = (0..10).map(|_| status_and_body(&gateway, request)).collect();
        let found = answers
            .iter()
            .filter(|it| **it == (200, "fine".to_owned()))
            .count();
        assert_eq!(found, good, "{changes} {request:?}: {answers:?}");
        let busy = (503, "busy".to_owned());
        assert!(answers.iter().all(|it| it.0 == 200 || *it == busy), "{answers:?}");
    }
}

#[test]
fn the_last_answer_is_passed_on_whole() {
    let body = "x".repeat(300_000);
    let upstream = Upstream::bind();
    let address = upstream.address;
    let sent = body.clone();
    let seen = upstream.serve(move |_| {
        let mut answer = answer(&sent);
        answer.splice(9..12, *b"500");
        answer
    });
    let service: Value = json!({"retries": 2, "retry_statuses": [500], "upstream": "upstream"});
    let gateway = TestGateway::start(balanced(&[(address, 1)], &json!({"services": service})));
    assert_eq!(status_and_body(&gateway, GET), (500, body));
    assert_eq!(seen.lock().unwrap().len(), 3);
    assert_eq!(gateway.totals().upstream_retries, 2);
}

#[test]
fn a_filter_has_a_refused_call_sent_once_more() {
    let large = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n{}",
        "x".repeat(300_000)
    );
    let puppet = |more: Value| {
        let mut config = json!({"repeat_on": [401]});
        for (name, value) in more.as_object().expect("options") {
            config[name] = value.clone();
        }
        config
    };
    let none = || json!(null);
    // `(what is refused, request, options of the filter, retry budget, the answer, tries, retries)`
    for (refused, request, options, budget, expected, tries) in [
        ("once", GET, json!({}), none(), (200, "fine"), 2),
        ("once", POST, json!({}), none(), (200, "fine"), 2),
        ("always", GET, json!({}), none(), (401, "who?"), 2),
        ("once", GET, json!({"repeat_on": [403]}), none(), (401, "who?"), 1),
        ("once", &large, json!({}), none(), (401, "who?"), 1),
        (
            "once",
            GET,
            json!({}),
            json!({"percent": 0, "burst": 0}),
            (401, "who?"),
            1,
        ),
    ] {
        let upstream = Upstream::bind();
        let address = upstream.address;
        let is_always = refused == "always";
        let seen = upstream.serve(
            move |request| match request.head.get("x-again").is_some() && !is_always {
                true => answer("fine"),
                false => b"HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nwho?".to_vec(),
            },
        );
        let plugins = json!([{"use": {"name": "puppet", "config": puppet(options.clone())}}]);
        let changes = json!({
            "services": {"retries": 0}, "routes": {"plugins": plugins}, "upstreams": {"retry_budget": budget},
        });
        let gateway = TestGateway::start(balanced(&[(address, 1)], &changes));
        let what = format!("{refused} {} {changes}", &request[..4]);
        assert_eq!(
            status_and_body(&gateway, request),
            (expected.0, expected.1.to_owned()),
            "{what}"
        );
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), tries, "{what}");
        assert!(
            seen.iter().all(|it| it.body == seen[0].body),
            "{what}: the body is the same"
        );
        assert_eq!(gateway.totals().upstream_retries, tries as u64 - 1, "{what}");
    }
    let (address, count) = server(b"HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nwho?");
    let plugins = json!([{"use": {"name": "puppet", "config": puppet(json!({"gives_up": true}))}}]);
    let gateway = TestGateway::start(balanced(
        &[(address, 1)],
        &json!({"routes": {"plugins": plugins}}),
    ));
    assert_eq!((status_and_body(&gateway, GET).0, count()), (502, 1));
}
