//! A server on a thread of its own, with a thread for each connection. What it speaks is not its affair.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// The server, accepting until dropped; open connections end when their clients close them.
#[derive(Debug)]
pub struct LoopbackServer {
    /// Its address.
    pub address: SocketAddr,
    stopping: Arc<AtomicBool>,
}

impl LoopbackServer {
    /// Starts it on a free loopback port, on a thread of this name. A connection that breaks is the gateway's affair; the
    /// client sees it as a wrong answer.
    ///
    /// # Errors
    /// No port is free.
    pub fn start<S>(name: &str, serve: S) -> Result<Self>
    where
        S: Fn(TcpStream) -> Result<()> + Clone + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening")?;
        let address = listener.local_addr().context("reading the port")?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = stopping.clone();
        let accept = move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let serve = serve.clone();
                thread::spawn(move || serve(stream));
            }
        };
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(accept)
            .with_context(|| format!("starting the server '{name}'"))?;
        Ok(Self { address, stopping })
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}
