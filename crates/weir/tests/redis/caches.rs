//! Responses that gateways keep in a Redis: real gateways share them, and go on without it.

use crate::support::{CLOSED_PORT, Gateway, Redis, Upstream, is_installed, native, send, until};
use std::sync::atomic::Ordering;

fn cache(port: u16, more: &str) -> String {
    format!(
        "proxy-cache: {{redis: {{host: 127.0.0.1, port: {port}, timeout_ms: 300, connect_timeout_ms: 300}}, {more}}}"
    )
}

/// What the cache says of a call.
fn word(gateway: &Gateway, method: &str, path: &str, headers: &str) -> String {
    let (status, answer) = send(&gateway.address, method, path, headers);
    assert_eq!(status, 200, "{method} {path}: {answer}");
    let mut lines = answer.lines();
    let line = lines.find_map(|line| line.strip_prefix("X-Cache-Status: "));
    line.unwrap_or_default().to_owned()
}

/// Calls until the response is kept: it is written after the answer.
fn fill(gateway: &Gateway, path: &str, headers: &str) {
    until("it is kept", || word(gateway, "GET", path, headers) == "hit");
}

#[test]
fn gateways_share_responses() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let document = native(&upstream, &cache(redis.port, "purge: true"));
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    let calls = || upstream.calls.load(Ordering::SeqCst);
    assert_eq!(word(&gateways[0], "GET", "/a", ""), "miss");
    fill(&gateways[0], "/a", "");
    let earlier = calls();
    assert_eq!(word(&gateways[1], "GET", "/a", ""), "hit");
    assert_eq!(word(&gateways[1], "HEAD", "/a", ""), "hit");
    assert_eq!(calls(), earlier);
    // What one gateway forgets, all have forgotten as soon as it says so.
    assert_eq!(send(&gateways[1].address, "PURGE", "/a", "").0, 200);
    assert_eq!(send(&gateways[1].address, "PURGE", "/a", "").0, 404);
    assert_eq!(word(&gateways[0], "GET", "/a", ""), "miss");
    // A change waits until the old response is forgotten.
    for round in 0..10 {
        fill(&gateways[round % 2], "/a", "");
        assert_eq!(
            word(&gateways[round % 2], "POST", "/a", "Content-Length: 0\r\n"),
            "bypass"
        );
        assert_eq!(
            word(&gateways[(round + 1) % 2], "GET", "/a", ""),
            "miss",
            "{round}"
        );
    }
    // It ends in the Redis, too.
    fill(&gateways[0], "/a", "");
    let keys = redis.ask("KEYS weir:cache:native/default:*");
    let key = keys.lines().find(|line| line.ends_with('}')).expect("a key");
    let left: u64 = redis
        .ask(&format!("TTL {key}"))
        .trim()
        .trim_start_matches(':')
        .parse()
        .expect("a number");
    assert!((1..=300).contains(&left), "{left}");
}

/// The defect: what one gateway fetched while another one forgot it was kept afterwards.
#[test]
fn what_is_forgotten_during_a_fetch_is_not_kept() {
    if !is_installed() {
        return;
    }
    for headers in ["", "Vary: Accept-Language\r\n"] {
        let redis = Redis::start(&[]);
        let upstream = Upstream::start(headers);
        let document = native(&upstream, &cache(redis.port, "purge: true"));
        let gateways = [Gateway::start(&document), Gateway::start(&document)];
        upstream.hold(true);
        std::thread::scope(|scope| {
            let fetch = scope.spawn(|| word(&gateways[1], "GET", "/", ""));
            let calls = &upstream.calls;
            until("the fetch is under way", || calls.load(Ordering::SeqCst) == 1);
            assert_eq!(send(&gateways[0].address, "PURGE", "/", "").0, 404);
            upstream.hold(false);
            assert_eq!(fetch.join().expect("an answer"), "miss");
        });
        // It would be written after the answer, and so before what comes next.
        fill(&gateways[1], "/next", "");
        assert_eq!(word(&gateways[0], "GET", "/", ""), "miss");
        fill(&gateways[0], "/", "");
        assert_eq!(word(&gateways[1], "GET", "/", ""), "hit");
    }
}

#[test]
fn variants_are_distinguished() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("Vary: Accept-Language\r\n");
    let document = native(&upstream, &cache(redis.port, "purge: true"));
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    let (german, english) = ("Accept-Language: de\r\n", "Accept-Language: en\r\n");
    fill(&gateways[0], "/", german);
    assert_eq!(word(&gateways[1], "GET", "/", german), "hit");
    assert_eq!(word(&gateways[1], "GET", "/", english), "miss");
    fill(&gateways[1], "/", english);
    for gateway in &gateways {
        for language in [german, english] {
            assert_eq!(word(gateway, "GET", "/", language), "hit");
        }
    }
    assert_eq!(send(&gateways[0].address, "PURGE", "/", "").0, 200);
    for language in [german, english] {
        assert_eq!(word(&gateways[1], "GET", "/", language), "miss");
    }
}

#[test]
fn calls_go_on_without_the_redis() {
    if !is_installed() {
        return;
    }
    let mut redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let gateway = Gateway::start(&native(&upstream, &cache(redis.port, "purge: true")));
    fill(&gateway, "/", "");
    redis.kill();
    for _ in 0..20 {
        assert_eq!(word(&gateway, "GET", "/", ""), "bypass");
        assert_eq!(word(&gateway, "POST", "/", "Content-Length: 0\r\n"), "bypass");
    }
    assert_eq!(send(&gateway.address, "PURGE", "/", "").0, 503);
    redis.restart();
    fill(&gateway, "/", "");
    // One that is silent is waited for once by each worker.
    redis.stop();
    for _ in 0..20 {
        assert_eq!(word(&gateway, "GET", "/", ""), "bypass");
    }
    redis.go_on();
    fill(&gateway, "/", "");
}

#[test]
fn what_others_have_written_there_is_no_response() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("");
    let gateway = Gateway::start(&native(&upstream, &cache(redis.port, "key_header: X-Key")));
    fill(&gateway, "/", "");
    let keys = redis.ask("KEYS *");
    let key = keys.lines().nth(2).expect("a key").to_owned();
    for value in [
        "nonsense",
        "\"\\x01\"",
        "\"\\x01\\xc8\\x00\"",
        "\"\\x02\\xff\\xff\\xff\"",
    ] {
        redis.ask(&format!("SET {key} {value}"));
        assert_eq!(word(&gateway, "GET", "/", ""), "miss", "{value}");
        fill(&gateway, "/", "");
    }
    redis.ask(&format!("DEL {key}\nRPUSH {key} a"));
    assert_eq!(
        word(&gateway, "GET", "/", ""),
        "bypass",
        "a script fails on a list"
    );
}

#[test]
fn the_paid_edition_of_kong_spells_it() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("Content-Type: text/plain\r\n");
    for (port, first, second) in [(redis.port, "Miss", "Hit"), (CLOSED_PORT, "Bypass", "Bypass")] {
        let document = format!(
            "_format_version: '3.0'\nservices:\n- name: s\n  url: http://{}\n  routes:\n  - name: r\n    paths: [/]\n    plugins:\n    - {{name: proxy-cache-advanced, config: {{strategy: redis, redis: {{host: 127.0.0.1, port: {port}}}}}}}\n",
            upstream.address
        );
        let gateways = [Gateway::start(&document), Gateway::start(&document)];
        assert_eq!(word(&gateways[0], "GET", "/", ""), first);
        until("it is kept", || word(&gateways[0], "GET", "/", "") == second);
        assert_eq!(word(&gateways[1], "GET", "/", ""), second);
    }
}
