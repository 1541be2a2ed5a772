//! A running gateway, and calls to it.

use super::server;
use crate::weir::Weir;
use std::io::{Read, Write};
use std::net::TcpStream;
use tempfile::TempDir;

/// A gateway that serves one file, and ends with the test.
pub struct Gateway {
    weir: Weir,
    _folder: TempDir,
}

/// A folder with this file and the definitions.
pub fn folder(name: &str, configuration: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    write("hello.proto", server::PROTO);
    write("sub/messages.proto", server::MESSAGES);
    write(name, configuration);
    folder
}

impl Gateway {
    pub fn start(name: &str, configuration: &str) -> Self {
        let folder = folder(name, configuration);
        Self {
            weir: Weir::start(folder.path(), &["-c", name]),
            _folder: folder,
        }
    }

    /// The status line's code, the head and the body of an answer.
    pub fn call(&self, line: &str, content_type: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.weir.proxy()).expect("a connection");
        let typed = match content_type {
            "" => String::new(),
            content_type => format!("Content-Type: {content_type}\r\n"),
        };
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{typed}Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .expect("a status");
        let body = &answer[end + 4..];
        let body = match head.contains("transfer-encoding: chunked") {
            true => join_chunks(body),
            false => body.to_vec(),
        };
        (status, head, body)
    }

    /// The status and the body.
    pub fn text(&self, line: &str, content_type: &str, body: &str) -> (u16, String) {
        let (status, _, body) = self.call(line, content_type, body.as_bytes());
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

fn join_chunks(mut body: &[u8]) -> Vec<u8> {
    let mut joined = Vec::new();
    loop {
        let end = body
            .windows(2)
            .position(|two| two == b"\r\n")
            .expect("a chunk's size");
        let size = std::str::from_utf8(&body[..end]).expect("a number");
        let size = usize::from_str_radix(size, 16).expect("a number");
        if size == 0 {
            return joined;
        }
        joined.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
}
