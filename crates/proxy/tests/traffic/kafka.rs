//! Records of Kafka as the answers to calls: what a producer of the gateway's has sent is read again.

use super::support::{KafkaBroker, TestGateway, Upstream, Wire, simple_model};
use super::{call, status_and_body, text};
use serde_json::{Value, json};

const READ: &str = "GET /read HTTP/1.1\r\nHost: h\r\n\r\n";
const EVENTS: &str = "GET /events HTTP/1.1\r\nHost: h\r\n\r\n";

/// A gateway that reads for calls of `/read` and `/events`, and makes records of the paths of all others.
fn gateway(port: u16, more: &Value) -> TestGateway {
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    let mut source = json!({"port": port});
    for (name, value) in more.as_object().unwrap() {
        source[name] = value.clone();
    }
    let plugin = |config: Value| json!([{"use": {"name": "puppet", "config": config}}]);
    let mut routes = Vec::new();
    for (path, config) in [
        ("/", json!({"publish": {"kafka": port, "max_entries": 1}})),
        ("/read", json!({"read_kafka": source.clone()})),
        ("/events", json!({"read_kafka": source, "events": true})),
    ] {
        let mut route = model["routes"][0].clone();
        route["name"] = path.into();
        if path != "/" {
            route["match"] = json!([{"path": path}]);
        }
        route["plugins"] = plugin(config);
        routes.push(route);
    }
    model["routes"] = routes.into();
    TestGateway::start(model)
}

fn publish(gateway: &TestGateway, paths: &[&str]) {
    for path in paths {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(status_and_body(gateway, &request), (200, "taken".to_owned()));
    }
}

/// The words of a body, sorted: partitions come in any order.
fn words(body: &str) -> Vec<&str> {
    let mut words: Vec<&str> = body.split_terminator(';').collect();
    words.sort_unstable();
    words
}

#[test]
fn each_record_is_read_once() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({"start": "earliest", "max_records": 3}));
    publish(&gateway, &["/a", "/b", "/c", "/d"]);
    let (first, second) = (
        status_and_body(&gateway, READ).1,
        status_and_body(&gateway, READ).1,
    );
    assert_eq!((words(&first).len(), words(&second).len()), (3, 1));
    let both = format!("{first}{second}");
    assert_eq!(words(&both), ["/a", "/b", "/c", "/d"]);
    assert_eq!(status_and_body(&gateway, READ), (200, String::new()));
    // Calls at the same time get different records.
    publish(&gateway, &["/e", "/f", "/g", "/h", "/i"]);
    let read: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| status_and_body(&gateway, READ).1))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(words(&read.concat()), ["/e", "/f", "/g", "/h", "/i"]);
}

#[test]
fn the_first_call_marks_the_latest_record() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({}));
    publish(&gateway, &["/a"]);
    assert_eq!(status_and_body(&gateway, READ).1, "");
    publish(&gateway, &["/b"]);
    assert_eq!(status_and_body(&gateway, READ).1, "/b;");
}

#[test]
fn offsets_that_are_not_kept_count_for_nothing() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({"start": "earliest", "keeps": false}));
    publish(&gateway, &["/a"]);
    for _ in 0..2 {
        assert_eq!(status_and_body(&gateway, READ).1, "/a;");
    }
    assert_eq!(broker.commits(), 0);
}

#[test]
fn a_call_waits_for_a_record() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({"wait_ms": 20_000}));
    let mut reader = gateway.connect();
    reader.send(READ);
    // Its place is stored once it has begun to wait.
    super::support::eventually("the wait", || {
        publish(&gateway, &["/a"]);
        !reader.is_quiet()
    });
    let body = text(&reader.response().unwrap().body);
    assert!(
        words(&body).iter().all(|word| *word == "/a") && !body.is_empty(),
        "{body}"
    );
}

/// Errors of a broker by the number of the request, and what is told then.
#[test]
fn what_brokers_refuse_is_told_or_tried_again() {
    for (api, code, expected) in [
        // It does not lead the partition any more; the offsets are kept elsewhere, or not yet.
        (1, 6, "/a;"),
        (2, 6, "/a;"),
        (10, 15, "/a;"),
        (9, 14, "/a;"),
        (8, 16, "/a;"),
        // It is not allowed; others are members of the group.
        (1, 29, "Unavailable"),
        (10, 30, "Unavailable"),
        (8, 25, "Unavailable"),
    ] {
        let broker = KafkaBroker::start();
        let gateway = gateway(broker.port, &json!({"start": "earliest"}));
        publish(&gateway, &["/a"]);
        broker.fail_next(api, code);
        assert_eq!(status_and_body(&gateway, READ).1, expected, "{api} {code}");
        // A record that was not handed out is there for the next call.
        let rest = if expected == "/a;" { "" } else { "/a;" };
        assert_eq!(status_and_body(&gateway, READ).1, rest, "{api} {code}");
    }
}

#[test]
fn records_that_are_deleted_are_passed_over() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({"start": "earliest"}));
    publish(&gateway, &["/a"]);
    assert_eq!(status_and_body(&gateway, READ).1, "/a;");
    publish(&gateway, &["/b", "/c", "/d", "/e"]);
    broker.delete_records();
    assert_eq!(status_and_body(&gateway, READ).1, "");
}

#[test]
fn a_partition_without_a_leader_holds_up_no_other() {
    let broker = KafkaBroker::start();
    broker.take_last_offline();
    let gateway = gateway(broker.port, &json!({"start": "earliest"}));
    publish(&gateway, &["/a"]);
    assert_eq!(status_and_body(&gateway, READ), (200, "/a;".to_owned()));
}

#[test]
fn brokers_that_do_not_answer_are_told() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let waiting = gateway(port, &json!({"timeout_ms": 50}));
    assert_eq!(status_and_body(&waiting, READ).1, "Timeout");
    assert_eq!(status_and_body(&waiting, EVENTS).1, "Timeout");
    drop(silent);
    let alone = gateway(port, &json!({}));
    assert_eq!(status_and_body(&alone, READ).1, "Unavailable");
    assert_eq!(status_and_body(&alone, EVENTS).1, "Unavailable");
}

/// Reads pieces until there is one that ends so.
fn piece(client: &mut Wire, wanted: &str) {
    loop {
        let piece = text(&client.chunk().unwrap());
        match piece == wanted {
            true => return,
            false => assert!(["begin;", "idle;"].contains(&piece.as_str()), "{piece}"),
        }
    }
}

#[test]
fn streams_go_on_and_begin_again_where_they_ended() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({}));
    let mut client = gateway.connect();
    client.send(EVENTS);
    let head = client.head().unwrap();
    assert_eq!(head.get("content-type").as_deref(), Some("text/event-stream"));
    assert_eq!(head.get("connection").as_deref(), Some("close"));
    piece(&mut client, "begin;");
    piece(&mut client, "idle;");
    for path in ["/a", "/b"] {
        publish(&gateway, &[path]);
        piece(&mut client, &format!("{path};"));
    }
    // Offsets are stored behind what was sent, and before the next.
    piece(&mut client, "idle;");
    drop(client);
    publish(&gateway, &["/c"]);
    let mut client = gateway.connect();
    client.send(EVENTS);
    client.head().unwrap();
    piece(&mut client, "/c;");
    // Draining ends the stream as it should.
    let drained = gateway.drain();
    loop {
        match client.chunk().unwrap().as_slice() {
            b"" => break,
            piece => assert_eq!(text(piece), "idle;"),
        }
    }
    client.expect_end();
    drained.join().unwrap();
}

#[test]
fn a_stream_ends_with_its_brokers() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({}));
    let mut client = gateway.connect();
    client.send(EVENTS);
    client.head().unwrap();
    piece(&mut client, "idle;");
    broker.fail_next(1, 29);
    while !client.chunk().unwrap().is_empty() {}
    client.expect_end();
}

#[test]
fn old_clients_get_a_stream_until_its_connection_ends() {
    let broker = KafkaBroker::start();
    let gateway = gateway(broker.port, &json!({}));
    let mut client = gateway.connect();
    client.send("GET /events HTTP/1.0\r\nHost: h\r\n\r\n");
    let head = client.head().unwrap();
    assert_eq!(head.get("transfer-encoding"), None);
    assert_eq!(text(&client.read_through(b"idle;").unwrap())[..6], *"begin;");
    let last = call(&gateway, READ);
    assert_eq!(last.status(), 200);
}
