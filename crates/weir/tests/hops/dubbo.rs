//! Methods of Dubbo services, invoked over HTTP: the whole gateway, with APISIX's files. The provider is written here after
//! the published protocol, as a Java virtual machine with Dubbo is not at hand.

use crate::weir::Weir;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const ALL: Duration = Duration::from_secs(20);

fn frame(flags: u8, status: u8, id: u64, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[0xda, 0xbb, flags, status][..], &id.to_be_bytes(), &length, body].concat()
}

/// The number of an invocation and its lines.
fn invocation(stream: &mut TcpStream) -> Option<(u64, Vec<String>)> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).ok()?;
    assert_eq!(head[..4], [0xda, 0xbb, 0xc6, 0]);
    let id = u64::from_be_bytes(head[4..12].try_into().expect("eight"));
    let length = u32::from_be_bytes(head[12..].try_into().expect("four"));
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).expect("a text");
    Some((id, body.lines().map(str::to_owned).collect()))
}

/// A provider whose methods do what their names say.
fn provider() -> (u16, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || answer(stream, &sender));
        }
    });
    (port, receiver)
}

fn answer(mut stream: TcpStream, sender: &Sender<Vec<String>>) {
    let Some((id, lines)) = invocation(&mut stream) else {
        return;
    };
    let first = lines.get(5).cloned().unwrap_or_default();
    let method = lines[3].trim_matches('"').to_owned();
    let answers = match method.as_str() {
        "echo" => vec![frame(6, 20, id, format!("1\n{first}\n").as_bytes())],
        "attached" => vec![
            frame(0xe6, 0, 7, b"null\n"),
            frame(
                6,
                20,
                id,
                format!("4\n{first}\n{{\"dubbo\":\"2.0.2\"}}\n").as_bytes(),
            ),
        ],
        "nothing" => vec![frame(6, 20, id, b"2\n")],
        "throws" => vec![frame(6, 20, id, b"0\n{\"message\":\"no\"}\n")],
        "unknown" => vec![frame(6, 40, id, b"\"no such method\"\n")],
        "other" => vec![b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec()],
        _ => Vec::new(),
    };
    if sender.send(lines).is_err() {
        return;
    }
    for answer in answers {
        // In two pieces, as the network may have it.
        let (start, end) = answer.split_at(answer.len() / 2);
        if stream
            .write_all(start)
            .and_then(|()| stream.write_all(end))
            .is_err()
        {
            return;
        }
    }
    if method == "silent" {
        // Until the gateway has had enough.
        let _is_over = stream.read(&mut [0]);
    }
}

/// The status of a call, its content type and its body.
fn call(weir: &Weir, path: &str, body: &str) -> (String, String, String) {
    let mut stream = TcpStream::connect(weir.proxy()).expect("a connection");
    stream.set_read_timeout(Some(ALL)).expect("a time");
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let kind = head.lines().find_map(|line| line.strip_prefix("Content-Type: "));
    (
        head[9..12].to_owned(),
        kind.unwrap_or_default().to_owned(),
        body.to_owned(),
    )
}

fn route(name: &str, port: u16, change: &Value) -> Value {
    let mut config = json!({
        "service_name": "org.Shop", "service_version": "1.0.0", "method": name, "serialized": true,
        "params_type_desc": "Ljava/lang/Long;",
    });
    let change = change.as_object().expect("a map").clone();
    config.as_object_mut().expect("a map").extend(change);
    json!({
        "id": name, "uri": format!("/{name}"), "plugins": {"http-dubbo": config, "response-rewrite": {"headers": {"set": {"X-A": "1"}}}},
        "upstream": {"type": "roundrobin", "nodes": {format!("127.0.0.1:{port}"): 1}, "retries": 0},
    })
}

#[test]
fn methods_are_invoked_and_their_values_are_answers() {
    let (port, invoked) = provider();
    // Nothing listens there any more.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nowhere = closed.local_addr().expect("bound").port();
    drop(closed);
    let json_body = json!({"serialized": false, "params_type_desc": "Ljava/lang/String;I"});
    let routes = [
        ("echo", port, json!({})),
        ("attached", port, json_body),
        ("nothing", port, json!({"params_type_desc": ""})),
        ("throws", port, json!({})),
        ("unknown", port, json!({})),
        ("other", port, json!({})),
        ("closes", port, json!({})),
        ("silent", port, json!({"send_timeout": 50, "read_timeout": 50})),
        ("nowhere", nowhere, json!({})),
    ]
    .map(|(name, port, change)| route(name, port, &change));
    let folder = tempfile::tempdir().expect("a folder");
    let document = json!({"routes": routes}).to_string();
    std::fs::write(folder.path().join("apisix.yaml"), document).expect("a file");
    let weir = Weir::start(folder.path(), &["-c", "apisix.yaml"]);
    let kind = "application/json";
    for (path, body, status, answer, argument) in [
        (
            "/echo",
            r#"{"a":[1,"b"]}"#,
            "200",
            Some(r#"{"a":[1,"b"]}"#),
            Some(r#"{"a":[1,"b"]}"#),
        ),
        (
            "/attached",
            r#"["x\ny", 2]"#,
            "200",
            Some(r#""x\ny""#),
            Some(r#""x\ny""#),
        ),
        ("/attached", "7", "400", None, None),
        (
            "/attached",
            r#"["x", 2, {"path": "org.Admin"}]"#,
            "400",
            None,
            None,
        ),
        ("/echo", "1\n{\"path\":\"org.Admin\"}", "400", None, None),
        ("/echo", "", "400", None, None),
        ("/nothing", "", "200", Some(""), Some("{}")),
        ("/throws", "1", "500", None, Some("1")),
        ("/unknown", "1", "500", None, Some("1")),
        ("/other", "1", "500", None, Some("1")),
        ("/closes", "1", "500", None, Some("1")),
        ("/silent", "1", "500", None, Some("1")),
        ("/nowhere", "1", "502", None, None),
    ] {
        let (found, found_kind, found_body) = call(&weir, path, body);
        assert_eq!(found, status, "{path}: {found_body}");
        if let Some(answer) = answer {
            assert_eq!(found_body, answer, "{path}");
            assert_eq!(found_kind == kind, !answer.is_empty(), "{path}: {found_kind}");
        }
        if let Some(argument) = argument {
            let lines = invoked.recv_timeout(ALL).expect("an invocation");
            let method = format!("\"{}\"", &path[1..]);
            let types = match path {
                "/attached" => "\"Ljava/lang/String;I\"",
                "/nothing" => "\"\"",
                _ => "\"Ljava/lang/Long;\"",
            };
            let expected = ["\"2.0.2\"", "\"org.Shop\"", "\"1.0.0\"", &method, types, argument];
            assert_eq!(lines[..6], expected, "{path}");
            assert_eq!(lines.last().map(String::as_str), Some("{}"), "{path}");
        }
    }
    assert!(invoked.try_recv().is_err(), "no more was invoked");
}
