//! The call that is to be explained: a method and a URL, headers, and who makes it.

use std::fmt;
use std::net::IpAddr;
use weir_plugin::Request;

/// A call that is only looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedCall {
    /// The method.
    pub method: String,
    /// Whether it is over TLS.
    pub is_tls: bool,
    /// Host and port as written; empty: the call names no host.
    pub authority: String,
    /// Path and query as written.
    pub target: String,
    /// Headers other than `Host`.
    pub headers: Vec<(String, String)>,
    /// The client's address.
    pub client: IpAddr,
    /// The server name of the TLS handshake; `None`: the URL's host.
    pub sni: Option<String>,
    /// The body.
    pub body: String,
    /// The consumer of calls without a valid credential: an id or a user name.
    pub consumer: Option<String>,
}

impl ExplainedCall {
    /// Reads `[METHOD ]URL`, in which the URL may be a path alone, and headers as `name: value`.
    ///
    /// # Errors
    /// A sentence about what was expected.
    pub fn parse(text: &str, headers: &[String], client: IpAddr) -> Result<Self, String> {
        let text = text.trim();
        let (method, url) = text.split_once(char::is_whitespace).unwrap_or(("GET", text));
        expect_method(method)?;
        let url = url.trim();
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None if url.starts_with('/') => ("http".to_owned(), url),
            None => {
                return Err(format!(
                    "expected a call such as 'GET http://host/path', found '{text}'"
                ));
            }
        };
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(format!("expected http or https, found '{scheme}'"));
        }
        if url.contains(char::is_whitespace) {
            return Err(format!("expected a URL without spaces, found '{url}'"));
        }
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let target = match target {
            target if target.starts_with('/') => target.to_owned(),
            query => format!("/{query}"),
        };
        let mut call = Self {
            method: method.to_owned(),
            is_tls: scheme == "https",
            authority: authority.to_owned(),
            target,
            headers: Vec::new(),
            client,
            sni: None,
            body: String::new(),
            consumer: None,
        };
        for header in headers {
            let (name, value) = header
                .split_once(':')
                .ok_or_else(|| format!("expected a header as 'name: value', found '{header}'"))?;
            let value = value.trim_matches([' ', '\t']);
            expect_field(name, value)?;
            if name.eq_ignore_ascii_case("host") {
                call.authority = value.to_owned();
            } else {
                call.headers.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(call)
    }

    /// Whether it would be gRPC over HTTP/2, of which only the media type is known here.
    pub fn is_grpc(&self) -> bool {
        let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
        self.headers.iter().find(is_type).is_some_and(|(_, value)| {
            let value = value.to_ascii_lowercase();
            let rest = value.strip_prefix("application/grpc");
            // Not gRPC-Web, which is another protocol.
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';', ' ']))
        })
    }

    /// Makes `request` what the gateway would have read.
    pub fn fill(&self, request: &mut Request) {
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.target.as_str(), None),
        };
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
            _ => (self.authority.as_str(), None),
        };
        request.method = self.method.clone().into_bytes();
        request.raw_path = path.as_bytes().to_vec();
        request.path = request.raw_path.clone();
        request.query = query.map(|query| query.as_bytes().to_vec());
        request.host = host.to_ascii_lowercase().into_bytes();
        request.host_port = port;
        request.is_tls = self.is_tls;
        let sni = self.sni.as_deref().unwrap_or(host);
        request.sni = self.is_tls.then(|| sni.to_ascii_lowercase().into());
        request.client = self.client;
        request.peer.set_ip(self.client);
        if !self.authority.is_empty() {
            request.headers.append(b"Host", self.authority.as_bytes());
        }
        for (name, value) in &self.headers {
            request.headers.append(name.as_bytes(), value.as_bytes());
        }
    }
}

/// Refuses what the gateway refuses before it looks for a route (`docs/adr/0004-limits-and-strictness.md`).
fn expect_method(method: &str) -> Result<(), String> {
    let is_method = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    if !method.bytes().all(is_method) {
        return Err(format!(
            "the gateway answers 400: expected a method in capital letters, found '{method}'"
        ));
    }
    if matches!(method, "CONNECT" | "TRACE") {
        return Err(format!("the gateway answers 405: it does not accept {method}"));
    }
    Ok(())
}

/// Refuses an invalid header: the name is a token (RFC 9110, 5.6.2), the value has no control characters but tabs.
fn expect_field(name: &str, value: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!(
            "the gateway answers 400: expected a header's name, found '{}'",
            name.escape_debug()
        ));
    }
    if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
        return Err(format!(
            "the gateway answers 400: a control character in the header '{name}'"
        ));
    }
    Ok(())
}

impl fmt::Display for ExplainedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        match self.authority.as_str() {
            "" => write!(f, "{} {}", self.method, self.target),
            authority => write!(f, "{} {scheme}://{authority}{}", self.method, self.target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_read_and_fill_requests() {
        for (text, printed, host, port, path, query) in [
            (
                "GET http://a.com/x?y=1#z",
                "GET http://a.com/x?y=1",
                "a.com",
                None,
                "/x",
                Some("y=1"),
            ),
            (
                "POST  https://A.com:81",
                "POST https://A.com:81/",
                "a.com",
                Some(81),
                "/",
                None,
            ),
            (
                "http://[::1]:82?q",
                "GET http://[::1]:82/?q",
                "[::1]",
                Some(82),
                "/",
                Some("q"),
            ),
            ("http://[::1]/", "GET http://[::1]/", "[::1]", None, "/", None),
            ("/only", "GET /only", "", None, "/only", None),
        ] {
            let call = ExplainedCall::parse(text, &[], IpAddr::from([127, 0, 0, 1])).expect("valid");
            assert_eq!(call.to_string(), printed);
            let mut request = Request::default();
            call.fill(&mut request);
            assert_eq!(String::from_utf8_lossy(&request.host), host, "{text}");
            assert_eq!(request.host_port, port, "{text}");
            assert_eq!(String::from_utf8_lossy(&request.raw_path), path, "{text}");
            assert_eq!(request.query.as_deref(), query.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn headers_are_taken_and_host_is_special() {
        let headers = ["apikey: a:b".to_owned(), "Host: b.com:99".to_owned()];
        let call = ExplainedCall::parse("/x", &headers, IpAddr::from([10, 0, 0, 1])).expect("valid");
        let mut request = Request::default();
        call.fill(&mut request);
        assert_eq!(request.headers.get(b"apikey"), Some(&b"a:b"[..]));
        assert_eq!(request.host, b"b.com");
        assert_eq!(request.host_port, Some(99));
        assert_eq!(request.client, IpAddr::from([10, 0, 0, 1]));
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for (text, header) in [
            ("", None),
            ("GET", None),
            ("GET example.com", None),
            ("GET ftp://x/", None),
            ("GET http://a/b c", None),
            ("/", Some("no header")),
            ("get http://a/", None),
            ("TRACE http://a/", None),
            ("CONNECT http://a/", None),
            ("/", Some("a b: c")),
            ("/", Some("a : c")),
            ("/", Some(": c")),
            ("/", Some("a: b\r\nc: d")),
        ] {
            let headers: Vec<String> = header.into_iter().map(str::to_owned).collect();
            assert!(
                ExplainedCall::parse(text, &headers, IpAddr::from([127, 0, 0, 1])).is_err(),
                "{text}"
            );
        }
    }
}
