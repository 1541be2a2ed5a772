//! Version 2 of Dubbo's protocol, with values in JSON (fastjson): one invocation and its result. Written after APISIX's
//! published `http-dubbo`.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use weir_plugin::{ProtocolDriver, Received, Reply, Step};
use weir_plugins_shared::json_text::Cursor;

const MAGIC: [u8; 2] = [0xda, 0xbb];
/// The bytes before a frame's body.
const HEAD: usize = 16;
/// A frame that asks, one that wants an answer, and one of the connection's own, such as a heartbeat.
const REQUEST: u8 = 0x80;
const TWO_WAY: u8 = 0x40;
const EVENT: u8 = 0x20;
/// How values are written: the number of fastjson among Dubbo's ways.
const FASTJSON: u8 = 6;
const WAYS: u8 = 0x1f;
/// The status of a result.
const OK: u8 = 20;
/// The number of the one invocation of a connection.
const ID: u64 = 1;
/// The version of Dubbo that is spoken.
const VERSION: &str = "2.0.2";
/// Frames before that with the result at most.
const MAX_FRAMES: usize = 16;

/// What is invoked.
#[derive(Debug, Clone)]
pub(super) struct Method {
    pub(super) service: String,
    pub(super) version: String,
    pub(super) name: String,
    pub(super) parameter_types: String,
    /// The number of parameters that the types name.
    pub(super) parameter_count: usize,
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame<'b> {
    flags: u8,
    status: u8,
    id: u64,
    body: &'b [u8],
}

/// That bytes are not Dubbo's, or too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InvalidFrame;

/// Arguments that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InvalidArguments;

/// The number of parameters that a description of Java's names, such as 2 for `Ljava/lang/Long;[I`; `None`: it is not one.
pub(super) fn parameter_count(types: &str) -> Option<usize> {
    let (mut rest, mut count) = (types, 0);
    while !rest.is_empty() {
        let element = rest.trim_start_matches('[');
        rest = match element.chars().next()? {
            'Z' | 'B' | 'C' | 'D' | 'F' | 'I' | 'J' | 'S' => &element[1..],
            'L' => match element.split_once(';')? {
                ("L", _) => return None,
                (_, rest) => rest,
            },
            _ => return None,
        };
        count += 1;
    }
    Some(count)
}

/// The frame that invokes a method with the arguments of a call's body: they have been written for Dubbo, one a line, or
/// are the values of a list or of a map. There are as many as the method has parameters: Dubbo would take another
/// one for the attachments, which choose the service.
pub(super) fn invocation(
    method: &Method,
    body: &[u8],
    is_serialized: bool,
) -> Result<Vec<u8>, InvalidArguments> {
    let mut frame = Vec::with_capacity(HEAD + body.len() + 256);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&[REQUEST | TWO_WAY | FASTJSON, 0]);
    frame.extend_from_slice(&ID.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    for text in [
        VERSION,
        &method.service,
        &method.version,
        &method.name,
        &method.parameter_types,
    ] {
        frame.extend_from_slice(format!("{}\n", Value::from(text)).as_bytes());
    }
    let count = match is_serialized {
        true => write_lines(body, &mut frame),
        false => write_arguments(body, &mut frame)?,
    };
    if count != method.parameter_count {
        return Err(InvalidArguments);
    }
    // There are no attachments.
    frame.extend_from_slice(b"{}\n");
    let length = u32::try_from(frame.len() - HEAD).map_err(|_| InvalidArguments)?;
    frame[HEAD - 4..HEAD].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

/// Writes arguments that are lines already. Returns their number.
fn write_lines(body: &[u8], frame: &mut Vec<u8>) -> usize {
    frame.extend_from_slice(body);
    if !body.is_empty() && !body.ends_with(b"\n") {
        frame.push(b'\n');
    }
    // As Java reads lines.
    let is_end = |at: &usize| body[*at] == b'\n' || body[*at] == b'\r' && body.get(at + 1) != Some(&b'\n');
    let ends = (0..body.len()).filter(is_end).count();
    ends + usize::from(body.last().is_some_and(|last| !matches!(last, b'\n' | b'\r')))
}

/// Writes the values of a list or of a map, one a line. Returns their number. No tree is made of them: it could take a
/// hundred times the bytes of the body.
fn write_arguments(body: &[u8], frame: &mut Vec<u8>) -> Result<usize, InvalidArguments> {
    if body.is_empty() {
        return Ok(0);
    }
    // fastjson makes an object of the class that such a member names.
    serde_json::from_slice::<WithoutClasses>(body).map_err(|_| InvalidArguments)?;
    let mut cursor = Cursor::new(body);
    cursor.skip_spaces();
    let is_map = match cursor.peek() {
        Some(b'{') => true,
        Some(b'[') => false,
        _ => return Err(InvalidArguments),
    };
    cursor.pass(1);
    let mut count = 0;
    loop {
        cursor.skip_spaces();
        if matches!(cursor.peek(), None | Some(b'}' | b']')) {
            return Ok(count);
        }
        if is_map {
            pass_text(&mut cursor);
            cursor.skip_spaces();
            cursor.pass(1);
            cursor.skip_spaces();
        }
        let start = cursor.at();
        pass_value(&mut cursor);
        // A line's end can only stand between two tokens.
        let line = cursor.between(start, cursor.at()).trim_ascii_end().iter();
        frame.extend(line.map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                *byte
            }
        }));
        frame.push(b'\n');
        count += 1;
        let _ = cursor.pass_if(b',');
    }
}

/// Passes a value of a text that is known to be JSON, and the white space after it.
fn pass_value(cursor: &mut Cursor<'_>) {
    let mut depth = 0;
    while let Some(next) = cursor.peek() {
        match next {
            b'"' => {
                pass_text(cursor);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        cursor.pass(1);
    }
}

/// Passes a text that is known to end.
fn pass_text(cursor: &mut Cursor<'_>) {
    cursor.pass(1);
    cursor.skip_plain();
    while cursor.peek() == Some(b'\\') {
        cursor.pass(2);
        cursor.skip_plain();
    }
    cursor.pass(1);
}

/// A value of which no object names a class.
struct WithoutClasses;

impl<'de> Deserialize<'de> for WithoutClasses {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for WithoutClasses {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without \"@type\"")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while let Some(name) = values.next_key::<Cow<'de, str>>()? {
            if name == "@type" {
                return Err(de::Error::custom("\"@type\" names a class"));
            }
            values.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// The frame that these bytes begin with; `None`: it is not whole yet.
fn read_frame(bytes: &[u8], max_body: usize) -> Result<Option<Frame<'_>>, InvalidFrame> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let [first, second, flags, status, numbers @ ..] = *head;
    let [i0, i1, i2, i3, i4, i5, i6, i7, l0, l1, l2, l3] = numbers;
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    if [first, second] != MAGIC || length > max_body {
        return Err(InvalidFrame);
    }
    Ok(rest.get(..length).map(|body| Frame {
        flags,
        status,
        id: u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
        body,
    }))
}

/// What a result says: the value, empty for a method without one; `None`: that the method has failed, or something that
/// cannot be read.
fn value(frame: Frame<'_>) -> Option<&[u8]> {
    if frame.status != OK || frame.id != ID || frame.flags & WAYS != FASTJSON {
        return None;
    }
    let mut lines = frame.body.split(|byte| *byte == b'\n');
    // A value, none, or an exception; each also with attachments behind it.
    match lines.next()?.first()? {
        b'1' | b'4' => lines.next().map(|line| line.strip_suffix(b"\r").unwrap_or(line)),
        b'2' | b'5' => Some(b""),
        _ => None,
    }
}

/// An invocation and its result.
pub(super) struct Invocation {
    message: Vec<u8>,
    max_answer: usize,
    unread: Vec<u8>,
    frames: usize,
    reply: Option<Reply>,
}

impl Invocation {
    pub(super) fn new(message: Vec<u8>, max_answer: usize) -> Self {
        Self {
            message,
            max_answer,
            unread: Vec::new(),
            frames: 0,
            reply: None,
        }
    }
}

impl ProtocolDriver for Invocation {
    fn begin(&mut self, _: bool) -> Step {
        Step::Write(self.message.clone())
    }

    fn next(&mut self, received: &mut Received<'_>) -> Step {
        let bytes = received.bytes();
        self.unread.extend_from_slice(bytes);
        received.consume(bytes.len());
        while self.frames < MAX_FRAMES {
            let frame = match read_frame(&self.unread, self.max_answer) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Step::Read,
                Err(InvalidFrame) => return Step::Fail,
            };
            if frame.flags & (REQUEST | EVENT) == 0 {
                self.reply = value(frame).map(|value| match value.is_empty() {
                    true => Reply::new(200, "", ""),
                    false => Reply::new(200, "application/json", value),
                });
                return Step::Close(Vec::new());
            }
            let length = HEAD + frame.body.len();
            self.unread.drain(..length);
            self.frames += 1;
        }
        Step::Fail
    }

    fn finish(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.reply)
    }
}

/// What must hold of whatever a provider answers: where it is cut makes no difference, and a value is a part of it.
///
/// # Panics
/// If that does not hold.
pub fn fuzz_answer(bytes: &[u8]) {
    const MOST: usize = 1 << 16;
    let whole = {
        let mut invocation = Invocation::new(Vec::new(), MOST);
        let step = invocation.next(&mut Received::new(bytes));
        (step, invocation.reply.map(|reply| reply.body))
    };
    let mut invocation = Invocation::new(Vec::new(), MOST);
    let mut step = Step::Read;
    for byte in bytes {
        if step == Step::Read {
            step = invocation.next(&mut Received::new(std::slice::from_ref(byte)));
        }
    }
    let in_pieces = (step, invocation.reply.map(|reply| reply.body));
    assert_eq!(in_pieces, whole);
    if let Some(value) = whole.1 {
        assert!(value.is_empty() || bytes.windows(value.len()).any(|part| part == value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u8, status: u8, id: u64, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32).to_be_bytes();
        [&MAGIC[..], &[flags, status], &id.to_be_bytes(), &length, body].concat()
    }

    fn method(parameter_types: &str) -> Method {
        Method {
            service: "org.Shop".to_owned(),
            version: "1.0.0".to_owned(),
            name: "sell \"it\"".to_owned(),
            parameter_types: parameter_types.to_owned(),
            parameter_count: parameter_count(parameter_types).expect("types"),
        }
    }

    #[test]
    fn an_invocation_is_a_frame_of_lines() {
        let body = b"\"2.0.2\"\n\"org.Shop\"\n\"1.0.0\"\n\"sell \\\"it\\\"\"\n\"Ljava/lang/Long;\"\n1\n{}\n";
        let found = invocation(&method("Ljava/lang/Long;"), b"[1]", false);
        assert_eq!(found, Ok(frame(0xc6, 0, 1, body)));
    }

    #[test]
    fn descriptions_of_types_are_counted() {
        for (types, expected) in [
            ("", Some(0)),
            ("I", Some(1)),
            ("Ljava/lang/Long;", Some(1)),
            ("Ljava/lang/Long;[I[[Ljava/lang/String;Z", Some(4)),
            ("Ljava/lang/Long", None),
            ("L;", None),
            ("java.lang.Long", None),
            ("[", None),
            ("V", None),
            ("é", None),
        ] {
            assert_eq!(parameter_count(types), expected, "{types}");
        }
    }

    #[test]
    fn arguments_are_lines_of_json_as_many_as_the_method_has() {
        for (types, body, is_serialized, expected) in [
            ("IZ", "1\n\"a\"", true, Ok("1\n\"a\"\n")),
            ("I", "1\n", true, Ok("1\n")),
            ("I", "1\n{\"path\":\"org.Admin\"}", true, Err(InvalidArguments)),
            ("I", "1\r{\"path\":\"org.Admin\"}", true, Err(InvalidArguments)),
            ("I", "1\r\n", true, Ok("1\r\n")),
            ("I", "", true, Err(InvalidArguments)),
            ("", "", true, Ok("")),
            ("", "", false, Ok("")),
            ("", "[]", false, Ok("")),
            (
                "IIIIII",
                r#"["a\n\"b", 1, 1.5, null, true, {"b": 1,
 "a": [2]}]"#,
                false,
                Ok("\"a\\n\\\"b\"\n1\n1.5\nnull\ntrue\n{\"b\": 1,  \"a\": [2]}\n"),
            ),
            (
                "II",
                r#"{"z": 12345678901234567890123, "a": "x"}"#,
                false,
                Ok("12345678901234567890123\n\"x\"\n"),
            ),
            (
                "III",
                " {\"a,]\" : [\"],[\", {\"x\": \"\\\\\"}]\n , \"b\\\"\":\"}\" , \"\":[ ] }\n",
                false,
                Ok("[\"],[\", {\"x\": \"\\\\\"}]\n\"}\"\n[ ]\n"),
            ),
            ("I", r#"[7, {"path": "org.Admin"}]"#, false, Err(InvalidArguments)),
            ("II", "[7]", false, Err(InvalidArguments)),
            (
                "I",
                r#"[{"a": [{"@type": "java.lang.Class"}]}]"#,
                false,
                Err(InvalidArguments),
            ),
            (
                "I",
                r#"[{"\u0040type": "java.lang.Class"}]"#,
                false,
                Err(InvalidArguments),
            ),
            ("I", "1", false, Err(InvalidArguments)),
            ("I", "[1] 2", false, Err(InvalidArguments)),
            ("I", "{", false, Err(InvalidArguments)),
        ] {
            let head = invocation(
                &Method {
                    parameter_count: 0,
                    ..method(types)
                },
                b"",
                true,
            );
            let head = head.expect("no arguments").len() - "{}\n".len();
            let found = invocation(&method(types), body.as_bytes(), is_serialized);
            let found = found.map(|frame| String::from_utf8(frame[head..].to_vec()).expect("a text"));
            let expected = expected.map(|it| format!("{it}{{}}\n"));
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn results_are_values_or_nothing() {
        let heartbeat = frame(REQUEST | TWO_WAY | EVENT | FASTJSON, 0, 9, b"null\n");
        for (what, bytes, expected) in [
            ("a value", frame(6, OK, 1, b"1\n{\"a\":1}\n"), Some("{\"a\":1}")),
            (
                "with attachments",
                frame(6, OK, 1, b"4\n7\n{\"dubbo\":\"2.0.2\"}\n"),
                Some("7"),
            ),
            ("nothing", frame(6, OK, 1, b"2\n"), Some("")),
            ("nothing, with attachments", frame(6, OK, 1, b"5\n{}\n"), Some("")),
            ("an exception", frame(6, OK, 1, b"0\n{\"message\":\"m\"}\n"), None),
            ("a status", frame(6, 40, 1, b"\"service not found\"\n"), None),
            ("another invocation's", frame(6, OK, 2, b"1\n1\n"), None),
            ("another way of writing", frame(2, OK, 1, b"1\n1\n"), None),
            ("no body", frame(6, OK, 1, b""), None),
            (
                "after a heartbeat",
                [heartbeat.clone(), frame(6, OK, 1, b"1\n1\n")].concat(),
                Some("1"),
            ),
        ] {
            let mut invocation = Invocation::new(Vec::new(), 64);
            let step = invocation.next(&mut Received::new(&bytes));
            assert_eq!(step, Step::Close(Vec::new()), "{what}");
            let body = invocation.reply.as_ref().map(|reply| reply.body.as_slice());
            assert_eq!(body, expected.map(str::as_bytes), "{what}");
            fuzz_answer(&bytes);
        }
        for (what, bytes) in [
            ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            ("too long", frame(6, OK, 1, &[b' '; 65])),
            ("heartbeats without end", heartbeat.repeat(MAX_FRAMES)),
        ] {
            let mut invocation = Invocation::new(Vec::new(), 64);
            assert_eq!(invocation.next(&mut Received::new(&bytes)), Step::Fail, "{what}");
        }
    }

    #[test]
    fn every_change_of_a_byte_is_borne() {
        let seed = frame(6, OK, 1, b"1\n{\"a\":1}\n");
        for at in 0..seed.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = seed.clone();
                bytes[at] = byte;
                fuzz_answer(&bytes);
            }
        }
    }
}
