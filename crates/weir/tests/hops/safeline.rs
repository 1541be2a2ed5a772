//! SafeLine's detector, spoken with over T1K: the whole gateway, with APISIX's files. The detector is written here after
//! the published protocol, as SafeLine itself is not at hand; its answers are those of APISIX's own tests.

use crate::weir::Weir;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const PASSED: &[u8] = b"\x41\x01\0\0\0.\xa5\x02\0\0\0{}";
const EVENT: &str = "b3c6ce574dc24f09a01f634a39dca83b";

fn packet(tag: u8, data: &[u8]) -> Vec<u8> {
    [&[tag][..], &(data.len() as u32).to_le_bytes(), data].concat()
}

fn rejected() -> Vec<u8> {
    [
        packet(0x41, b"?"),
        packet(0x02, b"403"),
        packet(0x25, b"{}"),
        packet(0x23, b"Set-Cookie:sl-session=u; Path=/\n"),
        packet(0xa4, format!("<!-- event_id: {EVENT} -->").as_bytes()),
    ]
    .concat()
}

/// The data of a question by their tags; `None`: the connection is over.
fn question(stream: &mut TcpStream) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut packets = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).ok()?;
        let mut data = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
        stream.read_exact(&mut data).ok()?;
        assert_eq!(head[0] & 0x40 != 0, packets.is_empty(), "the first is marked");
        packets.push((head[0] & 0x3f, data));
        if head[0] & 0x80 != 0 {
            return Some(packets);
        }
    }
}

/// A question, and over which connection it came.
type DetectionRequest = (usize, Vec<(u8, Vec<u8>)>);

/// A detector that takes calls whose head has `attack` for attacks, and never answers those with `slow`.
fn detector() -> (u16, Receiver<DetectionRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let sender = sender.clone();
            std::thread::spawn(move || answer(number, stream, &sender));
        }
    });
    (port, receiver)
}

fn answer(number: usize, mut stream: TcpStream, sender: &Sender<DetectionRequest>) {
    while let Some(packets) = question(&mut stream) {
        let head = String::from_utf8_lossy(&packets[0].1).into_owned();
        if sender.send((number, packets)).is_err() {
            return;
        }
        let answer = match head.contains("attack") {
            true => rejected(),
            false => PASSED.to_vec(),
        };
        if !head.contains("slow") && stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// An upstream that answers `ok` to each call.
fn upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut piece = [0; 64 * 1024];
            let mut all = String::new();
            // Bodies of the tests end with this mark.
            let is_whole = |all: &str| match all.starts_with("POST") {
                true => all.ends_with("the end"),
                false => all.ends_with("\r\n\r\n"),
            };
            while !is_whole(&all) {
                match stream.read(&mut piece) {
                    Ok(count @ 1..) => all.push_str(&String::from_utf8_lossy(&piece[..count])),
                    _ => break,
                }
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
            // The gateway may have gone.
            let _is_told = stream.write_all(answer);
        }
    });
    port
}

/// The answer to a call, in lower case.
fn call(weir: &Weir, path: &str, rest: &str) -> String {
    let mut stream = TcpStream::connect(weir.proxy()).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time");
    let method = if rest.starts_with("Content-Length") {
        "POST"
    } else {
        "GET"
    };
    let request = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{rest}");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.to_lowercase()
}

/// Routes with configurations of the plugin, by their paths.
fn gateway(detector: u16, routes: &[(&str, Value)]) -> (tempfile::TempDir, Weir) {
    let upstream = format!("127.0.0.1:{}", upstream());
    let routes: Vec<Value> = routes
        .iter()
        .map(|(name, config)| {
            json!({
                "id": name, "uri": format!("/{name}/*"), "plugins": {"chaitin-waf": config},
                "upstream": {"type": "roundrobin", "nodes": {&upstream: 1}},
            })
        })
        .collect();
    let document = json!({
        "routes": routes,
        "plugin_metadata": [{"id": "chaitin-waf", "nodes": [{"host": "127.0.0.1", "port": detector}]}],
    });
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("apisix.yaml"), document.to_string()).expect("a file");
    let weir = Weir::start(folder.path(), &["-c", "apisix.yaml"]);
    (folder, weir)
}

const ALL: Duration = Duration::from_secs(20);

#[test]
fn a_detector_says_which_calls_are_attacks() {
    let (detector, asked) = detector();
    let short = json!({"connect_timeout": 50, "send_timeout": 50, "read_timeout": 50});
    let (_folder, weir) = gateway(
        detector,
        &[
            ("block", json!({"mode": "block", "config": short})),
            ("monitor", json!({"config": short})),
            ("off", json!({"mode": "off"})),
            (
                "some",
                json!({"mode": "block", "match": [{"vars": [["http_waf", "==", "true"]]}]}),
            ),
        ],
    );
    let (yes, pass, reject) = ("x-apisix-chaitin-waf: yes", "-action: pass", "-action: reject");
    for (path, fields, status, message, is_asked) in [
        (
            "/block/a",
            "",
            200,
            vec![yes, pass, "-status: 200", "-time: "],
            true,
        ),
        (
            "/block/attack",
            "",
            403,
            vec![yes, reject, "-status: 403", EVENT, "set-cookie: sl-session=u"],
            true,
        ),
        (
            "/block/slow",
            "",
            500,
            vec!["x-apisix-chaitin-waf: timeout", "-time: "],
            true,
        ),
        ("/monitor/a", "", 200, vec![yes, pass], true),
        (
            "/monitor/attack",
            "",
            200,
            vec![yes, reject, "-status: 403"],
            true,
        ),
        (
            "/monitor/slow",
            "",
            200,
            vec!["x-apisix-chaitin-waf: timeout"],
            true,
        ),
        ("/off/attack", "", 200, vec!["x-apisix-chaitin-waf: off"], false),
        ("/some/attack", "", 200, vec!["x-apisix-chaitin-waf: no"], false),
        ("/some/attack", "waf: true\r\n", 403, vec![yes, reject], true),
    ] {
        let answer = call(&weir, path, &format!("{fields}\r\n"));
        assert!(
            answer.starts_with(&format!("http/1.1 {status} ")),
            "{path}: {answer}"
        );
        for part in message {
            assert!(answer.contains(part), "{path}: {part} in {answer}");
        }
        if is_asked {
            let (_, packets) = asked.recv_timeout(ALL).expect("a question");
            let line = format!("GET {path} HTTP/1.1\r\n");
            assert!(packets[0].1.starts_with(line.as_bytes()), "{path}");
            let tags: Vec<u8> = packets.iter().map(|(tag, _)| *tag).collect();
            assert_eq!(tags, [0x01, 0x03, 0x20], "{path}");
        }
    }
    assert!(asked.try_recv().is_err(), "no more was asked");
}

#[test]
fn connections_are_used_again_and_of_long_bodies_the_start_is_seen() {
    let (detector, asked) = detector();
    let config = json!({"mode": "block", "config": {"req_body_size": 1}});
    let (_folder, weir) = gateway(detector, &[("a", config)]);
    let long = format!("{}the end", "x".repeat(5_000));
    let mut connections = Vec::new();
    for (body, seen) in [("the end", 7), (&*long, 1024)] {
        let answer = call(
            &weir,
            "/a/b",
            &format!("Content-Length: {}\r\n\r\n{body}", body.len()),
        );
        assert!(answer.starts_with("http/1.1 200"), "{answer}");
        let (connection, packets) = asked.recv_timeout(ALL).expect("a question");
        connections.push(connection);
        assert_eq!((packets[1].0, packets[1].1.len()), (0x02, seen));
    }
    assert_eq!(connections[0], connections[1], "one worker keeps its connection");
}
