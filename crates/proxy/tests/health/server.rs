//! A server that can be made to fail, killed, and started again.

use crate::support::{Message, Wire};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A server. It answers with its name, and with the status that the test sets; killed, its port is closed.
pub struct Server {
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
}

struct State {
    name: String,
    status: AtomicU16,
    is_killed: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
    requests: Mutex<Vec<Message>>,
}

impl Server {
    /// A running server on a free port.
    pub fn start(name: &str) -> Self {
        Self::on(name, (Ipv4Addr::LOCALHOST, 0).into())
    }

    /// A running server at this address.
    pub fn on(name: &str, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            name: name.to_owned(),
            status: AtomicU16::new(200),
            is_killed: AtomicBool::new(false),
            connections: Mutex::default(),
            requests: Mutex::default(),
        });
        let own = Arc::clone(&state);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                if own.is_killed.load(Ordering::SeqCst) {
                    return;
                }
                own.connections.lock().unwrap().push(stream.try_clone().unwrap());
                let own = Arc::clone(&own);
                std::thread::spawn(move || own.serve(stream));
            }
        });
        Self {
            address,
            state,
            accepting: Some(accepting),
        }
    }

    /// What it answers from now on.
    pub fn set_status(&self, status: u16) {
        self.state.status.store(status, Ordering::SeqCst);
    }

    /// The requests that have come since this was last asked.
    pub fn take_requests(&self) -> Vec<Message> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }

    /// How many connections it has taken.
    pub fn times_connected(&self) -> usize {
        self.state.connections.lock().unwrap().len()
    }

    /// Closes the port and all connections, whatever they are doing.
    pub fn kill(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        self.state.is_killed.store(true, Ordering::SeqCst);
        // The listener waits for a connection to see it.
        let _seen = TcpStream::connect(self.address);
        accepting.join().unwrap();
        for connection in self.state.connections.lock().unwrap().drain(..) {
            let _gone = connection.shutdown(Shutdown::Both);
        }
    }

    /// Starts a killed server at its old address.
    pub fn restart(&mut self) {
        *self = Self::on(&self.state.name, self.address);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl State {
    fn serve(&self, stream: TcpStream) {
        let mut wire = Wire::new(stream);
        wire.stream.set_read_timeout(None).unwrap();
        while let Ok(request) = wire.request() {
            self.requests.lock().unwrap().push(request);
            if self.is_killed.load(Ordering::SeqCst) {
                return;
            }
            let status = self.status.load(Ordering::SeqCst);
            let answer = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{}",
                self.name.len(),
                self.name
            );
            if wire.try_send(answer).is_err() {
                return;
            }
        }
    }
}
