//! Tests that heads are split as `httparse`, which many programs read HTTP/1.1 with, splits them. What only that takes
//! is listed here; nothing is taken that it does not take, and nothing is read in another way.

use crate::head::{self, MAX_FIELDS, MalformedHead};
use crate::request::split_request_line;
use crate::response::split_status_line;
use weir_plugin::Headers;
use weir_plugin::headers::is_token;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// The first words and numbers of the start line, the fields, and the length of the head.
type Head = (Vec<Vec<u8>>, u16, Fields, usize);

const REQUESTS: [&[u8]; 4] = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /some/path?with=query HTTP/1.0\r\nHost: example.com:80\r\nContent-Length: 12\r\nX-Empty:\r\n\r\nbody",
    b"GET http://a/ HTTP/1.1\r\nhost:a\r\nA-Long-Name: value \t\r\nB: \t x, y;z=\"\xc3\xa9\"\r\n\r\n",
    b"M-SEARCH * HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: some/1.0 (of a kind; and more) like/2\r\n\r\n",
];

const RESPONSES: [&[u8]; 3] = [
    b"HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nX:y\r\n\r\n<p>",
    b"HTTP/1.1 204\r\nA: b\r\n\r\n",
];

/// What mutations put in: the bytes on which parsers differ.
const PIECES: [&[u8]; 16] = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b"\0",
    b"\x7f",
    b"\x80",
    b"a",
    b"/",
    b"HTTP/1.1",
    b"\x0b",
    b"1",
    b"(",
    b"\r\n ",
];

struct Mutations(u64);

impl Mutations {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn of(&mut self, seeds: &[&[u8]]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len() + 1);
            let removed = self.below(3).min(bytes.len() - at);
            let piece = PIECES[self.below(PIECES.len())];
            bytes.splice(at..at + removed, piece.iter().copied());
        }
        bytes
    }
}

fn fields_of(bytes: &[u8], first: usize) -> Option<(Fields, usize)> {
    let mut headers = Headers::default();
    let length =
        head::field_lines(bytes, first, &mut headers, |_, _| Ok::<_, MalformedHead>(true)).ok()??;
    let fields = headers
        .iter()
        .map(|it| (it.name.to_vec(), it.value.to_vec()))
        .collect();
    Some((fields, length))
}

fn own_request(bytes: &[u8]) -> Option<Head> {
    let (line, first) = head::start_line(bytes).ok()??;
    let (method, target, version) = split_request_line(line).ok()?;
    // `read_target` looks at what these two may hold.
    let is_visible = |byte: &u8| *byte > 0x20 && *byte != 0x7f;
    let is_target =
        !target.is_empty() && target.iter().all(is_visible) && std::str::from_utf8(target).is_ok();
    if !is_target || !method.iter().all(|byte| is_token(*byte)) {
        return None;
    }
    let (fields, length) = fields_of(bytes, first)?;
    Some((
        vec![method.to_vec(), target.to_vec()],
        version.into(),
        fields,
        length,
    ))
}

fn own_response(bytes: &[u8]) -> Option<Head> {
    let (line, first) = head::start_line(bytes).ok()??;
    let (version, status, reason) = split_status_line(line)?;
    let (fields, length) = fields_of(bytes, first)?;
    // httparse keeps no phrase that is not ASCII.
    let reason = if reason.is_ascii() { reason } else { b"" };
    Some((vec![vec![version], reason.to_vec()], status, fields, length))
}

fn theirs(headers: &[httparse::Header<'_>]) -> Fields {
    let pair = |it: &httparse::Header<'_>| (it.name.as_bytes().to_vec(), it.value.to_vec());
    headers.iter().map(pair).collect()
}

fn their_request(bytes: &[u8]) -> Option<Head> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut slots);
    let Ok(httparse::Status::Complete(length)) = request.parse(bytes) else {
        return None;
    };
    let words = vec![
        request.method?.as_bytes().to_vec(),
        request.path?.as_bytes().to_vec(),
    ];
    Some((words, request.version?.into(), theirs(request.headers), length))
}

fn their_response(bytes: &[u8]) -> Option<Head> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut slots);
    let Ok(httparse::Status::Complete(length)) = response.parse(bytes) else {
        return None;
    };
    let words = vec![vec![response.version?], response.reason?.as_bytes().to_vec()];
    Some((words, response.code?, theirs(response.headers), length))
}

/// What `httparse` takes and Weir refuses: empty lines before the head, and lines that end in a bare LF.
fn is_stricter(bytes: &[u8], length: usize) -> bool {
    let ends = (0..length).filter(|at| bytes[*at] == b'\n');
    bytes.starts_with(b"\r")
        || bytes.starts_with(b"\n")
        || ends.into_iter().any(|at| at == 0 || bytes[at - 1] != b'\r')
}

fn agree(seeds: &[&[u8]], own: fn(&[u8]) -> Option<Head>, their: fn(&[u8]) -> Option<Head>) {
    let mut mutations = Mutations(0x5eed);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..60_000 {
        let bytes = mutations.of(seeds);
        match (own(&bytes), their(&bytes)) {
            (None, Some(head)) if is_stricter(&bytes, head.3) => refused += 1,
            (own, their) => {
                assert_eq!(own, their, "{}", bytes.escape_ascii());
                taken += usize::from(own.is_some());
                refused += usize::from(own.is_none());
            }
        }
    }
    assert!(
        taken > 5_000 && refused > 5_000,
        "{taken} taken, {refused} refused"
    );
}

#[test]
fn requests_are_split_as_elsewhere() {
    agree(&REQUESTS, own_request, their_request);
}

#[test]
fn responses_are_split_as_elsewhere() {
    agree(&RESPONSES, own_response, their_response);
}
