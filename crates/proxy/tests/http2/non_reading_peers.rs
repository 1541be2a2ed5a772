//! Peers that send but do not read: what they send is taken in as far as it asks for nothing, and no further.

use super::frames::{self, BOTH, DATA, END_HEADERS, END_STREAM, HEADERS, PING, POST, REQUEST, frame};
use super::frames::{INITIAL_WINDOW_SIZE, MAX_WINDOW, MORE_WINDOW};
use super::peer::{Client, run};
use super::support::{TestGateway, Upstream, Wire, answer, balanced, eventually};
use bytes::Bytes;
use h2::SendStream;
use serde_json::json;
use std::io::Write;
use std::time::Duration;

/// How long nothing is taken of what a peer has no more room for.
const STALL: Duration = Duration::from_millis(500);

/// Writes until nothing more is taken for a while; the number of bytes.
fn fill(wire: &Wire, piece: &[u8], most: usize) -> usize {
    wire.stream.set_write_timeout(Some(STALL)).unwrap();
    let mut sent = 0;
    while sent < most
        && let Ok(count) = (&wire.stream).write(piece)
    {
        sent += count;
    }
    sent
}

/// The same on a stream.
async fn fill_stream(stream: &mut SendStream<Bytes>, most: usize) -> usize {
    let mut sent = 0;
    while sent < most {
        stream.reserve_capacity(64 << 10);
        let room = std::future::poll_fn(|context| stream.poll_capacity(context));
        let Ok(Some(Ok(room))) = tokio::time::timeout(STALL, room).await else {
            break;
        };
        stream.send_data(Bytes::from(vec![7; room]), false).unwrap();
        sent += room;
    }
    sent
}

/// Two gateways in a row would otherwise both wait until the other reads (RFC 9113, section 5.2.2).
#[test]
fn bodies_go_on_while_their_client_does_not_read_another() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let begun = [
        frames::settings(&[(INITIAL_WINDOW_SIZE, MAX_WINDOW)]),
        frames::window(0, MORE_WINDOW),
        frame(HEADERS, BOTH, 1, REQUEST),
    ];
    let mut client = frames::connect(&gateway, &begun);
    let mut wire = upstream.accept();
    wire.request().unwrap();
    let total = 64 << 20;
    wire.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n"));
    assert!(
        fill(&wire, &vec![7; 64 << 10], total) < total,
        "more was taken than there is room for"
    );
    let body = [7; 16 << 10];
    client.send(frame(HEADERS, END_HEADERS, 3, POST));
    client.send(frame(DATA, 0, 3, &body));
    client.send(frame(DATA, END_STREAM, 3, &body));
    let mut other = upstream.accept();
    assert_eq!(other.request().unwrap().body.len(), 2 * body.len());
    // Its answer comes once the client reads.
    other.send(answer("ok"));
    assert_eq!(frames::body(&mut client, 3), Ok(2));
}

#[test]
fn who_does_not_read_answers_gets_no_further_ones() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let client = frames::connect(&gateway, &[frames::settings(&[])]);
    let pings = frame(PING, 0, 0, b"12345678").repeat(4096);
    let most = 256 << 20;
    assert!(fill(&client, &pings, most) < most, "all were taken");
    drop(upstream);
}

/// An upstream that stops reading gets no further calls, and its connection does not outlive the last of them.
#[test]
fn an_upstream_that_does_not_read_is_let_go() {
    let upstream = Upstream::bind();
    let group = json!({"scheme": "h2c", "keepalive": {"idle_timeout_ms": 1000}});
    let gateway = TestGateway::start(balanced(&[(upstream.address, 1)], &json!({"upstreams": group})));
    run(async {
        let client = Client::connect(gateway.address).await;
        let request = client.request("POST", "/", &[]);
        let (response, mut stream) = client.begin(request, false).await.unwrap();
        let accepting = tokio::task::spawn_blocking(move || {
            let windows = frames::settings(&[(INITIAL_WINDOW_SIZE, MAX_WINDOW)]);
            let mut stuck = frames::accept(&upstream, &[windows, frames::window(0, MORE_WINDOW)]);
            frames::next_of(&mut stuck, HEADERS);
            (upstream, stuck)
        });
        let (upstream, stuck) = accepting.await.unwrap();
        let most = 64 << 20;
        assert!(fill_stream(&mut stream, most).await < most, "all was taken");
        // Heads are sent on a little; then they go elsewhere.
        let field = "v".repeat(16 << 10);
        let mut small = Vec::new();
        for _ in 0..12 {
            let mut wire = gateway.connect();
            wire.send(format!("GET / HTTP/1.1\r\nHost: h\r\nX-Field: {field}\r\n\r\n"));
            small.push(wire);
        }
        let mut other = frames::accept(&upstream, &[frames::settings(&[])]);
        frames::next_of(&mut other, HEADERS);
        drop((small, response, stream));
        eventually("no connection is left", || {
            gateway.totals().upstream_connections_active == 0
        });
        drop((stuck, other));
    });
}
