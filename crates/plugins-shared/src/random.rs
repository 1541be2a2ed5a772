//! Randomness for secrets: states, nonces, keys of sessions. It is an argument, so that tests can repeat what was done.

/// Fills a buffer with random bytes. Nothing can be done without them, so it does not fail.
pub type Random = fn(&mut [u8]);

/// The system's randomness.
pub fn system_random(bytes: &mut [u8]) {
    aws_lc_rs::rand::fill(bytes).expect("invariant: the system gives random bytes");
}

/// So many random bytes.
pub fn bytes<const N: usize>(random: Random) -> [u8; N] {
    let mut bytes = [0; N];
    random(&mut bytes);
    bytes
}
