//! Alert rules against a started Weir, with a webhook that receives their alerts.

use super::{FLAGS, configure, repeat};
use crate::support::{Call, Weir, until, upstream};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A server that takes webhooks and hands on their bodies.
fn receiver() -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _gone = take(stream, &sender);
        }
    });
    (address, bodies)
}

fn take(stream: std::net::TcpStream, bodies: &Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut writer = stream;
    writer
        .write_all(b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n")
        .ok()?;
    bodies.send(serde_json::from_slice(&body).ok()?).ok()
}

#[test]
fn an_alert_fires_once_and_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let flags = [&FLAGS[..], &["--webhook-allow", "127.0.0.0/8"]].concat();
    let weir = Weir::start(folder.path(), &flags);
    let (hook, bodies) = receiver();
    let rule = json!({
        "name": "Too many errors", "metric": "share_5xx", "operator": ">", "threshold": 0.5, "period": "2m",
        "group_by": ["service"], "min_calls": 5, "severity": "critical",
        "channels": [{ "kind": "log" }, { "kind": "webhook", "url": format!("http://{hook}/alerts") }],
    });
    let rules =
        |method: &str, path: &str| Call::new(method, &weir.console(), &format!("/api/v1/alerts{path}"));
    let made = rules("POST", "")
        .body(&rule.to_string())
        .make()
        .expect(201)
        .json();
    assert_eq!(made["id"], "too-many-errors");
    rules("POST", "").body(&rule.to_string()).make().expect(409);
    let wrong = json!({ "name": "x", "metric": "calls", "operator": ">", "threshold": 1, "period": "1m" });
    let problem = rules("POST", "")
        .body(&wrong.to_string())
        .make()
        .expect(422)
        .json();
    assert!(
        problem["detail"].as_str().expect("a detail").contains("period"),
        "{problem}"
    );
    repeat(&weir.proxy(), "/broken", "", 10, 502);
    let webhook = bodies
        .recv_timeout(std::time::Duration::from_secs(60))
        .expect("a webhook");
    let alert = &webhook["alerts"][0];
    assert_eq!(
        (
            &alert["kind"],
            &alert["group"]["service"],
            &alert["value"],
            &alert["severity"]
        ),
        (&json!("started"), &json!("own"), &json!(1.0), &json!("critical")),
        "{webhook}"
    );
    let states = rules("GET", "").make().expect(200).json();
    assert_eq!(states["items"][0]["alerts"][0]["state"], "ongoing", "{states}");
    repeat(&weir.proxy(), "/ok", "", 100, 200);
    let webhook = bodies
        .recv_timeout(std::time::Duration::from_secs(60))
        .expect("a webhook");
    assert_eq!(webhook["alerts"][0]["kind"], "ended", "{webhook}");
    assert_eq!(webhook["alerts"].as_array().expect("alerts").len(), 1);
    // Rules outlive the process.
    weir.kill();
    let weir = Weir::start(folder.path(), &FLAGS);
    let rules = |method: &str| Call::new(method, &weir.console(), "/api/v1/alerts/too-many-errors");
    assert_eq!(rules("GET").make().expect(200).json()["threshold"], 0.5);
    let mut edited = rules("GET").make().expect(200).json();
    edited["threshold"] = json!(0.9);
    rules("PUT").body(&edited.to_string()).make().expect(200);
    rules("DELETE").make().expect(204);
    rules("GET").make().expect(404);
}

#[test]
fn an_alert_is_written_to_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let log = folder.path().join("log");
    let mut command = Weir::command(folder.path(), &FLAGS);
    let weir = Weir::run(command.stderr(std::fs::File::create(&log).expect("made")));
    let hook = "http://127.0.0.1:1/";
    for (name, channels) in [
        ("Silence", json!([{ "kind": "log" }])),
        ("Unheard", json!([{ "kind": "webhook", "url": hook }])),
    ] {
        let rule = json!({
            "name": name, "metric": "calls", "operator": "<", "threshold": 5, "period": "2m", "no_data": "zero",
            "channels": channels,
        });
        let call = Call::new("POST", &weir.console(), "/api/v1/alerts");
        call.body(&rule.to_string()).make().expect(201);
    }
    let line = |kind: &str| {
        let text = std::fs::read_to_string(&log).expect("readable");
        let is_it =
            |it: &&str| it.contains("an alert alert=\"Silence\"") && it.contains(&format!("kind=\"{kind}\""));
        text.lines().find(is_it).map(str::to_owned)
    };
    until("it is in the log", || line("started").is_some());
    let started = line("started").expect("a line");
    for part in [" WARN ", "metric=\"calls\"", "value=0.0", "threshold=5.0"] {
        assert!(started.contains(part), "{part}: {started}");
    }
    repeat(&weir.proxy(), "/ok", "", 10, 200);
    until("its end is in the log", || line("ended").is_some());
    // Both rules are evaluated together: what has another channel would be in the log by now.
    let text = std::fs::read_to_string(&log).expect("readable");
    assert!(!text.contains("an alert alert=\"Unheard\""), "{text}");
}

#[test]
fn no_data_is_a_state_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let weir = Weir::start(folder.path(), &FLAGS);
    let rule =
        json!({ "name": "n", "metric": "share_5xx", "operator": ">", "threshold": 0.5, "period": "2m" });
    let rules =
        |method: &str, path: &str| Call::new(method, &weir.console(), &format!("/api/v1/alerts{path}"));
    rules("POST", "").body(&rule.to_string()).make().expect(201);
    let state = || rules("GET", "/n").make().expect(200).json()["alerts"][0]["state"].clone();
    until("there is no data yet", || state() == "no_data");
    repeat(&weir.proxy(), "/ok", "", 10, 200);
    until("there is, and all is well", || state() == "ok");
}

/// Who knows such a URL may write into the chat behind it.
#[test]
fn urls_of_channels_are_for_who_may_change_rules() {
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
    let call = |method: &str, path: &str| Call::new(method, &weir.console(), path);
    let user = |name: &str, role: &str, token: &str| {
        let path = format!("/api/v1/users/{name}");
        let call = call("POST", &path).header("Authorization", &format!("Bearer {token}"));
        let rights = json!({ "rights": [{ "role": role }] });
        let made = call.body(&rights.to_string()).make().expect(201).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let rule = json!({
        "name": "Chats", "metric": "calls", "operator": ">", "threshold": 1, "period": "2m",
        "channels": [
            { "kind": "webhook", "url": "https://chat.test/services/T0/s3cr3t" },
            { "kind": "webhook", "url": "https://u:s3cr3t@chat.test:8443?token=s3cr3t" },
        ],
    });
    call("POST", "/api/v1/alerts")
        .body(&rule.to_string())
        .make()
        .expect(201);
    let hook = json!({ "url": "https://chat.test/services/T0/s3cr3t", "events": ["*"] });
    for (path, body) in [
        ("/api/v1/applications/shop", json!({})),
        ("/api/v1/applications/shop/webhooks/chat", hook),
    ] {
        call("PUT", path).body(&body.to_string()).make().expect(201);
    }
    let admin = user("root", "admin", "");
    for role in ["read", "viewer", "analyst", "write", "operator"] {
        let token = user(role, role, &admin);
        for path in ["/api/v1/alerts", "/api/v1/alerts/chats"] {
            let call = call("GET", path).header("Authorization", &format!("Bearer {token}"));
            let shown = call.make().expect(200).json();
            let rule = shown["items"].get(0).unwrap_or(&shown);
            let hidden = ["https://chat.test/***", "https://chat.test:8443/***"];
            let urls = [&rule["channels"][0]["url"], &rule["channels"][1]["url"]];
            let may_change = ["write", "operator"].contains(&role);
            assert_eq!(urls == hidden, !may_change, "{role}: {shown}");
            assert_eq!(
                shown.to_string().contains("s3cr3t"),
                may_change,
                "{role}: {shown}"
            );
        }
        let hooks = "/api/v1/applications/shop/webhooks";
        let call = call("GET", hooks).header("Authorization", &format!("Bearer {token}"));
        let answer = call.make();
        // Analysts do not see applications.
        let is_shown = answer.status == 200 && answer.body.contains("s3cr3t");
        assert_eq!(is_shown, role == "write", "{role}: {}", answer.body);
    }
}

/// Who may read the numbers of one API sees the rules and the reports about it, and those of no other.
#[test]
fn rules_and_reports_about_one_api_are_for_who_may_read_its_numbers() {
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
    let call = |method: &str, path: &str, token: &str| {
        Call::new(method, &weir.console(), path).header("Authorization", &format!("Bearer {token}"))
    };
    let user = |name: &str, rights: Value, token: &str| {
        let call = call("POST", &format!("/api/v1/users/{name}"), token);
        let made = call
            .body(&json!({ "rights": rights }).to_string())
            .make()
            .expect(201)
            .json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let admin = user("root", json!([{"role": "admin"}]), "");
    let some = user("some", json!([{"role": "analyst", "api": "pets"}]), &admin);
    let panel = |filter: Value| json!({"title": "Calls", "kind": "stat", "query": {"metrics": ["calls"], "from": "-7d", "filter": filter}});
    for (name, filter) in [
        ("own", json!({"api": "pets"})),
        ("other", json!({"api": "cats"})),
        ("all", json!({})),
    ] {
        let rule = json!({"id": name, "name": name, "metric": "calls", "operator": ">", "threshold": 1, "period": "2m", "filter": filter});
        let board = json!({"id": format!("board-{name}"), "title": name, "filter": filter, "panels": [panel(json!({}))]});
        let report = json!({"id": name, "title": name, "panels": [panel(filter)], "schedule": {"every": "week"}, "to": ["a@pets.test"]});
        let of_board = json!({"id": format!("of-{name}"), "title": name, "board": format!("board-{name}"), "schedule": {"every": "week"}, "to": ["a@pets.test"]});
        for (path, document) in [
            ("alerts", rule),
            ("boards", board),
            ("reports", report),
            ("reports", of_board),
        ] {
            let path = format!("/api/v1/{path}");
            call("POST", &path, &admin)
                .body(&document.to_string())
                .make()
                .expect(201);
        }
    }
    let ids = |path: &str, token: &str| {
        let found = call("GET", path, token).make().expect(200).json();
        let items = found["items"].as_array().expect("a list").iter();
        items
            .map(|it| it["id"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("/api/v1/alerts", &some), ["own"]);
    assert_eq!(ids("/api/v1/reports", &some), ["of-own", "own"]);
    assert_eq!(
        ids("/api/v1/alerts", &admin).len() + ids("/api/v1/reports", &admin).len(),
        9
    );
    for (path, status) in [
        ("alerts/own", 200),
        ("alerts/other", 404),
        ("alerts/all", 404),
        ("reports/own", 200),
        ("reports/of-own", 200),
        ("reports/of-own/preview", 200),
        ("reports/other", 404),
        ("reports/of-other", 404),
        ("reports/all/preview", 404),
        ("reports/of-all/preview", 404),
    ] {
        let answer = call("GET", &format!("/api/v1/{path}"), &some).make();
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    call("DELETE", "/api/v1/alerts/own", &some).make().expect(403);
}
