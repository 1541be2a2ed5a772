//! A browser of the tests: it keeps cookies, and follows nothing by itself.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A browser's cookies, by name.
#[derive(Default, Clone)]
pub struct Jar(Vec<(String, String)>);

/// What a server has answered.
pub struct Answer {
    pub status: u16,
    /// The target of its redirect.
    pub location: String,
    /// Head and body.
    pub text: String,
}

impl Jar {
    fn keep(&mut self, set: &str) {
        let pair = set.split(';').next().unwrap_or_default();
        let (name, value) = pair.split_once('=').expect("a name");
        self.0.retain(|(known, _)| known != name.trim());
        if !value.is_empty() {
            self.0.push((name.trim().to_owned(), value.to_owned()));
        }
    }

    /// Makes a call without a body.
    pub fn get(&mut self, address: &str, host: &str, target: &str) -> Answer {
        self.send(address, host, ("GET", target), "")
    }

    /// Makes a call; a body is a form.
    pub fn send(&mut self, address: &str, host: &str, line: (&str, &str), body: &str) -> Answer {
        self.send_with(address, host, line, "", body)
    }

    /// Likewise, with further lines of headers.
    pub fn send_with(
        &mut self,
        address: &str,
        host: &str,
        (method, target): (&str, &str),
        headers: &str,
        body: &str,
    ) -> Answer {
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = match pairs.is_empty() {
            true => String::new(),
            false => format!("Cookie: {}\r\n", pairs.join("; ")),
        };
        let mut stream = TcpStream::connect(address).expect("it listens");
        let form = match body.is_empty() {
            true => String::new(),
            false => format!(
                "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
                body.len()
            ),
        };
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept: text/html\r\nX-Userinfo: forged\r\n\
             X-User: mallory\r\n{headers}{form}{cookies}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("read");
        let status = text
            .get(9..12)
            .and_then(|status| status.parse().ok())
            .expect("a status");
        let head = text.split("\r\n\r\n").next().unwrap_or_default().to_owned();
        let mut location = String::new();
        for line in head.lines().skip(1) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            match name.to_ascii_lowercase().as_str() {
                "set-cookie" => self.keep(value.trim()),
                "location" => location = value.trim().to_owned(),
                _ => {}
            }
        }
        Answer {
            status,
            location,
            text,
        }
    }
}

/// The target of an address of this host.
pub fn target<'a>(address: &'a str, host: &str) -> &'a str {
    let rest = address
        .strip_prefix("http://")
        .and_then(|it| it.strip_prefix(host));
    rest.unwrap_or_else(|| panic!("{address} is not of {host}"))
}
