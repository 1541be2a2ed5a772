//! Certificates of X.509 version 1 (RFC 5280, 4.1), which have no extensions. Only the parts that are needed to verify
//! their signature are read. Trust and time are not checked here.
//!
//! A certificate with a version, an extension or trailing data is not accepted.

use crate::x509::{BIT_STRING, INTEGER, OBJECT_ID, SEQUENCE, Values, time, whole_bytes};

/// A certificate of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version1<'d> {
    /// What the signature is over.
    pub signed: &'d [u8],
    /// Who signed it: the content of the name.
    pub issuer: &'d [u8],
    /// The first second in which it is good, since the Unix epoch.
    pub not_before: i64,
    /// The last second in which it is good.
    pub not_after: i64,
    /// Its public key and the key's algorithm (`SubjectPublicKeyInfo`).
    pub key: &'d [u8],
    /// The algorithm of the signature: the content of the identifier.
    pub algorithm: &'d [u8],
    /// The signature.
    pub signature: &'d [u8],
}

impl<'d> Version1<'d> {
    /// Parses a certificate in DER; `None` if it is invalid, or has a later version.
    pub fn of_der(der: &'d [u8]) -> Option<Self> {
        let mut outer = Values(der);
        let mut parts = outer.sequence()?;
        let signed = parts.whole_sequence()?;
        let algorithm = parts.expect(SEQUENCE)?;
        let signature = whole_bytes(parts.expect(BIT_STRING)?)?;
        let mut body = Values(signed).sequence()?;
        // A version would stand before the serial number.
        body.expect(INTEGER)?;
        let is_consistent = body.expect(SEQUENCE)? == algorithm;
        let issuer = body.expect(SEQUENCE)?;
        let mut validity = body.sequence()?;
        let (not_before, not_after) = (time(validity.next()?)?, time(validity.next()?)?);
        body.expect(SEQUENCE)?;
        let key = body.whole_sequence()?;
        let has_more = [outer, parts, body, validity]
            .iter()
            .any(|rest| !rest.0.is_empty());
        (is_consistent && !has_more).then_some(Self {
            signed,
            issuer,
            not_before,
            not_after,
            key,
            algorithm,
            signature,
        })
    }
}

/// The parts of a public key: the content of its algorithm's identifier, and the key. It takes the content of a
/// `SubjectPublicKeyInfo`.
pub fn public_key(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut values = Values(content);
    let algorithm = values.expect(SEQUENCE)?;
    Values(algorithm).expect(OBJECT_ID)?;
    let key = whole_bytes(values.expect(BIT_STRING)?)?;
    values.0.is_empty().then_some((algorithm, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    /// Of version 1, as `openssl x509 -req` makes them.
    const OLD: &str = "MIIBIzCByQIUNvm95Ox5c8Ox6ip5S9Nlu1NC9bYwCgYIKoZIzj0EAwIwEzERMA8GA1UEAwwIb2xkLnRlc3QwIBcNMjYxMTIy\
                       MjA0MDI2WhgPMjEyNjEwMjkyMDQwMjZaMBMxETAPBgNVBAMMCG9sZC50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\
                       cNqqFOZ1vApIJ1F9I4JYc+9gcoFcyGf5zsyAnomoMMGT4dVsEqtXgSTuyOiWuzJyN5tIZo+V8AF+h/xKfpg94TAKBggqhkjO\
                       PQQDAgNJADBGAiEA4UXXOmSmPg5rhVPK5m4HqHYsbHfC+40IlnDwY3OMHAMCIQDwQ5B/4c8SE04o5N4pNI8wNyp5o7sXOUI6\
                       2ElXB4MNOQ==";

    fn old() -> Vec<u8> {
        STANDARD.decode(OLD).expect("Base64")
    }

    #[test]
    fn the_parts_are_those_of_the_certificate() {
        let der = old();
        let read = Version1::of_der(&der).expect("of version 1");
        assert_eq!(read.signed.len(), 0xc9 + 3);
        assert!(read.issuer.ends_with(b"old.test"));
        assert_eq!((read.not_before, read.not_after), (1_795_380_026, 4_948_980_026));
        // ecdsa-with-SHA256
        assert_eq!(read.algorithm, [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
        assert_eq!(read.signature.len(), 72);
        let (_, point) = public_key(&read.key[2..]).expect("a key");
        assert_eq!((point.len(), point[0]), (65, 4));
    }

    #[test]
    fn what_is_cut_off_changed_or_followed_by_more_is_none() {
        let der = old();
        for length in 0..der.len() {
            assert_eq!(Version1::of_der(&der[..length]), None, "{length}");
        }
        let followed = [&der[..], &[0]].concat();
        assert_eq!(Version1::of_der(&followed), None);
        // Places and what stands there: a version before the serial number, the algorithm named inside, bits left over.
        let signature = der.len() - 73;
        for (place, byte) in [(7, 0xa0), (40, 9), (signature, 1)] {
            let mut changed = der.clone();
            assert_ne!(changed[place], byte);
            changed[place] = byte;
            assert_eq!(Version1::of_der(&changed), None, "{place}");
        }
    }
}
