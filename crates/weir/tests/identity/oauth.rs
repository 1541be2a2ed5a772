//! `upstream-oauth` in Kong's spelling, with a token endpoint and an upstream that counts.

use crate::weir::Weir;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server that answers each request, given as its head and body, on a connection of its own.
fn server(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                // The gateway may have gone.
                let _is_answered = serve(stream, &*answer);
            });
        }
    });
    port
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&str) -> (u16, String)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        text.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    text.push_str(&String::from_utf8_lossy(&body));
    let (status, body) = answer(&text);
    let head = format!(
        "HTTP/1.1 {status} S\r\nContent-Length: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}

fn call(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn calls_that_an_upstream_refuses_are_sent_once_more_with_one_new_token() {
    let tokens = Arc::new(Mutex::new(0));
    let given = Arc::clone(&tokens);
    let id = server(move |_| {
        let mut number = given.lock().expect("no panic");
        *number += 1;
        (
            200,
            json!({"access_token": format!("t{number}"), "expires_in": 600}).to_string(),
        )
    });
    // How often each token has come. The first one is good until it is said to be so no more.
    let (is_first_good, seen) = (
        Arc::new(Mutex::new(true)),
        Arc::new(Mutex::new(BTreeMap::<String, usize>::new())),
    );
    let (good, shown) = (Arc::clone(&is_first_good), Arc::clone(&seen));
    let upstream = server(move |request| {
        let token = request
            .lines()
            .find_map(|line| line.strip_prefix("Authorization: Bearer "));
        let token = token.unwrap_or_default().to_owned();
        let is_good = token != "t1" || *good.lock().expect("no panic");
        *shown.lock().expect("no panic").entry(token).or_default() += 1;
        match is_good {
            true => (
                200,
                format!("fine {}", request.lines().last().unwrap_or_default()),
            ),
            false => (401, "who?".to_owned()),
        }
    });
    let document = json!({
        "_format_version": "3.0",
        "services": [{"name": "s", "url": format!("http://127.0.0.1:{upstream}"), "routes": [{
            "name": "r", "paths": ["/"],
            "plugins": [{"name": "upstream-oauth", "config": {
                "oauth": {"token_endpoint": format!("http://127.0.0.1:{id}/token"), "client_id": "c", "client_secret": "s"},
                "client": {}, "cache": {}, "behavior": {},
            }}],
        }]}],
    });
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("kong.yml"), document.to_string()).expect("written");
    let weir = Weir::start(folder.path(), &["-c", "kong.yml"]);
    let proxy = weir.proxy();
    let post = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5\r\nAuthorization: Bearer forged\r\n\r\nhello";
    let all_calls = || {
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let proxy = proxy.clone();
                std::thread::spawn(move || call(&proxy, post))
            })
            .collect();
        for answer in calls.into_iter().map(|call| call.join().expect("no panic")) {
            assert!(
                answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("fine hello"),
                "{answer}"
            );
        }
    };
    let count = |token: &str| seen.lock().expect("no panic").get(token).copied().unwrap_or(0);
    // Fifty first calls want one token.
    all_calls();
    assert_eq!((*tokens.lock().expect("no panic"), count("t1")), (1, 50));
    // It is refused, and one other serves all.
    *is_first_good.lock().expect("no panic") = false;
    all_calls();
    assert_eq!((*tokens.lock().expect("no panic"), count("t2")), (2, 50));
    assert!(count("t1") > 50 && count("forged") == 0);
}
