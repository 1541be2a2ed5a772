//! Servers that take calls and record them, and a gateway to call them through.

use crate::weir::Weir;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use tempfile::TempDir;

/// A call that a server has got.
pub struct ReceivedRequest {
    /// The request line.
    pub line: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// The value of a header; empty: it is not there.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// A server that takes all calls, and records them.
pub fn server() -> (SocketAddr, Receiver<ReceivedRequest>) {
    server_with("ok")
}

/// Likewise; each answer has this body.
pub fn server_with(body: &'static str) -> (SocketAddr, Receiver<ReceivedRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, requests) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let tell = tell.clone();
            std::thread::spawn(move || answer(stream, &tell, body));
        }
    });
    (address, requests)
}

/// Answers until the connection ends.
fn answer(stream: TcpStream, tell: &Sender<ReceivedRequest>, answer: &str) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let headers: Vec<(String, String)> = lines[1..]
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        // The test may have ended.
        let _told = tell.send(ReceivedRequest {
            line: lines[0].clone(),
            headers,
            body,
        });
        let length = answer.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{answer}");
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

/// A gateway, and what it serves.
pub struct Gateway {
    weir: Weir,
    folder: TempDir,
}

impl Gateway {
    /// Serves this configuration.
    pub fn start(name: &str, configuration: &Value) -> Self {
        Self::with(name, configuration, &[])
    }

    /// Likewise, with more flags.
    pub fn with(name: &str, configuration: &Value, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A dialect wants to see the end of its document; to the others it is a comment.
        std::fs::write(folder.path().join(name), format!("{configuration}\n#END\n")).unwrap();
        Self {
            weir: Weir::start(
                folder.path(),
                &[&["-c", name, "--workers", "2"][..], flags].concat(),
            ),
            folder,
        }
    }

    /// Writes another text in place of the configuration.
    pub fn rewrite(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Calls the proxy; gives the whole answer.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> String {
        get(&self.weir.proxy(), path, headers)
    }

    /// Calls the proxy with a method; gives the whole answer.
    pub fn call(&self, method: &str, path: &str) -> String {
        ask(&self.weir.proxy(), method, path, &[])
    }

    /// Its address for TLS.
    pub fn tls(&self) -> String {
        self.weir.address("https://")
    }

    /// Asks the status listener.
    pub fn scrape(&self, path: &str) -> String {
        get(&self.weir.status(), path, &[])
    }
}

fn get(address: &str, path: &str, headers: &[(&str, &str)]) -> String {
    ask(address, "GET", path, headers)
}

fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
