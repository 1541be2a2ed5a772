//! What `weir run` does with files: addresses in use, signals, guards of paths, plugins that Weir lacks.

#[path = "support/weir.rs"]
mod weir;

use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use tempfile::TempDir;
use weir::Weir;

const SERVE: [&str; 2] = ["-c", "weir.yaml"];

/// A folder with a configuration.
fn folder(configuration: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("weir.yaml"), configuration).expect("a file");
    folder
}

#[test]
fn a_second_gateway_takes_no_part_in_the_calls_of_the_first() {
    let folder = folder("weir: 1\n");
    let mut first = Weir::start(folder.path(), &SERVE);
    let second = Weir::command(folder.path(), &["-c", "weir.yaml", "--listen", &first.proxy()])
        .stderr(Stdio::piped())
        .output()
        .expect("the binary runs");
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&second.stderr),
        format!(
            "weir: cannot listen on {}: address in use; is another gateway running?\n",
            first.proxy()
        )
    );
    first.signal(Signal::TERM);
    assert_eq!(first.end(), Some(0));
}

#[test]
fn signals_reload_drain_and_cut_short() {
    let plain = folder("weir: 1\n");
    let mut quit = Weir::start(plain.path(), &SERVE);
    quit.signal(Signal::HUP);
    quit.signal(Signal::QUIT);
    assert_eq!(quit.end(), Some(0));

    // An upstream that never answers keeps the drain waiting.
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = upstream.local_addr().expect("bound");
    let slow = folder(&format!(
        "weir: 1\nservices: [{{name: a, url: 'http://{url}', routes: [{{name: a, paths: [/]}}]}}]\n"
    ));
    let mut cut = Weir::run(Weir::command(slow.path(), &SERVE).stderr(Stdio::piped()));
    let mut client = std::net::TcpStream::connect(cut.proxy()).expect("a connection");
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    let _call = upstream.accept().expect("the call");
    cut.signal(Signal::TERM);
    let mut log = BufReader::new(cut.child.stderr.take().expect("piped")).lines();
    assert!(log.any(|line| line.expect("readable").contains("draining")));
    cut.signal(Signal::INT);
    assert_eq!(cut.end(), Some(1));
}

#[test]
fn a_kong_yml_is_served_below_http() {
    let target = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = target.local_addr().expect("bound").port();
    let folder = folder(&format!(
        "_format_version: '3.0'\nservices:\n- {{name: db, protocol: tcp, host: 127.0.0.1, port: {port}, routes: [\
         {{name: all, protocols: [tcp], sources: [{{ip: 127.0.0.0/8}}]}}]}}\n"
    ));
    let flags = [
        &SERVE[..],
        &[
            "--listen-stream",
            "127.0.0.1:0",
            "--listen-stream",
            "127.0.0.1:0,udp",
        ],
        &["--proxy-protocol", "127.0.0.1", "--proxy-protocol-on", "stream"],
        &["--access-log", "log"],
    ];
    let mut weir = Weir::start(folder.path(), &flags.concat());
    let ready = &weir.ready;
    assert!(
        ready.starts_with("ready: 1 route on http://") && ready.contains(" and udp://127.0.0.1:"),
        "{ready}"
    );
    let mut client = std::net::TcpStream::connect(weir.address("tcp://")).expect("a connection");
    client
        .write_all(b"PROXY TCP4 127.9.9.9 127.0.0.1 5 6\r\nhello")
        .expect("sent");
    let (mut server, _) = target.accept().expect("a session");
    let mut bytes = [0; 5];
    server.read_exact(&mut bytes).expect("read");
    assert_eq!(&bytes, b"hello");
    server.write_all(b"bye").expect("sent");
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("read");
    assert_eq!(answer, "bye");
    drop(client);
    weir.signal(Signal::TERM);
    let log = folder.path().join("log");
    let kept = std::fs::File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(log)
        .expect("the log");
    assert_eq!(weir.end(), Some(0));
    let mut line = String::new();
    BufReader::new(kept).read_line(&mut line).expect("a line");
    for part in [
        r#""client":"127.9.9.9","protocol":"tcp","bytes_in":5,"bytes_out":3"#,
        r#""route":"all","service":"db""#,
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

/// The defect: a schema that leads back to itself and a body of 130 bytes held a worker for minutes.
#[test]
fn a_call_that_asks_for_too_much_work_is_refused_in_its_dialect() {
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let node = upstream.local_addr().expect("bound");
    let below = "{type: object, required: [a], properties: {a: {$ref: '#/definitions/n'}}}";
    let schema =
        format!("{{definitions: {{n: {{anyOf: [{below}, {below}, {below}]}}}}, $ref: '#/definitions/n'}}");
    let native = format!(
        "weir: 1\nservices: [{{name: a, url: 'http://{node}', routes: [{{name: a, paths: [/], plugins: [\
         {{request-validation: {{body_schema: {schema}}}}}]}}]}}]\n"
    );
    let apisix = format!(
        "routes:\n- id: 1\n  uri: /*\n  upstream: {{type: roundrobin, nodes: {{'{node}': 1}}}}\n  plugins: \
         {{request-validation: {{body_schema: {schema}}}}}\n#END\n"
    );
    let body = format!("{}1{}", "{\"a\":".repeat(20), "}".repeat(20));
    for (document, words) in [
        (native, "Request too complex"),
        (apisix, "<h1>400 Bad Request</h1>"),
    ] {
        let folder = folder(&document);
        let weir = Weir::start(folder.path(), &SERVE);
        let ask = |address: &str, head: &str, body: &str| {
            let mut client = std::net::TcpStream::connect(address).expect("a connection");
            let length = body.len();
            let request = format!(
                "{head} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            client.write_all(request.as_bytes()).expect("sent");
            let mut answer = String::new();
            client.read_to_string(&mut answer).expect("an answer");
            answer
        };
        let answer = ask(&weir.proxy(), "POST /", &body);
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.contains(words),
            "{answer}"
        );
        let metrics = ask(&weir.status(), "GET /metrics", "");
        assert!(
            metrics.contains("weir_refusals_total{reason=\"work_limit\"} 1\n"),
            "{metrics}"
        );
        assert!(
            metrics.contains("weir_limit_counters_evicted_total{plugin=\"rate-limit\"} 0\n"),
            "{metrics}"
        );
    }
}

/// The status of a call.
fn status_of(weir: &Weir, path: &str) -> u16 {
    let mut client = std::net::TcpStream::connect(weir.proxy()).expect("a connection");
    let call = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.write_all(call.as_bytes()).expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).expect("a status");
    status.parse().expect("a number")
}

#[test]
fn native_guards_are_not_walked_past() {
    let folder = folder(
        "weir: 1\nroutes:\n\
         - {name: admin, paths: [/admin], to: {respond: {status: 503}}, plugins: [{key-auth: {}}]}\n\
         - {name: open, paths: [/], to: {respond: {status: 503}}, plugins: [{request-termination: {status: 200}}]}\n",
    );
    let weir = Weir::start(folder.path(), &SERVE);
    for (path, status) in [
        ("/open", 200),
        ("/open;v=1/100%25", 200),
        ("/admin", 401),
        ("//admin/x", 401),
        ("/p/../admin", 401),
        ("/%61dmin", 401),
        ("/admin%2fx", 400),
        ("/%2fadmin", 400),
        ("/p/..%2f..%2fx", 400),
        ("/admin%5Cx", 400),
        ("/p/..\\admin", 400),
        ("/admin%252fx", 400),
        ("/p/..;/admin", 400),
    ] {
        assert_eq!(status_of(&weir, path), status, "{path}");
    }
}

#[test]
fn calls_are_refused_that_lack_a_plugin_of_their_file() {
    let folder = folder(
        "routes:\n\
         - {id: 1, uri: /decided, plugins: {ext-plugin-pre-req: {}, mocking: {response_example: a}}}\n\
         - {id: 2, uri: /told, plugins: {inspect: {}, mocking: {response_example: a}}}\n\
         - {id: 3, uri: /plain, plugins: {mocking: {response_example: a}}}\n#END\n",
    );
    let weir = Weir::start(folder.path(), &SERVE);
    for (path, status) in [("/decided", 503), ("/told", 200), ("/plain", 200)] {
        assert_eq!(status_of(&weir, path), status, "{path}");
    }
}

/// The status that a call is answered with.
fn status(weir: &Weir) -> u16 {
    let mut client = std::net::TcpStream::connect(weir.proxy()).expect("a connection");
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("read");
    answer[9..12].parse().expect("a status")
}

#[test]
fn quotas_outlive_a_restart() {
    let route = "{name: a, match: [{}], to: {respond: {status: 204}}, plugins: \
                 [{rate-limit: {limits: [{count: 5, per: year}], by: ip}}]}";
    let folder = folder(&format!("weir: 1\nroutes: [{route}]\n"));
    let flags = ["-c", "weir.yaml", "--limit-counts", "counts"];
    let counts = folder.path().join("counts");
    let mut passed = 0;
    for round in 0..2 {
        let mut weir = Weir::start(folder.path(), &flags);
        for _ in 0..2 {
            assert_ne!(status(&weir), 429, "round {round}");
            passed += 1;
        }
        weir.signal(Signal::TERM);
        assert_eq!(weir.end(), Some(0));
        assert!(counts.exists(), "round {round}");
    }
    let mut weir = Weir::start(folder.path(), &flags);
    while status(&weir) != 429 {
        passed += 1;
    }
    assert_eq!(passed, 5);
    weir.signal(Signal::TERM);
    assert_eq!(weir.end(), Some(0));
    // A broken file is reported, and limits begin again.
    let mut bytes = std::fs::read(&counts).expect("there");
    bytes[20] ^= 1;
    std::fs::write(&counts, bytes).expect("written");
    let mut weir = Weir::run(Weir::command(folder.path(), &flags).stderr(Stdio::piped()));
    assert_ne!(status(&weir), 429);
    weir.signal(Signal::TERM);
    let log = BufReader::new(weir.child.stderr.take().expect("piped")).lines();
    let mut log = log.map(|line| line.expect("readable"));
    assert!(log.any(
        |line| line.contains("stored counts of limits cannot be read; they start at zero")
            && line.contains("incomplete")
    ));
    assert_eq!(weir.end(), Some(0));
    // Without the flag nothing is kept.
    let mut weir = Weir::start(folder.path(), &SERVE);
    assert_ne!(status(&weir), 429);
    weir.signal(Signal::TERM);
    assert_eq!(weir.end(), Some(0));
}

/// Vaults of a file are those of its references, without a store and beside one.
#[test]
fn variables_are_found_through_the_vaults_of_a_kong_yml() {
    let folder = folder(
        "_format_version: '3.0'
vaults:
- {name: env, prefix: own, config: {prefix: own_}}
- {name: env, prefix: bare}
services:
- {name: s, url: 'http://127.0.0.1:9', routes: [{name: r, paths: [/]}]}
plugins:
- {name: key-auth}
- {name: request-termination, config: {status_code: 202}}
consumers:
- {username: a, keyauth_credentials: [{key: '{vault://own/first-key}'}]}
- {username: b, keyauth_credentials: [{key: '{vault://bare/second-key}'}, {key: '{vault://env/third-key}'}]}
",
    );
    let variables = [
        ("OWN_FIRST_KEY", "k1"),
        ("SECOND_KEY", "k2"),
        ("THIRD_KEY", "k3"),
        ("FIRST_KEY", "k4"),
    ];
    for arguments in [&SERVE[..], &["-c", "weir.yaml", "--data", "store"]] {
        let weir = Weir::start_with(folder.path(), arguments, &variables);
        for (key, status) in [("k1", 202), ("k2", 202), ("k3", 202), ("k4", 401)] {
            let mut client = std::net::TcpStream::connect(weir.proxy()).expect("a connection");
            client
                .write_all(format!("GET / HTTP/1.1\r\nHost: a\r\napikey: {key}\r\n\r\n").as_bytes())
                .expect("sent");
            let mut line = String::new();
            BufReader::new(client).read_line(&mut line).expect("an answer");
            let expected = format!("HTTP/1.1 {status} ");
            assert!(line.starts_with(&expected), "{arguments:?} {key}: {line}");
        }
    }
}
