//! Filters that see trailers, and heads that wait for them.

use super::peer::{Answer, Client, Upstream, run};
use super::support::{TestGateway, patch, simple_model};
use serde_json::{Value, json};

fn gateway(upstream: &Upstream, settle: Value) -> TestGateway {
    let url = format!("h2c://{}", upstream.address);
    let plugins = json!([{"use": {"name": "puppet", "config": settle}}]);
    let changes = json!({"services": {"url": url, "retries": 0}, "routes": {"plugins": plugins}});
    TestGateway::start(patch(simple_model(upstream.address), &changes))
}

fn trailing() -> Answer {
    Answer {
        trailers: vec![("x-status", "409"), ("x-other", "1")],
        ..Answer::ok("body")
    }
}

#[test]
fn filters_take_trailers_and_change_heads_that_wait() {
    let upstream = Upstream::serve(|_| trailing());
    for (config, status, body, settled) in [
        (json!({"settle": 100}), 409, "body 409", Some("1")),
        (json!({"settle": 0}), 200, "body 409", None),
        // More than may be held is a failure of the upstream; the gateway's own answer has no trailers.
        (json!({"settle": 3}), 502, "upstream_failed ", Some("1")),
        // Or it goes on, and the head before it knows of trailers.
        (json!({"settle": 3, "lets_go": true}), 200, "body 409", Some("1")),
    ] {
        let gateway = gateway(&upstream, config);
        run(async {
            let client = Client::connect(gateway.address).await;
            let came = client.get("/", &[]).await;
            assert_eq!((came.status, came.text().as_str()), (status, body));
            assert_eq!(came.get("x-settled").as_deref(), settled);
            assert_eq!(came.trailer("x-status"), None, "the filter has taken it");
            let is_held = status != 200;
            assert_eq!(came.trailer("x-other").as_deref(), (!is_held).then_some("1"));
        });
        let mut wire = gateway.connect();
        wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let answer = wire.response().unwrap();
        assert_eq!(
            (answer.status(), answer.body.as_slice()),
            (status, body.as_bytes())
        );
    }
}

#[test]
fn a_held_answer_that_breaks_off_is_reported() {
    let upstream = Upstream::serve(|_| Answer {
        reset: Some(h2::Reason::INTERNAL_ERROR),
        ..Answer::ok("half")
    });
    let gateway = gateway(&upstream, json!({"settle": 100}));
    run(async {
        let client = Client::connect(gateway.address).await;
        assert_eq!(client.get("/", &[]).await.status, 502);
    });
}
