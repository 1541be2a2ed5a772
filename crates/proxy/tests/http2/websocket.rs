//! WebSockets over HTTP/2 (RFC 8441), to upstreams that know them over HTTP/1.1.

use super::peer::{Client, run, send_all};
use super::support::{TestGateway, Upstream, answer};
use h2::ext::Protocol;
use http::{Method, Request};

fn request(client: &Client, protocol: &'static str) -> Request<()> {
    let list = [
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat"),
    ];
    let mut request = client.request("GET", "/chat?a=b", &list);
    *request.method_mut() = Method::CONNECT;
    request.extensions_mut().insert(Protocol::from_static(protocol));
    request
}

/// A client that knows what its server can do.
async fn greeted(gateway: &TestGateway, upstream: &Upstream) -> Client {
    let client = Client::connect(gateway.address).await;
    let call = client.request("GET", "/", &[]);
    let (response, _) = client.begin(call, true).await.unwrap();
    let mut wire = upstream.accept();
    wire.request().unwrap();
    wire.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(response.await.unwrap().status(), 200);
    client
}

#[test]
fn a_stream_carries_a_websocket() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = greeted(&gateway, &upstream).await;
        let begun = client.begin(request(&client, "websocket"), false).await;
        let (response, mut stream) = begun.unwrap();
        let mut wire = upstream.accept();
        let head = wire.head().unwrap();
        assert_eq!(head.line, "GET /chat?a=b HTTP/1.1");
        for (name, wanted) in [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Protocol", "chat"),
        ] {
            assert_eq!(head.get(name).as_deref(), Some(wanted), "{name}");
        }
        assert_eq!(head.get("Sec-WebSocket-Key").unwrap().len(), 24);
        wire.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\nfirst",
        );
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        assert!(!response.headers().contains_key("sec-websocket-accept"));
        let mut body = response.into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "first");
        send_all(&mut stream, "hello".into(), false).await;
        assert_eq!(wire.read(5).unwrap(), b"hello");
        wire.send("answer");
        assert_eq!(body.data().await.unwrap().unwrap(), "answer");
        send_all(&mut stream, "bye".into(), true).await;
        assert_eq!(wire.rest().0, b"bye");
        drop(wire);
        while let Some(data) = body.data().await {
            assert_eq!(data.unwrap(), "", "nothing but the end comes");
        }
    });
}

#[test]
fn what_does_not_switch_is_answered() {
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    run(async {
        let client = greeted(&gateway, &upstream).await;
        let begun = client.begin(request(&client, "websocket"), false).await;
        let (response, _stream) = begun.unwrap();
        let mut wire = upstream.accept();
        wire.head().unwrap();
        wire.send(answer("no"));
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.into_body().data().await.unwrap().unwrap(), "no");
        // Of other protocols nothing is known.
        let begun = client.begin(request(&client, "other"), false).await;
        let (response, _stream) = begun.unwrap();
        assert_eq!(response.await.unwrap().status(), 501);
    });
}
