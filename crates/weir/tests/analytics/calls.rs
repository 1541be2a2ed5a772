//! The request log, and calls as they end.

use super::{FLAGS, configure, repeat};
use crate::support::{Call, Weir, until, upstream};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

fn search(weir: &Weir, query: &str) -> Vec<Value> {
    let found = Call::get(&weir.console(), &format!("/api/v1/analytics/calls?{query}")).make();
    found.expect(200).json()["calls"]
        .as_array()
        .expect("calls")
        .clone()
}

#[test]
fn single_calls_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let mut weir = Weir::start(folder.path(), &FLAGS);
    repeat(&weir.proxy(), "/ok/1?secret=1", "", 3, 200);
    repeat(&weir.proxy(), "/keyed", "X-Api-Key: alice-key\r\n", 2, 200);
    repeat(&weir.proxy(), "/keyed", "X-Api-Key: wrong\r\n", 2, 401);
    repeat(&weir.proxy(), "/broken", "", 1, 502);
    until("the calls are there", || search(&weir, "from=-5m").len() == 8);
    let of = |query: &str| search(&weir, query).len();
    for (query, count) in [
        ("status=5xx", 1),
        ("status=200", 5),
        ("consumer=alice", 2),
        ("route=keyed", 4),
        ("route=keyed&refusal=unauthenticated", 2),
        ("path=/ok", 3),
        ("service=shop", 0),
        ("from=-5m&to=-4m", 0),
        ("limit=3", 3),
    ] {
        assert_eq!(of(query), count, "{query}");
    }
    let refused = search(&weir, "status=401").remove(0);
    assert_eq!(
        [
            &refused["plugin"],
            &refused["method"],
            &refused["host"],
            &refused["agent"],
            &refused["network"]
        ],
        ["key-auth", "GET", "shop.example", "curl", "127.0.0.0/24"]
    );
    assert_eq!(refused["weight"], 1);
    let id = refused["request_id"].as_str().expect("an id").to_owned();
    assert_eq!(of(&format!("request_id={id}")), 1);
    // Calls that no plugin gave an id are found by one, too.
    let served = search(&weir, "path=/ok").remove(0);
    let its_id = served["request_id"].as_str().expect("an id").to_owned();
    assert_eq!(its_id.len(), 32, "{served}");
    assert_eq!(of(&format!("request_id={its_id}")), 1);
    assert!(!served.to_string().contains("secret"));
    for (wrong, status) in [
        ("status=red", 422),
        ("status=600", 422),
        ("status=99", 422),
        ("status=6xx", 422),
        ("status=xx", 422),
        ("limit=0", 422),
        ("limit=1001", 422),
        ("refusal=no-subscription", 422),
        ("after=1", 422),
        ("from=soon", 422),
        ("colour=1", 400),
    ] {
        let answer = Call::get(&weir.console(), &format!("/api/v1/analytics/calls?{wrong}")).make();
        assert_eq!(answer.status, status, "{wrong}: {answer:?}");
    }
    // One page after the other, and by the time that an answer says.
    let (mut paged, mut query) = (Vec::new(), "limit=3".to_owned());
    loop {
        let path = format!("/api/v1/analytics/calls?{query}");
        let found = Call::get(&weir.console(), &path).make().expect(200).json();
        paged.extend(found["calls"].as_array().expect("calls").clone());
        let Some(next) = found["next"].as_str() else {
            break;
        };
        query = format!("limit=3&after={next}");
    }
    assert_eq!(paged, search(&weir, "limit=1000"));
    let oldest = paged.last().expect("a call")["time"].as_u64().expect("a time");
    assert_eq!(of(&format!("from={oldest}")), 8);
    assert_eq!(of(&format!("to={oldest}")), 0);
    // They are still there after a restart.
    weir.signal(rustix::process::Signal::TERM);
    weir.end();
    let weir = Weir::start(folder.path(), &FLAGS);
    assert_eq!(search(&weir, &format!("request_id={id}")).len(), 1);
}

#[test]
fn calls_are_shown_as_they_end() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let weir = Weir::start(folder.path(), &FLAGS);
    let mut stream = TcpStream::connect(weir.console()).expect("connected");
    let head = format!(
        "GET /api/v1/analytics/live?status=4xx HTTP/1.1\r\nHost: {}\r\n\r\n",
        weir.console()
    );
    stream.write_all(head.as_bytes()).expect("written");
    let mut lines = BufReader::new(stream).lines();
    // The first line says that the stream has begun.
    let begun = lines.find(|line| line.as_ref().is_ok_and(|it| it == ": still here"));
    assert!(begun.is_some());
    repeat(&weir.proxy(), "/ok", "", 3, 200);
    repeat(&weir.proxy(), "/teapot/x", "", 1, 418);
    let data = lines.find_map(|line| line.expect("a line").strip_prefix("data: ").map(str::to_owned));
    let call: Value = serde_json::from_str(&data.expect("an event")).expect("JSON");
    assert_eq!(
        (&call["status"], &call["path"]),
        (&418.into(), &"/teapot/x".into())
    );
}
