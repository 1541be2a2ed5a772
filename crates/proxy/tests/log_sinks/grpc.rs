//! Entries for gRPC servers: a server of this test takes them, refuses them, or goes away.

use super::{call, count, entries, eventually, gateway};
use bytes::Bytes;
use http::{HeaderMap, Response};
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A call as the server has got it.
struct LogRequest {
    path: String,
    headers: HeaderMap,
    message: Vec<u8>,
}

/// A gRPC server that answers with these statuses, one after another, and then with 0. A status of 99 closes the
/// connection instead.
fn serve(statuses: &'static [u16]) -> (SocketAddr, Receiver<LogRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let (taken, took) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let mut statuses = statuses.iter().copied();
            while let Ok((stream, _)) = listener.accept().await {
                if !answer(stream, &mut statuses, &taken).await {
                    return;
                }
            }
        });
    });
    (address, took)
}

/// Answers the calls of a connection; `false`: there is no listener any more.
async fn answer(
    stream: tokio::net::TcpStream,
    statuses: &mut impl Iterator<Item = u16>,
    taken: &Sender<LogRequest>,
) -> bool {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (head, mut body) = request.into_parts();
        let message = {
            let mut read = std::pin::pin!(async move {
                let mut message = Vec::new();
                while let Some(Ok(data)) = body.data().await {
                    message.extend_from_slice(&data);
                    body.flow_control().release_capacity(data.len()).unwrap();
                }
                message
            });
            // The connection makes progress only while it is polled.
            std::future::poll_fn(|context| {
                let _open = connection.poll_closed(context).is_ready();
                read.as_mut().poll(context)
            })
            .await
        };
        let status = statuses.next().unwrap_or(0);
        let (path, headers) = (head.uri.path().to_owned(), head.headers);
        if taken
            .send(LogRequest {
                path,
                headers,
                message,
            })
            .is_err()
        {
            return false;
        }
        if status == 99 {
            return true;
        }
        let head = Response::builder().header("content-type", "application/grpc");
        let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
        stream.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", status.into());
        stream.send_trailers(trailers).unwrap();
    }
    true
}

#[test]
fn servers_get_batches_over_one_connection() {
    let (address, took) = serve(&[]);
    let gateway = gateway(&[json!({"grpc": address.port(), "max_entries": 2, "delay_ms": 60_000})]);
    let mut client = gateway.connect();
    for paths in [["/1", "/2"], ["/3", "/4"]] {
        for path in paths {
            call(&mut client, path);
        }
        let taken = took.recv_timeout(super::TIMEOUT).unwrap();
        let expected = format!("[{} 200 true;,{} 200 true;]", paths[0], paths[1]);
        assert_eq!(taken.path, "/logs.Sink/Take");
        assert_eq!(taken.headers["content-type"], "application/grpc");
        assert_eq!(taken.headers["te"], "trailers");
        assert_eq!(taken.headers["x-key"], "k");
        assert_eq!(taken.message[..5], [0, 0, 0, 0, expected.len() as u8]);
        assert_eq!(&taken.message[5..], expected.as_bytes());
    }
    eventually("taken entries", || entries(&gateway, "grpc", "sent") == 4);
    assert_eq!(count(&gateway, "weir_log_retries_total{target=\"grpc\"}"), 0);
}

#[test]
fn a_server_that_refuses_or_goes_is_tried_again() {
    let (address, took) = serve(&[14, 99, 0]);
    let gateway = gateway(&[json!({"grpc": address.port(), "retries": 5, "timeout_ms": 2_000})]);
    call(&mut gateway.connect(), "/1");
    for _ in 0..3 {
        let taken = took.recv_timeout(super::TIMEOUT).unwrap();
        assert!(taken.message.ends_with(b"/1 200 true;"));
    }
    eventually("taken entries", || entries(&gateway, "grpc", "sent") == 1);
    assert_eq!(count(&gateway, "weir_log_retries_total{target=\"grpc\"}"), 2);
    assert!(took.recv_timeout(Duration::from_millis(1)).is_err());
}
