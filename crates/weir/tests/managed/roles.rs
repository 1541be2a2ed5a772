//! A control plane and gateways that follow its stream.

use crate::support::{Call, Weir, status_of, until, upstream};
use std::path::Path;

fn control(folder: &Path, console: &str) -> Weir {
    Weir::start(
        folder,
        &["--role", "control", "--data", "control", "--console", console],
    )
}

fn gateway(folder: &Path, console: &str, name: &str) -> Weir {
    let url = format!("http://{console}");
    Weir::start(
        folder,
        &[
            "--role",
            "gateway",
            "--control",
            &url,
            "--data",
            name,
            "--name",
            name,
        ],
    )
}

fn put(console: &str, server: &str, path: &str) {
    let body = format!(
        "{{\"url\": \"http://{server}\", \"routes\": [{{\"name\": \"r\", \"paths\": [\"{path}\"]}}]}}"
    );
    let answer = Call::new("PUT", console, "/api/v1/resources/services/s")
        .body(&body)
        .make();
    assert!(answer.status == 200 || answer.status == 201, "{answer:?}");
}

#[test]
fn gateways_follow_live_on_and_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a").to_string();
    let plane = control(folder.path(), "127.0.0.1:0");
    let console = plane.console();
    assert_eq!(
        Call::get(&plane.status(), "/status").make().json()["state"],
        "managing"
    );
    put(&console, &server, "/one");
    let (first, second) = (
        gateway(folder.path(), &console, "first"),
        gateway(folder.path(), &console, "second"),
    );
    for gateway in [&first, &second] {
        until("it is served", || {
            status_of(&gateway.proxy(), "/one") == Some(200)
        });
    }
    put(&console, &server, "/two");
    for gateway in [&first, &second] {
        until("the change is served", || {
            status_of(&gateway.proxy(), "/two") == Some(200)
        });
    }
    until("both are listed without a lag", || {
        let list = Call::get(&console, "/gateways").make().json();
        let gateways = list["items"].as_array().expect("a list");
        let is_there = |name: &str| {
            gateways
                .iter()
                .any(|it| it["name"] == name && it["hash"] == list["hash"] && it["lag_revisions"] == 0)
        };
        gateways.len() == 2 && is_there("first") && is_there("second")
    });
    until("what is served is kept", || {
        folder.path().join("first/last-known-good").exists()
    });

    // The newest is kept within a second; then the control plane goes.
    let kept = || std::fs::read_to_string(folder.path().join("first/last-known-good")).unwrap_or_default();
    until("the newest is kept", || kept().contains("/two"));
    plane.kill();
    assert_eq!(status_of(&first.proxy(), "/two"), Some(200));
    first.kill();
    let first = gateway(folder.path(), &console, "first");
    assert_eq!(
        status_of(&first.proxy(), "/two"),
        Some(200),
        "the last known good is served"
    );
    let status = Call::get(&first.status(), "/status").make().json();
    assert_eq!(status["store"]["last_known_good"], true);
    assert_eq!(status["store"]["contact"], "unreachable");

    let plane = control(folder.path(), &console);
    put(&console, &server, "/three");
    for gateway in [&first, &second] {
        until("they are back", || {
            status_of(&gateway.proxy(), "/three") == Some(200)
        });
        until("they are the same", || gateway.hash() == plane.hash());
    }
}

#[test]
fn a_gateway_sees_that_the_store_is_another_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a").to_string();
    let plane = control(folder.path(), "127.0.0.1:0");
    let console = plane.console();
    put(&console, &server, "/old");
    let gateway = gateway(folder.path(), &console, "first");
    until("it is served", || {
        status_of(&gateway.proxy(), "/old") == Some(200)
    });
    let revision = |weir: &Weir| {
        let status = Call::get(&weir.status(), "/status").make().json();
        status["store"]["revision"].as_u64().expect("a number")
    };
    let reached = revision(&plane);
    plane.kill();
    // In its place comes one whose store was filled again, and goes on from the very same revision.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).expect("a folder");
    let filled = control(&other, "127.0.0.1:0");
    let elsewhere = filled.console();
    put(&elsewhere, &server, "/new");
    while revision(&filled) <= reached + 5 {
        let body = format!("{{\"url\": \"http://{server}\"}}");
        Call::new("PUT", &elsewhere, "/api/v1/resources/services/other")
            .body(&body)
            .make();
    }
    filled.kill();
    let plane = control(&other, &console);
    until("what is there is served", || {
        status_of(&gateway.proxy(), "/new") == Some(200)
    });
    until("what is not is not", || {
        status_of(&gateway.proxy(), "/old") == Some(404)
    });
    until("they are the same", || gateway.hash() == plane.hash());
}
