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

/// A secret of the vault at an address.
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
    // Refused, too long, and gone; the fault is logged once.
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

/// What is asked for by hand: whether something served refers to it, the networks that are allowed, what the server there
/// answers (`None`: there is no server), and what the answer says. Without leave nothing is called.
#[test]
fn tests_reveal_nothing_of_the_network() {
    let runtime = runtime();
    let good = r#"{"data":{"key":"one"}}"#;
    for (is_served, allowed, server, is_called, expected) in [
        (true, None, Some((200, good)), true, Ok(())),
        (true, None, Some((404, "{}")), true, Err(NOT_GIVEN)),
        (true, None, None, false, Err(NOT_GIVEN)),
        (false, None, Some((200, good)), false, Err(NOT_GIVEN_TO_TESTS)),
        (false, None, None, false, Err(NOT_GIVEN_TO_TESTS)),
        (false, Some("127.0.0.0/8"), Some((200, good)), true, Ok(())),
        (
            false,
            Some("127.0.0.0/8"),
            Some((403, "{}")),
            true,
            Err(NOT_GIVEN_TO_TESTS),
        ),
        (
            false,
            Some("127.0.0.0/8"),
            Some((200, "text")),
            true,
            Err(NOT_GIVEN_TO_TESTS),
        ),
        (
            false,
            Some("127.0.0.0/8"),
            Some((200, "{}")),
            true,
            Err(NOT_GIVEN_TO_TESTS),
        ),
        (false, Some("127.0.0.0/8"), None, false, Err(NOT_GIVEN_TO_TESTS)),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = place(listener.local_addr().expect("bound"), "jack");
        let cache = Cache::new(runtime.handle().clone());
        if is_served {
            cache.note(vec![lead(&place)]);
        }
        let allowed = allowed.into_iter().map(|it| it.parse().expect("a network"));
        let reach = Arc::new(WebhookAddressPolicy {
            allowed: allowed.collect(),
        });
        let asked = {
            let (cache, target) = (cache.clone(), lead(&place));
            let ask = async move { cache.read_now(&target, &reach).await };
            match server {
                None => {
                    drop(listener);
                    runtime.block_on(ask)
                }
                Some((status, body)) if is_called => {
                    let asked = runtime.spawn(ask);
                    let (stream, _) = listener.accept().expect("a call");
                    answer(stream, status, body);
                    runtime.block_on(asked).expect("an answer")
                }
                Some(_) => {
                    let asked = runtime.block_on(ask);
                    listener.set_nonblocking(true).expect("set");
                    let called = listener.accept();
                    assert!(called.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
                    asked
                }
            }
        };
        let case = format!("{is_served} {server:?}: {asked:?}");
        assert_eq!(asked.state == SecretState::Resolved, expected.is_ok(), "{case}");
        assert_eq!(asked.reason.as_deref(), expected.err(), "{case}");
    }
}

/// The URL of a place may hold what opens the vault, and belongs to a document that the reader of a reference may not see.
#[test]
fn reasons_say_nothing_of_the_place() {
    let runtime = runtime();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let place = SecretLocation::Http {
        url: format!("http://{address}/x?token=hidden"),
        token: "t".to_owned(),
        namespace: None,
    };
    let target = |field: Option<&str>| SecretTarget {
        field: field.map(str::to_owned),
        ..lead(&place)
    };
    let cache = Cache::new(runtime.handle().clone());
    cache.note(vec![target(None)]);
    let mut errors = vec![cache.get(&place).expect_err("no answer yet")];
    let vault = std::thread::spawn(move || {
        for (status, body) in [(503, ""), (200, r#"{"data":{}}"#)] {
            let (stream, _) = listener.accept().expect("a call");
            answer(stream, status, body);
        }
    });
    for field in [None, Some("key")] {
        let _round = runtime.block_on(cache.ask(vec![place.clone()]));
        errors.extend(cache.reading(&target(field)).reason);
        errors.extend(cache.get(&place).err());
    }
    vault.join().expect("two calls");
    assert_eq!(errors.len(), 4, "{errors:?}");
    let port = address.port().to_string();
    for reason in errors {
        assert!(!reason.contains(&port) && !reason.contains("hidden"), "{reason}");
    }
}
