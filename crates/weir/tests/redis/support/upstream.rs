//! The upstream of these tests: a thread for each connection, which answers when it is let.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A server that answers every call with 200, when it is let.
pub struct Upstream {
    pub address: SocketAddr,
    pub calls: Arc<AtomicUsize>,
    gate: Arc<(Mutex<bool>, Condvar)>,
    over: Arc<AtomicBool>,
    held: Cell<bool>,
}

impl Upstream {
    /// Answers with these header lines.
    pub fn start(headers: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let upstream = Self {
            address: listener.local_addr().expect("bound"),
            calls: Arc::default(),
            gate: Arc::new((Mutex::new(true), Condvar::new())),
            over: Arc::default(),
            held: Cell::new(false),
        };
        let (gate, calls) = (Arc::clone(&upstream.gate), Arc::clone(&upstream.calls));
        let over = Arc::clone(&upstream.over);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (gate, calls) = (Arc::clone(&gate), Arc::clone(&calls));
                let stream = stream.expect("a connection");
                std::thread::spawn(move || serve(stream, headers, &gate, &calls));
            }
        });
        upstream
    }

    /// Lets calls wait, or lets them go.
    pub fn hold(&self, holds: bool) {
        self.held.set(holds);
        *self.gate.0.lock().expect("whole") = !holds;
        self.gate.1.notify_all();
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.hold(false);
        self.over.store(true, Ordering::Relaxed);
        let _woken = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, headers: &str, gate: &(Mutex<bool>, Condvar), calls: &AtomicUsize) {
    let mut writer = stream.try_clone().expect("cloned");
    let mut lines = BufReader::new(stream).lines();
    while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
        calls.fetch_add(1, Ordering::SeqCst);
        let open = gate.0.lock().expect("whole");
        drop(gate.1.wait_while(open, |open| !*open).expect("whole"));
        let answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nok");
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
