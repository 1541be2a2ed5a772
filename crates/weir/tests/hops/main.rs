//! What upstreams see of a call's other hops, and how callers of one cache share a fetch; servers that are spoken with over
//! protocols of their own. The whole gateway, with files of its originals.

mod dubbo;
mod forward_proxy;
mod orchestration;
mod rewritten_bodies;
mod safeline;
#[path = "../support/tools.rs"]
mod tools;
#[path = "../support/weir.rs"]
mod weir;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weir::Weir;

/// A gateway with this file of Kong's, which reaches `upstream` as `UPSTREAM`.
fn gateway(file: &str, upstream: &TcpListener) -> (TempDir, Weir) {
    let folder = tempfile::tempdir().expect("a folder");
    let address = upstream.local_addr().expect("bound").to_string();
    let file = file.replace("UPSTREAM", &address);
    std::fs::write(folder.path().join("kong.yml"), file).expect("a file");
    let weir = Weir::start(folder.path(), &["-c", "kong.yml"]);
    (folder, weir)
}

/// Sends a request on a connection of its own.
fn ask(weir: &Weir, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(weir.proxy()).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time");
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

/// The lines of the head that comes next.
fn head(stream: &TcpStream) -> Vec<String> {
    let mut lines = BufReader::new(stream).lines();
    let mut next = || lines.next().expect("a line").expect("it is read");
    std::iter::repeat_with(&mut next)
        .take_while(|line| !line.is_empty())
        .collect()
}

/// The values of a field.
fn values<'h>(head: &'h [String], name: &str) -> Vec<&'h str> {
    let fields = head.iter().filter_map(|line| line.split_once(": "));
    fields
        .filter(|(it, _)| it.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
        .collect()
}

const HOPS: &str = "
_format_version: '3.0'
services:
- name: s
  url: http://UPSTREAM
  routes:
  - {name: r, paths: [/], preserve_host: true}
";

/// As Kong 3.9.3's `runloop/handler.lua` has it.
#[test]
fn other_hops_are_named_in_kongs_headers() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = upstream.local_addr().expect("bound").to_string();
    let (_folder, weir) = gateway(HOPS, &upstream);
    for (request, name, wanted) in [
        ("1.1\r\nHost: h\r\n", "Via", "1.1 kong/3.9.3"),
        ("1.1\r\nHost: h\r\nVia: 1.0 a\r\n", "Via", "1.0 a, 1.1 kong/3.9.3"),
        // Of several lines the first counts.
        (
            "1.1\r\nHost: h\r\nVia: 1.0 a\r\nVia: 1.1 b\r\n",
            "Via",
            "1.0 a, 1.1 kong/3.9.3",
        ),
        (
            "1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\n",
            "X-Forwarded-For",
            "1.2.3.4, 127.0.0.1",
        ),
        // A call that names no host is for the gateway's own, and the upstream is asked by its address.
        ("1.0\r\n", "X-Forwarded-Host", "kong"),
        ("1.0\r\n", "Host", address.as_str()),
        ("1.0\r\nHost: H.test\r\n", "Host", "H.test"),
        ("1.0\r\nHost: H.test\r\n", "X-Forwarded-Host", "h.test"),
    ] {
        let client = ask(&weir, &format!("GET / HTTP/{request}\r\n"));
        let (mut server, _) = upstream.accept().expect("a call");
        assert_eq!(values(&head(&server), name), [wanted], "{request:?}");
        server
            .write_all(b"HTTP/1.1 200 OK\r\nVia: 1.1 c\r\nVia: 1.1 d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let answer = head(&client);
        assert_eq!(values(&answer, "Via").len(), 1, "{answer:?}");
    }
}

const PROXIES: &str = "
weir: 1
dialect_settings:
- {dialect: kong, real_ip: {header: X-Real-IP, trusted: [TRUSTED]}}
";

/// As Kong 3.9.3 does with `trusted_ips`.
#[test]
fn a_trusted_proxy_speaks_for_its_client() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = upstream.local_addr().expect("bound").to_string();
    let tls_only = HOPS.replace(
        "paths: [/]",
        "paths: [/], protocols: [https], https_redirect_status_code: 301",
    );
    const SAID: &str = "X-Real-IP: 9.9.9.9\r\nX-Forwarded-For: 8.8.8.8\r\nX-Forwarded-Host: outer.test\r\n\
        X-Forwarded-Port: 4443\r\nX-Forwarded-Path: /outer\r\nX-Forwarded-Prefix: /o\r\n";
    for (network, scheme, location) in [
        ("127.0.0.0/8", "https", None),
        ("127.0.0.0/8", "http", Some("https://outer.test/a?b")),
        ("10.0.0.0/8", "https", Some("https://h/a?b")),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [
            ("kong.yml", tls_only.replace("UPSTREAM", &address)),
            ("weir.yaml", PROXIES.replace("TRUSTED", network)),
        ];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let weir = Weir::start(folder.path(), &["-c", "kong.yml", "-c", "weir.yaml"]);
        let request = format!("GET /a?b HTTP/1.1\r\nHost: h\r\nX-Forwarded-Proto: {scheme}\r\n{SAID}\r\n");
        let client = ask(&weir, &request);
        if let Some(location) = location {
            assert_eq!(
                values(&head(&client), "Location"),
                [location],
                "{network} {scheme}"
            );
            continue;
        }
        let (mut server, _) = upstream.accept().expect("a call");
        let seen = head(&server);
        for (name, value) in [
            ("X-Real-IP", "9.9.9.9"),
            ("X-Forwarded-For", "8.8.8.8, 127.0.0.1"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "outer.test"),
            ("X-Forwarded-Port", "4443"),
            ("X-Forwarded-Path", "/outer"),
            ("X-Forwarded-Prefix", "/o"),
        ] {
            assert_eq!(values(&seen, name), [value], "{name}: {seen:?}");
        }
        server.write_all(ANSWER).expect("sent");
        head(&client);
    }
}

const SERVERS: &str = "
_format_version: '3.0'
services:
- name: s
  url: http://UPSTREAM
  routes:
  - {name: r, paths: [/]}
  - {name: own, paths: [/own], plugins: [{name: request-termination, config: {status_code: 403}}]}
  - {name: moved, paths: [/moved], plugins: [{name: redirect, config: {location: 'http://x.test'}}]}
";

/// What an upstream calls itself stays; whatever else is answered is Kong's.
#[test]
fn answers_name_their_server() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (_folder, weir) = gateway(SERVERS, &upstream);
    for (path, line, server) in [
        ("/", Some("Server: own\r\n"), "own"),
        ("/", Some(""), "kong/3.9.3"),
        ("/own", None, "kong/3.9.3"),
        ("/moved", None, "kong/3.9.3"),
    ] {
        let client = ask(&weir, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        if let Some(line) = line {
            let (mut served, _) = upstream.accept().expect("a call");
            head(&served);
            let answer = format!("HTTP/1.1 200 OK\r\n{line}Content-Length: 0\r\nConnection: close\r\n\r\n");
            served.write_all(answer.as_bytes()).expect("sent");
        }
        assert_eq!(values(&head(&client), "Server"), [server], "{path} {line:?}");
    }
}

#[test]
fn the_server_as_a_whole_is_no_route() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (_folder, weir) = gateway(HOPS, &upstream);
    let answer = head(&ask(&weir, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(answer[0], "HTTP/1.1 400 Bad Request");
}

const CACHE: &str = "
_format_version: '3.0'
services:
- name: s
  url: http://UPSTREAM
  routes:
  - {name: r, paths: [/]}
plugins:
- {name: proxy-cache, config: {strategy: memory, content_type: [text/plain]}}
";

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// The upstream says nothing to a call whose client goes: the next client waits for nothing.
#[test]
fn a_fetch_ends_with_its_client() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (_folder, weir) = gateway(CACHE, &upstream);
    let first = ask(&weir, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    let (silent, _) = upstream.accept().expect("a call");
    head(&silent);
    drop(first);
    // The gateway lets go of the upstream once it knows.
    let mut silent = silent;
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0);
    let begun = Instant::now();
    let client = ask(&weir, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    let (mut server, _) = upstream.accept().expect("a call");
    head(&server);
    server.write_all(ANSWER).expect("sent");
    assert_eq!(head(&client)[0], "HTTP/1.1 200 OK");
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "it waited for the first one"
    );
}

/// A body in a GET may change what a service answers; other callers must not get that answer.
#[test]
fn a_get_with_a_body_does_not_reach_the_cache() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (_folder, weir) = gateway(CACHE, &upstream);
    for body in [
        "Content-Length: 1\r\n\r\nx",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    ] {
        for (rest, word) in [(body, "Bypass"), ("\r\n", "Miss"), (body, "Bypass")] {
            let path = if body.starts_with('C') { "/a" } else { "/b" };
            let client = ask(&weir, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n{rest}"));
            let (mut server, _) = upstream.accept().expect("a call");
            head(&server);
            server.write_all(ANSWER).expect("sent");
            assert_eq!(values(&head(&client), "X-Cache-Status"), [word], "{rest:?}");
        }
    }
}

const REWRITTEN: &str = "
_format_version: '3.0'
services:
- name: s
  url: http://UPSTREAM
  routes:
  - {name: r, paths: [/]}
plugins:
- {name: jq, config: {response_jq_program: '.n |= . + 1'}}
- {name: response-transformer, config: {append: {headers: ['X-Mark:a']}}}
- {name: proxy-cache, config: {strategy: memory, content_type: [application/json]}}
";

/// What is kept has had the work of the plugins before the cache.
#[test]
fn a_hit_is_rewritten_as_often_as_the_miss() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (_folder, weir) = gateway(REWRITTEN, &upstream);
    for word in ["Miss", "Hit", "Hit"] {
        let client = ask(&weir, "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        if word == "Miss" {
            let (mut server, _) = upstream.accept().expect("a call");
            head(&server);
            server
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{\"n\":1}")
                .expect("sent");
        }
        let mut answer = String::new();
        let mut reader = BufReader::new(client);
        reader.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let head: Vec<String> = head.lines().map(str::to_owned).collect();
        assert_eq!(body, "{\"n\":2}", "{word}: {head:?}");
        assert_eq!(values(&head, "X-Cache-Status"), [word]);
        assert_eq!(values(&head, "X-Mark"), ["a"], "{word}");
    }
}
