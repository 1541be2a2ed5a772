//! Sending messages in the background of a call. Their answers are read and dropped; their failures change nothing for
//! the call.

use crate::serve::RequestContext;
use crate::worker::Worker;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_plugin::BackgroundRequest;

/// Most of them that one worker has under way.
const MAX_UNDER_WAY: usize = 256;
/// Most bytes of an answer that are read.
const MAX_ANSWER: u64 = 1 << 20;

impl RequestContext<'_> {
    /// Sends the background requests of the filters.
    pub fn send_background_requests(&mut self) {
        for request in self.exchange.background_requests.drain(..) {
            let under_way = Rc::clone(&self.worker.background_requests);
            // The worker holds one count itself.
            if Rc::strong_count(&under_way) > MAX_UNDER_WAY + 1 {
                tracing::debug!(
                    host = request.host,
                    "a background request is dropped: too many are in progress"
                );
                continue;
            }
            let worker = Rc::clone(self.worker);
            tokio::task::spawn_local(async move {
                let sent = tokio::time::timeout(request.timeout, send(&worker, &request)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    tracing::debug!(host = request.host, "a background request failed");
                }
                drop(under_way);
            });
        }
    }
}

async fn send(worker: &Worker, request: &BackgroundRequest) -> io::Result<()> {
    let ip = match request.host.parse() {
        Ok(ip) => ip,
        Err(_) => {
            let resolved = worker.resolver.resolve(&request.host, Instant::now()).await;
            resolved.map_err(|_| io::ErrorKind::NotFound)?
        }
    };
    let mut stream = TcpStream::connect(SocketAddr::new(ip, request.port)).await?;
    stream.write_all(&request.message).await?;
    let mut scratch = [0; 4096];
    let mut answer = (&mut stream).take(MAX_ANSWER);
    while answer.read(&mut scratch).await? > 0 {}
    Ok(())
}
