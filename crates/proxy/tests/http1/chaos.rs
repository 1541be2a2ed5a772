//! Many clients at once, well and badly behaved, to upstreams that are too: every call gets its own answer or a
//! proper failure, and nothing of it hurts another.

use crate::support::{Message, TestGateway, Upstream, Wire, simple_model, text};
use std::fmt::Write as _;

const CLIENTS: u64 = 24;
const CALLS: usize = 120;

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
    let (length, half) = (account.len(), account.len() / 2);
    let fixed = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n");
    let play = request.head.get("X-Play").unwrap();
    let answer = match play.as_str() {
        "fixed" => format!("{fixed}\r\n{account}"),
        "chunked" => {
            let (first, second) = account.split_at(half);
            let rest = length - half;
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{half:x};a=b\r\n{first}\r\n{rest:x}\r\n{second}\r\n0\r\n\r\n"
            )
        }
        "interim" => format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{fixed}\r\n{account}"),
        "close" => format!("{fixed}Connection: close\r\n\r\n{account}"),
        "until-close" => format!("HTTP/1.1 200 OK\r\n\r\n{account}"),
        "cut" => format!("{fixed}\r\n{}", &account[..half]),
        _ => return false,
    };
    wire.try_send(&answer).is_ok() && matches!(play.as_str(), "fixed" | "chunked" | "interim")
}

fn serve(upstream: Upstream) {
    std::thread::spawn(move || {
        loop {
            let mut wire = upstream.accept_whenever();
            std::thread::spawn(move || {
                while let Ok(request) = wire.request() {
                    if !play(&mut wire, &request) {
                        return;
                    }
                }
            });
        }
    });
}

struct Planned {
    bytes: Vec<u8>,
    play: &'static str,
    account: String,
}

fn plan(id: &str, dice: &mut Dice) -> Planned {
    let play = PLAYS[dice.roll(PLAYS.len())];
    let body = vec![b'a' + dice.roll(26) as u8; [0, 1, 100, 5000, 40_000][dice.roll(5)]];
    let method = ["GET", "PUT", "POST"][dice.roll(3)];
    let mut head = format!("{method} /{id} HTTP/1.1\r\nHost: h\r\nX-Id: {id}\r\nX-Play: {play}\r\n");
    let mut bytes = Vec::new();
    if dice.roll(2) == 0 {
        write!(head, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
        bytes.extend_from_slice(&body);
    } else {
        head += "Transfer-Encoding: chunked\r\n\r\n";
        for chunk in body.chunks(1 + dice.roll(9000)) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
    }
    let account = account(id, &body);
    Planned {
        bytes: [head.into_bytes(), bytes].concat(),
        play,
        account,
    }
}

/// Makes calls on one connection after the other.
fn call(gateway: std::net::SocketAddr, client: u64) {
    let mut dice = Dice(client);
    let mut wire = Wire::to_gateway(gateway);
    let mut call = 0;
    while call < CALLS {
        // Some at once, cut into pieces anywhere.
        let planned: Vec<Planned> = (0..1 + dice.roll(3))
            .map(|more| plan(&format!("{client}-{}", call + more), &mut dice))
            .collect();
        call += planned.len();
        let bytes: Vec<u8> = planned.iter().flat_map(|planned| planned.bytes.clone()).collect();
        let (first, second) = bytes.split_at(dice.roll(bytes.len()));
        wire.send(first);
        if dice.roll(10) == 0 {
            // Gone in the middle of it, one way or the other.
            let gone = std::mem::replace(&mut wire, Wire::to_gateway(gateway));
            if dice.roll(2) == 0 {
                gone.reset();
            }
            continue;
        }
        let mut sender = wire.sender();
        let second = second.to_vec();
        // The gateway may end the connection after an answer that was cut.
        let sending = std::thread::spawn(move || sender.try_send(second));
        let is_over = planned.iter().any(|planned| !expect(&mut wire, planned));
        if is_over {
            wire = Wire::to_gateway(gateway);
        }
        let _ = sending.join().unwrap();
    }
}

/// Reads the answer to a call; says whether the connection goes on.
fn expect(wire: &mut Wire, planned: &Planned) -> bool {
    let answer = loop {
        match wire.response() {
            Ok(answer) if answer.status() == 103 => {}
            answer => break answer,
        }
    };
    match (planned.play, answer) {
        ("cut", Err(_)) => false,
        ("vanish", Ok(answer)) => {
            assert_eq!(answer.status(), 502);
            answer.head.get("Connection").is_none()
        }
        (play, Ok(answer)) => {
            assert!(play != "cut", "a cut answer came whole");
            assert_eq!(answer.status(), 200, "{play}: {}", text(&answer.body));
            assert!(
                answer.body == planned.account.as_bytes(),
                "{play}: another answer than its own"
            );
            answer.head.get("Connection").is_none()
        }
        (play, Err(ended)) => panic!("{play}: {ended:?} without an answer"),
    }
}

#[test]
fn nobody_suffers_for_another() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    serve(upstream);
    let gateway = TestGateway::with(simple_model(address), |options| options.workers = 2);
    let target = gateway.address;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| std::thread::spawn(move || call(target, client)))
        .collect();
    for client in clients {
        client.join().expect("every call was answered as it should be");
    }
}
