//! RSA keys that are shorter than today's library takes: verification of RSASSA-PKCS1-v1_5 (RFC 8017, 8.2.2) alone.
//!
//! A key of 512 bits is factored within hours, so such keys are only for callers who already have them. All numbers
//! here are public; nothing needs constant time.

use aws_lc_rs::digest;
use num_bigint::BigUint;

/// Keys of fewer bits are refused: they could not even hold a digest.
pub(super) const LEAST_BITS: usize = 512;

/// The longest exponent, as NIST SP 800-56B bounds it.
const MOST_EXPONENT_BITS: u64 = 256;

/// A public key, and the hash of the one algorithm that it is for.
pub(super) struct ShortKey {
    modulus: BigUint,
    exponent: BigUint,
    bytes: usize,
    hash: &'static digest::Algorithm,
    /// What stands before the digest: `DigestInfo` up to the octets (RFC 8017, 9.2, note 1).
    prefix: [u8; 19],
}

impl ShortKey {
    /// Creates a key from its numbers, each with the most significant byte first. `None` if it cannot hold a digest, or
    /// if its exponent is not usable (1 would verify anything).
    pub(super) fn new(modulus: &[u8], exponent: &[u8], hash: &'static digest::Algorithm) -> Option<Self> {
        let modulus = BigUint::from_bytes_be(modulus);
        let exponent = BigUint::from_bytes_be(exponent);
        let is_usual =
            exponent >= BigUint::from(3_u8) && exponent.bits() <= MOST_EXPONENT_BITS && exponent.bit(0);
        let bytes = usize::try_from(modulus.bits().div_ceil(8)).ok()?;
        let length = hash.output_len();
        // The last byte of the object identifier: SHA-256, SHA-384, SHA-512.
        let number = match length {
            32 => 1,
            48 => 2,
            _ => 3,
        };
        let octets = u8::try_from(length).ok()?;
        let prefix = [
            0x30,
            octets + 17,
            0x30,
            0x0d,
            0x06,
            0x09,
            0x60,
            0x86,
            0x48,
            0x01,
            0x65,
            0x03,
            0x04,
            0x02,
            number,
            0x05,
            0x00,
            0x04,
            octets,
        ];
        (is_usual && bytes >= prefix.len() + length + 11).then_some(Self {
            modulus,
            exponent,
            bytes,
            hash,
            prefix,
        })
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let number = BigUint::from_bytes_be(signature);
        if signature.len() != self.bytes || number >= self.modulus {
            return false;
        }
        let found = number.modpow(&self.exponent, &self.modulus);
        let digest = digest::digest(self.hash, message);
        let mut encoded = vec![0xFF; self.bytes];
        encoded[..2].copy_from_slice(&[0, 1]);
        let end = self.bytes - digest.as_ref().len();
        let start = end - self.prefix.len();
        encoded[start - 1] = 0;
        encoded[start..end].copy_from_slice(&self.prefix);
        encoded[end..].copy_from_slice(digest.as_ref());
        found == BigUint::from_bytes_be(&encoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_room_for_a_digest_and_a_usual_exponent() {
        for (bytes, exponent, hash, is_key) in [
            (64, &[1, 0, 1][..], &digest::SHA256, true),
            (64, &[3], &digest::SHA256, true),
            (64, &[1], &digest::SHA256, false),
            (64, &[0], &digest::SHA256, false),
            (64, &[4], &digest::SHA256, false),
            (64, &[0xFF; 33], &digest::SHA256, false),
            (61, &[3], &digest::SHA256, false),
            (64, &[3], &digest::SHA512, false),
            (94, &[3], &digest::SHA512, true),
        ] {
            let key = ShortKey::new(&vec![0xFF; bytes], exponent, hash);
            assert_eq!(key.is_some(), is_key, "{bytes} {exponent:?}");
        }
    }
}
