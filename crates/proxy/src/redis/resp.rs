//! RESP, the protocol of Redis: commands as they are sent, replies as they come (RESP2, and RESP3 if a server
//! speaks it unasked).

use std::fmt;

/// Most bytes of a reply.
pub const MAX_REPLY: usize = 1 << 20;
/// Most values within a reply, inner ones too.
const MAX_VALUES: usize = 64 * 1024;
/// How deep values may lie in each other.
const MAX_DEPTH: usize = 8;

/// A reply of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text of any kind.
    Text(Vec<u8>),
    /// That the command has failed: a code, and words about it.
    Error(String),
    /// A whole number, or a truth value as 0 or 1.
    Integer(i64),
    /// Nothing.
    Null,
    /// A list; a map as its keys and values by turns.
    List(Vec<Value>),
    /// A message without a request, such as a push.
    Push,
}

impl Value {
    /// The text.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The values of a list.
    pub fn list(&self) -> &[Value] {
        match self {
            Self::List(values) => values,
            _ => &[],
        }
    }

    /// The number.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The numbers of a list of nothing else.
    pub fn integers(&self) -> Option<Vec<i64>> {
        match self {
            Self::List(values) => values.iter().map(Self::integer).collect(),
            _ => None,
        }
    }

    /// The numbers and the texts of a list of nothing else; what is not there is left out.
    pub fn numbers_and_texts(self) -> Option<(Vec<i64>, Vec<Vec<u8>>)> {
        let Self::List(values) = self else {
            return None;
        };
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Self::Integer(number) => numbers.push(number),
                Self::Text(text) => texts.push(text),
                Self::Null => {}
                _ => return None,
            }
        }
        Some((numbers, texts))
    }
}

/// That what a server sends is no RESP, or more than anybody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolError(pub &'static str);

impl fmt::Display for ProtocolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for ProtocolError {}

/// Reads the first reply, with the number of its bytes; `None` if it is not whole yet.
pub fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
    let mut parser = Parser {
        bytes,
        at: 0,
        values: 0,
    };
    match parser.value(0) {
        Ok(value) => Ok(Some((value, parser.at))),
        Err(ParseError::Partial) if bytes.len() >= MAX_REPLY => Err(ProtocolError("a reply is too long")),
        Err(ParseError::Partial) => Ok(None),
        Err(ParseError::Protocol(fault)) => Err(fault),
    }
}

enum ParseError {
    Partial,
    Protocol(ProtocolError),
}

fn fault<T>(what: &'static str) -> Result<T, ParseError> {
    Err(ParseError::Protocol(ProtocolError(what)))
}

struct Parser<'b> {
    bytes: &'b [u8],
    at: usize,
    values: usize,
}

impl<'b> Parser<'b> {
    fn value(&mut self, depth: usize) -> Result<Value, ParseError> {
        self.values += 1;
        if self.values > MAX_VALUES || depth > MAX_DEPTH {
            return fault("a reply has too many values");
        }
        let line = self.line()?;
        let Some((kind, rest)) = line.split_first() else {
            return fault("a reply is of no known kind");
        };
        Ok(match kind {
            b'+' | b',' | b'(' => Value::Text(rest.to_vec()),
            b'-' => Value::Error(String::from_utf8_lossy(rest).into_owned()),
            b':' => Value::Integer(number(rest)?),
            b'#' => match rest {
                b"t" => Value::Integer(1),
                b"f" => Value::Integer(0),
                _ => return fault("a reply has an invalid truth value"),
            },
            b'_' => Value::Null,
            b'$' | b'=' => match self.bulk(rest)? {
                Some(text) => Value::Text(text.to_vec()),
                None => Value::Null,
            },
            b'!' => match self.bulk(rest)? {
                Some(text) => Value::Error(String::from_utf8_lossy(text).into_owned()),
                None => Value::Null,
            },
            b'*' | b'~' => match length(rest)? {
                Some(count) => Value::List(self.values(count, depth)?),
                None => Value::Null,
            },
            b'%' => Value::List(self.values(pairs(rest)?, depth)?),
            b'>' => {
                let count = length(rest)?.unwrap_or(0);
                self.values(count, depth)?;
                Value::Push
            }
            // Attributes say something about the value after them.
            b'|' => {
                self.values(pairs(rest)?, depth)?;
                self.value(depth + 1)?
            }
            _ => return fault("a reply is of no known kind"),
        })
    }

    fn values(&mut self, count: usize, depth: usize) -> Result<Vec<Value>, ParseError> {
        if count > MAX_VALUES {
            return fault("a reply has too many values");
        }
        // What is not there yet takes no memory.
        let mut values = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            values.push(self.value(depth + 1)?);
        }
        Ok(values)
    }

    fn bulk(&mut self, size: &[u8]) -> Result<Option<&'b [u8]>, ParseError> {
        let Some(size) = length(size)? else {
            return Ok(None);
        };
        if size > MAX_REPLY {
            return fault("a reply is too long");
        }
        let rest = &self.bytes[self.at..];
        let Some((text, after)) = rest.split_at_checked(size) else {
            return Err(ParseError::Partial);
        };
        match after {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Err(ParseError::Partial),
            _ => return fault("a text is longer than its stated length"),
        }
        self.at += size + 2;
        Ok(Some(text))
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<&'b [u8], ParseError> {
        let rest = &self.bytes[self.at..];
        let Some(end) = memchr::memchr(b'\n', rest) else {
            return Err(ParseError::Partial);
        };
        self.at += end + 1;
        match rest[..end].strip_suffix(b"\r") {
            Some(line) => Ok(line),
            None => fault("a line does not end in CR LF"),
        }
    }
}

fn number(digits: &[u8]) -> Result<i64, ParseError> {
    let text = std::str::from_utf8(digits).ok();
    match text.and_then(|text| text.parse().ok()) {
        Some(number) => Ok(number),
        None => fault("a number is invalid"),
    }
}

/// A length; `None`: there is nothing.
fn length(digits: &[u8]) -> Result<Option<usize>, ParseError> {
    match number(digits)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) => fault("a length is below zero"),
        },
    }
}

/// Twice a length.
fn pairs(digits: &[u8]) -> Result<usize, ParseError> {
    Ok(length(digits)?.unwrap_or(0).saturating_mul(2))
}

/// Writes the beginning of a command with so many parts.
pub fn begin(out: &mut Vec<u8>, parts: usize) {
    size(out, b'*', parts);
}

/// Writes a part of a command.
pub fn part(out: &mut Vec<u8>, part: &[u8]) {
    size(out, b'$', part.len());
    out.extend_from_slice(part);
    out.extend_from_slice(b"\r\n");
}

fn size(out: &mut Vec<u8>, kind: u8, size: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(size).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A whole command.
pub fn command(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out, parts.len());
    for text in parts {
        part(&mut out, text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn replies_are_understood() {
        let error = |words: &str| Value::Error(words.to_owned());
        for (bytes, expected) in [
            ("+OK\r\n", text("OK")),
            ("+\r\n", text("")),
            ("-ERR no\r\n", error("ERR no")),
            (":-12\r\n", Value::Integer(-12)),
            ("$5\r\na\r\nbc\r\n", text("a\r\nbc")),
            ("$0\r\n\r\n", text("")),
            ("$-1\r\n", Value::Null),
            ("*-1\r\n", Value::Null),
            ("*0\r\n", Value::List(vec![])),
            (
                "*3\r\n:1\r\n*1\r\n+x\r\n$-1\r\n",
                Value::List(vec![Value::Integer(1), Value::List(vec![text("x")]), Value::Null]),
            ),
            // RESP3.
            ("_\r\n", Value::Null),
            ("#t\r\n", Value::Integer(1)),
            ("#f\r\n", Value::Integer(0)),
            (",1.5\r\n", text("1.5")),
            ("(123456789012345678901\r\n", text("123456789012345678901")),
            ("!6\r\nERR no\r\n", error("ERR no")),
            ("=5\r\ntxt:a\r\n", text("txt:a")),
            ("~1\r\n:1\r\n", Value::List(vec![Value::Integer(1)])),
            (
                "%1\r\n+k\r\n:2\r\n",
                Value::List(vec![text("k"), Value::Integer(2)]),
            ),
            (">2\r\n+a\r\n+b\r\n", Value::Push),
            ("|1\r\n+k\r\n+v\r\n:3\r\n", Value::Integer(3)),
        ] {
            let whole = bytes.as_bytes();
            assert_eq!(
                parse(whole),
                Ok(Some((expected.clone(), whole.len()))),
                "{bytes:?}"
            );
            for cut in 0..whole.len() {
                assert_eq!(parse(&whole[..cut]), Ok(None), "{bytes:?} up to {cut}");
            }
            let more = [whole, b":1\r\n"].concat();
            assert_eq!(
                parse(&more),
                Ok(Some((expected, whole.len()))),
                "{bytes:?} and more"
            );
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let deep = "*1\r\n".repeat(MAX_DEPTH + 2);
        for bytes in [
            "\r\n",
            "?\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
            "+OK\n",
            ":x\r\n",
            ":\r\n",
            ":99999999999999999999\r\n",
            "$-2\r\n",
            "$x\r\n",
            "$1048577\r\n",
            "$1\r\nab\r\n",
            "*-2\r\n",
            "*99999999\r\n",
            "%99999999\r\n",
            "#x\r\n",
            "$?\r\n",
            &deep,
        ] {
            assert!(parse(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        let endless = vec![b'+'; MAX_REPLY];
        assert_eq!(parse(&endless), Err(ProtocolError("a reply is too long")));
        let many = format!("*60000\r\n{}", "*1\r\n:1\r\n".repeat(60_000));
        assert_eq!(
            parse(many.as_bytes()),
            Err(ProtocolError("a reply has too many values"))
        );
    }

    #[test]
    fn commands_are_lists_of_texts() {
        let command = command(&[b"GET", b"a\r\nb", b""]);
        assert_eq!(command, b"*3\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");
        let expected = Value::List(vec![text("GET"), text("a\r\nb"), text("")]);
        assert_eq!(parse(&command), Ok(Some((expected, command.len()))));
    }
}
