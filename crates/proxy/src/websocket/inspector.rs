//! Messages of one direction of a WebSocket (RFC 6455, section 5), held until the filters have looked at them.
//!
//! Frames pass as they came, once all of their message may. What is held is bounded by the largest message.

use std::borrow::Cow;
use std::sync::Arc;
use weir_plugin::{MESSAGE_TOO_LARGE, MessageFilter, MessageKind, MessageViolation, WebSocketSide};

/// The most bytes of a message that no filter bounds.
const MAX_MESSAGE: usize = 16 << 20;
/// Frames of one message that are held at most.
const MAX_FRAMES: usize = 4096;
/// The kinds of frames.
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;

/// Follows the messages of one direction.
pub struct Inspector {
    side: WebSocketSide,
    filters: Arc<[Arc<dyn MessageFilter>]>,
    most: usize,
    /// Bytes of a frame that is not complete.
    frame: Vec<u8>,
    message: Option<Message>,
    /// The last frame has passed.
    pub has_closed: bool,
}

/// A message whose end is to come.
struct Message {
    kind: MessageKind,
    /// Whether any filter reads it.
    is_read: bool,
    length: usize,
    frames: usize,
    /// Its content, if it is read.
    content: Vec<u8>,
    /// Its frames as they came, if it is read.
    raw: Vec<u8>,
}

/// The head of a frame.
struct FrameHead {
    is_last: bool,
    kind: u8,
    mask: Option<[u8; 4]>,
    /// Bytes of the head.
    size: usize,
    /// Bytes of the payload.
    length: usize,
}

fn protocol_fault(reason: &'static str) -> MessageViolation {
    MessageViolation {
        code: 1002,
        reason: Cow::Borrowed(reason),
    }
}

impl Inspector {
    /// For messages of this side.
    pub fn new(side: WebSocketSide, filters: &Arc<[Arc<dyn MessageFilter>]>) -> Self {
        let bounds = filters.iter().filter_map(|filter| filter.max_bytes(side));
        Self {
            side,
            most: bounds.min().unwrap_or(MAX_MESSAGE).min(MAX_MESSAGE * 2),
            filters: Arc::clone(filters),
            frame: Vec::new(),
            message: None,
            has_closed: false,
        }
    }

    /// Takes bytes in, and adds to `out` what may pass: whole frames.
    ///
    /// # Errors
    /// Why the WebSocket is to be closed. What is in `out` may still pass.
    pub fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), MessageViolation> {
        while !bytes.is_empty() && !self.has_closed {
            let head = match self.head()? {
                Some(head) => head,
                None => {
                    self.frame.push(bytes[0]);
                    bytes = &bytes[1..];
                    match self.head()? {
                        Some(head) => head,
                        None => continue,
                    }
                }
            };
            self.check_head(&head)?;
            let wanted = head.size + head.length - self.frame.len();
            let count = wanted.min(bytes.len());
            self.frame.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            if count == wanted {
                self.take_frame(&head, out)?;
            }
        }
        Ok(())
    }

    /// The head of the frame at hand, if it is complete.
    fn head(&self) -> Result<Option<FrameHead>, MessageViolation> {
        let &[first, second, ..] = self.frame.as_slice() else {
            return Ok(None);
        };
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let has_mask = second & 0x80 != 0;
        let size = 2 + extended + if has_mask { 4 } else { 0 };
        let Some(head) = self.frame.get(..size) else {
            return Ok(None);
        };
        let number = head[2..2 + extended]
            .iter()
            .fold(0u64, |length, byte| (length << 8) | u64::from(*byte));
        let length = match extended {
            0 => u64::from(second & 0x7f),
            _ => number,
        };
        let mask = has_mask.then(|| head[size - 4..].try_into().unwrap_or_default());
        Ok(Some(FrameHead {
            is_last: first & 0x80 != 0,
            kind: match first & 0x70 {
                0 => first & 0x0f,
                // Extensions are not negotiated where messages are looked at.
                _ => return Err(protocol_fault("reserved bits are set")),
            },
            mask,
            size,
            length: usize::try_from(length).map_err(|_| MESSAGE_TOO_LARGE)?,
        }))
    }

    /// Whether a frame may stand here. Called for each piece of it.
    fn check_head(&self, head: &FrameHead) -> Result<(), MessageViolation> {
        if head.mask.is_some() != (self.side == WebSocketSide::Client) {
            return Err(protocol_fault("masked by the wrong side"));
        }
        let before = self.message.as_ref();
        match head.kind {
            CONTINUATION if before.is_none() => return Err(protocol_fault("nothing to continue")),
            TEXT | BINARY if before.is_some() => return Err(protocol_fault("a message is not complete")),
            CONTINUATION | TEXT | BINARY => {}
            8..=10 if head.is_last && head.length <= 125 => return Ok(()),
            _ => return Err(protocol_fault("an unknown frame")),
        }
        let length = before
            .map_or(0, |message| message.length)
            .saturating_add(head.length);
        let frames = before.map_or(0, |message| message.frames);
        match length > self.most || frames >= MAX_FRAMES {
            true => Err(MESSAGE_TOO_LARGE),
            false => Ok(()),
        }
    }

    /// Takes the frame at hand, which is complete.
    fn take_frame(&mut self, head: &FrameHead, out: &mut Vec<u8>) -> Result<(), MessageViolation> {
        let frame = std::mem::take(&mut self.frame);
        if head.kind >= CLOSE {
            self.has_closed = head.kind == CLOSE;
            out.extend_from_slice(&frame);
            return Ok(());
        }
        let kind = match head.kind {
            TEXT => MessageKind::Text,
            _ => MessageKind::Binary,
        };
        let (side, filters) = (self.side, &self.filters);
        let message = self.message.get_or_insert_with(|| Message {
            kind,
            is_read: filters.iter().any(|filter| filter.reads(side, kind)),
            length: 0,
            frames: 0,
            content: Vec::new(),
            raw: Vec::new(),
        });
        message.length += head.length;
        message.frames += 1;
        if !message.is_read {
            out.extend_from_slice(&frame);
        } else {
            let payload = &frame[head.size..];
            match head.mask {
                None => message.content.extend_from_slice(payload),
                Some(mask) => {
                    let unmasked = payload.iter().zip(mask.iter().cycle());
                    message.content.extend(unmasked.map(|(byte, mask)| byte ^ mask));
                }
            }
            message.raw.extend_from_slice(&frame);
        }
        if head.is_last
            && let Some(message) = self.message.take()
            && message.is_read
        {
            for filter in filters.iter().filter(|filter| filter.reads(side, message.kind)) {
                filter.check(side, message.kind, &message.content)?;
            }
            out.extend_from_slice(&message.raw);
        }
        Ok(())
    }
}

/// A frame that closes a WebSocket; `mask`: for a server (RFC 6455, 5.3).
pub fn closing(fault: &MessageViolation, mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut payload = fault.code.to_be_bytes().to_vec();
    let mut length = fault.reason.len().min(123);
    while !fault.reason.is_char_boundary(length) {
        length -= 1;
    }
    payload.extend_from_slice(&fault.reason.as_bytes()[..length]);
    let mut frame = vec![0x80 | CLOSE, payload.len() as u8];
    match mask {
        None => frame.extend_from_slice(&payload),
        Some(mask) => {
            frame[1] |= 0x80;
            frame.extend_from_slice(&mask);
            frame.extend(
                payload
                    .iter()
                    .zip(mask.iter().cycle())
                    .map(|(byte, mask)| byte ^ mask),
            );
        }
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses messages with `bad` in them, and those of more than 8 bytes.
    struct BadMessageFilter;

    impl MessageFilter for BadMessageFilter {
        fn max_bytes(&self, _: WebSocketSide) -> Option<usize> {
            Some(8)
        }

        fn reads(&self, _: WebSocketSide, kind: MessageKind) -> bool {
            kind == MessageKind::Text
        }

        fn check(&self, _: WebSocketSide, _: MessageKind, message: &[u8]) -> Result<(), MessageViolation> {
            match message.windows(3).any(|part| part == b"bad") {
                true => Err(MessageViolation {
                    code: 1007,
                    reason: "bad".into(),
                }),
                false => Ok(()),
            }
        }
    }

    fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
        let bit = if mask.is_some() { 0x80 } else { 0 };
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..126 => frame.push(bit | length as u8),
            length => {
                frame.push(bit | 126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
        }
        frame.extend(mask.into_iter().flatten());
        let mask = mask.unwrap_or_default();
        frame.extend(
            payload
                .iter()
                .zip(mask.iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        frame
    }

    /// Feeds bytes in pieces of `size`. Returns what passed, and the code of the fault.
    fn passed(side: WebSocketSide, bytes: &[u8], size: usize) -> (Vec<u8>, u16) {
        let filters: Arc<[Arc<dyn MessageFilter>]> = Arc::new([Arc::new(BadMessageFilter)]);
        let mut inspector = Inspector::new(side, &filters);
        let mut out = Vec::new();
        for piece in bytes.chunks(size) {
            if let Err(fault) = inspector.take(piece, &mut out) {
                return (out, fault.code);
            }
        }
        (out, 0)
    }

    #[test]
    fn messages_pass_whole_or_not_at_all() {
        let mask = Some([1, 2, 3, 4]);
        let (text, more, end) = (0x01, 0x00, 0x80);
        let split = |mask| {
            [
                frame(text, b"ba", mask),
                frame(0x89, b"", mask),
                frame(end, b"d", mask),
            ]
            .concat()
        };
        for (bytes, of_upstream, code) in [
            (frame(0x81, b"good", None), frame(0x81, b"good", None), 0),
            (frame(0x81, b"a bad", None), Vec::new(), 1007),
            // What no one reads passes.
            (frame(0x82, b"a bad", None), frame(0x82, b"a bad", None), 0),
            (frame(0x82, b"123456789", None), Vec::new(), 1009),
            // A ping between the parts of a message passes at once.
            (split(None), frame(0x89, b"", None), 1007),
            (
                [
                    frame(text, b"12345", None),
                    frame(more, b"678", None),
                    frame(more, b"9", None),
                ]
                .concat(),
                Vec::new(),
                1009,
            ),
            (frame(0x80, b"", None), Vec::new(), 1002),
            (
                [frame(text, b"a", None), frame(0x81, b"b", None)].concat(),
                Vec::new(),
                1002,
            ),
            (frame(0xc1, b"a", None), Vec::new(), 1002),
            (frame(0x83, b"a", None), Vec::new(), 1002),
            (frame(0x81, b"a", mask), Vec::new(), 1002),
            // Behind the last frame nothing passes.
            (
                [frame(0x88, b"", None), frame(0x81, b"a", None)].concat(),
                frame(0x88, b"", None),
                0,
            ),
        ] {
            for size in [1, 3, 1000] {
                let found = passed(WebSocketSide::Upstream, &bytes, size);
                assert_eq!(
                    found,
                    (of_upstream.clone(), code),
                    "{bytes:?} in pieces of {size}"
                );
            }
        }
        for size in [1, 1000] {
            let good = frame(0x81, b"good", mask);
            assert_eq!(passed(WebSocketSide::Client, &good, size), (good.clone(), 0));
            assert_eq!(passed(WebSocketSide::Client, &split(mask), size).1, 1007);
            assert_eq!(
                passed(WebSocketSide::Client, &frame(0x81, b"a", None), size).1,
                1002
            );
        }
    }

    #[test]
    fn closing_frames_give_the_reason() {
        let fault = MessageViolation {
            code: 1007,
            reason: "\u{e4}".repeat(100).into(),
        };
        let frame = closing(&fault, None);
        assert_eq!((frame[0], usize::from(frame[1])), (0x88, frame.len() - 2));
        assert!(frame.len() <= 127 && std::str::from_utf8(&frame[4..]).is_ok());
        let masked = closing(&MESSAGE_TOO_LARGE, Some([0; 4]));
        assert_eq!(masked[2..6], [0; 4]);
        assert_eq!(masked[6..8], 1009u16.to_be_bytes());
    }
}
