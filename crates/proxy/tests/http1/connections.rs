//! Client connections: pipelining, persistence, HTTP/1.0.

use crate::support::{Ended, TestGateway, Upstream, answer, patch, simple_model, text};

#[test]
fn pipelined_requests_are_answered_in_order() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|request| answer(format!("{} {}", request.head.line, text(&request.body))));
    let gateway = TestGateway::to(address);
    let requests = [
        "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
        "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n",
        "\r\nGET /4 HTTP/1.1\r\nHost: h\r\n\r\n",
    ];
    let wanted = [
        "GET /1 HTTP/1.1 ",
        "POST /2 HTTP/1.1 abc",
        "POST /3 HTTP/1.1 def",
        "GET /4 HTTP/1.1 ",
    ];
    let all = requests.concat();
    let mut client = gateway.connect();
    for split in 0..=all.len() {
        client.send(&all[..split]);
        client.send(&all[split..]);
        for wanted in wanted {
            assert_eq!(text(&client.response().unwrap().body), wanted, "split at {split}");
        }
    }
    // Many at once, more than a buffer holds.
    let many = 2000;
    let mut sender = client.sender();
    let sending = std::thread::spawn(move || sender.send("GET /n HTTP/1.1\r\nHost: h\r\n\r\n".repeat(many)));
    for _ in 0..many {
        assert_eq!(text(&client.response().unwrap().body), "GET /n HTTP/1.1 ");
    }
    sending.join().unwrap();
}

#[test]
fn pipelined_requests_behind_a_last_one_are_not_served() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    let mut client = gateway.connect();
    let last = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    client.send(format!(
        "{last}{}",
        "GET /more HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000)
    ));
    let answer = client.response().unwrap();
    assert_eq!(
        (answer.status(), answer.head.get("Connection").as_deref()),
        (200, Some("close"))
    );
    assert_eq!(client.expect_end(), Ended::Cleanly);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// `(version, Connection of the request, whether the connection goes on, Connection of the answer)`.
#[test]
fn connections_go_on_as_both_sides_say() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(|_| answer("ok"));
    let gateway = TestGateway::to(address);
    for (version, connection, goes_on, answered) in [
        ("1.1", "", true, None),
        ("1.1", "keep-alive", true, None),
        ("1.1", "Close", false, Some("close")),
        ("1.1", "x, close", false, Some("close")),
        ("1.1", "keep-alive, close", false, Some("close")),
        ("1.0", "", false, Some("close")),
        ("1.0", "Keep-Alive", true, Some("keep-alive")),
        ("1.0", "x,keep-alive", true, Some("keep-alive")),
        ("1.0", "keep-alive, close", false, Some("close")),
        ("1.0", "close", false, Some("close")),
    ] {
        let mut client = gateway.connect();
        let field = if connection.is_empty() {
            String::new()
        } else {
            format!("Connection: {connection}\r\n")
        };
        for _ in 0..2 {
            client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n{field}\r\n"));
            let answer = client.response().unwrap();
            assert_eq!(
                answer.head.get("Connection").as_deref(),
                answered,
                "{version} {connection}"
            );
            assert_eq!(answer.head.get("Content-Length").as_deref(), Some("2"));
            if !goes_on {
                client.expect_end();
                break;
            }
        }
    }
}

#[test]
fn old_clients_get_no_chunks() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for request in [
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ] {
        for response in [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2;x\r\nab\r\n1\r\nc\r\n0\r\nT: u\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\nabc",
        ] {
            let mut client = gateway.connect();
            client.send(request);
            let mut server = upstream.accept();
            server.request().unwrap();
            server.send(response);
            server.finish();
            let head = client.head().unwrap();
            assert_eq!(
                (
                    head.get("Transfer-Encoding"),
                    head.get("Content-Length"),
                    head.get("Connection")
                ),
                (None, None, Some("close".to_owned()))
            );
            let (body, ended) = client.rest();
            assert_eq!((text(&body).as_str(), ended), ("abc", Ended::Cleanly));
        }
    }
    // The same while the request's body is still on its way.
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\na");
    let mut server = upstream.accept();
    server.head().unwrap();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    let head = client.head().unwrap();
    assert_eq!(
        (head.get("Transfer-Encoding"), head.get("Connection")),
        (None, Some("close".to_owned()))
    );
    client.send("bc");
    assert_eq!(server.read(3), Ok(b"abc".to_vec()));
    server.send("0\r\n\r\n");
    let (body, ended) = client.rest();
    assert_eq!((text(&body).as_str(), ended), ("ab", Ended::Cleanly));
}

#[test]
fn a_response_without_an_end_of_its_own_becomes_chunked() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for response in [
        "HTTP/1.1 200 OK\r\n\r\nabc",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        let mut client = gateway.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut server = upstream.accept();
        server.request().unwrap();
        server.send(response);
        server.finish();
        let answer = client.response().unwrap();
        assert_eq!(answer.head.get("Transfer-Encoding").as_deref(), Some("chunked"));
        assert_eq!(text(&answer.body), response.split("\r\n\r\n").nth(1).unwrap());
        // The client's connection is as good as before.
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let mut server = upstream.accept();
        server.request().unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        assert_eq!(text(&client.response().unwrap().body), "ok");
    }
}

#[test]
fn a_replaced_body_is_framed_again() {
    let upstream = Upstream::bind();
    let model = patch(
        simple_model(upstream.address),
        &serde_json::json!({"routes": {"plugins": [
            {"use": {"name": "puppet", "config": {"replace": "mine"}}},
        ]}}),
    );
    let gateway = TestGateway::start(model);
    for (method, response, length, body) in [
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nupstreams",
            Some("4"),
            "mine",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            Some("4"),
            "mine",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
            Some("4"),
            "mine",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", None, ""),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            None,
            "",
        ),
    ] {
        let mut client = gateway.connect();
        client.send(format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"));
        let mut server = upstream.accept();
        server.request().unwrap();
        server.send(response);
        server.finish();
        let answer = client.response_to(method).unwrap();
        assert_eq!(
            (
                answer.head.get("Content-Length").as_deref(),
                text(&answer.body).as_str()
            ),
            (length, body),
            "{response:?}"
        );
        assert_eq!(answer.head.get("Transfer-Encoding"), None);
    }
}

#[test]
fn empty_lines_between_requests_begin_none() {
    let upstream = Upstream::bind();
    let model = simple_model(upstream.address);
    upstream.serve(|_| answer("hello"));
    let gateway = TestGateway::with(model, |options| {
        options.limits.header_timeout = std::time::Duration::from_millis(50);
        options.limits.idle_timeout = std::time::Duration::from_millis(200);
    });
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n\r\n\r\n");
    assert_eq!(client.response().unwrap().status(), 200);
    // No answer to a request that was never made: the connection just ends when it has been idle long enough.
    assert!(client.rest().0.is_empty());
}
