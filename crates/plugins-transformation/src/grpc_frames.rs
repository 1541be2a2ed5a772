//! gRPC's messages on the wire: a flag, a length of four bytes, and so many bytes.

use weir_plugins_shared::config_checks::ConfigErrors;

/// The bytes in front of a message.
const PREFIX: usize = 5;
/// The flag of a message that is compressed.
const COMPRESSED: u8 = 1;

/// The most that may be allowed to a body, or to a message.
const MOST: usize = 64 << 20;

/// Checks what a configuration allows to a request's body and to one message of an answer.
pub(crate) fn check_sizes(max_request_bytes: usize, max_message_bytes: usize, faults: &mut ConfigErrors) {
    for (field, bytes) in [
        ("max_request_bytes", max_request_bytes),
        ("max_message_bytes", max_message_bytes),
    ] {
        if bytes > MOST {
            faults.add(field, format!("expected at most {MOST} bytes"));
        }
    }
}

/// Puts a message behind what `out` holds, with `flag` in front of it.
pub(crate) fn write(flag: u8, message: &[u8], out: &mut Vec<u8>) {
    out.push(flag);
    // No body of four gigabytes comes so far.
    out.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(message);
}

/// What a stream of messages breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// A message is larger than allowed.
    TooLarge,
    /// A message is compressed although that was not requested.
    Compressed,
    /// The stream ends within a message.
    Cut,
}

/// Takes messages out of a stream that comes in pieces.
#[derive(Debug)]
pub(crate) struct Unframer {
    held: Vec<u8>,
    max_bytes: usize,
}

impl Unframer {
    /// For messages of at most so many bytes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            held: Vec::new(),
            max_bytes,
        }
    }

    /// Hands every message that is complete with this piece to `take`.
    pub(crate) fn piece(&mut self, data: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), FrameError> {
        if self.held.is_empty() {
            let rest = self.messages(data, &mut take)?;
            self.held.extend_from_slice(rest);
            return Ok(());
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(data);
        let left = self.messages(&held, &mut take)?.len();
        held.drain(..held.len() - left);
        self.held = held;
        Ok(())
    }

    /// Hands messages to `take`; gives what is left of the bytes.
    fn messages<'d>(&self, data: &'d [u8], take: &mut impl FnMut(&[u8])) -> Result<&'d [u8], FrameError> {
        let mut rest = data;
        while let Some((prefix, body)) = rest.split_at_checked(PREFIX) {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            if length > self.max_bytes {
                return Err(FrameError::TooLarge);
            }
            if prefix[0] & COMPRESSED != 0 {
                return Err(FrameError::Compressed);
            }
            let Some((message, after)) = body.split_at_checked(length) else {
                break;
            };
            take(message);
            rest = after;
        }
        Ok(rest)
    }

    /// Whether the stream may end here.
    pub(crate) fn end(&self) -> Result<(), FrameError> {
        match self.held.is_empty() {
            true => Ok(()),
            false => Err(FrameError::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(messages: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for message in messages {
            write(0, message, &mut out);
        }
        out
    }

    #[test]
    fn messages_are_found_whatever_the_split() {
        let all = stream(&[b"", b"one", b"twotwo"]);
        for size in 1..=all.len() {
            let mut unframer = Unframer::new(6);
            let mut found = Vec::new();
            for piece in all.chunks(size) {
                unframer
                    .piece(piece, |message| found.push(message.to_vec()))
                    .expect("whole");
            }
            assert_eq!(found, [&b""[..], b"one", b"twotwo"], "{size}");
            assert_eq!(unframer.end(), Ok(()));
        }
    }

    #[test]
    fn broken_streams_are_reported() {
        for (bytes, expected) in [
            (stream(&[b"1234567"]), Err(FrameError::TooLarge)),
            (b"\x01\0\0\0\x01a".to_vec(), Err(FrameError::Compressed)),
            (b"\0\xff\xff\xff\xff".to_vec(), Err(FrameError::TooLarge)),
            (b"\0\0\0\0\x02a".to_vec(), Err(FrameError::Cut)),
            (b"\0\0\0".to_vec(), Err(FrameError::Cut)),
            (Vec::new(), Ok(())),
        ] {
            let mut unframer = Unframer::new(6);
            let result = unframer.piece(&bytes, |_| ()).and_then(|()| unframer.end());
            assert_eq!(result, expected, "{bytes:?}");
        }
    }
}
