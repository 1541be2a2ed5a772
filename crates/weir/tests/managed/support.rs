//! What the tests ask of a running gateway, and calls to it.

pub use crate::weir::Weir;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// How long anything may take. Much more than it should: the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A key that APISIX's documentation has.
pub const STOCK_KEY: &str = "edd1c9f034335f136f87ad84b625c8f1";

/// The flags of a gateway with a store of its own and all APIs.
pub const ALL_APIS: [&str; 8] = [
    "--data",
    "data",
    "--kong-admin",
    "127.0.0.1:0",
    "--apisix-admin",
    "127.0.0.1:0",
    "--console",
    "127.0.0.1:0",
];

impl Weir {
    pub fn kong(&self) -> String {
        self.address("Kong's Admin API on http://")
    }

    pub fn apisix(&self) -> String {
        self.address("APISIX's Admin API on http://")
    }

    pub fn console(&self) -> String {
        self.address("Weir's API on http://")
    }

    /// The hash of the configuration that it serves.
    pub fn hash(&self) -> String {
        let answer = Call::get(&self.status(), "/status").make();
        answer.json()["store"]["hash"]
            .as_str()
            .expect("a hash")
            .to_owned()
    }

    /// What a command says that talks to its own API, as the token's user.
    pub fn ask(&self, token: Option<&str>, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let url = format!("http://{}", self.console());
        command.args(arguments).env_clear().env("WEIR_URL", url);
        if let Some(token) = token {
            command.env("WEIR_TOKEN", token);
        }
        command.output().expect("the binary runs")
    }
}

/// A call.
#[derive(Clone)]
pub struct Call {
    address: String,
    head: String,
    body: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines();
        lines.find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Call {
    pub fn new(method: &str, address: &str, path: &str) -> Self {
        Self {
            address: address.to_owned(),
            head: format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n"),
            body: String::new(),
        }
    }

    pub fn get(address: &str, path: &str) -> Self {
        Self::new("GET", address, path)
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self.header("Content-Type", "application/json")
    }

    /// Makes it; `None`: there was no whole answer.
    pub fn attempt(&self) -> Option<Answer> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let text = format!(
            "{}Content-Length: {}\r\n\r\n{}",
            self.head,
            self.body.len(),
            self.body
        );
        stream.write_all(text.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        Some(Answer {
            status,
            head: head.to_owned(),
            body: if is_chunked {
                unchunked(body)
            } else {
                body.to_owned()
            },
        })
    }

    #[track_caller]
    pub fn make(&self) -> Answer {
        self.attempt()
            .unwrap_or_else(|| panic!("no answer to {}", self.head))
    }
}

fn unchunked(body: &str) -> String {
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        whole.push_str(&more[..size]);
        rest = more.get(size + 2..).unwrap_or_default();
    }
    whole
}

/// Waits until something holds. It asks again and again, as nothing notifies it.
#[track_caller]
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(holds_soon(holds), "{what}: not in time");
}

fn holds_soon(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT {
        if holds() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// The status of a call through a gateway.
pub fn status_of(proxy: &str, path: &str) -> Option<u16> {
    Call::get(proxy, path).attempt().map(|answer| answer.status)
}

/// A server that answers every call with 200 and its own name.
pub fn upstream(name: &'static str) -> SocketAddr {
    server(move |_| (200, name.to_owned()))
}

/// A server that answers each call by its head with a status and a body.
pub fn server(answer: impl Fn(&str) -> (u16, String) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || serve(stream, answer));
        }
    });
    address
}

fn serve(stream: TcpStream, answer: impl Fn(&str) -> (u16, String)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (reader.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let (status, body) = answer(&head);
        let head = format!("HTTP/1.1 {status} X\r\nContent-Type: text/plain\r\nContent-Length");
        let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
        writer.write_all(answer.as_bytes()).ok()?;
    }
}
