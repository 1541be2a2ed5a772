//! Room that streams share: those that no one reads must not be in the way of the others.

use super::frames::{
    self, BOTH, DATA, HEADERS, INITIAL_WINDOW_SIZE, MAX_WINDOW, MORE_WINDOW, REQUEST, frame,
};
use super::peer::{Answer, Client, Upstream, receive, run, send_all};
use super::support::{self, TestGateway, answer, patch, simple_model};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

fn model(upstream: SocketAddr) -> Value {
    let url = format!("h2c://{upstream}");
    patch(simple_model(upstream), &json!({"services": {"url": url}}))
}

#[test]
fn clients_that_do_not_read_hold_no_other_back() {
    const LONG: usize = 3 << 20;
    let upstream = Upstream::serve(|_| Answer::ok(vec![7; LONG]));
    let gateway = TestGateway::start(model(upstream.address));
    run(async {
        let idle = Client::connect(gateway.address).await;
        let mut unread = Vec::new();
        for _ in 0..40 {
            let request = idle.request("GET", "/", &[]);
            let (response, _) = idle.begin(request, true).await.unwrap();
            unread.push(response.await.unwrap());
        }
        let client = Client::connect(gateway.address).await;
        assert_eq!(client.get("/", &[]).await.body.len(), LONG);
        // What was not read is still there.
        let (parts, body) = unread.remove(0).into_parts();
        drop(unread);
        assert_eq!(receive(parts, body).await.unwrap().body.len(), LONG);
    });
    assert_eq!(*upstream.connections.lock().unwrap(), 1);
}

/// Bodies on their way to an upstream that does not take them leave room on their client's connection, which needs
/// window updates for what the others have taken.
#[test]
fn bodies_that_are_stuck_hold_no_other_back() {
    const STUCK: u32 = 14;
    const LONG: usize = 4 << 20;
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::start(model(upstream.address));
    run(async {
        let client = Client::connect(gateway.address).await;
        let mut calls = Vec::new();
        let mut begin = async |size: usize| {
            let request = client.request("POST", "/", &[]);
            let (response, mut stream) = client.begin(request, false).await.unwrap();
            tokio::spawn(async move { send_all(&mut stream, Bytes::from(vec![7; size]), true).await });
            calls.push(response);
        };
        begin(64 << 10).await;
        let none = frames::settings(&[(INITIAL_WINDOW_SIZE, 0)]);
        let accepted = tokio::task::spawn_blocking(move || frames::accept(&upstream, &[none]));
        let mut wire = accepted.await.unwrap();
        for _ in 1..STUCK {
            begin(64 << 10).await;
        }
        begin(LONG).await;
        let playing = tokio::task::spawn_blocking(move || {
            let last = loop {
                let head = frames::next_of(&mut wire, HEADERS);
                if head.stream == 2 * STUCK + 1 {
                    break head.stream;
                }
            };
            wire.send([frames::window(0, MORE_WINDOW), frames::window(last, 16 << 20)].concat());
            assert_eq!(frames::body(&mut wire, last), Ok(LONG));
            wire.send(frame(HEADERS, BOTH, last, b"\x89"));
            wire
        });
        let other = calls.pop().unwrap();
        let (other, _wire) = tokio::join!(other, playing);
        assert_eq!(other.unwrap().status(), 204);
    });
}

/// Streams that wait for their connection's window are woken by their own for nothing; some are given up meanwhile, and
/// others take their place.
#[test]
fn streams_that_wait_for_their_connection_go_on_once_it_has_room() {
    const LONG: usize = 100_000;
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| answer(vec![7; LONG]));
    let begin = |stream| frame(HEADERS, BOTH, stream, REQUEST);
    let mut client = frames::connect(
        &gateway,
        &[frames::settings(&[(INITIAL_WINDOW_SIZE, 1 << 20)]), begin(1)],
    );
    let mut length = 0;
    while length < 65_535 {
        length += frames::next_of(&mut client, DATA).payload.len();
    }
    for number in 1..50 {
        let stream = 4 * number - 1;
        client.send([begin(stream), begin(stream + 2)].concat());
        for _ in 0..2 {
            frames::next_of(&mut client, HEADERS);
        }
        let more = [
            frames::window(1, 1),
            frames::window(stream, 1),
            frames::window(stream + 2, 1),
        ]
        .concat();
        for _ in 0..20 {
            client.send(&more);
        }
        client.send(frame(frames::RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    client.send(frames::window(0, MAX_WINDOW));
    let mut open = 50;
    while open > 0 {
        open -= usize::from(frames::next_of(&mut client, DATA).ends_stream());
    }
}

/// What a client has room for is used, however little it is and whatever was given up meanwhile: of those that wait
/// only as many are woken as can go on, and one that cannot leaves its share to the next.
#[test]
fn room_that_comes_bit_by_bit_is_all_used() {
    const LONG: usize = 10_000;
    const CALLS: u32 = 20;
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    upstream.serve(|_| answer(vec![7; LONG]));
    let mut client = frames::connect(&gateway, &[frames::settings(&[(INITIAL_WINDOW_SIZE, 1 << 20)])]);
    let calls = (0..CALLS).map(|number| frame(HEADERS, BOTH, 2 * number + 1, REQUEST));
    client.send(calls.collect::<Vec<_>>().concat());
    let mut room = 65_535;
    let mut left: HashMap<u32, usize> = (0..CALLS).map(|number| (2 * number + 1, LONG)).collect();
    let mut step = 0;
    while let Some(next) = left.keys().copied().min() {
        while room > 0 && left.values().sum::<usize>() > 0 {
            let data = frames::next_of(&mut client, DATA);
            room -= data.payload.len();
            if let Some(left) = left.get_mut(&data.stream) {
                *left -= data.payload.len();
            }
        }
        left.retain(|_, left| *left > 0);
        step += 1;
        let bits = 1 + 700 * (step % 3);
        let mut more = vec![frames::window(0, bits)];
        if step % 10 == 0 && left.len() > 2 {
            // In the same read it is woken and given up.
            left.remove(&next);
            more.push(frame(frames::RST_STREAM, 0, next, &[0, 0, 0, 8]));
        }
        client.send(more.concat());
        room += bits as usize;
    }
}

/// A byte now and then holds a call, with its upstream's connection, no longer than none does.
#[test]
fn clients_that_give_room_by_the_byte_are_given_up() {
    let upstream = support::Upstream::bind();
    let gateway = TestGateway::with(simple_model(upstream.address), |options| {
        options.limits.write_timeout = Duration::from_millis(200);
    });
    upstream.serve(|_| answer(vec![7; 100_000]));
    let no_room = frames::settings(&[(INITIAL_WINDOW_SIZE, 0)]);
    let mut client = frames::connect(&gateway, &[no_room, frame(HEADERS, BOTH, 1, REQUEST)]);
    frames::next_of(&mut client, HEADERS);
    client
        .stream
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let is_given_up = (0..200).any(|_| {
        client.send(frames::window(1, 1));
        let came = frames::next(&mut client);
        // The next byte has time.
        let _ = client.stream.peek(&mut [0]);
        came.is_ok_and(|frame| frame.kind == frames::RST_STREAM)
    });
    assert!(is_given_up);
}
