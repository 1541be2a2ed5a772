//! What is read of certificates and keys before they are kept or served: whether they are any, belong together, and
//! how long they are good. Trust is not checked, and the time is an argument.
//!
//! Nothing is taken for granted: what is cut off or has a wrong length is no certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A certificate (RFC 5280).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its bytes (DER).
    pub der: Vec<u8>,
    /// The algorithm of its key, as an object identifier.
    pub algorithm: Vec<u8>,
    /// Its public key, as its algorithm writes it.
    pub public_key: Vec<u8>,
    /// The first second in which it is good, since the Unix epoch.
    pub not_before: i64,
    /// The last second in which it is good.
    pub not_after: i64,
    /// Whether it may sign others.
    pub is_authority: bool,
}

/// `1.2.840.113549.1.1.1`
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// The shortest RSA key that is served.
const MIN_RSA_BITS: usize = 2048;
/// `2.5.29.19`
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
/// `[0]` and the like, with something inside.
pub(crate) const CONTEXT: u8 = 0xa0;

/// The values of one level of a DER text (X.690), one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'d>(pub(crate) &'d [u8]);

impl<'d> Values<'d> {
    /// The next value: its kind and its content.
    pub(crate) fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (&kind, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = bytes
                    .iter()
                    .fold(0, |length, byte| (length << 8) | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((kind, content))
    }

    /// The next value, which must be of this kind.
    pub(crate) fn expect(&mut self, wanted: u8) -> Option<&'d [u8]> {
        self.next()
            .filter(|(kind, _)| *kind == wanted)
            .map(|(_, content)| content)
    }

    /// The values inside of the next one, a sequence.
    pub(crate) fn sequence(&mut self) -> Option<Values<'d>> {
        self.expect(SEQUENCE).map(Values)
    }

    /// The next value, a sequence, with its kind and length.
    pub(crate) fn whole_sequence(&mut self) -> Option<&'d [u8]> {
        let all = self.0;
        self.expect(SEQUENCE)?;
        all.get(..all.len() - self.0.len())
    }
}

/// An extension among the rest of a certificate's body: its id and its value.
pub(crate) struct Extension<'d> {
    pub(crate) id: &'d [u8],
    pub(crate) value: Values<'d>,
}

impl<'d> Extension<'d> {
    /// The next extension of a list; `None` at the end, or if the data is invalid.
    pub(crate) fn next(extensions: &mut Values<'d>) -> Option<Self> {
        let mut parts = extensions.sequence()?;
        let id = parts.expect(OBJECT_ID)?;
        let mut value = parts.next()?;
        // Before it may stand whether it is critical.
        if value.0 != OCTET_STRING {
            value = parts.next()?;
        }
        Some(Self {
            id,
            value: Values(value.1),
        })
    }

    /// The one with an id in the rest of a certificate's body.
    pub(crate) fn find(mut body: Values<'d>, wanted: &[u8]) -> Option<Self> {
        let mut extensions = loop {
            let (kind, content) = body.next()?;
            if kind == CONTEXT | 3 {
                break Values(content).sequence()?;
            }
        };
        loop {
            let extension = Self::next(&mut extensions)?;
            if extension.id == wanted {
                return Some(extension);
            }
        }
    }
}

impl Certificate {
    /// The first certificate of a PEM text (RFC 7468).
    pub fn of_pem(text: &str) -> Option<Self> {
        Self::of_der(&pem(text, |label| label == "CERTIFICATE")?)
    }

    /// A certificate in DER.
    pub fn of_der(der: &[u8]) -> Option<Self> {
        let mut body = Values(der).sequence()?.sequence()?;
        let mut version = body;
        if version.next()?.0 == CONTEXT {
            body = version;
        }
        body.expect(INTEGER)?;
        body.sequence()?;
        body.sequence()?;
        let mut validity = body.sequence()?;
        let (not_before, not_after) = (validity.next()?, validity.next()?);
        body.sequence()?;
        let mut key = body.sequence()?;
        let algorithm = key.sequence()?.expect(OBJECT_ID)?.to_vec();
        let public_key = key.expect(BIT_STRING)?.get(1..)?.to_vec();
        Some(Self {
            der: der.to_vec(),
            algorithm,
            public_key,
            not_before: time(not_before)?,
            not_after: time(not_after)?,
            is_authority: is_authority(body).unwrap_or(false),
        })
    }

    /// Whether its key is an RSA key that is too short to be served.
    pub fn has_short_rsa_key(&self) -> bool {
        let modulus = || Values(&self.public_key).sequence()?.expect(INTEGER);
        let bits = |modulus: &[u8]| {
            let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
            let first = modulus
                .get(zeros)
                .map_or(0, |first| first.leading_zeros() as usize);
            (modulus.len() - zeros) * 8 - first
        };
        self.algorithm == RSA && modulus().is_some_and(|modulus| bits(modulus) < MIN_RSA_BITS)
    }

    /// Whether a private key is this certificate's. What cannot be read of it is not held against it.
    pub fn fits(&self, key: &str) -> bool {
        match public_part(key) {
            Some(public) => public == self.public_key,
            None => true,
        }
    }
}

/// Whether a text holds a private key (PKCS#8, PKCS#1, SEC1) in PEM.
pub fn is_private_key(text: &str) -> bool {
    pem(text, |label| label.ends_with("PRIVATE KEY")).is_some_and(|der| Values(&der).sequence().is_some())
}

/// What is to be said of a certificate in PEM that cannot be served for its key.
pub fn unserved_key(certificate: &str) -> Option<&'static str> {
    let is_short = Certificate::of_pem(certificate)?.has_short_rsa_key();
    is_short.then_some("a certificate with an RSA key of fewer than 2048 bits is not served")
}

/// The first block of a PEM text with an accepted label.
fn pem(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find("-----BEGIN ")? + 11..];
        let (label, behind) = rest.split_once("-----")?;
        let (content, behind) = behind.split_once("-----END ")?;
        if is_wanted(label) {
            let content: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            return STANDARD.decode(content).ok();
        }
        rest = behind;
    }
}

/// The public key of a private one, as certificates hold it; `None`: it is not written with it.
fn public_part(key: &str) -> Option<Vec<u8>> {
    let der = pem(key, |label| label.ends_with("PRIVATE KEY"))?;
    let mut values = Values(&der).sequence()?;
    values.expect(INTEGER)?;
    let mut ahead = values;
    match ahead.next()? {
        // PKCS#8: the algorithm, and the key in a text of its own.
        (SEQUENCE, algorithm) => {
            let is_rsa = Values(algorithm).expect(OBJECT_ID)? == RSA;
            let mut inner = Values(ahead.expect(OCTET_STRING)?).sequence()?;
            inner.expect(INTEGER)?;
            if is_rsa {
                rsa_public(inner)
            } else {
                curve_public(inner)
            }
        }
        (INTEGER, _) => rsa_public(values),
        (OCTET_STRING, _) => curve_public(values),
        _ => None,
    }
}

/// The modulus and the exponent, as PKCS#1 writes them.
fn rsa_public(mut values: Values<'_>) -> Option<Vec<u8>> {
    let all = values.0;
    values.expect(INTEGER)?;
    values.expect(INTEGER)?;
    let content = &all[..all.len() - values.0.len()];
    let mut out = vec![SEQUENCE];
    let length = content.len();
    if length < 0x80 {
        out.push(u8::try_from(length).ok()?);
    } else {
        let bytes = u16::try_from(length).ok()?.to_be_bytes();
        let bytes = if bytes[0] == 0 { &bytes[1..] } else { &bytes[..] };
        out.push(0x80 | u8::try_from(bytes.len()).ok()?);
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(content);
    Some(out)
}

/// The point that SEC1 keys may carry.
fn curve_public(mut values: Values<'_>) -> Option<Vec<u8>> {
    values.expect(OCTET_STRING)?;
    loop {
        let (kind, content) = values.next()?;
        if kind == CONTEXT | 1 {
            return Some(Values(content).expect(BIT_STRING)?.get(1..)?.to_vec());
        }
    }
}

fn is_authority(body: Values<'_>) -> Option<bool> {
    let mut constraints = Extension::find(body, BASIC_CONSTRAINTS)?;
    let (_, truth) = constraints.value.sequence()?.next()?;
    Some(truth == [0xff])
}

/// The bytes of a string of bits that ends with a byte.
pub(crate) fn whole_bytes(bits: &[u8]) -> Option<&[u8]> {
    match bits {
        [0, bytes @ ..] => Some(bytes),
        _ => None,
    }
}

/// Seconds since the Unix epoch: `YYMMDDHHMMSSZ` up to 2049, `YYYYMMDDHHMMSSZ` from then on (RFC 5280, 4.1.2.5). The
/// seconds may be missing.
pub(crate) fn time((kind, text): (u8, &[u8])) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| {
        digits
            .iter()
            .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
    };
    let (year, rest) = match (kind, digits.len()) {
        (UTC_TIME, 10 | 12) => {
            let short = number(&digits[..2]);
            (if short < 50 { 2000 + short } else { 1900 + short }, &digits[2..])
        }
        (GENERALIZED_TIME, 12 | 14) => (number(&digits[..4]), &digits[4..]),
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2).map_or(0, number);
    let (month, day) = (part(0), part(2));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days(year, month, day) * 86_400 + part(4) * 3_600 + part(6) * 60 + part(8))
}

/// Days since the Unix epoch of a day in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_the_epoch() {
        for (kind, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "240229120000Z", Some(1_709_208_000)),
            (0x18, "20500101000000Z", Some(2_524_608_000)),
            (UTC_TIME, "2401011200Z", Some(1_704_110_400)),
            (UTC_TIME, "x", None),
            (UTC_TIME, "240230000000", None),
            (UTC_TIME, "241301000000Z", None),
            (GENERALIZED_TIME, "20240100000000Z", None),
            (INTEGER, "240101000000Z", None),
        ] {
            assert_eq!(time((kind, text.as_bytes())), expected, "{text}");
        }
    }

    #[test]
    fn certificates_with_short_rsa_keys_are_known() {
        for (certificate, is_short) in [
            (include_str!("../../saml/tests/data/short.crt.pem"), true),
            (include_str!("../../saml/tests/data/idp.crt.pem"), false),
            (include_str!("../../saml/tests/data/ec.crt.pem"), false),
            ("{vault://env/certificate}", false),
        ] {
            assert_eq!(unserved_key(certificate).is_some(), is_short, "{certificate}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        for text in [
            "",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(Certificate::of_pem(text), None, "{text}");
        }
    }
}
