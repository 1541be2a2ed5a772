//! Sealed values: what a gateway hands to a client and wants back unchanged and unread, such as a session in a cookie.
//!
//! AES-256-GCM-SIV (RFC 8452) with random nonces. It derives the keys of each value from its nonce, so that a secret can
//! seal far more values than a gateway does, and two values with the same nonce tell no more than whether they are the same. A value is only
//! good for the purpose for which it was sealed. All gateways with the same secret can open it. Former secrets open values and
//! seal none.

use crate::random::{self, Random};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The format. Another one would begin with another byte.
const VERSION: u8 = 2;
const HEAD: usize = 1 + NONCE_LEN;
const TAG: usize = 16;
/// Separates these keys from others that are derived from the same secret.
const LABEL: &[u8] = b"weir sealed value 1";

/// Secrets that seal and open values. `Debug` does not show them.
pub struct Sealer {
    /// The first one seals.
    secrets: Vec<Secret>,
}

/// A secret made ready.
struct Secret {
    /// Other keys are derived from it.
    root: Prk,
    key: LessSafeKey,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sealer")
    }
}

impl Sealer {
    /// Seals with the secret, and opens with it or a former one.
    pub fn new<'s>(secret: &'s [u8], former: impl IntoIterator<Item = &'s [u8]>) -> Self {
        let salt = Salt::new(HKDF_SHA256, LABEL);
        let secrets = std::iter::once(secret).chain(former);
        Self {
            secrets: secrets.map(|secret| Secret::new(salt.extract(secret))).collect(),
        }
    }

    /// Seals a value for a purpose, such as a cookie's name and an audience. The result has only letters, digits, `-` and `_`.
    pub fn seal(&self, purpose: &[&[u8]], value: &[u8], random: Random) -> String {
        let nonce: [u8; NONCE_LEN] = random::bytes(random);
        let mut sealed = Vec::with_capacity(HEAD + value.len() + TAG);
        sealed.push(VERSION);
        sealed.extend_from_slice(&nonce);
        let mut text = value.to_vec();
        self.secrets[0]
            .key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context(purpose)),
                &mut text,
            )
            .expect("invariant: a value is shorter than what AES-GCM-SIV can seal");
        sealed.extend_from_slice(&text);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens a value; `None`: it was not sealed for this purpose with one of these secrets.
    pub fn open(&self, purpose: &[&[u8]], sealed: &[u8]) -> Option<Vec<u8>> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (version, rest) = sealed.split_first()?;
        let (nonce, text) = rest.split_first_chunk()?;
        if *version != VERSION {
            return None;
        }
        let context = context(purpose);
        self.secrets.iter().find_map(|secret| {
            let mut text = text.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let opened = secret.key.open_in_place(nonce, Aad::from(&context), &mut text);
            let length = opened.ok()?.len();
            text.truncate(length);
            Some(text)
        })
    }

    /// A code that only holders of the first secret can make (HMAC-SHA256 of the purpose), for names that must not be
    /// guessed.
    pub fn code(&self, purpose: &[&[u8]]) -> [u8; 32] {
        let info = context(purpose);
        let info = [info.as_slice()];
        let mut code = [0; 32];
        let made = self.secrets[0]
            .root
            .expand(&info, HKDF_SHA256)
            .map(|okm| okm.fill(&mut code));
        made.ok()
            .and_then(Result::ok)
            .expect("invariant: 32 bytes are one block of HKDF-SHA256");
        code
    }
}

impl Secret {
    fn new(root: Prk) -> Self {
        let key = root
            .expand(&[b"key"], &AES_256_GCM_SIV)
            .expect("invariant: 32 bytes are one block of HKDF-SHA256");
        let key = LessSafeKey::new(UnboundKey::from(key));
        Self { root, key }
    }
}

/// The parts of a purpose with their lengths, so that no two purposes look the same.
fn context(purpose: &[&[u8]]) -> Vec<u8> {
    let mut context = Vec::with_capacity(64);
    for part in purpose {
        context.extend_from_slice(&(part.len() as u64).to_be_bytes());
        context.extend_from_slice(part);
    }
    context
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::system_random;

    fn zeros(bytes: &mut [u8]) {
        bytes.fill(7);
    }

    #[test]
    fn values_open_for_their_purpose_and_secret_only() {
        let sealer = Sealer::new(b"new", [&b"old"[..]]);
        let old = Sealer::new(b"old", []);
        let purpose: &[&[u8]] = &[b"session", b"shop"];
        let sealed = sealer.seal(purpose, b"alice", system_random);
        let by_old = old.seal(purpose, b"bob", system_random);
        let open = |sealer: &Sealer, purpose: &[&[u8]], sealed: &str| sealer.open(purpose, sealed.as_bytes());
        assert_eq!(open(&sealer, purpose, &sealed).as_deref(), Some(&b"alice"[..]));
        assert_eq!(open(&sealer, purpose, &by_old).as_deref(), Some(&b"bob"[..]));
        assert_eq!(open(&old, purpose, &sealed), None);
        for other in [
            &[&b"session"[..], b"bank"][..],
            &[b"sessionshop"],
            &[b"sessions", b"hop"],
        ] {
            assert_eq!(open(&sealer, other, &sealed), None);
        }
        assert!(!sealed.contains("alice") && sealed != sealer.seal(purpose, b"alice", system_random));
    }

    #[test]
    fn what_was_changed_does_not_open() {
        let sealer = Sealer::new(b"secret", []);
        let sealed = sealer.seal(&[b"p"], b"value", zeros);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer.open(&[b"p"], &changed), None, "{place}");
        }
        for end in 0..sealed.len() {
            assert_eq!(sealer.open(&[b"p"], &sealed.as_bytes()[..end]), None, "{end}");
        }
        assert_eq!(sealer.open(&[b"p"], "ä".as_bytes()), None);
        // What is written today can be read tomorrow.
        let known = "AgcHBwcHBwcHBwcHByCKPEIbYG4AYuiCVnFWmnUUoPEwJQ";
        assert_eq!(sealed, known);
    }

    #[test]
    fn random_cookies_never_open() {
        let sealer = Sealer::new(b"secret", []);
        for _ in 0..20_000 {
            let mut noise: [u8; 96] = random::bytes(system_random);
            noise[0] = VERSION;
            let cookie = URL_SAFE_NO_PAD.encode(noise);
            assert_eq!(sealer.open(&[b"session"], cookie.as_bytes()), None);
        }
    }
}
