//! Names of headers as the originals write them where that is not a capital letter at the beginning of each word.
//!
//! The HTTP/1.1 engine writes the names of an answer as it has read them elsewhere, and in no other way: so they are read
//! once, from a request that is made up for that.

use axum::body::Body;
use hyper::body::Incoming;
use hyper::http::Extensions;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::OnceLock;
use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;

/// These names.
const NAMES: [&str; 3] = ["ETag", "WWW-Authenticate", "X-API-VERSION"];

/// The extensions of an answer with which the HTTP/1.1 engine writes these names with these letters.
pub async fn spelled() -> &'static Extensions {
    static SPELLED: OnceCell<Extensions> = OnceCell::const_new();
    SPELLED.get_or_init(read).await
}

async fn read() -> Extensions {
    let headers = NAMES.map(|name| format!("{name}: x\r\n")).concat();
    let request = format!("GET / HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    let (mut client, server) = tokio::io::duplex(4_096);
    let found = OnceLock::new();
    let service = service_fn(|request: Request<Incoming>| {
        let (head, _) = request.into_parts();
        // The first is the only one.
        let _ = found.set(head.extensions);
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let connection = http1::Builder::new()
        .preserve_header_case(true)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(server), service);
    if client.write_all(request.as_bytes()).await.is_err() || connection.await.is_err() {
        tracing::debug!("the names of headers cannot be read");
    }
    found.get().cloned().unwrap_or_default()
}
