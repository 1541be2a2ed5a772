//! T1K, the protocol of SafeLine's detector: packets of a tag, a length and data. Written after the published client,
//! `lua-resty-t1k`.

use memchr::memmem;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{ProtocolDriver, Received, Step};

const HEAD: u8 = 0x01;
const BODY: u8 = 0x02;
const EXTRA: u8 = 0x03;
const VERSION: u8 = 0x20;
const EXTRA_HEADER: u8 = 0x23;
const EXTRA_BODY: u8 = 0x24;
/// Marks the first packet of a message.
const FIRST: u8 = 0x40;
/// Marks the last packet of a message.
const LAST: u8 = 0x80;
/// The version that is spoken.
const PROTOCOL: &[u8] = b"Proto:3\n";
/// The most bytes of an answer.
pub(super) const MAX_ANSWER: usize = 256 << 10;
/// The most packets of an answer.
const MAX_PACKETS: usize = 64;
/// The most headers that an answer puts on a response.
const MAX_HEADERS: usize = 32;
/// The most letters of an event's id.
const MAX_EVENT_ID: usize = 128;
/// Before and behind the id of an event, in the page for a blocked call.
const EVENT_START: &[u8] = b"<!-- event_id: ";
const EVENT_END: &[u8] = b" -->";
const EVENT_TYPE: &[u8] = b" TYPE: ";
/// Headers of a response that are the gateway's own business.
const FRAMING: [&[u8]; 6] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// What the detector says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectorResponse {
    /// Whether the call is good.
    pub verdict: Verdict,
    /// Headers for the response.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The bytes of the whole answer.
    pub length: usize,
}

/// Whether a call is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Passed,
    /// It is not.
    Blocked {
        /// The status to answer with.
        status: u16,
        /// What the event is known by at the detector; empty: nothing.
        event_id: String,
    },
}

/// That an answer is not T1K, or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidAnswer;

fn packet(tag: u8, data: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(data.len() as u32).to_le_bytes());
    out.extend_from_slice(data);
}

/// The question about a call: its head as in HTTP/1.1, its body or the start of it, and further facts.
pub(super) fn question(head: &[u8], body: Option<&[u8]>, facts: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len() + body.map_or(0, <[u8]>::len) + 512);
    packet(HEAD | FIRST, head, &mut out);
    if let Some(body) = body {
        packet(BODY, body, &mut out);
    }
    let mut extra = Vec::new();
    for (key, value) in facts {
        extra.push(*key);
        // A line's end would begin another fact.
        extra.extend(value.iter().filter(|byte| **byte != b'\n'));
        extra.push(b'\n');
    }
    packet(EXTRA, &extra, &mut out);
    packet(VERSION | LAST, PROTOCOL, &mut out);
    out
}

/// Reads the answer that these bytes begin with; `None`: it is not whole yet.
///
/// # Errors
/// It is not T1K, or longer than an answer may be.
pub fn read_answer(bytes: &[u8]) -> Result<Option<DetectorResponse>, InvalidAnswer> {
    let mut length = 0;
    let (mut action, mut status, mut page, mut headers) = (None, None, None, None);
    for index in 0..MAX_PACKETS {
        let Some((head, rest)) = bytes[length..].split_first_chunk::<5>() else {
            return Ok(None);
        };
        let [tag, size @ ..] = *head;
        let size = u32::from_le_bytes(size) as usize;
        length = length.saturating_add(head.len()).saturating_add(size);
        if length > MAX_ANSWER || index == 0 && tag & FIRST == 0 {
            return Err(InvalidAnswer);
        }
        let Some(data) = rest.get(..size) else {
            return Ok(None);
        };
        match tag & !(FIRST | LAST) {
            HEAD => action = Some(data),
            BODY => status = Some(data),
            EXTRA_HEADER => headers = Some(data),
            EXTRA_BODY => page = Some(data),
            _ => {}
        }
        if tag & LAST != 0 {
            let verdict = match action {
                Some(b".") => Verdict::Passed,
                Some(b"?") => Verdict::Blocked {
                    status: status.and_then(read_status).unwrap_or(403),
                    event_id: page.and_then(event_id).unwrap_or_default(),
                },
                _ => return Err(InvalidAnswer),
            };
            return Ok(Some(DetectorResponse {
                verdict,
                headers: read_headers(headers.unwrap_or_default()),
                length,
            }));
        }
    }
    Err(InvalidAnswer)
}

fn read_status(digits: &[u8]) -> Option<u16> {
    let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (400..=599).contains(&status).then_some(status)
}

/// The id in the comment of the page for a blocked call.
fn event_id(page: &[u8]) -> Option<String> {
    memmem::find_iter(page, EVENT_START).find_map(|at| {
        let rest = &page[at + EVENT_START.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
        let (id, rest) = rest.split_at(end);
        let typed = rest.strip_prefix(EVENT_TYPE).and_then(|rest| match rest {
            [character, rest @ ..] if character.is_ascii_alphabetic() => Some(rest),
            _ => None,
        });
        let is_it = (1..=MAX_EVENT_ID).contains(&id.len()) && typed.unwrap_or(rest).starts_with(EVENT_END);
        is_it.then(|| String::from_utf8_lossy(id).into_owned())
    })
}

/// Lines of a name, a colon and a value. Those that a response may not have are left out.
fn read_headers(lines: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let headers = lines.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_framing = FRAMING.iter().any(|own| own.eq_ignore_ascii_case(name));
        (is_name(name) && is_value(value) && !is_framing).then(|| (name.to_vec(), value.to_vec()))
    });
    headers.take(MAX_HEADERS).collect()
}

/// A question and its answer.
pub(super) struct Detection {
    question: Vec<u8>,
    answer: Option<DetectorResponse>,
}

impl Detection {
    pub(super) fn new(question: Vec<u8>) -> Self {
        Self {
            question,
            answer: None,
        }
    }
}

impl ProtocolDriver for Detection {
    fn begin(&mut self, _: bool) -> Step {
        Step::Write(self.question.clone())
    }

    fn next(&mut self, received: &mut Received<'_>) -> Step {
        match read_answer(received.bytes()) {
            Ok(Some(answer)) => {
                received.consume(answer.length);
                self.answer = Some(answer);
                Step::Done
            }
            Ok(None) => Step::Read,
            Err(InvalidAnswer) => Step::Fail,
        }
    }

    fn finish(self: Box<Self>) -> Box<dyn std::any::Any> {
        Box::new(self.answer)
    }
}

/// What must hold of whatever a detector answers: a part of an answer is none, what follows it does not matter, and no
/// more is kept than came.
///
/// # Panics
/// If that does not hold.
pub fn fuzz_answer(bytes: &[u8]) {
    let Ok(Some(answer)) = read_answer(bytes) else {
        return;
    };
    assert!(answer.length <= bytes.len().min(MAX_ANSWER));
    assert_eq!(read_answer(&bytes[..answer.length]), Ok(Some(answer.clone())));
    assert_eq!(read_answer(&bytes[..answer.length - 1]), Ok(None));
    let kept: usize = answer
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(kept <= answer.length);
    if let Verdict::Blocked { status, event_id } = answer.verdict {
        assert!((400..=599).contains(&status));
        assert!(event_id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of packets: tags and data.
    fn message(packets: &[(u8, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, data) in packets {
            packet(*tag, data.as_bytes(), &mut out);
        }
        out
    }

    #[test]
    fn questions_are_packets_in_the_order_of_the_protocol() {
        let asked = question(
            b"GET / HTTP/1.1\r\n\r\n",
            Some(b"ab"),
            &[(0x01, b""), (0x16, b"ht\ntp")],
        );
        let expected = b"\x41\x12\0\0\0GET / HTTP/1.1\r\n\r\n\x02\x02\0\0\0ab\
            \x03\x08\0\0\0\x01\n\x16http\n\xa0\x08\0\0\0Proto:3\n";
        assert_eq!(
            asked.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn answers_are_read_whatever_the_split() {
        let id = "b3c6ce574dc24f09a01f634a39dca83b";
        let page = format!("<html><!-- event_id: {id} --></html>");
        let typed = format!("<!-- event_id: no one --><!-- event_id: {id} TYPE: B -->");
        let blocked = |status, event_id: &str| Verdict::Blocked {
            status,
            event_id: event_id.to_owned(),
        };
        for (packets, verdict) in [
            (vec![(0xc1, ".")], Verdict::Passed),
            (vec![(0x41, "."), (0xa5, "{}")], Verdict::Passed),
            (vec![(0x41, "?"), (0x02, "405"), (0xa4, &*page)], blocked(405, id)),
            (
                vec![(0x41, "?"), (0x02, "403"), (0xa4, &*typed)],
                blocked(403, id),
            ),
            // A call that is bad is blocked, whatever else is said.
            (vec![(0xc1, "?")], blocked(403, "")),
            (vec![(0x41, "?"), (0x02, "200"), (0xa4, "none")], blocked(403, "")),
            (vec![(0x41, "?"), (0x82, "4o4")], blocked(403, "")),
        ] {
            let mut bytes = message(&packets);
            for end in 0..bytes.len() {
                assert_eq!(read_answer(&bytes[..end]), Ok(None), "{packets:?} {end}");
            }
            bytes.push(b'x');
            let answer = read_answer(&bytes).expect("T1K").expect("whole");
            assert_eq!(
                (answer.verdict, answer.length),
                (verdict, bytes.len() - 1),
                "{packets:?}"
            );
        }
    }

    #[test]
    fn answers_that_are_none_are_refused() {
        let many = vec![(0x41, "."); MAX_PACKETS];
        for (what, bytes) in [
            ("not the first", message(&[(0x81, ".")])),
            (
                "no action",
                message(&[(0xa4, "")]).iter().map(|byte| byte | 0x40).collect(),
            ),
            ("an action that there is not", message(&[(0xc1, "!")])),
            ("a length beyond all bounds", b"\xc1\xff\xff\xff\xff".to_vec()),
            ("a length beyond the bound", b"\xc1\0\0\x04\0".to_vec()),
            ("packets without end", message(&many)),
            ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        ] {
            assert_eq!(read_answer(&bytes), Err(InvalidAnswer), "{what}");
        }
    }

    #[test]
    fn headers_of_an_answer_are_those_that_a_response_may_have() {
        let lines = "Set-Cookie:s=1; Path=/\nContent-Length:3\nbad name:1\nX-A: b\nnone\nX-B:\x01\n";
        let bytes = message(&[(0x41, "."), (0xa3, lines)]);
        let answer = read_answer(&bytes).expect("T1K").expect("whole");
        let expected = [("Set-Cookie", "s=1; Path=/"), ("X-A", "b")];
        let expected = expected.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        assert_eq!(answer.headers, expected);
    }

    #[test]
    fn every_change_of_a_byte_is_borne() {
        let seed = message(&[
            (0x41, "?"),
            (0x02, "403"),
            (0x23, "Set-Cookie:s=1\n"),
            (0xa4, "<!-- event_id: b3c6 -->"),
        ]);
        for at in 0..seed.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = seed.clone();
                bytes[at] = byte;
                fuzz_answer(&bytes);
            }
        }
    }
}
