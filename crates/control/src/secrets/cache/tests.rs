//! Vaults that answer, refuse and are gone, and what is kept then.

use super::*;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A secret of the vault behind an address.
fn place(address: std::net::SocketAddr, name: &str) -> SecretLocation {
    SecretLocation::Http {
        url: format!("http://{address}/v1/kv/{name}"),
        token: "t".to_owned(),
        namespace: None,
    }
}

fn lead(place: &SecretLocation) -> SecretTarget {
    SecretTarget {
        place: place.clone(),
        field: None,
        life: Duration::from_secs(60),
    }
}

/// Reads a call and answers it.
fn answer(mut stream: TcpStream, status: u16, body: &str) {
    let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
    let has_token = lines
        .by_ref()
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .any(|line| line == "x-vault-token: t");
    assert!(has_token);
    let length = body.len();
    let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
    // A reader that is sent too much goes before the end.
    let _gone = stream.write_all(answer.as_bytes());
}

/// A vault that answers so many calls, each with its own body, and is gone then.
fn vault(bodies: Vec<(u16, String)>) -> SecretLocation {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for (status, body) in bodies {
            let (stream, _) = listener.accept().expect("a call");
            answer(stream, status, &body);
        }
    });
    place(address, "jack")
}

#[test]
fn the_last_good_value_stays() {
    let runtime = runtime();
    let texts = [
        (200, r#"{"data":{"key":"one"}}"#),
        (200, r#"{"data":{"data":{"key":"two"},"metadata":{"version":2}}}"#),
        (403, "{}"),
    ];
    let mut answers: Vec<_> = texts.map(|(status, body)| (status, body.to_owned())).into();
    let long = format!(r#"{{"data":{{"key":"{}"}}}}"#, "x".repeat(MAX_ANSWER));
    answers.push((200, long));
    let place = vault(answers);
    let cache = Cache::new(runtime.handle().clone());
    assert!(cache.get(&place).is_err());
    cache.want(vec![lead(&place)]);
    assert_eq!(cache.get(&place).as_deref(), Ok(r#"{"key":"one"}"#));
    let ask = || runtime.block_on(cache.ask(vec![place.clone()]));
    assert!(ask().is_other, "another value");
    // Refused, too long, and gone; what is wrong is told once.
    for new_faults in [1, 0, 0] {
        let round = Round {
            is_other: false,
            faults: 1,
            new_faults,
        };
        assert_eq!(ask(), round);
        assert_eq!(cache.get(&place).as_deref(), Ok(r#"{"key":"two"}"#));
    }
}

#[test]
fn a_vault_is_asked_for_so_many_at_once() {
    const SECRETS: usize = 3 * MAX_ASKED;
    let runtime = runtime();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let vault = std::thread::spawn(move || {
        let accept = || listener.accept().map(|(stream, _)| stream);
        let mut open: VecDeque<TcpStream> = (0..MAX_ASKED).map(|_| accept().expect("a call")).collect();
        listener.set_nonblocking(true).expect("set");
        let is_bounded = accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        listener.set_nonblocking(false).expect("set");
        for left in (0..SECRETS).rev() {
            answer(
                open.pop_front().expect("a call"),
                200,
                r#"{"data":{"key":"one"}}"#,
            );
            if left >= MAX_ASKED {
                open.push_back(accept().expect("a call"));
            }
        }
        is_bounded
    });
    let places: Vec<_> = (0..SECRETS).map(|it| place(address, &it.to_string())).collect();
    let cache = Cache::new(runtime.handle().clone());
    let fresh = cache.note(places.iter().map(lead).collect());
    let round = runtime.block_on(cache.ask(fresh));
    assert_eq!(round.faults, 0);
    assert!(
        vault.join().expect("every secret is asked for"),
        "no more at once"
    );
    for place in &places {
        assert_eq!(cache.get(place).as_deref(), Ok(r#"{"key":"one"}"#));
    }
}
