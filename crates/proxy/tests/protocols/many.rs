//! Many clients at once, to an upstream that behaves well and badly: every call gets its own answer or a proper failure,
//! and nothing of it hurts another, nor do floods of calls that are broken.

use super::client::{ALL, Call, Client, Protocol, told};
use super::http2::wait;
use super::http3::connect;
use super::stand::{Stand, address};
use super::support::client_config;
use super::support::{Message, Upstream, Wire, answer, simple_model};

const CLIENTS: u64 = 6;
const CALLS: usize = 60;

/// Random numbers that are the same in every run (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % sides
    }
}

/// What the upstream does with a request that it has read.
const PLAYS: [&str; 8] = [
    "fixed",
    "fixed",
    "chunked",
    "interim",
    "close",
    "until-close",
    "vanish",
    "cut",
];

/// What an answer tells of its request.
fn account(id: &str, body: &[u8]) -> String {
    let sum = body.iter().fold(0u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(*byte))
    });
    format!("{id} {} {sum} {}", body.len(), "x".repeat(body.len() / 3))
}

/// Plays one request; says whether the connection goes on.
fn play(wire: &mut Wire, request: &Message) -> bool {
    let account = account(&request.head.get("X-Id").unwrap(), &request.body);
    let (first, second) = account.split_at(account.len() / 2);
    let fixed = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", account.len());
    let play = request.head.get("X-Play").unwrap();
    let answer = match play.as_str() {
        "fixed" => format!("{fixed}\r\n{account}"),
        "chunked" => format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x};a=b\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        ),
        "interim" => format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{fixed}\r\n{account}"),
        "close" => format!("{fixed}Connection: close\r\n\r\n{account}"),
        "until-close" => format!("HTTP/1.1 200 OK\r\n\r\n{account}"),
        "cut" => format!("{fixed}\r\n{first}"),
        _ => return false,
    };
    wire.try_send(answer).is_ok() && matches!(play.as_str(), "fixed" | "chunked" | "interim")
}

fn serve(upstream: Upstream) {
    std::thread::spawn(move || {
        loop {
            let mut wire = upstream.accept_whenever();
            std::thread::spawn(
                move || while wire.request().is_ok_and(|request| play(&mut wire, &request)) {},
            );
        }
    });
}

/// Makes calls, some of which are given up on the way.
fn call(client: &Client, seed: u64) {
    let mut dice = Dice(seed);
    for number in 0..CALLS {
        let (id, play) = (format!("{seed}-{number}"), PLAYS[dice.roll(PLAYS.len())]);
        let body = vec![b'a' + dice.roll(26) as u8; [0, 1, 100, 5000, 40_000][dice.roll(5)]];
        let method = ["GET", "PUT", "POST"][dice.roll(3)];
        let fields = [("x-id", id.as_str()), ("x-play", play)];
        let mut call = client.begin(method, "/", &fields, !body.is_empty()).unwrap();
        let piece = 1 + dice.roll(9000);
        let sent = body.chunks(piece).try_for_each(|piece| call.send(piece));
        if dice.roll(10) == 0 {
            call.cancel();
            continue;
        }
        if sent.is_ok() && !body.is_empty() {
            call.finish(&[]);
        }
        expect(call.as_mut(), play, &account(&id, &body));
    }
}

fn expect(call: &mut dyn Call, play: &str, account: &str) {
    match (play, told(call)) {
        ("cut", Err(_)) => {}
        ("vanish", Ok(told)) => assert_eq!(told.head.status, 502),
        (play, Ok(told)) => {
            assert!(play != "cut", "a cut answer came whole");
            assert_eq!(told.head.status, 200, "{play}: {}", told.text());
            assert!(
                told.body == account.as_bytes(),
                "{play}: another answer than its own"
            );
        }
        (play, Err(_)) => panic!("{play}: no answer"),
    }
}

#[test]
fn nobody_suffers_for_another() {
    for protocol in ALL {
        let upstream = Upstream::bind();
        let model = simple_model(upstream.address);
        serve(upstream);
        let stand = Stand::of(model, |options| options.workers = 2);
        std::thread::scope(|scope| {
            for seed in 0..CLIENTS {
                let client = stand.client(protocol);
                scope.spawn(move || call(&client, seed));
            }
        });
    }
}

/// A frame of HTTP/2 on a stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A client may have the gateway reset streams in place of doing so itself: calls are begun, and then broken by a window
/// that grows by nothing (RFC 9113, section 6.9).
#[test]
fn a_flood_of_resets_that_the_gateway_is_made_to_send_costs_nobody_else_anything() {
    let stand = Stand::new();
    let good = stand.client(Protocol::Http2);
    let mut wire = Wire::to_listener(address(&stand.gateway, Protocol::Http2), false);
    stand.upstream.serve(|_| answer("ok"));
    wire.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, b"")].concat());
    // By HPACK's static table: GET, http, /, and an authority.
    let head = b"\x82\x86\x84\x41\x01h";
    for number in 0..5000 {
        let stream = 2 * number + 1;
        let begun = [frame(1, 5, stream, head), frame(8, 0, stream, &[0; 4])].concat();
        if wire.try_send(begun).is_err() {
            break;
        }
    }
    let _ended = wire.stream.shutdown(std::net::Shutdown::Write);
    wire.rest();
    assert_eq!(good.get("/").head.status, 200);
}

/// The same by bodies that are not as long as was said, over HTTP/3.
#[test]
fn a_flood_of_broken_calls_over_http3_costs_nobody_else_anything() {
    let stand = Stand::new();
    let good = stand.client(Protocol::Http3);
    let http3 = address(&stand.gateway, Protocol::Http3);
    stand.upstream.serve(|_| answer("ok"));
    let (runtime, connection) = connect(http3, "localhost", client_config(&[b"h3"]));
    let connection = connection.unwrap();
    // GET https localhost / twice.
    let head = b"\x01\x11\x00\x00\xd1\xd7\x50\x09localhost\xc1\xc1";
    wait(&runtime, async {
        for _ in 0..5000 {
            let Ok((mut send, _receive)) = connection.open_bi().await else {
                return;
            };
            let _sent = send.write_all(head).await;
        }
    });
    assert_eq!(good.get("/").head.status, 200);
}
