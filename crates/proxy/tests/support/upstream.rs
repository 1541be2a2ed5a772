//! An upstream whose every byte a test decides.

use super::TIMEOUT;
use super::wire::{Message, Wire};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A listener; its connections are played by the test, or by threads that serve a fixed play.
pub struct Upstream {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl Upstream {
    pub fn bind() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    /// The next connection.
    pub fn accept(&self) -> Wire {
        Self::first_of(std::slice::from_ref(self)).1
    }

    /// Whether the gateway has opened a connection that was not accepted. What a call needed was opened before
    /// its answer, so this is certain once the answer is there.
    pub fn is_untouched(&self) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        self.listener.accept().is_err()
    }

    /// The next connection, however long it takes.
    pub fn accept_whenever(&self) -> Wire {
        self.listener.set_nonblocking(false).unwrap();
        let wire = Wire::new(self.listener.accept().unwrap().0);
        wire.stream.set_read_timeout(None).unwrap();
        wire
    }

    /// Waits until the gateway has opened a connection to one of `upstreams`; gives its position.
    pub fn first_of(upstreams: &[Self]) -> (usize, Wire) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            for (position, upstream) in upstreams.iter().enumerate() {
                upstream.listener.set_nonblocking(true).unwrap();
                if let Ok((stream, _)) = upstream.listener.accept() {
                    stream.set_nonblocking(false).unwrap();
                    return (position, Wire::new(stream));
                }
            }
            assert!(Instant::now() < deadline, "the gateway does not connect");
            std::thread::yield_now();
        }
    }

    /// Serves every connection on threads: answers each request with what `play` makes of it, as raw bytes.
    /// Gives the requests that came, in order.
    pub fn serve(
        self,
        play: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    ) -> Arc<Mutex<Vec<Message>>> {
        let seen: Arc<Mutex<Vec<Message>>> = Arc::default();
        let (record, play) = (Arc::clone(&seen), Arc::new(play));
        self.listener.set_nonblocking(false).unwrap();
        std::thread::spawn(move || {
            for stream in self.listener.incoming() {
                let (mut wire, record, play) =
                    (Wire::new(stream.unwrap()), Arc::clone(&record), Arc::clone(&play));
                // A connection may idle for as long as its test runs.
                wire.stream.set_read_timeout(None).unwrap();
                std::thread::spawn(move || {
                    while let Ok(request) = wire.request() {
                        let answer = play(&request);
                        record.lock().unwrap().push(request);
                        if wire.try_send(answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        seen
    }
}

/// A plain answer with this body.
pub fn answer(body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
        body.as_ref().len()
    )
    .into_bytes();
    bytes.extend_from_slice(body.as_ref());
    bytes
}
