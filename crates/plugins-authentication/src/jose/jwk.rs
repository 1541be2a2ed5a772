//! JSON Web Keys (RFC 7517, RFC 7518): their fields, and the forms in which libraries read them. What a key may be used for
//! is decided by the caller.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// A key as it is written. It may hold private parts, so it is not `Debug`.
#[derive(Default, Deserialize)]
pub(super) struct Jwk {
    pub(super) kty: String,
    #[serde(default)]
    pub(super) kid: Option<String>,
    #[serde(default)]
    pub(super) alg: Option<String>,
    #[serde(default, rename = "use")]
    pub(super) purpose: Option<String>,
    #[serde(default)]
    pub(super) crv: Option<String>,
    #[serde(default)]
    pub(super) n: Option<String>,
    #[serde(default)]
    pub(super) e: Option<String>,
    #[serde(default)]
    pub(super) x: Option<String>,
    #[serde(default)]
    pub(super) y: Option<String>,
    #[serde(default)]
    pub(super) d: Option<String>,
    #[serde(default)]
    pub(super) p: Option<String>,
    #[serde(default)]
    pub(super) q: Option<String>,
    #[serde(default)]
    pub(super) dp: Option<String>,
    #[serde(default)]
    pub(super) dq: Option<String>,
    #[serde(default)]
    pub(super) qi: Option<String>,
    #[serde(default)]
    pub(super) k: Option<String>,
}

impl Jwk {
    /// Whether it may be used so: a key that names no use is good for all.
    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.purpose.as_deref().is_none_or(|own| own == purpose)
    }

    /// The secret of a symmetric key.
    pub(super) fn secret(&self) -> Option<Vec<u8>> {
        decoded(&self.k).filter(|secret| !secret.is_empty())
    }

    /// The public key of RSA: an `RSAPublicKey` (RFC 8017, A.1.1).
    pub(super) fn rsa_public(&self) -> Option<Vec<u8>> {
        let numbers = [integer(&decoded(&self.n)?), integer(&decoded(&self.e)?)].concat();
        Some(element(0x30, &numbers))
    }

    /// The private key of RSA: an `RSAPrivateKey` (RFC 8017, A.1.2).
    pub(super) fn rsa_private(&self) -> Option<Vec<u8>> {
        let parts = [
            &self.n, &self.e, &self.d, &self.p, &self.q, &self.dp, &self.dq, &self.qi,
        ];
        let mut numbers = integer(&[0]);
        for part in parts {
            numbers.extend(integer(&decoded(part)?));
        }
        Some(element(0x30, &numbers))
    }

    /// The point of a key on a curve, as SEC 1 writes it without compression.
    pub(super) fn point(&self) -> Option<Vec<u8>> {
        let (x, y) = (decoded(&self.x)?, decoded(&self.y)?);
        Some([&[4][..], &x, &y].concat())
    }
}

/// The bytes of a field.
pub(super) fn decoded(text: &Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.as_deref()?).ok()
}

/// An RSA key of PKCS#1 as one of PKCS#8 (RFC 5958).
pub(super) fn pkcs8(rsa_private: &[u8]) -> Vec<u8> {
    /// The version, and the algorithm `rsaEncryption`.
    const HEAD: [u8; 18] = [
        0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05,
        0x00,
    ];
    element(0x30, &[&HEAD[..], &element(0x04, rsa_private)].concat())
}

/// The numbers of an RSA key of PKCS#8 in the order of PKCS#1 (RFC 8017, A.1.2), from the modulus to the coefficient.
pub(super) fn rsa_numbers(pkcs8: &[u8]) -> Option<Vec<&[u8]>> {
    let (outer, _) = first_content(pkcs8)?;
    let (_version, rest) = first_content(outer)?;
    let (_algorithm, rest) = first_content(rest)?;
    let (key, _) = first_content(first_content(rest)?.0)?;
    let (_version, mut rest) = first_content(key)?;
    let mut numbers = Vec::with_capacity(8);
    for _ in 0..8 {
        let (number, after) = first_content(rest)?;
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        numbers.push(&number[zeros..]);
        rest = after;
    }
    Some(numbers)
}

/// The content of the first DER element, and what is behind it.
fn first_content(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_tag, short], rest) = der.split_first_chunk()?;
    if short < 0x80 {
        return rest.split_at_checked(usize::from(short));
    }
    let (bytes, rest) = rest.split_at_checked(usize::from(short & 0x7f).min(4))?;
    let length = bytes
        .iter()
        .fold(0, |length, byte| (length << 8) | usize::from(*byte));
    rest.split_at_checked(length)
}

fn integer(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let mut digits = number[zeros..].to_vec();
    if digits.first().is_none_or(|first| first & 0x80 != 0) {
        digits.insert(0, 0);
    }
    element(0x02, &digits)
}

/// A DER element.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let mut out = vec![tag];
    match content.len() {
        short @ 0..0x80 => out.push(short as u8),
        _ => {
            out.push(0x80 | (length.len() - zeros) as u8);
            out.extend_from_slice(&length[zeros..]);
        }
    }
    out.extend_from_slice(content);
    out
}
