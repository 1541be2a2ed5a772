//! Texts that cannot be guessed, and the hashes under which secrets are kept, as the original makes them.

use aws_lc_rs::{digest, pbkdf2, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use data_encoding::HEXLOWER;
use std::num::NonZeroU32;

/// A text that cannot be guessed: 32 letters and digits.
pub fn random_text() -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).expect("invariant: the system has random numbers");
    bytes
        .into_iter()
        .map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]))
        .collect()
}

/// The hash under which a password is kept, as the original makes it: SHA-1 of the password and the consumer's id.
pub fn password_hash(password: &str, consumer: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(password.as_bytes());
    context.update(consumer.as_bytes());
    HEXLOWER.encode(context.finish().as_ref())
}

/// How the hashes of client secrets begin: PBKDF2 (RFC 8018) with HMAC-SHA-512.
pub const SECRET_HASH: &str = "$pbkdf2-sha512$i=10000,l=32$";

/// The hash under which a client secret is kept, if it is not to be kept as it is.
pub fn secret_hash(secret: &str) -> String {
    const ITERATIONS: NonZeroU32 = NonZeroU32::new(10_000).expect("invariant: not zero");
    let mut salt = [0; 16];
    rand::fill(&mut salt).expect("invariant: the system has random numbers");
    let mut hash = [0; 32];
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA512,
        ITERATIONS,
        &salt,
        secret.as_bytes(),
        &mut hash,
    );
    format!(
        "{SECRET_HASH}{}${}",
        STANDARD_NO_PAD.encode(salt),
        STANDARD_NO_PAD.encode(hash)
    )
}
