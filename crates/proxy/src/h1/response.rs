//! Response heads from upstreams.

use super::{Framing, MAX_HEADERS, ends_in_crlf, list_items, parse_length};
use std::mem::MaybeUninit;
use weir_plugin::Response;

/// What the connection must know of a response besides what filters see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// Bytes of the head, its empty line included.
    pub length: usize,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the upstream keeps the connection.
    pub keep_alive: bool,
    /// The protocol that the upstream switches to (101 only).
    pub upgrade: Option<Vec<u8>>,
}

/// An upstream that does not speak HTTP/1.1; the text says how, for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidResponse(pub &'static str);

const BARE_LF: InvalidResponse = InvalidResponse("a line that does not end in CRLF");

/// Reads a response head from the start of `bytes`; `Ok(None)`: more bytes are needed.
pub fn parse(
    bytes: &[u8],
    to_head: bool,
    response: &mut Response,
) -> Result<Option<ResponseHead>, InvalidResponse> {
    let mut slots = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut slots) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(InvalidResponse("not an HTTP/1.1 response")),
    };
    let (Some(status), Some(minor_version)) = (parsed.code, parsed.version) else {
        return Err(InvalidResponse("no status line"));
    };
    if status < 100 {
        return Err(InvalidResponse("the status"));
    }
    response.clear();
    response.status = status;
    let reason = parsed.reason.unwrap_or_default();
    if reason != super::status::reason(status) {
        response.reason.extend_from_slice(reason.as_bytes());
    }
    let offset_of = |part: &[u8]| part.as_ptr() as usize - bytes.as_ptr() as usize;
    let first = parsed
        .headers
        .first()
        .map_or(length - 2, |header| offset_of(header.name.as_bytes()));
    if !(ends_in_crlf(bytes, first) && ends_in_crlf(bytes, length)) {
        return Err(BARE_LF);
    }
    response.headers.load(&bytes[first..length]);
    let mut fields = Fields::default();
    for (position, header) in parsed.headers.iter().enumerate() {
        let name = offset_of(header.name.as_bytes()) - first;
        let line_end = match parsed.headers.get(position + 1) {
            Some(next) => offset_of(next.name.as_bytes()),
            None => length - 2,
        };
        if !ends_in_crlf(bytes, line_end) {
            return Err(BARE_LF);
        }
        let line_end = line_end - first;
        if fields.note(header.name.as_bytes(), header.value)? {
            let value = if header.value.is_empty() {
                line_end - 2
            } else {
                offset_of(header.value) - first
            };
            response.headers.push_line(
                name..name + header.name.len(),
                value..value + header.value.len(),
                line_end,
            );
        }
    }
    fields
        .settle(status, minor_version, length, to_head, response)
        .map(Some)
}

#[derive(Default)]
struct Fields<'h> {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    upgrade: Option<&'h [u8]>,
    named_by_connection: Vec<&'h [u8]>,
}

impl<'h> Fields<'h> {
    /// Notes one field line; says whether it goes on to the client.
    fn note(&mut self, name: &'h [u8], value: &'h [u8]) -> Result<bool, InvalidResponse> {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        match name.len() {
            7 if is(b"upgrade") => {
                self.upgrade = Some(value);
                return Ok(false);
            }
            10 if is(b"connection") => {
                if value == b"keep-alive" {
                    self.keep_alive = true;
                    return Ok(false);
                }
                for option in list_items(value) {
                    match option.len() {
                        5 if option.eq_ignore_ascii_case(b"close") => self.close = true,
                        10 if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
                        7 if option.eq_ignore_ascii_case(b"upgrade") => {}
                        _ if self.named_by_connection.len() == MAX_HEADERS => {
                            return Err(InvalidResponse("the Connection header"));
                        }
                        _ => self.named_by_connection.push(option),
                    }
                }
                return Ok(false);
            }
            10 if is(b"keep-alive") => return Ok(false),
            14 if is(b"content-length") => {
                let length = parse_length(value).ok_or(InvalidResponse("the Content-Length"))?;
                if self.length.replace(length).is_some_and(|other| other != length) {
                    return Err(InvalidResponse("two lengths"));
                }
                return Ok(false);
            }
            16 if is(b"proxy-connection") => return Ok(false),
            17 if is(b"transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(InvalidResponse("the Transfer-Encoding"));
                }
                self.chunked = true;
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    }

    fn settle(
        self,
        status: u16,
        minor_version: u8,
        length: usize,
        to_head: bool,
        response: &mut Response,
    ) -> Result<ResponseHead, InvalidResponse> {
        if self.chunked && (self.length.is_some() || minor_version == 0) {
            return Err(InvalidResponse(
                "Transfer-Encoding with Content-Length or HTTP/1.0",
            ));
        }
        for name in &self.named_by_connection {
            response.headers.remove(name);
        }
        let bodyless = to_head || status < 200 || status == 204 || status == 304;
        // The length that a HEAD or 304 answer states is a fact about another message; it is passed on.
        if bodyless
            && status >= 200
            && status != 204
            && let Some(length) = self.length
        {
            response
                .headers
                .append(b"Content-Length", itoa::Buffer::new().format(length).as_bytes());
        }
        let framing = match (bodyless, self.chunked, self.length) {
            (true, ..) => Framing::None,
            (false, true, _) => Framing::Chunked,
            (false, false, Some(length)) => Framing::Length(length),
            (false, false, None) => Framing::UntilClose,
        };
        let keep_alive =
            !self.close && (minor_version == 1 || self.keep_alive) && framing != Framing::UntilClose;
        Ok(ResponseHead {
            length,
            framing,
            keep_alive,
            upgrade: self.upgrade.filter(|_| status == 101).map(<[u8]>::to_vec),
        })
    }
}
