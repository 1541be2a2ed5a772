//! The chunked coding (RFC 9112, 7.1), strictly: CRLF line ends, hexadecimal sizes of at most 16 digits,
//! extensions checked and dropped, trailers checked and kept for callers that can use them.

use crate::fields::{may_trail, push_header};
use weir_plugin::headers::{is_name, is_token, is_value};

/// Longest chunk-size line with extensions, in bytes.
const MAX_SIZE_LINE: usize = 4096;
/// Bytes of framing that come with a chunk of any size, and with each byte of its data.
const FRAMING_PER_CHUNK: u64 = 16;
const FRAMING_PER_BYTE: u64 = 2;
/// Most bytes of framing beyond that in a body. A sender may write byte by byte, and may use extensions; it may not have
/// a body without end read for next to no data.
const MAX_EXCESS: u64 = 16 * 1024;
/// Largest trailer section, in bytes.
const MAX_TRAILERS: usize = 16 * 1024;

/// A chunked body that breaks the format; the text says how, for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidChunk(pub &'static str);

/// Ends a chunked body, with these trailer lines.
#[inline]
pub fn write_last(trailers: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers);
    out.extend_from_slice(b"\r\n");
}

/// Reads a chunked body piece by piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoder {
    state: State,
    line_bytes: usize,
    /// Bytes of framing that are not yet made up for by chunks and their data.
    excess: u64,
    /// The trailer lines as they came.
    trailers: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the size: digits so far.
    Size {
        size: u64,
        digits: u8,
    },
    /// In an extension.
    Extension {
        size: u64,
        part: ExtensionState,
    },
    /// The CR of a size line was read.
    SizeLf {
        size: u64,
    },
    /// In the data: bytes to come.
    Data(u64),
    /// Behind the data, the CRLF is due.
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    TrailerStart,
    /// Inside a trailer line.
    Trailer,
    TrailerLf,
    /// The CR of the last empty line was read.
    LastLf,
    Done,
}

/// Where in a chunk's extension (RFC 9112, 7.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExtensionState {
    /// Behind the semicolon: the name is due.
    Start,
    Name,
    /// White space behind a name, or behind a value.
    Gap {
        takes_value: bool,
    },
    /// Behind the equals sign: the value is due.
    Equals,
    Token,
    Quoted,
    /// Behind a backslash in quotes.
    Escaped,
    /// Behind the closing quote.
    Closed,
}

impl ExtensionState {
    /// The part that `byte` leads to.
    fn step(self, byte: u8) -> Option<Self> {
        let is_blank = matches!(byte, b' ' | b'\t');
        let is_text = byte >= 0x20 && byte != 0x7f || byte == b'\t';
        Some(match (self, byte) {
            (Self::Start, _) if is_blank => Self::Start,
            (Self::Start | Self::Name, _) if is_token(byte) => Self::Name,
            (Self::Name | Self::Gap { takes_value: true }, b'=') => Self::Equals,
            (Self::Name | Self::Gap { .. } | Self::Token | Self::Closed, b';') => Self::Start,
            (Self::Name | Self::Gap { takes_value: true }, _) if is_blank => Self::Gap { takes_value: true },
            (Self::Token | Self::Closed | Self::Gap { .. }, _) if is_blank => {
                Self::Gap { takes_value: false }
            }
            (Self::Equals, b'"') => Self::Quoted,
            (Self::Equals, _) if is_blank => Self::Equals,
            (Self::Equals | Self::Token, _) if is_token(byte) => Self::Token,
            (Self::Quoted, b'"') => Self::Closed,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, _) if is_text => Self::Quoted,
            _ => return None,
        })
    }

    /// Whether the line may end here.
    fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Token | Self::Closed | Self::Gap { .. })
    }
}

/// What [`Decoder::next`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkEvent {
    /// So many bytes from the start are framing; skip them.
    Skip(usize),
    /// So many bytes from the start are data.
    Data(usize),
    /// The body is over.
    End,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            state: State::Size { size: 0, digits: 0 },
            line_bytes: 0,
            excess: 0,
            trailers: Vec::new(),
        }
    }
}

impl Decoder {
    /// Looks at the next bytes. `Skip(0)` on non-empty input does not occur; on empty input it means that more
    /// is needed.
    #[inline]
    pub fn next(&mut self, bytes: &[u8]) -> Result<ChunkEvent, InvalidChunk> {
        if let State::Data(left) = self.state {
            let take = left.min(bytes.len() as u64);
            if take == left {
                self.state = State::DataCr;
            } else {
                self.state = State::Data(left - take);
            }
            return Ok(if take == 0 {
                ChunkEvent::Skip(0)
            } else {
                ChunkEvent::Data(take as usize)
            });
        }
        let mut read = 0;
        while read < bytes.len() {
            match self.state {
                State::Done => break,
                State::Data(_) => return Ok(ChunkEvent::Skip(read)),
                _ => {}
            }
            self.step(bytes[read])?;
            read += 1;
        }
        if self.state == State::Done && read == 0 {
            return Ok(ChunkEvent::End);
        }
        Ok(ChunkEvent::Skip(read))
    }

    /// Whether the end of the body was read.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Checks the trailer line that is whole now (RFC 9112, 5).
    fn check_last_trailer(&self) -> Result<(), InvalidChunk> {
        let lines = self.trailers.strip_suffix(b"\r\n").unwrap_or(&self.trailers);
        let start = memchr::memrchr(b'\n', lines).map_or(0, |end| end + 1);
        let line = &lines[start..];
        let is_field = memchr::memchr(b':', line).is_some_and(|colon| {
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            is_name(name) && is_value(value)
        });
        match is_field {
            true => Ok(()),
            false => Err(InvalidChunk("a trailer")),
        }
    }

    /// The trailers, as header lines: those that may stand there.
    pub fn take_trailers(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        for line in std::mem::take(&mut self.trailers).split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(colon) = memchr::memchr(b':', line) {
                let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
                if may_trail(name) {
                    push_header(&mut lines, name, value);
                }
            }
        }
        lines
    }

    /// Takes a chunk of so many bytes into account.
    fn count_framing(&mut self, size: u64) -> Result<(), InvalidChunk> {
        // The semicolon of an extension, and two line ends.
        let rest = FRAMING_PER_CHUNK - 5;
        self.excess = self
            .excess
            .saturating_sub(rest.saturating_add(size.saturating_mul(FRAMING_PER_BYTE)));
        match self.excess > MAX_EXCESS {
            true => Err(InvalidChunk("too many bytes of framing for the data")),
            false => Ok(()),
        }
    }

    fn step(&mut self, byte: u8) -> Result<(), InvalidChunk> {
        self.state = match (self.state, byte) {
            (State::Size { size, digits }, byte) if byte.is_ascii_hexdigit() => {
                if digits == 16 {
                    return Err(InvalidChunk("a chunk size of more than 16 digits"));
                }
                self.excess += 1;
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                State::Size {
                    size: (size << 4) | u64::from(digit),
                    digits: digits + 1,
                }
            }
            (State::Size { digits: 0, .. }, _) => return Err(InvalidChunk("no chunk size")),
            (State::Size { size, .. }, b'\r') => State::SizeLf { size },
            (State::Size { size, .. }, b';') => State::Extension {
                size,
                part: ExtensionState::Start,
            },
            (State::Size { .. }, _) => return Err(InvalidChunk("the chunk size")),
            (State::Extension { size, part }, b'\r') if part.may_end() => State::SizeLf { size },
            (State::Extension { size, part }, byte) => {
                self.line_bytes += 1;
                self.excess += 1;
                let part = part.step(byte).filter(|_| self.line_bytes <= MAX_SIZE_LINE);
                let part = part.ok_or(InvalidChunk("a chunk extension"))?;
                State::Extension { size, part }
            }
            (State::SizeLf { size: 0 }, b'\n') => State::TrailerStart,
            (State::SizeLf { size }, b'\n') if size <= i64::MAX as u64 => {
                self.count_framing(size)?;
                State::Data(size)
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { size: 0, digits: 0 },
            (State::TrailerStart, b'\r') => State::LastLf,
            (State::TrailerStart | State::Trailer, byte) if byte != b'\n' => {
                self.line_bytes += 1;
                if self.line_bytes > MAX_TRAILERS {
                    return Err(InvalidChunk("the trailers are too large"));
                }
                self.trailers.push(byte);
                if byte == b'\r' {
                    State::TrailerLf
                } else {
                    State::Trailer
                }
            }
            (State::TrailerLf, b'\n') => {
                self.trailers.push(byte);
                self.check_last_trailer()?;
                State::TrailerStart
            }
            (State::LastLf, b'\n') => State::Done,
            _ => return Err(InvalidChunk("a line that does not end in CRLF")),
        };
        if matches!(self.state, State::Data(_)) {
            self.line_bytes = 0;
        }
        Ok(())
    }
}

/// Decodes a body that arrives in `parts`: the data, and whether its end was seen; `Err` if the format is invalid. For
/// tests and fuzzing.
pub fn decode_all(parts: &[&[u8]]) -> Result<(Vec<u8>, bool), InvalidChunk> {
    let mut decoder = Decoder::default();
    let mut data = Vec::new();
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            match decoder.next(rest)? {
                ChunkEvent::Skip(bytes) => rest = &rest[bytes..],
                ChunkEvent::Data(bytes) => {
                    data.extend_from_slice(&rest[..bytes]);
                    rest = &rest[bytes..];
                }
                ChunkEvent::End => return Ok((data, true)),
            }
        }
    }
    Ok((data, decoder.is_done()))
}

/// Writes the size line of a chunk.
#[inline]
pub fn write_size_line(size: usize, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(DIGITS[(size >> (digit * 4)) & 15]);
    }
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_decode_whatever_the_split() {
        type Decoded = Result<(&'static [u8], bool), ()>;
        let cases: &[(&[u8], Decoded)] = &[
            (b"0\r\n\r\n", Ok((b"", true))),
            (b"5\r\nhello\r\n0\r\n\r\n", Ok((b"hello", true))),
            (b"5;x=\"y\"\r\nhello\r\n00\r\nA: b\r\n\r\n", Ok((b"hello", true))),
            (
                b"1\r\na\r\nA\r\n0123456789\r\n0\r\n\r\n",
                Ok((b"a0123456789", true)),
            ),
            (b"5\r\nhel", Ok((b"hel", false))),
            (b"5\nhello\r\n", Err(())),
            (b"5\r\nhello0\r\n\r\n", Err(())),
            (b" 5\r\nhello\r\n", Err(())),
            (b"5 \r\nhello\r\n", Err(())),
            (b"+5\r\nhello\r\n", Err(())),
            (b"0x5\r\nhello\r\n", Err(())),
            (b"11111111111111111\r\n", Err(())),
            (b"ffffffffffffffff\r\n", Err(())),
            (b"\r\n", Err(())),
            (b"5;\x00\r\nhello\r\n", Err(())),
            (b"5;\n\r\nhello\r\n", Err(())),
            (b"0\r\nA: b\n\r\n", Err(())),
            (b"0;a;b = c ; d=\"\\\";\xff\" \r\n\r\n", Ok((b"", true))),
            (b"5;\r\nhello\r\n", Err(())),
            (b"5; \r\nhello\r\n", Err(())),
            (b"5;a;\r\nhello\r\n", Err(())),
            (b"5;;a\r\nhello\r\n", Err(())),
            (b"5;a=\r\nhello\r\n", Err(())),
            (b"5;=b\r\nhello\r\n", Err(())),
            (b"5;a b\r\nhello\r\n", Err(())),
            (b"5;a=b=c\r\nhello\r\n", Err(())),
            (b"5;a=\"b\r\nhello\r\n", Err(())),
            (b"5;a=\"b\"c\r\nhello\r\n", Err(())),
            (b"0\r\nno colon\r\n\r\n", Err(())),
            (b"0\r\n: b\r\n\r\n", Err(())),
            (b"0\r\nA : b\r\n\r\n", Err(())),
            (b"0\r\nA: b\r\n c\r\n\r\n", Err(())),
            (b"0\r\nA: \x01\r\n\r\n", Err(())),
        ];
        for (bytes, wanted) in cases {
            let wanted = wanted.map(|(data, done)| (data.to_vec(), done));
            for split in 0..=bytes.len() {
                let decoded = decode_all(&[&bytes[..split], &bytes[split..]]).map_err(|_| ());
                assert_eq!(decoded, wanted, "{:?} at {split}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn framing_is_bounded_by_the_data() {
        let extension = |length: usize| format!(";{}", "x".repeat(length));
        for (size, line, chunks, is_taken) in [
            // Byte by byte, with sizes written long, with a signature as some clients of object stores send it.
            (1, String::new(), 100_000, true),
            (1, extension(12), 100_000, true),
            (64 * 1024, extension(90), 100, true),
            (64 * 1024, extension(4000), 100, true),
            (1, extension(4000), 4, true),
            (1, extension(4000), 5, false),
            (1, extension(100), 180, true),
            (1, extension(100), 200, false),
            (100, extension(300), 180, true),
            (100, extension(300), 250, false),
        ] {
            let chunk = format!("{size:x}{line}\r\n{}\r\n", "d".repeat(size));
            let parts = vec![chunk.as_bytes(); chunks];
            let found = decode_all(&parts);
            let what = format!("{chunks} of {size} with {} bytes", line.len());
            assert_eq!(found.is_ok(), is_taken, "{what}");
        }
    }

    #[test]
    fn trailers_are_kept_where_they_may_stand() {
        for (section, wanted) in [
            ("", ""),
            ("A: b\r\nc:d \r\n", "A: b\r\nc: d\r\n"),
            ("Content-Length: 5\r\nHost: h\r\nX: y\r\n", "X: y\r\n"),
        ] {
            let body = format!("0\r\n{section}\r\n");
            let mut decoder = Decoder::default();
            assert!(matches!(decoder.next(body.as_bytes()), Ok(ChunkEvent::Skip(_))));
            assert!(decoder.is_done());
            assert_eq!(String::from_utf8_lossy(&decoder.take_trailers()), wanted);
        }
    }

    #[test]
    fn size_lines_are_hexadecimal() {
        for (size, line) in [(0, "0\r\n"), (15, "f\r\n"), (16, "10\r\n"), (65536, "10000\r\n")] {
            let mut out = Vec::new();
            write_size_line(size, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), line);
        }
    }
}
