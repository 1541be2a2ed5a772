//! Graphs of nodes that call servers, in Weir's own form and as Kong's `datakit`: the whole gateway, with servers of this
//! test.

use crate::weir::Weir;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A server that answers by the path: the services and those that nodes call.
struct Server {
    address: String,
    calls: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || serve(&stream, &counted));
            }
        });
        Self { address, calls }
    }
}

/// The head and the body of a message.
fn message(reader: &mut BufReader<&TcpStream>) -> Option<(Vec<String>, String)> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = field(&head, "content-length").and_then(|it| it.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

fn field<'h>(head: &'h [String], name: &str) -> Option<&'h str> {
    let fields = head.iter().filter_map(|line| line.split_once(": "));
    let mut found = fields.filter(|(it, _)| it.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value)
}

fn serve(stream: &TcpStream, calls: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = message(&mut reader) {
        calls.fetch_add(1, Ordering::SeqCst);
        let target = head[0].split(' ').nth(1).unwrap_or_default().to_owned();
        let path = target.split('?').next().unwrap_or_default();
        let (status, content_type, answer) = match path {
            "/user" => (
                "200 OK",
                "application/json",
                json!({"id": "u1", "query": target}).to_string(),
            ),
            "/post" => ("201 Created", "text/plain", body),
            "/xml" => ("200 OK", "text/xml", "<r><n k=\"1\">2</n><n/></r>".to_owned()),
            "/broken" => ("503 Service Unavailable", "text/plain", "no".to_owned()),
            _ => {
                let fields =
                    json!({"plan": field(&head, "X-Plan"), "body": body, "target": target, "secret": "s"});
                ("200 OK", "application/json", fields.to_string())
            }
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nX-Internal: 1\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A graph in both forms, a request behind the path of its route, and what comes of it: the status and the body.
struct Case {
    native: Value,
    kong: Value,
    request: &'static str,
    status: u16,
    body: &'static str,
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    vec![
        Case {
            native: json!([
                {"name": "put", "jq": "{\"X-Plan\": .id}", "input": "user.body", "output": "service_request.headers"},
                {"name": "user", "call": {"url": "http://SERVER/user"}, "inputs": {"query": "request.query"}},
                {"name": "cut", "jq": "{plan, body}", "input": "service_response.body", "output": "response.body"},
            ]),
            kong: json!([
                {"name": "PUT", "type": "jq", "jq": "{\"X-Plan\": .id}", "input": "USER.body", "output": "service_request.headers"},
                {"name": "USER", "type": "call", "url": "http://SERVER/user", "inputs": {"query": "request.query"}},
                {"name": "CUT", "type": "jq", "jq": "{plan, body}", "input": "service_response.body", "output": "response.body"},
            ]),
            request: "?q=1",
            status: 200,
            body: r#"{"plan":"u1","body":""}"#,
        },
        // Calls after the service's response, and headers only.
        Case {
            native: json!([
                {"name": "late", "call": {"url": "http://SERVER/post", "method": "POST"}, "inputs": {"body": "secret"}},
                {"name": "secret", "jq": ".secret", "input": "service_response.body"},
                {"name": "end", "jq": "[.]", "input": "late.body", "output": "response.body"},
                {"name": "hide", "static": {"X-Internal": null}, "output": "response.headers"},
            ]),
            kong: json!([
                {"name": "LATE", "type": "call", "url": "http://SERVER/post", "method": "POST", "inputs": {"body": "SECRET"}},
                {"name": "SECRET", "type": "jq", "jq": ".secret", "input": "service_response.body"},
                {"name": "END", "type": "jq", "jq": "[.]", "input": "LATE.body", "output": "response.body"},
                {"name": "HIDE", "type": "static", "values": {"X-Internal": null}, "output": "response.headers"},
            ]),
            request: "",
            status: 200,
            body: r#"["s"]"#,
        },
        Case {
            native: json!([
                {"name": "user", "call": {"url": "http://SERVER/user"}},
                {"name": "xml", "call": {"url": "http://SERVER/xml"}},
                {"name": "json", "xml_to_json": {"attributes_member": "#attr"}, "input": "xml.body"},
                {"name": "join", "jq": "{id: .user.id, n: .json.r.n}", "inputs": {"user": "user.body", "json": "json"}},
                {"name": "end", "exit": {"status": 202}, "inputs": {"body": "join"}},
            ]),
            kong: json!([
                {"name": "USER", "type": "call", "url": "http://SERVER/user"},
                {"name": "XML", "type": "call", "url": "http://SERVER/xml"},
                {"name": "JSON", "type": "xml_to_json", "attributes_block_name": "#attr", "input": "XML.body"},
                {"name": "JOIN", "type": "jq", "jq": "{id: .user.id, n: .json.r.n}", "inputs": {"user": "USER.body", "json": "JSON"}},
                {"name": "END", "type": "exit", "status": 202, "inputs": {"body": "JOIN"}},
            ]),
            request: "",
            status: 202,
            body: r##"{"id":"u1","n":[{"#attr":{"k":"1"},"#text":2},{}]}"##,
        },
        Case {
            native: json!([{"name": "a", "call": {"url": "http://SERVER/broken"}}]),
            kong: json!([{"name": "A", "type": "call", "url": "http://SERVER/broken"}]),
            request: "",
            status: 500,
            body: "",
        },
        // An address that is made of values: in Weir's own form only of servers that are named.
        Case {
            native: json!([
                {"name": "url", "jq": "\"http://SERVER/\" + .to", "input": "request.query"},
                {"name": "call", "call": {"servers": ["SERVER"]}, "inputs": {"url": "url"}},
                {"name": "end", "exit": {}, "inputs": {"body": "call.body"}},
            ]),
            kong: json!([
                {"name": "URL", "type": "jq", "jq": "\"http://SERVER/\" + .to", "input": "request.query"},
                {"name": "CALL", "type": "call", "url": "http://127.0.0.1:1/", "inputs": {"url": "URL"}},
                {"name": "END", "type": "exit", "inputs": {"body": "CALL.body"}},
            ]),
            request: "?to=user",
            status: 200,
            body: r#"{"id":"u1","query":"/user"}"#,
        },
        Case {
            native: json!([
                {"name": "url", "jq": "\"http://SERVER/\" + .to", "input": "request.query"},
                {"name": "call", "call": {"url": "http://127.0.0.1:1/"}, "inputs": {"url": "url"}},
            ]),
            kong: json!([
                {"name": "URL", "type": "jq", "jq": "\"nonsense\"", "input": "request.query"},
                {"name": "CALL", "type": "call", "inputs": {"url": "URL"}},
            ]),
            request: "?to=user",
            status: 500,
            body: "",
        },
        // The same server by a target that is set.
        Case {
            native: json!([
                {"name": "to", "static": {"target": "SERVER"}},
                {"name": "set", "property": {"name": "upstream_target"}, "input": "to.target"},
                {"name": "route", "property": {"name": "route_name"}},
                {"name": "status", "property": {"name": "upstream_status"}},
                {"name": "all", "jq": "[.route[1:], .status]", "inputs": {"route": "route", "status": "status"}, "output": "response.body"},
            ]),
            kong: json!([
                {"name": "TO", "type": "static", "values": {"target": "SERVER"}},
                {"name": "SET", "type": "property", "property": "kong.service.target", "input": "TO.target"},
                {"name": "ROUTE", "type": "property", "property": "kong.router.route"},
                {"name": "STATUS", "type": "property", "property": "kong.service.response.status"},
                {"name": "ALL", "type": "jq", "jq": "[.route.name[1:], .status]", "inputs": {"route": "ROUTE", "status": "STATUS"}, "output": "response.body"},
            ]),
            request: "",
            status: 200,
            body: r#"["6",200]"#,
        },
    ]
});

/// A gateway with the graphs of all cases, each on a route of its own in each dialect.
fn gateway(server: &Server) -> (tempfile::TempDir, Weir) {
    let folder = tempfile::tempdir().expect("a folder");
    let routes = |prefix: &str, plugin: fn(&Case) -> Value| -> Value {
        let route = |(number, case): (usize, &Case)| {
            let name = format!("{prefix}{number}");
            json!({"name": name, "paths": [format!("/{name}")], "plugins": [plugin(case)]})
        };
        CASES.iter().enumerate().map(route).collect()
    };
    let url = "http://SERVER";
    let native = json!({"weir": 1, "services": [{"name": "n", "url": url,
        "routes": routes("n", |case| json!({"orchestration": {"nodes": case.native}}))}]});
    let kong = json!({"_format_version": "3.0", "services": [{"name": "k", "url": url,
        "routes": routes("k", |case| json!({"name": "datakit", "config": {"nodes": case.kong}}))}]});
    for (name, document) in [("weir.yaml", native), ("kong.yml", kong)] {
        let text = document.to_string().replace("SERVER", &server.address);
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let weir = Weir::start(folder.path(), &["-c", "weir.yaml", "-c", "kong.yml"]);
    (folder, weir)
}

/// Sends a GET and gives the status, the head and the body.
fn get(weir: &Weir, target: &str) -> (u16, Vec<String>, String) {
    let stream = TcpStream::connect(weir.proxy()).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time");
    let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    (&stream).write_all(request.as_bytes()).expect("sent");
    let (head, body) = message(&mut BufReader::new(&stream)).expect("an answer");
    let status = head[0]
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse().ok())
        .expect("a status");
    (status, head, body)
}

#[test]
fn graphs_do_the_same_in_both_forms() {
    let server = Server::start();
    let (_folder, weir) = gateway(&server);
    for (number, case) in CASES.iter().enumerate() {
        for dialect in ["n", "k"] {
            let target = format!("/{dialect}{number}{}", case.request);
            let (status, head, body) = get(&weir, &target);
            assert_eq!(status, case.status, "{target}: {body}");
            match (case.status, dialect) {
                (500, "k") => {
                    let answer: Value = serde_json::from_str(&body).expect("JSON");
                    assert_eq!(answer["message"], "An unexpected error occurred", "{target}");
                }
                (500, _) => assert_eq!(
                    field(&head, "content-type"),
                    Some("application/problem+json"),
                    "{target}"
                ),
                _ => assert_eq!(body.trim_end(), case.body, "{target}"),
            }
            // Headers of the service that a graph removes.
            let is_hidden = case.native.to_string().contains("X-Internal");
            if is_hidden {
                assert_eq!(field(&head, "x-internal"), None, "{target}: {head:?}");
            }
        }
    }
}

/// Kong's nodes `cache` and `branch` between two calls, and a cache of responses before and behind a graph.
#[test]
fn kept_values_and_kept_responses_pass_through_graphs() {
    let server = Server::start();
    let folder = tempfile::tempdir().expect("a folder");
    let kept = json!([
        {"name": "KEY", "type": "static", "values": {"key": "cache key"}},
        {"name": "GET", "type": "cache", "input": "KEY"},
        {"name": "BRANCH", "type": "branch", "then": ["DATA", "SET", "EXIT_MISS"], "else": ["EXIT_HIT"], "input": "GET.miss"},
        {"name": "DATA", "type": "call", "url": "http://SERVER/user"},
        {"name": "VALUES", "type": "static", "values": {"hit": {"X-Hit": true}, "miss": {"X-Hit": false}, "ttl": 100}},
        {"name": "SET", "type": "cache", "inputs": {"key": "KEY.key", "data": "DATA.body", "ttl": "VALUES.ttl"}},
        {"name": "EXIT_MISS", "type": "exit", "inputs": {"headers": "VALUES.miss", "body": "DATA.body"}},
        {"name": "EXIT_HIT", "type": "exit", "inputs": {"headers": "VALUES.hit", "body": "GET.data"}},
    ]);
    let cut = json!([{"name": "CUT", "type": "jq", "jq": "{target}", "input": "service_response.body", "output": "response.body"}]);
    let cache = json!({"name": "proxy-cache", "config": {"strategy": "memory", "content_type": ["application/json"]}});
    let datakit = |nodes: &Value| json!({"name": "datakit", "config": {"nodes": nodes, "resources": {"cache": {"strategy": "memory"}}}});
    let kong = json!({"_format_version": "3.0", "services": [{"name": "k", "url": "http://SERVER", "routes": [
        {"name": "kept", "paths": ["/kept"], "plugins": [datakit(&kept)]},
        {"name": "cut", "paths": ["/cut"], "strip_path": false, "plugins": [datakit(&cut), cache]},
    ]}]});
    let native = json!({"weir": 1, "services": [{"name": "n", "url": "http://SERVER", "routes": [
        {"name": "behind", "paths": ["/behind"], "plugins": [
            {"proxy-cache": {"ttl_seconds": 60, "cache_control": false, "content_types": ["application/json"]}},
            {"orchestration": {"nodes": [{"name": "cut", "jq": "{target}", "input": "service_response.body", "output": "response.body"}]}},
        ]},
    ]}]});
    for (name, document) in [("weir.yaml", native), ("kong.yml", kong)] {
        let text = document.to_string().replace("SERVER", &server.address);
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let weir = Weir::start(folder.path(), &["-c", "weir.yaml", "-c", "kong.yml"]);
    for (target, body, hit, calls) in [
        ("/kept", r#"{"id":"u1","query":"/user"}"#, Some("false"), 1),
        ("/kept", r#"{"id":"u1","query":"/user"}"#, Some("true"), 1),
        ("/cut", r#"{"target":"/cut"}"#, None, 2),
        ("/cut", r#"{"target":"/cut"}"#, None, 2),
        ("/behind", r#"{"target":"/behind"}"#, None, 3),
        ("/behind", r#"{"target":"/behind"}"#, None, 3),
    ] {
        let (status, head, found) = get(&weir, target);
        assert_eq!((status, found.trim_end()), (200, body), "{target} {head:?}");
        assert_eq!(field(&head, "x-hit"), hit, "{target}");
        assert_eq!(server.calls.load(Ordering::SeqCst), calls, "{target}");
    }
}
