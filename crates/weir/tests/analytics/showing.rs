//! What boards are made of, against a started Weir: marks of commits, boards that are saved, and what is kept of callers
//! and clients.

use super::{FLAGS, configure, query, repeat, totals};
use crate::support::{Call, Weir, until, upstream};
use serde_json::{Value, json};

#[test]
fn a_commit_is_a_mark_that_leads_to_its_diff() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--data",
        "data",
        "--console",
        "127.0.0.1:0",
        "--analytics-interval",
        "1",
    ];
    let weir = Weir::start(folder.path(), &flags);
    let service = json!({ "name": "shop", "url": "http://127.0.0.1:1" }).to_string();
    let put = Call::new("PUT", &weir.console(), "/api/v1/resources/services/shop");
    put.header("Weir-Note", "the%20first")
        .body(&service)
        .make()
        .expect(201);
    let asked = json!({ "metrics": ["calls"], "from": "-5m", "step": "1m" });
    let answer = query(&weir, &asked);
    let mark = &answer["marks"][0];
    assert_eq!(
        (&mark["kind"], &mark["note"], &mark["revision"]),
        (&json!("commit"), &json!("the first"), &json!(1)),
        "{answer}"
    );
    let diff = mark["diff"].as_str().expect("a path");
    let shown = Call::get(&weir.console(), diff).make().expect(200).json();
    assert_eq!(shown["items"][0]["after"]["name"], "shop", "{shown}");
    // Totals have no time axis; a query may also say that it wants none, or some.
    for (fields, count) in [
        (json!({ "step": null }), 0),
        (json!({ "marks": false }), 0),
        (json!({ "step": null, "marks": true }), 1),
        (json!({ "from": "-2d", "to": "-1d" }), 0),
    ] {
        let mut asked = asked.clone();
        for (name, value) in fields.as_object().expect("fields") {
            asked[name] = value.clone();
        }
        let answer = query(&weir, &asked);
        assert_eq!(
            answer["marks"].as_array().expect("a list").len(),
            count,
            "{fields}: {answer}"
        );
    }
}

#[test]
fn boards_are_saved_and_given_ones_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let weir = Weir::start(folder.path(), &FLAGS);
    let boards = |method: &str, path: &str, body: &Value| {
        let call = Call::new(method, &weir.console(), &format!("/api/v1/boards{path}"));
        call.body(&body.to_string()).make()
    };
    let given = boards("GET", "", &json!({})).expect(200).json();
    assert!(
        given["items"]
            .as_array()
            .expect("boards")
            .iter()
            .all(|it| it["given"] == true)
    );
    let board = json!({
        "title": "The shop's calls", "filter": { "service": "shop" },
        "panels": [{ "title": "Calls", "kind": "line", "query": { "metrics": ["calls"], "step": "auto" } }],
    });
    let mut dry = Call::new("POST", &weir.console(), "/api/v1/boards");
    dry = dry.header("Weir-Dry-Run", "true").body(&board.to_string());
    dry.make().expect(201);
    boards("GET", "/the-shop-s-calls", &json!({})).expect(404);
    let made = boards("POST", "", &board).expect(201).json();
    assert_eq!(
        (&made["id"], &made["given"]),
        (&json!("the-shop-s-calls"), &json!(false))
    );
    boards("POST", "", &board).expect(409);
    let mut wrong = made.clone();
    wrong["panels"][0]["query"]["metrics"] = json!(["cals"]);
    let problem = boards("PUT", "/the-shop-s-calls", &wrong).expect(422).json();
    let detail = problem["errors"][0].to_string();
    assert!(
        detail.contains("metrics") && detail.contains("no metric 'cals'"),
        "{problem}"
    );
    let mut other = made.clone();
    other["title"] = json!("Another title");
    boards("PUT", "/the-shop-s-calls", &other).expect(200);
    let given = boards("GET", "/overview", &json!({})).expect(200).json();
    boards("PUT", "/overview", &given).expect(409);
    boards("DELETE", "/overview", &json!({})).expect(409);
    boards("PUT", "/my-overview", &given).expect(201);
    // Boards outlive the process.
    weir.kill();
    let weir = Weir::start(folder.path(), &FLAGS);
    let boards = |method: &str, path: &str| {
        let call = Call::new(method, &weir.console(), &format!("/api/v1/boards{path}"));
        call.make()
    };
    assert_eq!(
        boards("GET", "/the-shop-s-calls").expect(200).json()["title"],
        "Another title"
    );
    // A report that shows one keeps it.
    let reports = |method: &str, path: &str, body: &Value| {
        let call = Call::new(method, &weir.console(), &format!("/api/v1/reports{path}"));
        call.body(&body.to_string()).make()
    };
    let report = json!({
        "title": "Weekly", "board": "the-shop-s-calls", "to": ["a@example.com"],
        "schedule": {"every": "week"},
    });
    reports("POST", "", &report).expect(201);
    let kept = boards("DELETE", "/the-shop-s-calls").expect(409);
    assert!(kept.body.contains("'weekly'"), "{kept:?}");
    reports("DELETE", "/weekly", &Value::Null).expect(204);
    boards("DELETE", "/the-shop-s-calls").expect(204);
    boards("DELETE", "/the-shop-s-calls").expect(404);
}

fn calls(weir: &Weir) -> Vec<Value> {
    let found = Call::get(&weir.console(), "/api/v1/analytics/calls?from=-5m").make();
    found.expect(200).json()["calls"]
        .as_array()
        .expect("calls")
        .clone()
}

#[test]
fn what_is_switched_off_is_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let privacy = [
        "--analytics-addresses",
        "hash",
        "--analytics-headers",
        "X-Tenant,x-version",
        "--analytics-without",
        "consumers,test:calls",
    ];
    let weir = Weir::start(folder.path(), &[&FLAGS[..], &privacy].concat());
    let headers = "X-Api-Key: alice-key\r\nX-Tenant: acme\r\nX-Secret: s3cret\r\n";
    repeat(&weir.proxy(), "/keyed", headers, 2, 200);
    until("the calls are there", || calls(&weir).len() == 2);
    let call = calls(&weir).remove(0);
    let network = call["network"].as_str().expect("a text");
    assert!(
        network.len() == 16 && network.chars().all(|it| it.is_ascii_hexdigit()),
        "{call}"
    );
    assert_eq!(
        (&call["headers"], &call["consumer"]),
        (&json!("x-tenant: acme"), &json!("")),
        "{call}"
    );
    until("the calls are counted", || {
        totals(&weir, "calls", "consumer", &json!({})).get("") == Some(&2.0)
    });
    let definition = Call::get(&weir.console(), "/api/v1/analytics/definition")
        .make()
        .json();
    assert_eq!(
        definition["privacy"]["hidden"]["*"]["consumers"], true,
        "{definition}"
    );
    let secret = weir.kill_and_read(&folder.path().join("analytics"));
    assert!(!secret, "a name or a value that is not to be kept is in a file");
}

#[test]
fn without_single_calls_and_clients_there_are_counts_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let weir = Weir::start(
        folder.path(),
        &[&FLAGS[..], &["--analytics-without", "calls,clients"]].concat(),
    );
    repeat(&weir.proxy(), "/nowhere", "", 3, 404);
    until("the calls are counted", || {
        totals(&weir, "calls", "route", &json!({})).get("_unmatched") == Some(&3.0)
    });
    assert_eq!(calls(&weir), Vec::<Value>::new());
    for dimension in ["path", "network", "agent"] {
        assert!(
            totals(&weir, "calls", dimension, &json!({})).is_empty(),
            "{dimension}"
        );
    }
}

impl Weir {
    /// Ends it at once. Says whether any file below a folder holds what is switched off in these tests.
    fn kill_and_read(self, folder: &std::path::Path) -> bool {
        self.kill();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = std::fs::read(&path).expect("a file");
                let text = String::from_utf8_lossy(&bytes);
                if text.contains("alice") || text.contains("s3cret") {
                    return true;
                }
            }
        }
        false
    }
}

/// Analytics decide nothing: what is wrong with their store keeps no call away.
#[test]
fn calls_are_served_although_analytics_cannot_be_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    std::fs::create_dir_all(folder.path().join("analytics/analytics.db")).expect("a folder in its place");
    let weir = Weir::start(folder.path(), &FLAGS);
    repeat(&weir.proxy(), "/ok", "", 3, 200);
    let query = Call::new("POST", &weir.console(), "/api/v1/analytics/query");
    let refused = query
        .body(r#"{"metrics": ["calls"], "from": "-1h"}"#)
        .make()
        .expect(404);
    assert_eq!(refused.json()["type"], "urn:weir:problem:analytics-off");
}
