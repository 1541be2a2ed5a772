//! The version of HTTP that an upstream is spoken to in: as it chooses in the TLS handshake, or as the scheme says.

use super::peer::{Answer, Client, Upstream, run};
use super::support::{TestGateway, patch, server_config, simple_model};
use bytes::Bytes;
use http::Response;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

type Stream = TlsStream<tokio::net::TcpStream>;

/// A server over TLS that chooses among these protocols; it answers with the one it speaks.
struct Chooser {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Chooser {
    fn start(protocols: &[&[u8]]) -> Self {
        let mut config = (*server_config()).clone();
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let chooser = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
        };
        let connections = Arc::clone(&chooser.connections);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((tcp, _)) = listener.accept().await {
                    let (acceptor, connections) = (acceptor.clone(), Arc::clone(&connections));
                    tokio::spawn(async move {
                        let Ok(stream) = acceptor.accept(tcp).await else {
                            return;
                        };
                        connections.fetch_add(1, SeqCst);
                        match stream.get_ref().1.alpn_protocol() {
                            Some(b"h2") => speak_http2(stream).await,
                            _ => speak_http1(stream).await,
                        }
                    });
                }
            });
        });
        chooser
    }
}

async fn speak_http2(stream: Stream) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        body.send_data(Bytes::from_static(b"h2"), true).unwrap();
    }
}

async fn speak_http1(mut stream: Stream) {
    let mut read = Vec::new();
    loop {
        while !read.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        read.clear();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh1";
        if stream.write_all(answer).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

#[test]
fn upstreams_choose_the_version() {
    for (protocols, spoken) in [
        (&[&b"h2"[..], b"http/1.1"][..], "h2"),
        (&[b"h2"], "h2"),
        (&[b"http/1.1"], "h1"),
        (&[], "h1"),
    ] {
        let upstream = Chooser::start(protocols);
        let url = format!("h2://{}", upstream.address);
        let changes = json!({"services": {"url": url, "tls": {"verify": false}}});
        let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
        run(async {
            let client = Client::connect(gateway.address).await;
            for _ in 0..2 {
                let mut calls = tokio::task::JoinSet::new();
                for _ in 0..10 {
                    let client = client.clone();
                    calls.spawn(async move { client.get("/", &[]).await });
                }
                while let Some(came) = calls.join_next().await {
                    let came = came.unwrap();
                    assert_eq!(
                        (came.status, came.text().as_str()),
                        (200, spoken),
                        "{protocols:?}"
                    );
                }
            }
        });
        let mut wire = gateway.connect();
        wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(wire.response().unwrap().body, spoken.as_bytes());
        let connections = upstream.connections.load(SeqCst);
        match spoken {
            "h2" => assert_eq!(connections, 1, "all calls share it"),
            // Those of the first round are kept for the second.
            _ => assert!((1..=11).contains(&connections), "{connections}"),
        }
    }
}

#[test]
fn cleartext_upstreams_are_known_to_speak_it() {
    let upstream = Upstream::serve(|request| Answer::ok(format!("{} {}", request.uri, request.body.len())));
    let url = format!("h2c://{}", upstream.address);
    let changes = json!({"services": {"url": url}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut wire = gateway.connect();
    wire.send("POST /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    let answer = wire.response().unwrap();
    assert!(answer.body.ends_with(b"/a?b 3"), "{:?}", answer.body);
    run(async {
        let client = Client::connect(gateway.address).await;
        let came = client
            .call(client.request("PUT", "/", &[]), &[b'x'; 100_000], &[])
            .await
            .unwrap();
        assert!(came.text().ends_with("/ 100000"), "{}", came.text());
    });
    assert_eq!(*upstream.connections.lock().unwrap(), 1);
}

#[test]
fn calls_for_another_protocol_begin_in_http1() {
    let upstream = super::support::Upstream::bind();
    let url = format!("h2c://{}", upstream.address);
    let changes = json!({"services": {"url": url}, "routes": {"upgrade": true}});
    let gateway = TestGateway::start(patch(simple_model(upstream.address), &changes));
    let mut wire = gateway.connect();
    wire.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let mut server = upstream.accept();
    let head = server.head().unwrap();
    assert_eq!(head.line, "GET / HTTP/1.1");
    server.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(wire.head().unwrap().status(), 101);
}
