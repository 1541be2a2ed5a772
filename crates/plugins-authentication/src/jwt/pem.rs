//! Public keys in PEM (RFC 7468), taken out of keys and certificates. No signature or date of these is checked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xA0;

/// The DER bytes of the first public key in the text: a `PUBLIC KEY`, an `RSA PUBLIC KEY`, or the key of a
/// `CERTIFICATE` (which is trusted because it is configured; its signature and times are not looked at).
pub(crate) fn public_key(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.chars().filter(|it| !it.is_ascii_whitespace()).collect();
    let der = STANDARD.decode(body).ok()?;
    match label {
        "PUBLIC KEY" | "RSA PUBLIC KEY" => Some(der),
        "CERTIFICATE" => key_of_certificate(&der),
        _ => None,
    }
}

/// Whether a `subjectPublicKeyInfo` is that of an Ed448 key (RFC 8410, 4: `1.3.101.113`).
pub(super) fn is_ed448(der: &[u8]) -> bool {
    const ALGORITHM: [u8; 5] = [0x06, 0x03, 0x2b, 0x65, 0x71];
    let key = content(der, SEQUENCE).and_then(|(_, key)| content(key, SEQUENCE));
    key.is_some_and(|(_, algorithm)| algorithm == ALGORITHM)
}

/// The `subjectPublicKeyInfo` of a certificate (RFC 5280, 4.1).
fn key_of_certificate(der: &[u8]) -> Option<Vec<u8>> {
    let (_, certificate) = content(der, SEQUENCE)?;
    let (_, mut fields) = content(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = &fields[element(fields)?.0..];
    }
    // Serial number, signature algorithm, issuer, validity, subject.
    for _ in 0..5 {
        fields = &fields[element(fields)?.0..];
    }
    let (length, _) = content(fields, SEQUENCE)?;
    Some(fields[..length].to_vec())
}

fn content(der: &[u8], tag: u8) -> Option<(usize, &[u8])> {
    let (length, content) = element(der)?;
    (der.first() == Some(&tag)).then_some((length, content))
}

/// The modulus and the exponent of an RSA key, of a `subjectPublicKeyInfo` or an `RSAPublicKey` (RFC 8017, A.1.1).
pub(super) fn rsa_numbers(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, fields) = content(der, SEQUENCE)?;
    let numbers = match content(fields, SEQUENCE) {
        None => fields,
        Some((algorithm, _)) => {
            let (_, bits) = content(&fields[algorithm..], BIT_STRING)?;
            content(bits.strip_prefix(&[0])?, SEQUENCE)?.1
        }
    };
    let (length, modulus) = content(numbers, INTEGER)?;
    let (_, exponent) = content(&numbers[length..], INTEGER)?;
    Some((modulus, exponent))
}

/// The length of an RSA key's modulus in bits.
pub(crate) fn rsa_bits(der: &[u8]) -> Option<usize> {
    let (modulus, _) = rsa_numbers(der)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros)?;
    Some((modulus.len() - zeros) * 8 - first.leading_zeros() as usize)
}

/// The length of the DER element at the start, and its content.
fn element(der: &[u8]) -> Option<(usize, &[u8])> {
    let first = usize::from(*der.get(1)?);
    let (head, length) = match first {
        0..=0x7F => (2, first),
        0x81..=0x84 => {
            let digits = der.get(2..2 + (first & 0x7F))?;
            let length = digits
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit));
            (2 + digits.len(), length)
        }
        _ => return None,
    };
    let end = head.checked_add(length)?;
    Some((end, der.get(head..end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ed448_is_distinguished_from_ed25519() {
        let pem = |start: &str, zeros: usize| {
            let body = format!("{start}{}", "A".repeat(zeros));
            public_key(&format!(
                "-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----"
            ))
        };
        let ed448 = pem("MEMwBQYDK2VxAzoA", 76).expect("DER");
        let ed25519 = pem("MCowBQYDK2VwAyEA", 43).or_else(|| pem("MCowBQYDK2VwAyEAAA==", 0));
        assert!(is_ed448(&ed448));
        assert!(!is_ed448(&ed25519.expect("DER")));
        assert!(!is_ed448(b""));
    }
}
