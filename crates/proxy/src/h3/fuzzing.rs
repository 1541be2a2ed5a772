//! Entry points for fuzzing: what must hold of whatever clients of HTTP/3 send.

use super::field_section::{self, Kind};
use super::frames::{FrameRead, Frames, payload};
use super::handshake::server_name;
use bytes::Bytes;
use h3::error::Code;

/// Largest head of the streams that are read here.
const MAX_HEADERS: usize = 4096;

/// Takes the frames of a request's stream apart, as a whole and in two pieces: the position of the cut makes no
/// difference. Every head that is found is checked as one.
///
/// # Panics
/// If that does not hold.
pub fn http3_stream(bytes: &[u8], cut: usize) {
    let at_once = take_apart(&[bytes]);
    let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
    assert_eq!(
        at_once,
        take_apart(&[first, second]),
        "the cut makes a difference"
    );
    for found in at_once.0 {
        match found {
            FrameRead::Headers(head) => {
                assert!(head.len() <= MAX_HEADERS + 16, "too long a head");
                http3_section(payload(&head).unwrap_or_default());
            }
            FrameRead::Data(data) => assert!(data.len() <= bytes.len()),
        }
    }
}

/// The finds, data joined; the end, and whether it may be there.
fn take_apart(pieces: &[&[u8]]) -> (Vec<FrameRead>, Result<bool, Code>) {
    let mut frames = Frames::new(MAX_HEADERS);
    let mut all: Vec<FrameRead> = Vec::new();
    for piece in pieces {
        let mut bytes = Bytes::copy_from_slice(piece);
        loop {
            match frames.next(&mut bytes) {
                Ok(Some(found)) => match (all.last_mut(), found) {
                    (Some(FrameRead::Data(before)), FrameRead::Data(data)) => {
                        *before = [before.as_ref(), data.as_ref()].concat().into();
                    }
                    (_, found) => all.push(found),
                },
                Ok(None) => break,
                Err(reason) => return (all, Err(reason)),
            }
        }
    }
    (all, Ok(frames.is_between()))
}

/// Checks a field section: what may be trailers may come after any fields, and nothing good ends within a line.
///
/// # Panics
/// If that does not hold.
pub fn http3_section(bytes: &[u8]) {
    let as_request = field_section::check(bytes, Kind::Request);
    if field_section::check(bytes, Kind::Trailers).is_ok() {
        assert_eq!(as_request, Ok(()), "trailers are stricter");
        let doubled = [bytes, &[0xc1]].concat();
        assert_eq!(
            field_section::check(&doubled, Kind::Trailers),
            Err(Code::H3_MESSAGE_ERROR),
            "a path in trailers"
        );
    }
    if as_request.is_ok() {
        let repeated = [bytes, b"\xc1\xc1"].concat();
        assert_eq!(
            field_section::check(&repeated, Kind::Request),
            Err(Code::H3_MESSAGE_ERROR)
        );
    }
}

/// Reads the server name of a first message over QUIC; a part of a message has none.
///
/// # Panics
/// If that does not hold.
pub fn client_hello(bytes: &[u8]) {
    let whole = server_name(bytes);
    if let Ok(Some(Some(name))) = &whole {
        assert!(name.len() < bytes.len(), "a name that did not come");
    }
    if matches!(whole, Ok(Some(_))) {
        let length = bytes[1..4]
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let part = server_name(&bytes[..length + 3]);
        assert!(!matches!(part, Ok(Some(_))), "a part tells a name");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_byte_is_borne() {
        let seed =
            b"\x01\x10\x00\x00\xd1\xd7\x50\x09localhost\xc1\x00\x03abc\x21\x01x\x01\x06\x00\x00\x21x\x01y";
        for at in 0..seed.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = seed.to_vec();
                bytes[at] = byte;
                http3_stream(&bytes, at);
                client_hello(&bytes);
            }
        }
    }
}
