//! Frames of HTTP/3 (RFC 9114, section 7.1): reading them off a request's stream as they come.

use bytes::{Buf, Bytes};
use h3::error::Code;

/// Types of frames (RFC 9114, section 7.2).
const DATA: u64 = 0x00;
const HEADERS: u64 = 0x01;
/// Types that have no place on a request's stream: those of control streams, those that only servers send, and those
/// of HTTP/2 that HTTP/3 has not.
const OUT_OF_PLACE: [u64; 9] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0d];
/// Most frames in a row that carry nothing. Each is allowed; without end they keep a worker busy for no call.
const MAX_IDLE: u32 = 1000;
/// Most bytes of a frame's type and length.
const MAX_PREFIX: usize = 16;

/// The next part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum FrameRead {
    /// Some of a body's data.
    Data(Bytes),
    /// A whole `HEADERS` frame, type and length included.
    Headers(Bytes),
}

/// Takes frames apart, whatever the pieces in which they come.
#[derive(Debug)]
pub struct Frames {
    part: FrameState,
    /// Largest `HEADERS` frame, in bytes.
    max_headers: usize,
    /// Frames that carried nothing since one that did.
    idle: u32,
}

#[derive(Debug)]
enum FrameState {
    /// Type and length, of which this much is there.
    Prefix(Vec<u8>),
    /// So much of a `DATA` frame is to come.
    Data(u64),
    /// The available part of a `HEADERS` frame, and the number of bytes that are to come.
    Headers(Vec<u8>, usize),
    /// So much is to come of a frame of an unknown type, which says nothing (RFC 9114, section 9).
    Unknown(u64),
}

impl Frames {
    /// At the start of a stream.
    pub fn new(max_headers: usize) -> Self {
        Self {
            part: FrameState::Prefix(Vec::new()),
            max_headers,
            idle: 0,
        }
    }

    /// Whether the stream may end here.
    pub fn is_between(&self) -> bool {
        matches!(&self.part, FrameState::Prefix(prefix) if prefix.is_empty())
    }

    /// Uses up bytes; `None` once there are none left.
    ///
    /// # Errors
    /// The code with which the connection or the stream is to end.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<FrameRead>, Code> {
        while !bytes.is_empty() {
            match &mut self.part {
                FrameState::Prefix(prefix) => {
                    prefix.push(bytes.get_u8());
                    if let Some((kind, length)) = read_prefix(prefix) {
                        let prefix = std::mem::take(prefix);
                        self.part = self.enter(kind, length, prefix)?;
                        if let Some(found) = self.empty_headers() {
                            return Ok(Some(found));
                        }
                    }
                }
                FrameState::Data(left) => {
                    let count = take(left, bytes.len());
                    let data = bytes.split_to(count);
                    self.leave_if_done();
                    return Ok(Some(FrameRead::Data(data)));
                }
                FrameState::Headers(frame, left) => {
                    let count = bytes.len().min(*left);
                    frame.extend_from_slice(&bytes.split_to(count));
                    *left -= count;
                    if *left == 0 {
                        let frame = std::mem::take(frame);
                        self.part = FrameState::Prefix(Vec::new());
                        return Ok(Some(FrameRead::Headers(frame.into())));
                    }
                }
                FrameState::Unknown(left) => {
                    let count = take(left, bytes.len());
                    bytes.advance(count);
                    self.leave_if_done();
                }
            }
        }
        Ok(None)
    }

    fn enter(&mut self, kind: u64, length: u64, prefix: Vec<u8>) -> Result<FrameState, Code> {
        let carries = length > 0 && matches!(kind, DATA | HEADERS);
        self.idle = if carries { 0 } else { self.idle + 1 };
        if self.idle > MAX_IDLE {
            return Err(Code::H3_EXCESSIVE_LOAD);
        }
        match kind {
            DATA if length == 0 => Ok(FrameState::Prefix(Vec::new())),
            DATA => Ok(FrameState::Data(length)),
            HEADERS => match usize::try_from(length) {
                Ok(length) if length <= self.max_headers => Ok(FrameState::Headers(prefix, length)),
                _ => Err(Code::H3_EXCESSIVE_LOAD),
            },
            kind if OUT_OF_PLACE.contains(&kind) => Err(Code::H3_FRAME_UNEXPECTED),
            _ if length == 0 => Ok(FrameState::Prefix(Vec::new())),
            _ => Ok(FrameState::Unknown(length)),
        }
    }

    /// A `HEADERS` frame of no length is whole with its prefix.
    fn empty_headers(&mut self) -> Option<FrameRead> {
        let FrameState::Headers(frame, 0) = &mut self.part else {
            return None;
        };
        let frame = std::mem::take(frame);
        self.part = FrameState::Prefix(Vec::new());
        Some(FrameRead::Headers(frame.into()))
    }

    fn leave_if_done(&mut self) {
        if matches!(self.part, FrameState::Data(0) | FrameState::Unknown(0)) {
            self.part = FrameState::Prefix(Vec::new());
        }
    }
}

/// Takes as much as there is of what is left.
fn take(left: &mut u64, at_hand: usize) -> usize {
    let count = usize::try_from(*left).map_or(at_hand, |left| left.min(at_hand));
    *left -= count as u64;
    count
}

/// Type and length, once both are there.
fn read_prefix(bytes: &[u8]) -> Option<(u64, u64)> {
    debug_assert!(bytes.len() <= MAX_PREFIX);
    let (kind, rest) = read_number(bytes)?;
    let (length, _) = read_number(rest)?;
    Some((kind, length))
}

/// Reads a number of variable length (RFC 9000, section 16).
fn read_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_at_checked(1 << (bytes.first()? >> 6))?;
    let (first, others) = number.split_first()?;
    let start = u64::from(first & 0x3f);
    let number = others
        .iter()
        .fold(start, |number, byte| (number << 8) | u64::from(*byte));
    Some((number, rest))
}

/// The payload of a frame, without type and length.
pub fn payload(frame: &[u8]) -> Option<&[u8]> {
    let (_, rest) = read_number(frame)?;
    let (_, payload) = read_number(rest)?;
    Some(payload)
}

/// The type and length of a `DATA` frame.
pub fn data_prefix(length: usize) -> Vec<u8> {
    let length = length as u64;
    let mut prefix = vec![DATA as u8];
    match length {
        0..0x40 => prefix.push(length as u8),
        0x40..0x4000 => prefix.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => prefix.extend_from_slice(&(length as u32 | 0x8000_0000).to_be_bytes()),
        _ => prefix.extend_from_slice(&(length | 0xc000_0000_0000_0000).to_be_bytes()),
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a stream in pieces of this size.
    fn read(stream: &[u8], size: usize) -> Result<(Vec<FrameRead>, bool), Code> {
        let mut frames = Frames::new(100);
        let mut found: Vec<FrameRead> = Vec::new();
        for piece in stream.chunks(size) {
            let mut bytes = Bytes::copy_from_slice(piece);
            while let Some(next) = frames.next(&mut bytes)? {
                match (found.last_mut(), next) {
                    (Some(FrameRead::Data(before)), FrameRead::Data(data)) => {
                        *before = [before.as_ref(), data.as_ref()].concat().into();
                    }
                    (_, next) => found.push(next),
                }
            }
        }
        Ok((found, frames.is_between()))
    }

    fn data(bytes: &'static [u8]) -> FrameRead {
        FrameRead::Data(Bytes::from_static(bytes))
    }

    fn headers(bytes: &'static [u8]) -> FrameRead {
        FrameRead::Headers(Bytes::from_static(bytes))
    }

    #[test]
    fn frames_are_found_whatever_the_pieces() {
        let cases: Vec<(&[u8], Vec<FrameRead>, bool)> = vec![
            (
                b"\x01\x03abc\x00\x02de",
                vec![headers(b"\x01\x03abc"), data(b"de")],
                true,
            ),
            (b"\x01\x00", vec![headers(b"\x01\x00")], true),
            (b"\x00\x00\x00\x01x\x00\x00", vec![data(b"x")], true),
            // Of an unknown type, one of them empty.
            (b"\x21\x03xyz\x40\x50\x00\x00\x01d", vec![data(b"d")], true),
            // A length in more bytes than it needs.
            (b"\x00\x40\x01d", vec![data(b"d")], true),
            (b"\x00\xc0\0\0\0\0\0\0\x01d", vec![data(b"d")], true),
            // Cut off.
            (b"\x00\x05abc", vec![data(b"abc")], false),
            (b"\x01\x05abc", vec![], false),
            (b"\x21\x05abc", vec![], false),
            (b"\x00", vec![], false),
        ];
        for (stream, wanted, ends) in cases {
            for size in 1..=stream.len() {
                assert_eq!(
                    read(stream, size),
                    Ok((wanted.iter().map(copy).collect(), ends)),
                    "{stream:?} by {size}"
                );
            }
        }
    }

    fn copy(found: &FrameRead) -> FrameRead {
        match found {
            FrameRead::Data(bytes) => FrameRead::Data(bytes.clone()),
            FrameRead::Headers(bytes) => FrameRead::Headers(bytes.clone()),
        }
    }

    #[test]
    fn frames_that_carry_nothing_are_bounded() {
        for idle in [&b"\x00\x00"[..], b"\x21\x00", b"\x21\x02ab"] {
            let most = idle.repeat(MAX_IDLE as usize);
            let used = [&most[..], b"\x00\x01d", &most].concat();
            assert_eq!(read(&used, 4096), Ok((vec![data(b"d")], true)), "{idle:?}");
            let flood = [&most[..], idle].concat();
            assert_eq!(read(&flood, 4096), Err(Code::H3_EXCESSIVE_LOAD), "{idle:?}");
        }
    }

    #[test]
    fn what_has_no_place_is_refused() {
        for kind in OUT_OF_PLACE {
            assert_eq!(
                read(&[kind as u8, 0], 2),
                Err(Code::H3_FRAME_UNEXPECTED),
                "{kind}"
            );
        }
        for stream in [&b"\x01\x40\x65"[..], b"\x01\xff\xff\xff\xff\xff\xff\xff\xff"] {
            assert_eq!(read(stream, 3), Err(Code::H3_EXCESSIVE_LOAD), "{stream:?}");
        }
    }

    #[test]
    fn prefixes_of_data_are_read_as_they_were_written() {
        for length in [0, 1, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000] {
            let prefix = data_prefix(length);
            assert_eq!(read_prefix(&prefix), Some((DATA, length as u64)), "{length}");
            assert_eq!(read_prefix(&prefix[..prefix.len() - 1]), None, "{length}");
        }
    }
}
