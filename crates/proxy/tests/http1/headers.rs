//! Header fields on their way through: what is connection-specific stays on its connection, what the gateway
//! says cannot be said by a client, and everything else passes as it was written.

use crate::support::{Message, TestGateway, Upstream, Wire, answer, patch, simple_model, text};
use serde_json::json;

/// One call: what the upstream saw, and what the client got for `response`.
fn call(gateway: &TestGateway, upstream: &Upstream, request: &str, response: &str) -> (Message, Message) {
    let mut client = gateway.connect();
    client.send(request);
    let mut server = upstream.accept();
    let seen = server.request().unwrap();
    server.send(response);
    server.finish();
    let method = request.split(' ').next().unwrap();
    (seen, client.response_to(method).unwrap())
}

fn get(fields: &str) -> String {
    format!("GET /path HTTP/1.1\r\nHost: Client.Example:8000\r\n{fields}\r\n")
}

/// `(request fields, field that the upstream sees, its values)`.
#[rustfmt::skip]
const REQUEST_FIELDS: &[(&str, &str, &[&str])] = &[
    ("Connection: close\r\n", "Connection", &[]),
    ("Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", "Keep-Alive", &[]),
    ("Proxy-Connection: keep-alive\r\n", "Proxy-Connection", &[]),
    ("Proxy: http://evil\r\n", "Proxy", &[]),
    ("TE: trailers\r\n", "TE", &["trailers"]),
    ("TE: gzip\r\n", "TE", &[]),
    ("TE: trailers, gzip;q=0.5\r\n", "TE", &[]),
    ("Connection: TE\r\nTE: gzip\r\n", "TE", &[]),
    ("Upgrade: h2c\r\n", "Upgrade", &[]),
    ("Connection: Upgrade\r\n", "Connection", &[]),
    ("Connection: X-Mine\r\nX-Mine: 1\r\n", "X-Mine", &[]),
    ("Connection: close, x-mine , X-Other\r\nX-Mine: 1\r\nx-mine: 2\r\n", "X-Mine", &[]),
    ("X-Mine: 1\r\nConnection: close\r\nConnection: X-Mine\r\n", "X-Mine", &[]),
    ("Connection: ,,X-Mine,,\r\nX-Mine: 1\r\n", "X-Mine", &[]),
    ("Connection: Authorization\r\nAuthorization: secret\r\n", "Authorization", &["secret"]),
    ("Connection: Cookie\r\nCookie: a=b\r\n", "Cookie", &["a=b"]),
    ("Connection: Host\r\n", "Host", &["UPSTREAM"]),
    ("Connection: X-Forwarded-For\r\n", "X-Forwarded-For", &["127.0.0.1"]),
    ("Connection: X-Forwarded-For\r\nX-Forwarded-For: 1.2.3.4\r\n", "X-Forwarded-For", &["127.0.0.1"]),
    ("Connection: X-Real-IP, X-Forwarded-Proto, Via\r\n", "X-Real-IP", &["127.0.0.1"]),
    ("Connection: X-Forwarded-Proto\r\n", "X-Forwarded-Proto", &["SCHEME"]),
    ("Connection: Via\r\n", "Via", &["1.1 weir"]),
    ("X-Forwarded-For: 1.2.3.4\r\n", "X-Forwarded-For", &["1.2.3.4, 127.0.0.1"]),
    ("X-Forwarded-For: 1.2.3.4, 5.6.7.8\r\n", "X-Forwarded-For", &["1.2.3.4, 5.6.7.8, 127.0.0.1"]),
    ("X-Forwarded-For: 1.2.3.4\r\nx-forwarded-for: 5.6.7.8\r\n", "X-Forwarded-For", &["1.2.3.4, 5.6.7.8, 127.0.0.1"]),
    ("X-Forwarded-Proto: https\r\n", "X-Forwarded-Proto", &["SCHEME"]),
    ("X-Forwarded-Host: evil\r\nx-forwarded-host: evil2\r\n", "X-Forwarded-Host", &["client.example"]),
    ("X-Forwarded-Port: 1\r\n", "X-Forwarded-Port", &["PORT"]),
    ("X-Real-IP: 1.2.3.4\r\n", "X-Real-IP", &["127.0.0.1"]),
    ("", "Via", &["1.1 weir"]),
    ("Via: 1.0 first\r\nvia: 1.1 second\r\n", "Via", &["1.0 first, 1.1 second, 1.1 weir"]),
    ("Via: 1.0 first, 1.1 second\r\n", "Via", &["1.0 first, 1.1 second, 1.1 weir"]),
    ("Accept: a\r\nX: y\r\naccept: b\r\n", "Accept", &["a", "b"]),
    ("Empty:\r\n", "Empty", &[""]),
    ("Empty: \t \r\nNext: 1\r\n", "Empty", &[""]),
    ("Inner: a \t b\r\n", "Inner", &["a \\t b"]),
    ("Trailing: a \t\r\n", "Trailing", &["a"]),
    ("Odd!#$%&*+-.^_`|~9: v\r\n", "Odd!#$%&*+-.^_`|~9", &["v"]),
    ("Proxy-Authorization: Basic eA==\r\n", "Proxy-Authorization", &["Basic eA=="]),
];

#[test]
fn request_fields_pass_or_stay() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for (fields, name, wanted) in REQUEST_FIELDS {
        let (seen, _) = call(
            &gateway,
            &upstream,
            &get(fields),
            &String::from_utf8(answer("ok")).unwrap(),
        );
        let wanted: Vec<String> = wanted
            .iter()
            .map(|value| {
                value
                    .replace("UPSTREAM", &upstream.address.to_string())
                    .replace("PORT", &gateway.address.port().to_string())
                    .replace("SCHEME", crate::SCHEME)
            })
            .collect();
        assert_eq!(seen.head.all(name), wanted, "{name} for {fields:?}");
    }
}

#[test]
fn order_spelling_and_any_bytes_pass() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    let fields =
        b"X-One: 1\r\nKeep-Alive: x\r\nx-TWO:\t2  \r\nX-Three: \xe4\xf6\xff \xc3\xa4\r\nX-One: 4\r\n";
    client.send([b"GET / HTTP/1.1\r\nHost: h\r\n", fields.as_slice(), b"\r\n"].concat());
    let mut server = upstream.accept();
    let seen = server.request().unwrap();
    let own = ["X-One", "x-TWO", "X-Three", "X-One"];
    let names: Vec<&str> = seen
        .head
        .names()
        .into_iter()
        .filter(|name| own.iter().any(|it| it.eq_ignore_ascii_case(name)))
        .collect();
    assert_eq!(names, own);
    assert_eq!(
        seen.head.all("x-three"),
        [b"\xe4\xf6\xff \xc3\xa4".escape_ascii().to_string()]
    );
    let fields = b"Set-Cookie: a=1\r\nX-Mid: \xff\r\nset-cookie: b=2\r\nEmpty:\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n";
    server.send([b"HTTP/1.1 200 OK\r\n", fields.as_slice(), b"\r\n"].concat());
    let answer = client.response().unwrap();
    assert_eq!(
        answer.head.names()[..5],
        ["Set-Cookie", "X-Mid", "set-cookie", "Empty", "Set-Cookie"]
    );
    assert_eq!(answer.head.all("Set-Cookie"), ["a=1", "b=2", "a=1"]);
    assert_eq!(answer.head.get("x-mid").as_deref(), Some("\\xff"));
}

/// `(response head and body of the upstream, field that the client sees, its values)`.
#[rustfmt::skip]
const RESPONSE_FIELDS: &[(&str, &str, &[&str])] = &[
    ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "Connection", &[]),
    ("HTTP/1.1 200 OK\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\nContent-Length: 0\r\n\r\n", "X-Mine", &[]),
    ("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n", "Keep-Alive", &[]),
    ("HTTP/1.1 200 OK\r\nProxy-Connection: close\r\nContent-Length: 0\r\n\r\n", "Proxy-Connection", &[]),
    ("HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n", "Upgrade", &[]),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding", &["chunked"]),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "Content-Length", &["0"]),
    ("HTTP/1.1 200 OK\r\nContent-Length: 00\r\nContent-Length: 0\r\n\r\n", "Content-Length", &["0"]),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "Via", &["1.1 weir"]),
    ("HTTP/1.1 200 OK\r\nVia: 1.1 inner\r\nContent-Length: 0\r\n\r\n", "Via", &["1.1 inner, 1.1 weir"]),
    // The last one counts, as with NGINX.
    ("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\ncontent-type: c/d\r\nContent-Length: 0\r\n\r\n", "Content-Type", &["c/d"]),
    ("HTTP/1.1 200 OK\r\nServer: own\r\nContent-Length: 0\r\n\r\n", "Server", &["own"]),
    ("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 0\r\n\r\n", "Date", &["x"]),
    ("HTTP/1.1 200 OK\r\nEmpty:\r\nContent-Length: 0\r\n\r\n", "Empty", &[""]),
    // No body follows, whatever is said about one.
    ("HTTP/1.1 204 No Content\r\n\r\n", "Content-Length", &[]),
    ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "Content-Length", &[]),
    ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding", &[]),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "Content-Length", &["5"]),
    ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding", &[]),
    ("HTTP/1.1 304 Not Modified\r\n\r\n", "Content-Length", &[]),
];

#[test]
fn response_fields_pass_or_stay() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for (response, name, wanted) in RESPONSE_FIELDS {
        let (_, answer) = call(&gateway, &upstream, &get(""), response);
        assert_eq!(answer.head.all(name), *wanted, "{name} of {response:?}");
    }
}

#[test]
fn status_and_reason_pass() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    for (line, wanted) in [
        ("HTTP/1.1 200 OK", "HTTP/1.1 200 OK"),
        ("HTTP/1.1 200 Fine", "HTTP/1.1 200 Fine"),
        ("HTTP/1.0 404 Not Found", "HTTP/1.1 404 Not Found"),
        ("HTTP/1.1 299 ", "HTTP/1.1 299 "),
        ("HTTP/1.1 299", "HTTP/1.1 299 "),
        ("HTTP/1.1 599 Odd thing", "HTTP/1.1 599 Odd thing"),
        ("HTTP/1.1 999 Very odd", "HTTP/1.1 999 Very odd"),
    ] {
        let (_, answer) = call(
            &gateway,
            &upstream,
            &get(""),
            &format!("{line}\r\nContent-Length: 0\r\n\r\n"),
        );
        assert_eq!(answer.head.line, wanted);
    }
}

#[test]
fn a_head_request_has_no_body_but_its_length() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    let mut client = gateway.connect();
    let mut server: Option<Wire> = None;
    for (response, length, coding) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n",
            Some("12345"),
            None,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", None, None),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            None,
            None,
        ),
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            Some("0"),
            None,
        ),
    ] {
        client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
        // One connection serves all: what follows a HEAD's answer is the next answer.
        let server = server.get_or_insert_with(|| upstream.accept());
        assert_eq!(server.request().unwrap().head.line, "HEAD / HTTP/1.1");
        server.send(response);
        let answer = client.response_to("HEAD").unwrap();
        assert_eq!(
            answer.head.get("Content-Length").as_deref(),
            length,
            "{response:?}"
        );
        assert_eq!(
            answer.head.get("Transfer-Encoding").as_deref(),
            coding,
            "{response:?}"
        );
    }
    client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let mut server = server.unwrap();
    server.request().unwrap();
    server.send(answer("last"));
    assert_eq!(text(&client.response().unwrap().body), "last");
    client.expect_end();
}

/// `(route, Host that the upstream sees for each of the requests)`; `UPSTREAM` is its address.
#[test]
fn the_upstreams_host_is_as_the_route_says() {
    let upstream = Upstream::bind();
    let requests = [
        "GET / HTTP/1.1\r\nHost: Client.Example:8000\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET http://abs.example/ HTTP/1.0\r\n\r\n",
    ];
    let own = upstream.address.to_string();
    for (host, wanted) in [
        (json!("target"), [own.as_str(), &own, &own]),
        // Without a Host from the client there must be one all the same.
        (json!("client"), ["Client.Example:8000", &own, "abs.example"]),
        (json!({"fixed": "fixed.example"}), ["fixed.example"; 3]),
    ] {
        let model = patch(
            simple_model(upstream.address),
            &json!({"routes": {"upstream_host": host}}),
        );
        let gateway = TestGateway::start(model);
        for (request, wanted) in requests.iter().zip(wanted) {
            let (seen, _) = call(
                &gateway,
                &upstream,
                request,
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            );
            assert_eq!(
                seen.head.get("Host").as_deref(),
                Some(wanted),
                "{host} for {request:?}"
            );
        }
    }
}

#[test]
fn a_request_carries_no_second_framing() {
    let upstream = Upstream::bind();
    let address = upstream.address;
    let seen = upstream.serve(|_| answer("ok"));
    let model = patch(
        simple_model(address),
        &json!({"routes": {"plugins": [
            {"use": {"name": "puppet", "config": {"need_body": 4}}},
        ]}}),
    );
    let gateway = TestGateway::start(model);
    for (framed, body, seen_by_filter) in [
        ("Content-Length: 3\r\n\r\nabc", "abc", "3"),
        (
            "Content-Length: 3\r\nConnection: Content-Length\r\n\r\nabc",
            "abc",
            "3",
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
            "abc",
            "3",
        ),
        ("Content-Length: 6\r\n\r\nabcdef", "abcdef", "none"),
        (
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
            "abcdef",
            "none",
        ),
        ("Content-Length: 0\r\n\r\n", "", "none"),
        ("\r\n", "", "none"),
    ] {
        let mut client = gateway.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framed}"));
        assert_eq!(client.response().unwrap().status(), 200, "{framed:?}");
        // The reader of requests refuses a second framing.
        let request = seen.lock().unwrap().pop().unwrap();
        assert_eq!(text(&request.body), body, "{framed:?}");
        assert_eq!(
            request.head.get("X-Body-Seen").as_deref(),
            Some(seen_by_filter),
            "{framed:?}"
        );
        assert!(request.head.all("Content-Length").len() + request.head.all("Transfer-Encoding").len() <= 1);
    }
}
