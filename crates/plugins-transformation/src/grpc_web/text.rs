//! `application/grpc-web-text`: the same bytes in Base64, which may be padded at every point where the sender paused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The bytes of a body in Base64; `None`: it is not in Base64.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        // A part goes up to its padding, which fills four letters up.
        let letters = memchr::memchr(b'=', rest).map_or(rest.len(), |at| at.next_multiple_of(4));
        let part = rest.get(..letters).filter(|part| !part.is_empty())?;
        STANDARD.decode_vec(part, &mut bytes).ok()?;
        rest = &rest[letters..];
    }
    Some(bytes)
}

/// Puts bytes into Base64 as they come. What does not fill four letters waits for more, or for a pause.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    waiting: Vec<u8>,
}

impl Encoder {
    pub(super) fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.waiting.extend_from_slice(data);
        let whole = self.waiting.len() / 3 * 3;
        encode(&self.waiting[..whole], out);
        self.waiting.drain(..whole);
    }

    /// Gives out what waits, padded.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        encode(&self.waiting, out);
        self.waiting.clear();
    }
}

fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // There is just as much room as is needed.
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("AAAA", Some(b"\0\0\0")),
            ("AA==AA==", Some(b"\0\0")),
            ("AAA=AAAAAA==\r\n", Some(b"\0\0\0\0\0\0")),
            ("AA", None),
            ("AA=A", None),
            ("A*==", None),
            ("====", None),
            ("AAAAA===", None),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), bytes, "{text}");
        }
    }

    #[test]
    fn texts_come_back_whatever_the_split_and_the_pauses() {
        let all: Vec<u8> = (0..=255).collect();
        for size in 1..20 {
            for pauses in [false, true] {
                let (mut encoder, mut out) = (Encoder::default(), Vec::new());
                for piece in all.chunks(size) {
                    encoder.piece(piece, &mut out);
                    if pauses {
                        encoder.flush(&mut out);
                    }
                }
                encoder.flush(&mut out);
                assert_eq!(decode(&out).as_ref(), Some(&all), "{size} {pauses}");
            }
        }
    }
}
