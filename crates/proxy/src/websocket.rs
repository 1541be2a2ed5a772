//! Frames of WebSockets (RFC 6455, section 5.2), as far as a gateway must know them: the end of each, so that draining
//! can put a good-bye between two. What they say is for the two ends.

pub mod fuzzing;
pub mod inspector;

/// Most bytes before a frame's payload.
const MAX_HEAD: usize = 14;
/// The kind of a frame that ends a connection.
const CLOSE: u8 = 8;
/// "Going away" (RFC 6455, section 7.4.1).
const GOING_AWAY: [u8; 2] = 1001u16.to_be_bytes();

/// Follows the frames of one direction.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    /// The available part of a frame's head.
    head: [u8; MAX_HEAD],
    at_hand: usize,
    /// Bytes of a payload that are to come.
    left: u64,
    /// A frame has said that it is the last.
    has_closed: bool,
    /// The bytes are no frame; from there on nothing is known.
    is_lost: bool,
}

impl Frames {
    /// Follows these bytes.
    pub fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_lost {
            if self.left > 0 {
                let count = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.left -= count as u64;
                bytes = &bytes[count..];
            } else {
                self.head[self.at_hand] = bytes[0];
                self.at_hand += 1;
                bytes = &bytes[1..];
                self.read_head();
            }
        }
    }

    /// Takes a head in, once it is whole.
    fn read_head(&mut self) {
        let head = &self.head[..self.at_hand];
        let &[kind, size, ..] = head else { return };
        let extended = match size & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if size & 0x80 == 0 { 0 } else { 4 };
        if head.len() < 2 + extended + mask {
            return;
        }
        let length = head[2..2 + extended]
            .iter()
            .fold(0, |length: u64, byte| (length << 8) | u64::from(*byte));
        self.left = if extended == 0 {
            u64::from(size & 0x7f)
        } else {
            length
        };
        self.is_lost = self.left > i64::MAX as u64;
        self.has_closed |= kind & 0x0f == CLOSE;
        self.at_hand = 0;
    }

    /// Whether the bytes so far have ended with a frame.
    pub fn is_between(&self) -> bool {
        self.at_hand == 0 && self.left == 0 && !self.is_lost
    }

    /// Whether the last frame has begun.
    pub fn has_closed(&self) -> bool {
        self.has_closed
    }

    /// How many of the bytes that come next belong to frames that end among them.
    pub fn whole(&self, bytes: &[u8]) -> usize {
        let (mut frames, mut whole, mut seen) = (self.clone(), 0, 0);
        while seen < bytes.len() && !frames.is_lost {
            let step = match frames.left {
                0 => 1,
                left => usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len() - seen)),
            };
            frames.follow(&bytes[seen..seen + step]);
            seen += step;
            if frames.is_between() {
                whole = seen;
            }
        }
        whole
    }
}

/// The frame that says good-bye; `mask`: for a server, to which nothing is sent without one (RFC 6455, 5.3).
pub fn good_bye(mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut frame = vec![0x80 | CLOSE, GOING_AWAY.len() as u8];
    match mask {
        None => frame.extend_from_slice(&GOING_AWAY),
        Some(mask) => {
            frame[1] |= 0x80;
            frame.extend_from_slice(&mask);
            frame.extend(GOING_AWAY.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
        }
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: usize, mask: bool) -> Vec<u8> {
        let bit = if mask { 0x80 } else { 0 };
        let mut frame = vec![kind];
        match length {
            0..126 => frame.push(bit | length as u8),
            126..65_536 => {
                frame.push(bit | 126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                frame.push(bit | 127);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        if mask {
            frame.extend_from_slice(&[1, 2, 3, 4]);
        }
        frame.resize(frame.len() + length, 0xff);
        frame
    }

    #[test]
    fn ends_of_frames_are_found_whatever_the_pieces() {
        for mask in [false, true] {
            let sizes = [0, 1, 125, 126, 127, 65_535, 65_536, 3];
            let all: Vec<u8> = sizes.iter().flat_map(|size| frame(0x81, *size, mask)).collect();
            let ends: Vec<usize> = sizes
                .iter()
                .scan(0, |end, size| {
                    *end += frame(0x81, *size, mask).len();
                    Some(*end)
                })
                .collect();
            for piece in [1, 2, 3, 7, 1000, all.len()] {
                let (mut frames, mut seen) = (Frames::default(), 0);
                for bytes in all.chunks(piece) {
                    let whole = ends
                        .iter()
                        .rev()
                        .find(|end| **end > seen && **end <= seen + bytes.len());
                    assert_eq!(
                        frames.whole(bytes),
                        whole.map_or(0, |end| end - seen),
                        "{seen} by {piece}"
                    );
                    frames.follow(bytes);
                    seen += bytes.len();
                    assert_eq!(frames.is_between(), ends.contains(&seen), "{seen} by {piece}");
                }
                assert!(!frames.has_closed());
            }
        }
    }

    #[test]
    fn the_last_frame_is_known() {
        for mask in [None, Some([9, 8, 7, 6])] {
            let mut frames = Frames::default();
            frames.follow(&frame(0x02, 10, false));
            assert!(!frames.has_closed());
            frames.follow(&good_bye(mask));
            assert!(frames.has_closed() && frames.is_between());
        }
        assert_eq!(good_bye(None), [0x88, 2, 0x03, 0xe9]);
    }

    #[test]
    fn what_is_no_frame_is_not_followed() {
        let mut frames = Frames::default();
        frames.follow(&[0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
        assert!(!frames.is_between());
        assert_eq!(frames.whole(&[0; 100]), 0);
    }
}
