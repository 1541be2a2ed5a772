//! Kong's Admin API for responses in a Redis: they are listed and purged there, for all gateways.

use crate::support::{Redis, Upstream, is_installed, send, until};
use crate::weir::Weir;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

const PLUGIN: &str = "7c19e4f5-1b1c-4a6e-9a44-3a9b8f6e6b4d";

/// Calls an Admin API; the status, and what the answer says.
fn ask(kong: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    ask_with(kong, method, path, "", body)
}

/// The same with these header lines.
fn ask_with(kong: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {kong}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    let mut stream = TcpStream::connect(kong).expect("a connection");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    (
        status.expect("a status"),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

/// A route `/` whose responses stand in the Redis.
fn configure(kong: &str, upstream: &Upstream, port: u16) {
    let service = json!({"url": format!("http://{}", upstream.address)});
    let redis = json!({"host": "127.0.0.1", "port": port, "timeout": 300});
    let config = json!({
        "strategy": "redis", "redis": redis, "content_type": ["text/plain"], "cache_ttl": 300, "cache_control": false,
    });
    for (path, body) in [
        ("/services/s".to_owned(), service),
        ("/services/s/routes/r".to_owned(), json!({"paths": ["/"]})),
        (
            format!("/plugins/{PLUGIN}"),
            json!({"name": "proxy-cache-advanced", "config": config}),
        ),
    ] {
        let (status, answer) = ask(kong, "PUT", &path, &body.to_string());
        assert_eq!(status, 200, "{path}: {answer}");
    }
}

/// The cache's word about a call, and the key of its response.
fn call(proxy: &str, path: &str) -> Option<(String, String)> {
    let (status, answer) = send(proxy, "GET", path, "");
    let header = |name: &str| {
        answer
            .lines()
            .find_map(|line| line.strip_prefix(name).map(str::to_owned))
    };
    (status == 200).then_some((header("X-Cache-Status: ")?, header("X-Cache-Key: ")?))
}

/// Calls until the response is kept: it is written after the answer.
fn fill(proxy: &str, path: &str) -> String {
    let mut key = String::new();
    until("it is kept", || match call(proxy, path) {
        Some((word, found)) => {
            key = found;
            word == "Hit"
        }
        None => false,
    });
    key
}

fn is_miss(proxy: &str, path: &str) -> bool {
    call(proxy, path).is_some_and(|(word, _)| word == "Miss")
}

#[test]
fn responses_in_a_redis_are_listed_and_purged() {
    if !is_installed() {
        return;
    }
    for headers in [
        "Content-Type: text/plain\r\n",
        "Content-Type: text/plain\r\nVary: Accept-Language\r\n",
    ] {
        let mut redis = Redis::start(&[]);
        let upstream = Upstream::start(headers);
        let folder = tempfile::tempdir().expect("a folder");
        let weir = Weir::start(folder.path(), &["--kong-admin", "127.0.0.1:0"]);
        let (kong, proxy) = (weir.address("Kong's Admin API on http://"), weir.proxy());
        configure(&kong, &upstream, redis.port);
        let key = fill(&proxy, "/a");
        let of_instance = format!("/proxy-cache-advanced/{PLUGIN}/caches/{key}");
        let of_all = format!("/proxy-cache-advanced/{key}");
        for path in [&of_all, &of_instance] {
            let (status, told) = ask(&kong, "GET", path, "");
            assert_eq!(
                (status, &told["status"], &told["ttl"]),
                (200, &json!(200), &json!(300))
            );
            assert_eq!(told["headers"]["X-Cache-Key"], key, "{path}");
        }
        let unknown = format!("/proxy-cache-advanced/{}", "0".repeat(64));
        for (method, path, status) in [
            ("GET", unknown.as_str(), 404),
            ("DELETE", &unknown, 404),
            ("GET", "/proxy-cache-advanced/123", 404),
            ("DELETE", "/proxy-cache-advanced/123", 404),
            ("GET", "/proxy-cache-advanced", 405),
        ] {
            assert_eq!(ask(&kong, method, path, "").0, status, "{method} {path}");
        }
        for path in [&of_all, &of_instance] {
            let tried = ask_with(&kong, "DELETE", path, "Weir-Dry-Run: true\r\n", "");
            assert_eq!(
                (tried.0, fill(&proxy, "/a")),
                (204, key.clone()),
                "{path} was only tried"
            );
            assert_eq!(ask(&kong, "DELETE", path, "").0, 204);
            assert_eq!(ask(&kong, "DELETE", path, "").0, 404, "{path}");
            assert!(is_miss(&proxy, "/a"), "{path}");
            fill(&proxy, "/a");
        }
        // A purge takes all of the cache, and nothing else.
        redis.ask("SET weir:other 1\nSET weir:cache:kong/other:x 1");
        for number in 0..20 {
            fill(&proxy, &format!("/{number}"));
        }
        assert_eq!(ask(&kong, "DELETE", "/proxy-cache-advanced", "").0, 204);
        assert!(is_miss(&proxy, "/a") && is_miss(&proxy, "/19"));
        let left = redis.ask("EXISTS weir:other weir:cache:kong/other:x");
        assert_eq!(left.trim(), ":2");
        redis.kill();
        for (method, path) in [
            ("GET", of_all.as_str()),
            ("DELETE", &of_all),
            ("DELETE", "/proxy-cache-advanced"),
        ] {
            let (status, told) = ask(&kong, method, path, "");
            assert_eq!(
                (status, &told["message"]),
                (500, &json!("the Redis of the cache does not answer")),
                "{method} {path}"
            );
        }
    }
}

#[test]
fn a_control_plane_has_gateways_purge_a_redis() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&[]);
    let upstream = Upstream::start("Content-Type: text/plain\r\n");
    let (folder, any) = (tempfile::tempdir().expect("a folder"), "127.0.0.1:0");
    let flags = [
        "--role",
        "control",
        "--data",
        "control",
        "--console",
        any,
        "--kong-admin",
        any,
    ];
    let plane = Weir::start(folder.path(), &flags);
    let kong = plane.address("Kong's Admin API on http://");
    configure(&kong, &upstream, redis.port);
    let url = format!("http://{}", plane.address("Weir's API on http://"));
    let gateway = Weir::start(folder.path(), &["--role", "gateway", "--control", &url]);
    let proxy = gateway.proxy();
    let key = fill(&proxy, "/a");
    let of_key = format!("/proxy-cache-advanced/{key}");
    assert_eq!(ask(&kong, "GET", &of_key, "").0, 404);
    for path in [of_key.as_str(), "/proxy-cache-advanced"] {
        fill(&proxy, "/a");
        assert_eq!(ask(&kong, "DELETE", path, "").0, 204);
        until("it is forgotten", || is_miss(&proxy, "/a"));
    }
}
