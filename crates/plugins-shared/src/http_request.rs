//! HTTP requests that filters have the engine send: the address of a server, and a whole message to it.

use crate::header_edits;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use weir_plugin::headers::is_value;
use weir_plugin::{Connector, Headers, HttpProxy, Subrequest, Verify};

/// A server, and what is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// Whether it is met over TLS.
    pub is_https: bool,
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// As `Host` has it.
    pub authority: String,
    /// Path and query.
    pub target: String,
}

impl HttpServer {
    /// Parses an address that begins with `http://` or `https://`; `None` if it is invalid.
    pub fn parse(url: &str) -> Option<Self> {
        let (is_https, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, behind) = bracketed.split_once(']')?;
                host.parse::<Ipv6Addr>().ok()?;
                match behind {
                    "" => (host, None),
                    behind => (host, Some(behind.strip_prefix(':')?)),
                }
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0)?,
            None if is_https => 443,
            None => 80,
        };
        let is_clean = is_value(url.as_bytes()) && !url.contains([' ', '\t', '@', '#']);
        (is_clean && !host.is_empty()).then(|| Self {
            is_https,
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            target: match target.starts_with('/') {
                true => target.to_owned(),
                false => format!("/{target}"),
            },
        })
    }

    /// A request to it. Headers that frame a message are added.
    pub fn request(&self, request: HttpRequest<'_>, rules: &ServerCallRules) -> Subrequest {
        let mut message = Vec::with_capacity(256 + self.target.len() + request.body.map_or(0, <[u8]>::len));
        let mut add = |parts: &[&[u8]]| parts.iter().for_each(|part| message.extend_from_slice(part));
        add(&[request.method.as_bytes(), b" ", self.target.as_bytes()]);
        if !request.query.is_empty() {
            let mark: &[u8] = if self.target.contains('?') { b"&" } else { b"?" };
            add(&[mark, request.query.as_bytes()]);
        }
        add(&[
            b" HTTP/1.1\r\nHost: ",
            self.authority.as_bytes(),
            b"\r\nUser-Agent: weir\r\nAccept: ",
            request.accept.as_bytes(),
            b"\r\n",
        ]);
        for (name, value) in request.headers {
            // A value with a line end would be a second header.
            if is_value(value.as_bytes()) {
                add(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
            }
        }
        if let Some(body) = request.body {
            let length = itoa::Buffer::new().format(body.len()).to_owned();
            add(&[b"Content-Length: ", length.as_bytes(), b"\r\n"]);
        }
        if rules.pool_size == 0 {
            add(&[b"Connection: close\r\n"]);
        }
        add(&[b"\r\n", request.body.unwrap_or_default()]);
        self.subrequest(message, rules)
    }

    /// A request to it with a target and headers of the caller's choice. `Host` is added if they lack it, and the length of the
    /// body. Other headers that frame a message must not be among them.
    pub fn request_with(
        &self,
        (method, target): (&str, &str),
        headers: &Headers,
        body: &[u8],
        rules: &ServerCallRules,
    ) -> Subrequest {
        let mut message = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
        if !headers.contains(b"host") {
            message.extend_from_slice(format!("Host: {}\r\n", self.authority).as_bytes());
        }
        headers.write_lines(&mut message);
        if !body.is_empty() || !matches!(method, "GET" | "HEAD") {
            message.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        message.extend_from_slice(b"\r\n");
        message.extend_from_slice(body);
        self.subrequest(message, rules)
    }

    fn subrequest(&self, message: Vec<u8>, rules: &ServerCallRules) -> Subrequest {
        Subrequest {
            host: self.host.clone(),
            port: self.port,
            tls: self.is_https.then_some(match rules.verify_tls {
                true => Verify::Yes,
                false => Verify::No,
            }),
            message,
            timeout: rules.timeout,
            keep: (rules.pool_size > 0).then_some((rules.pool_size, rules.pool_idle_timeout)),
            max_body_bytes: rules.max_answer_bytes,
            connector: rules.connector.clone(),
        }
    }
}

/// Headers that belong to the call of a client, besides those of its connection and of the message's framing: the host that is
/// called, and which form and part of an answer it wants.
const OF_CALL: [&[u8]; 3] = [b"host", b"accept-encoding", b"range"];

/// Whether a header belongs to the call of a client, so that other servers are not to get it. Conditions on the answer do,
/// too: a server would leave out what the client has.
pub fn is_of_call(name: &[u8]) -> bool {
    let is_condition = name
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"if-"));
    let is_listed = OF_CALL.iter().any(|own| name.eq_ignore_ascii_case(own));
    is_condition || is_listed || std::str::from_utf8(name).is_ok_and(header_edits::is_own)
}

/// The HTTP proxy at an address that begins with `http://`; `None` if the address is invalid.
pub fn http_proxy(url: &str, authorization: Option<&str>) -> Option<HttpProxy> {
    let server = HttpServer::parse(url).filter(|it| !it.is_https)?;
    Some(HttpProxy {
        host: server.host,
        port: server.port,
        authorization: authorization.map(str::to_owned),
    })
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'r> {
    /// The method.
    pub method: &'r str,
    /// Arguments besides those of the server's address, encoded.
    pub query: &'r str,
    /// `Accept`.
    pub accept: &'r str,
    /// Further headers.
    pub headers: &'r [(&'r str, &'r str)],
    /// The body.
    pub body: Option<&'r [u8]>,
}

impl HttpRequest<'_> {
    /// A `GET` for JSON.
    pub const GET: Self = Self {
        method: "GET",
        query: "",
        accept: "application/json",
        headers: &[],
        body: None,
    };
}

/// How servers are asked, the same for all requests of an instance.
#[derive(Debug, Clone)]
pub struct ServerCallRules {
    /// Whether certificates must be good.
    pub verify_tls: bool,
    /// The longest that an answer may take.
    pub timeout: Duration,
    /// Idle connections to each server that each worker keeps; 0: none.
    pub pool_size: u32,
    /// How long they are kept.
    pub pool_idle_timeout: Duration,
    /// The most bytes of an answer's body.
    pub max_answer_bytes: usize,
    /// Further rules for connections.
    pub connector: Option<Arc<Connector>>,
}

/// Arguments in the form of `application/x-www-form-urlencoded`, each behind the last.
pub fn add_form_argument(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() {
        out.push('&');
    }
    for (index, text) in [name, value].into_iter().enumerate() {
        if index > 0 {
            out.push('=');
        }
        for byte in text.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
                _ => {
                    let digits = b"0123456789ABCDEF";
                    out.push('%');
                    out.push(digits[usize::from(byte >> 4)].into());
                    out.push(digits[usize::from(byte & 15)].into());
                }
            }
        }
    }
}

/// A form of these arguments.
pub fn form<'a>(arguments: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::new();
    for (name, value) in arguments {
        add_form_argument(&mut out, name, value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |url: &str| {
            HttpServer::parse(url).map(|it| format!("{} {} {} {}", it.is_https, it.host, it.port, it.target))
        };
        for (url, expected) in [
            ("http://a", Some("false a 80 /")),
            ("https://a?x", Some("true a 443 /?x")),
            ("https://[::1]:81/a?b=c", Some("true ::1 81 /a?b=c")),
            ("http://[::1]?b", Some("false ::1 80 /?b")),
            ("http://[::1]evil.example/", None),
            ("http://[::1]81/", None),
            ("http://[::1]:/", None),
            ("http://[a.example]/", None),
            ("http://[]/", None),
            ("ftp://a", None),
            ("http://", None),
            ("http://a:0/", None),
            ("http://u@a/", None),
            ("http://a/\r\nX: y", None),
        ] {
            assert_eq!(read(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn requests_are_whole_messages() {
        let server = HttpServer::parse("https://id.example/token?x=1").expect("an address");
        let rules = ServerCallRules {
            verify_tls: true,
            timeout: Duration::from_secs(1),
            pool_size: 0,
            pool_idle_timeout: Duration::ZERO,
            max_answer_bytes: 9,
            connector: None,
        };
        let request = HttpRequest {
            method: "POST",
            query: "y=2",
            headers: &[("A", "b"), ("Evil", "x\r\nY: z")],
            body: Some(b"code=%20"),
            ..HttpRequest::GET
        };
        let asked = server.request(request, &rules);
        assert_eq!(
            (asked.host.as_str(), asked.port, asked.tls),
            ("id.example", 443, Some(Verify::Yes))
        );
        assert_eq!(
            String::from_utf8_lossy(&asked.message),
            "POST /token?x=1&y=2 HTTP/1.1\r\nHost: id.example\r\nUser-Agent: weir\r\nAccept: application/json\r\n\
             A: b\r\nContent-Length: 8\r\nConnection: close\r\n\r\ncode=%20"
        );
        assert_eq!(form([("a b", "ä&="), ("c", "")]), "a%20b=%C3%A4%26%3D&c=");
    }
}
