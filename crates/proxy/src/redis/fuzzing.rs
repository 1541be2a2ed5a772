//! Entry points for fuzzing the parser of replies.

use super::resp;

/// Reads a reply and checks what must hold of one that is understood: a part of it is not yet a reply, and what comes
/// after it does not matter.
///
/// # Panics
/// When that does not hold.
pub fn redis_reply(bytes: &[u8]) {
    if let Ok(Some((value, size))) = resp::parse(bytes) {
        assert!(size <= bytes.len(), "no more is used than there is");
        let again = resp::parse(&bytes[..size]);
        assert_eq!(
            again,
            Ok(Some((value, size))),
            "what comes after a reply does not matter"
        );
        let before = resp::parse(&bytes[..size - 1]);
        assert!(!matches!(before, Ok(Some(_))), "a part is not a reply");
    }
}
