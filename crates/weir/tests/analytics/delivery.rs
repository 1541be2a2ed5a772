//! Gateways that deliver their counts, and what a kill leaves behind.

use super::{FLAGS, all_calls, configure, query, repeat};
use crate::support::{Call, Weir, until, upstream};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_analytics::aggregate::{Aggregator, FinishedCall as CountedCall};

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

#[test]
fn a_kill_loses_little_and_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let flags = [&FLAGS[..], &["--name", "edge"]].concat();
    let weir = Weir::start(folder.path(), &flags);
    repeat(&weir.proxy(), "/ok", "", 500, 200);
    until("the calls are stored", || all_calls(&weir) == 500.0);
    // Calls come without a pause, so batches end in the midst of them. What came after the last batch is lost, and no
    // more.
    let mut made = 500.0;
    until("a batch ends among the calls", || {
        repeat(&weir.proxy(), "/ok", "", 20, 200);
        made += 20.0;
        all_calls(&weir) > 600.0
    });
    let stored = all_calls(&weir);
    weir.kill();
    let killed = now();
    let mut weir = Weir::start(folder.path(), &flags);
    let kept = all_calls(&weir);
    assert!((stored..=made).contains(&kept), "{stored} {kept} {made}");
    repeat(&weir.proxy(), "/ok", "", 50, 200);
    until("what was stored is still there", || {
        all_calls(&weir) == kept + 50.0
    });
    let asked = json!({ "metrics": ["calls"], "from": "-10m" });
    let answer = query(&weir, &asked);
    // A gap has the minutes in which calls are missing. How many they were, only the dead process knew.
    let [gap] = answer["gaps"].as_array().expect("gaps").as_slice() else {
        panic!("one gap: {answer}");
    };
    assert_eq!(
        (&answer["partial"], &gap["gateway"], &gap["reason"]),
        (
            &json!(true),
            &json!("edge"),
            &json!("the gateway ended without handing over its last counts")
        ),
        "{answer}"
    );
    let gap_range = gap["from"].as_u64().expect("seconds")..gap["to"].as_u64().expect("seconds");
    assert!(gap_range.contains(&killed), "{killed} {answer}");
    // One that ends as it should leaves no gap and loses nothing.
    repeat(&weir.proxy(), "/ok", "", 50, 200);
    weir.signal(rustix::process::Signal::TERM);
    weir.end();
    let weir = Weir::start(folder.path(), &flags);
    let answer = query(&weir, &asked);
    assert_eq!(answer["frames"][0]["total"]["calls"], kept + 100.0, "{answer}");
    assert_eq!(answer["gaps"].as_array().expect("gaps").len(), 1, "{answer}");
}

#[test]
fn a_batch_that_is_delivered_twice_counts_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(
        folder.path(),
        &["--role", "control", "--data", "data", "--console", "127.0.0.1:0"],
    );
    let mut aggregator = Aggregator::new("edge-1", "", now() * 1_000);
    let service = aggregator.name("shop");
    for _ in 0..7 {
        aggregator.add(&CountedCall {
            // A query in the first second of a minute does not reach into it.
            minute: (now() / 60 - 1) as u32,
            service,
            status: 200,
            ..CountedCall::default()
        });
    }
    let batch = aggregator.take_batch(now(), false).encode();
    let deliver = |gateway: &str, bytes: &[u8]| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let call = weir_control::http::ClientRequest {
            method: weir_control::http::Method::POST,
            body: bytes.to_vec(),
            ..weir_control::http::ClientRequest::get(format!(
                "http://{}/api/v1/gateways/{gateway}/analytics",
                weir.console()
            ))
        };
        let (status, body) = runtime
            .expect("a runtime")
            .block_on(call.make())
            .expect("an answer");
        (status.as_u16(), String::from_utf8_lossy(&body).into_owned())
    };
    assert_eq!(
        deliver("edge-1", &batch),
        (200, "{\"duplicate\":false}".to_owned())
    );
    for _ in 0..3 {
        assert_eq!(
            deliver("edge-1", &batch),
            (200, "{\"duplicate\":true}".to_owned())
        );
    }
    assert_eq!(all_calls(&weir), 7.0);
    assert_eq!(deliver("edge-2", &batch).0, 400, "it is one of another gateway");
    assert_eq!(
        deliver("edge-1", &batch[..batch.len() - 1]).0,
        400,
        "it is cut short"
    );
    let mut other = Aggregator::new("edge-1", "", 0);
    other.note_dropped(1);
    let mut other = other.take_batch(now(), false);
    other.run = weir_analytics::batch::Batch::decode(&batch).expect("a batch").run;
    assert_eq!(
        deliver("edge-1", &other.encode()).0,
        409,
        "another one under the same number"
    );
    assert_eq!(all_calls(&weir), 7.0);
}

#[test]
fn gateways_deliver_and_wait_while_the_control_plane_is_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut control_flags = [
        "--role",
        "control",
        "--data",
        "control",
        "--console",
        "127.0.0.1:0",
    ];
    let control = Weir::start(folder.path(), &control_flags);
    let console = control.address("Weir's API on http://");
    // It comes back at the same address.
    control_flags[5] = &console;
    let resource = json!({
        "name": "own", "url": "http://127.0.0.1:1",
        "routes": [{ "name": "ok", "paths": ["/ok"], "plugins": [{ "request-termination": { "status": 200 } }] }],
    });
    Call::new("PUT", &console, "/api/v1/resources/services/own")
        .body(&resource.to_string())
        .make()
        .expect(201);
    let url = format!("http://{console}");
    let flags = [
        "--role",
        "gateway",
        "--control",
        &url,
        "--data",
        "edge",
        "--name",
        "edge",
        "--analytics-interval",
        "1",
    ];
    let gateway = Weir::start(folder.path(), &flags);
    until("it is served", || {
        crate::support::status_of(&gateway.proxy(), "/ok") == Some(200)
    });
    let before = 100_000.0;
    repeat(&gateway.proxy(), "/ok", "", 400, 200);
    until("the calls are delivered", || {
        let calls = super::totals(&control, "calls", "route", &json!({ "route": "ok" }));
        calls
            .get("ok")
            .is_some_and(|calls| *calls >= 401.0 && *calls < before)
    });
    // Single calls are found there, too.
    until("lines of the request log are delivered", || {
        let path = "/api/v1/analytics/calls?route=ok";
        let found = Call::get(&control.console(), path).make().expect(200).json();
        let calls = found["calls"].as_array().expect("a list");
        calls
            .iter()
            .any(|call| call["gateway"] == "edge" && call["status"] == 200)
    });
    let count_of = |control: &Weir| super::totals(control, "calls", "route", &json!({ "route": "ok" }))["ok"];
    let first = count_of(&control);
    control.kill();
    repeat(&gateway.proxy(), "/ok", "", 300, 200);
    let waiting =
        || std::fs::read_dir(folder.path().join("edge/analytics/backlog")).map_or(0, Iterator::count);
    until("batches wait on disk", || waiting() > 1);
    // The gateway is killed, too; what waits is delivered by the next one.
    gateway.kill();
    let control = Weir::start(folder.path(), &control_flags);
    let gateway = Weir::start(folder.path(), &flags);
    until("what waited is delivered", || {
        count_of(&control) == first + 300.0 && waiting() == 0
    });
    repeat(&gateway.proxy(), "/ok", "", 10, 200);
    until("and what came after", || count_of(&control) == first + 310.0);
}

/// What a gateway delivers of its request log is bounded, is in its name, and is of now.
#[test]
fn lines_of_the_request_log_are_taken_as_gateways_write_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(
        folder.path(),
        &["--role", "control", "--data", "data", "--console", "127.0.0.1:0"],
    );
    let line = |time: u64, path: &str| {
        let call = weir_analytics::calls::CallLine {
            time,
            weight: 1,
            status: 200,
            gateway: "another".into(),
            path: path.into(),
            ..Default::default()
        };
        json!(call)
    };
    let now_ms = now() * 1_000;
    let good = line(now_ms, "/good");
    for (calls, status, taken) in [
        (vec![good.clone()], 200, 1),
        (vec![], 200, 0),
        (
            vec![line(now_ms - 7_200_000, "/old"), line(now_ms + 3_600_000, "/new")],
            200,
            0,
        ),
        (vec![good.clone(); 501], 400, 0),
        (vec![line(now_ms, &"a".repeat(20_000))], 400, 0),
        (vec![json!({ "time": "now" })], 422, 0),
    ] {
        let body = json!({ "calls": calls }).to_string();
        let call = Call::new("POST", &weir.console(), "/api/v1/gateways/edge/calls").body(&body);
        let answer = call.make().expect(status);
        if status == 200 {
            assert_eq!(answer.json(), json!({ "taken": taken }));
        }
    }
    let found = Call::get(&weir.console(), "/api/v1/analytics/calls");
    let found = found.make().expect(200).json();
    let found: Vec<_> = found["calls"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (it["gateway"].clone(), it["path"].clone()))
        .collect();
    assert_eq!(found, [(json!("edge"), json!("/good"))]);
}

/// The defect: calls that no route takes were of no environment, so those of a gateway whose token is good for one
/// environment were missing in the request log.
#[test]
fn unmatched_calls_of_a_gateway_belong_to_the_environment_that_it_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = Weir::start(
        folder.path(),
        &["--role", "control", "--data", "data", "--console", "127.0.0.1:0"],
    );
    let made = control.ask(None, &["user", "add", "root", "--role", "admin"]);
    let root = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let call = |method: &str, path: &str| {
        let call = Call::new(method, &control.console(), path);
        call.header("Authorization", &format!("Bearer {root}"))
    };
    call("PUT", "/api/v1/environments/test")
        .body("{}")
        .make()
        .expect(201);
    let rights = json!({ "rights": [{ "role": "gateway", "environment": "test" }] });
    let edge = call("POST", "/api/v1/users/edge").body(&rights.to_string());
    let edge = edge.make().expect(201).json();
    let token = edge["token"].as_str().expect("a token");
    let url = format!("http://{}", control.console());
    let role = ["--role", "gateway", "--control", &url, "--name", "edge"];
    let place = ["--environment", "test", "--analytics", "edge"];
    let gateway = Weir::start_with(
        folder.path(),
        &[&role[..], &place[..]].concat(),
        &[("WEIR_TOKEN", token)],
    );
    repeat(&gateway.proxy(), "/nothing", "", 1, 404);
    until("the line is there", || {
        let path = "/api/v1/analytics/calls?refusal=no_route";
        let found = call("GET", path).make().expect(200).json();
        let calls = found["calls"].as_array().expect("a list");
        calls
            .iter()
            .any(|it| it["gateway"] == "edge" && it["environment"] == "test")
    });
}
