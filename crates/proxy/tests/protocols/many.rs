//! Many clients at once, well and badly behaved, to an upstream that is too: every call gets its own answer or a proper
//! failure, and nothing of it hurts another, nor do floods of calls that are given up or broken.

use super::client::{ALL, Client, ClientError, Protocol, read_response};
use super::http2::wait;
use super::http3::connect;
use super::stand::{Stand, address};
use super::support::{Message, Upstream, Wire, answer, client_config, simple_model, text};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Clients that make one call after the other, and as many that have several under way on one connection.
const CLIENTS: u64 = 8;
const CALLS: usize = 100;
/// How long a flood goes on if the gateway does not end it.
const FLOOD: Duration = Duration::from_secs(20);

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

/// An answer's account of its request.
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

/// A call that is going to be made.
struct Planned {
    id: String,
    method: &'static str,
    play: &'static str,
    body: Vec<u8>,
    /// Whether its length is stated.
    is_stated: bool,
}

impl Planned {
    fn new(seed: u64, number: usize, dice: &mut Dice) -> Self {
        Self {
            id: format!("{seed}-{number}"),
            method: ["GET", "PUT", "POST"][dice.roll(3)],
            play: PLAYS[dice.roll(PLAYS.len())],
            body: vec![b'a' + dice.roll(26) as u8; [0, 1, 100, 5000, 40_000][dice.roll(5)]],
            is_stated: dice.roll(2) == 0,
        }
    }

    /// As HTTP/1.1 has it, in chunks of so many bytes.
    fn bytes(&self, piece: usize) -> Vec<u8> {
        let Self { id, method, play, .. } = self;
        let mut bytes =
            format!("{method} /{id} HTTP/1.1\r\nHost: h\r\nX-Id: {id}\r\nX-Play: {play}\r\n").into_bytes();
        if self.is_stated {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
            bytes.extend_from_slice(&self.body);
            return bytes;
        }
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for chunk in self.body.chunks(piece) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }

    /// Fails unless this is what is to come of it: a status and a body.
    fn expect(&self, came: Result<(u16, &[u8]), ClientError>) {
        let play = self.play;
        match (play, came) {
            ("cut", Err(_)) => {}
            ("cut", Ok(_)) => panic!("a cut answer came whole"),
            ("vanish", Ok((status, _))) => assert_eq!(status, 502),
            (_, Ok((status, body))) => {
                assert_eq!(status, 200, "{play}: {}", text(body));
                let is_own = body == account(&self.id, &self.body).as_bytes();
                assert!(is_own, "{play}: another answer than its own");
            }
            (_, Err(_)) => panic!("{play}: no answer"),
        }
    }
}

/// Makes calls, some of which are given up on the way, one way or the other.
fn call(client: &Client, seed: u64) {
    let mut dice = Dice(seed);
    for number in 0..CALLS {
        let planned = Planned::new(seed, number, &mut dice);
        let length = planned.body.len().to_string();
        let fields = [
            ("x-id", planned.id.as_str()),
            ("x-play", planned.play),
            ("content-length", length.as_str()),
        ];
        let fields = &fields[..2 + usize::from(planned.is_stated)];
        let has_body = !planned.body.is_empty();
        let mut call = client.begin(planned.method, "/", fields, has_body).unwrap();
        let is_given_up = dice.roll(10) == 0;
        let to_send = match is_given_up {
            true => dice.roll(planned.body.len() + 1),
            false => planned.body.len(),
        };
        let piece = 1 + dice.roll(9000);
        let mut pieces = planned.body[..to_send].chunks(piece);
        let sent = pieces.try_for_each(|piece| call.send(piece));
        if is_given_up {
            match dice.roll(2) {
                0 => call.cancel(),
                _ => drop(call),
            }
            continue;
        }
        if sent.is_ok() && has_body {
            call.finish(&[]);
        }
        let came = read_response(call.as_mut());
        planned.expect(
            came.as_ref()
                .map_err(Clone::clone)
                .map(|it| (it.head.status, it.body.as_slice())),
        );
    }
}

/// Makes calls over HTTP/1.1, some at once, cut into two anywhere.
fn call_ahead(gateway: SocketAddr, is_tls: bool, seed: u64) {
    let mut dice = Dice(seed);
    let connect = || Wire::to_listener(gateway, is_tls);
    let mut wire = connect();
    let mut number = 0;
    while number < CALLS {
        let (mut calls, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..=dice.roll(3) {
            let planned = Planned::new(seed, number, &mut dice);
            bytes.extend_from_slice(&planned.bytes(1 + dice.roll(9000)));
            calls.push(planned);
            number += 1;
        }
        let second = bytes.split_off(dice.roll(bytes.len()));
        wire.send(bytes);
        if dice.roll(10) == 0 {
            // Gone in the middle of it.
            let gone = std::mem::replace(&mut wire, connect());
            if dice.roll(2) == 0 {
                gone.reset();
            }
            continue;
        }
        let mut sender = wire.sender();
        // The gateway may end the connection after an answer that was cut.
        let sending = std::thread::spawn(move || sender.try_send(second));
        if !calls.iter().all(|planned| is_answered(&mut wire, planned)) {
            wire = connect();
        }
        let _sent = sending.join().unwrap();
    }
}

/// Reads the answer to a call; says whether the connection goes on.
fn is_answered(wire: &mut Wire, planned: &Planned) -> bool {
    let answer = loop {
        match wire.response() {
            Ok(interim) if interim.status() < 200 => {}
            answer => break answer.map_err(|_| ClientError),
        }
    };
    let came = answer.as_ref().map_err(Clone::clone);
    planned.expect(came.map(|it| (it.status(), it.body.as_slice())));
    answer.is_ok_and(|it| it.head.get("Connection").is_none())
}

#[test]
fn calls_of_one_connection_do_not_harm_each_other() {
    for protocol in ALL {
        let upstream = Upstream::bind();
        let model = simple_model(upstream.address);
        serve(upstream);
        let stand = Stand::of(model, |options| options.workers = 2);
        std::thread::scope(|scope| {
            for seed in 0..CLIENTS {
                let client = stand.client(protocol);
                scope.spawn(move || call(&client, seed));
                if protocol.is_http1() {
                    let gateway = address(&stand.gateway, protocol);
                    scope.spawn(move || call_ahead(gateway, protocol.is_tls(), CLIENTS + seed));
                }
            }
        });
    }
}

/// A client that begins calls and gives them up at once, in great number (CVE-2023-44487), ends with its connection.
#[test]
fn floods_of_given_up_calls_cost_the_client_its_connection_and_no_other_client_anything() {
    for protocol in [Protocol::Http2, Protocol::Http2Tls, Protocol::Http3] {
        let stand = Stand::new();
        let (good, bad) = (stand.client(protocol), stand.client(protocol));
        let mut waiting = good.begin("GET", "/", &[], false).unwrap();
        let mut wire = stand.upstream.accept();
        wire.request().unwrap();
        // What was sent lies in buffers until the gateway has the time to read it.
        let begun = Instant::now();
        let mut has_ended = false;
        while !has_ended && begun.elapsed() < FLOOD {
            match bad.begin("GET", "/", &[], false) {
                Ok(call) => call.cancel(),
                Err(_) => has_ended = true,
            }
        }
        assert!(has_ended, "{protocol:?}");
        wire.send(answer("waited for"));
        assert_eq!(
            read_response(waiting.as_mut()).unwrap().text(),
            "waited for",
            "{protocol:?}"
        );
        // This one is not read any more; the next call must not take it.
        drop(wire);
        stand.upstream.serve(|_| answer("ok"));
        assert_eq!(good.get("/").head.status, 200, "{protocol:?}");
    }
}

/// Bodies that are not as long as was said, over HTTP/3.
#[test]
fn floods_of_broken_http3_calls_cost_no_other_client_anything() {
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
