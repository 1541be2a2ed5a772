//! An entry point for fuzzing: what must hold of whatever passes through a WebSocket.

use super::Frames;

/// Follows `bytes` as a whole and in two pieces. The position of the cut makes no difference, and what is reported as
/// whole frames ends between two.
///
/// # Panics
/// If that does not hold.
pub fn websocket_frames(bytes: &[u8], cut: usize) {
    let mut at_once = Frames::default();
    at_once.follow(bytes);
    let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
    let mut in_two = Frames::default();
    in_two.follow(first);
    let mut at_the_cut = in_two.clone();
    let whole = at_the_cut.whole(second);
    assert!(whole <= second.len(), "more is whole than there is");
    if whole > 0 {
        at_the_cut.follow(&second[..whole]);
        assert!(at_the_cut.is_between(), "a frame is cut");
        assert_eq!(at_the_cut.whole(&second[whole..]), 0, "a whole frame is left");
    }
    in_two.follow(second);
    assert_eq!(
        (at_once.is_between(), at_once.has_closed(), at_once.left),
        (in_two.is_between(), in_two.has_closed(), in_two.left),
        "the cut makes a difference"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_byte_is_borne() {
        let seed = b"\x81\x85\x01\x02\x03\x04hello\x02\x7e\x00\x03abc\x88\x02\x03\xe9\x89\x00";
        for at in 0..seed.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = seed.to_vec();
                bytes[at] = byte;
                for cut in 0..=bytes.len() {
                    websocket_frames(&bytes, cut);
                }
            }
        }
    }
}
