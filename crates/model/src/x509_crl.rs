//! Certificate revocation lists (CRLs: RFC 5280, 5) without extensions: those of version 1, and those of version 2 that an
//! authority writes so. Also how any CRL begins, and what is read of certificates to check a CRL. Trust and signatures are
//! not checked here.
//!
//! A CRL with extensions is not accepted: what they say about it has to be known. That holds for an entry with a critical
//! extension, too.

use crate::x509::{
    BIT_STRING, BOOLEAN, CONTEXT, Extension, INTEGER, OBJECT_ID, SEQUENCE, Values, time, whole_bytes,
};

/// `2.5.29.15`
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
/// The bit of `cRLSign` in the first byte of a key's usage.
const CRL_SIGN: u8 = 0x02;
/// How version 2 of a CRL is written.
const VERSION_2: &[u8] = &[1];

/// What is signed, and the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed<'d> {
    /// What the signature is over.
    pub content: &'d [u8],
    /// The algorithm of the signature: the content of the identifier.
    pub algorithm: &'d [u8],
    /// The signature.
    pub signature: &'d [u8],
}

impl<'d> Signed<'d> {
    /// Reads the parts of a certificate or a CRL in DER.
    fn of_der(der: &'d [u8]) -> Option<Self> {
        let mut outer = Values(der);
        let mut parts = outer.sequence()?;
        let signed = Self {
            content: parts.whole_sequence()?,
            algorithm: parts.expect(SEQUENCE)?,
            signature: whole_bytes(parts.expect(BIT_STRING)?)?,
        };
        (outer.0.is_empty() && parts.0.is_empty()).then_some(signed)
    }
}

/// What any CRL says about itself, with extensions or without them.
#[derive(Debug, Clone, Copy)]
pub struct CrlHead<'d> {
    /// What its authority has signed.
    pub signed: Signed<'d>,
    /// Its authority: the content of the name.
    pub issuer: &'d [u8],
    /// When there is a newer one, in seconds since the Unix epoch; `None`: it does not say.
    pub next_update: Option<i64>,
    /// What comes then.
    rest: Values<'d>,
}

/// The entries of a CRL without extensions.
#[derive(Debug, Clone, Copy)]
pub struct CrlWithoutExtensions<'d> {
    entries: Values<'d>,
}

impl<'d> CrlHead<'d> {
    /// Reads what stands before the entries of a CRL in DER. `None` if it is invalid.
    pub fn of_der(der: &'d [u8]) -> Option<Self> {
        let signed = Signed::of_der(der)?;
        let mut body = Values(signed.content).sequence()?;
        let mut ahead = body;
        if let (INTEGER, version) = ahead.next()? {
            body = ahead;
            if version != VERSION_2 {
                return None;
            }
        }
        let is_consistent = body.expect(SEQUENCE)? == signed.algorithm;
        let issuer = body.expect(SEQUENCE)?;
        time(body.next()?)?;
        let mut next_update = None;
        let mut ahead = body;
        if let Some(value) = ahead.next()
            && !matches!(value.0, SEQUENCE | CONTEXT)
        {
            next_update = Some(time(value)?);
            body = ahead;
        }
        is_consistent.then_some(Self {
            signed,
            issuer,
            next_update,
            rest: body,
        })
    }
}

impl<'d> CrlWithoutExtensions<'d> {
    /// Reads a CRL in DER. `None` if it is invalid, or has extensions.
    pub fn of_der(der: &'d [u8]) -> Option<Self> {
        let mut body = CrlHead::of_der(der)?.rest;
        let entries = match body.0.is_empty() {
            true => Values(&[]),
            false => body.sequence()?,
        };
        if !body.0.is_empty() {
            return None;
        }
        let crl = Self { entries };
        crl.check_entries()?;
        Some(crl)
    }

    /// `None`: an entry is invalid, or has a critical extension.
    fn check_entries(&self) -> Option<()> {
        let mut entries = self.entries;
        while !entries.0.is_empty() {
            let mut entry = entries.sequence()?;
            entry.expect(INTEGER)?;
            time(entry.next()?)?;
            let mut extensions = match entry.0.is_empty() {
                true => Values(&[]),
                false => entry.sequence()?,
            };
            while !extensions.0.is_empty() {
                let mut extension = extensions.sequence()?;
                extension.expect(OBJECT_ID)?;
                if matches!(extension.next()?, (BOOLEAN, critical) if critical != [0]) {
                    return None;
                }
            }
            entry.0.is_empty().then_some(())?;
        }
        Some(())
    }

    /// The serial numbers of the revoked certificates, as they are written.
    pub fn serials(&self) -> impl Iterator<Item = &'d [u8]> + use<'d> {
        let mut entries = self.entries;
        std::iter::from_fn(move || entries.sequence()?.expect(INTEGER))
    }
}

/// A serial number without zeros in front.
pub fn serial_number(serial: &[u8]) -> &[u8] {
    let zeros = serial.iter().take_while(|byte| **byte == 0).count();
    &serial[zeros..]
}

/// The fields of a certificate that checking a CRL takes: of a client's, or of the CRL's issuer's.
#[derive(Debug, Clone, Copy)]
pub struct CertificateFields<'d> {
    /// What its authority has signed.
    pub signed: Signed<'d>,
    /// Its serial number.
    pub serial: &'d [u8],
    /// Its authority: the content of the name.
    pub issuer: &'d [u8],
    /// Whose it is: the content of the name.
    pub subject: &'d [u8],
    /// The algorithm of its key (the content of the identifier), and the key.
    pub key: (&'d [u8], &'d [u8]),
    /// Whether its key may sign CRLs.
    pub may_sign_crls: bool,
}

impl<'d> CertificateFields<'d> {
    /// Reads a certificate in DER; `None` if it is invalid.
    pub fn of_der(der: &'d [u8]) -> Option<Self> {
        let signed = Signed::of_der(der)?;
        let mut body = Values(signed.content).sequence()?;
        let mut ahead = body;
        if ahead.next()?.0 == CONTEXT {
            body = ahead;
        }
        let serial = body.expect(INTEGER)?;
        body.sequence()?;
        let issuer = body.expect(SEQUENCE)?;
        body.sequence()?;
        let subject = body.expect(SEQUENCE)?;
        let mut key = body.sequence()?;
        let key = (key.expect(SEQUENCE)?, whole_bytes(key.expect(BIT_STRING)?)?);
        let usage = Extension::find(body, KEY_USAGE);
        let may_sign_crls = match usage.map(|mut it| it.value.expect(BIT_STRING)) {
            None => true,
            Some(bits) => bits?.get(1).is_some_and(|first| first & CRL_SIGN != 0),
        };
        Some(Self {
            signed,
            serial,
            issuer,
            subject,
            key,
            may_sign_crls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value in DER, of less than 128 bytes.
    fn value(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = u8::try_from(content.len()).expect("a short one");
        [&[kind, length], content.as_slice()].concat()
    }

    fn crl(version: Option<u8>, next: bool, entry_rest: &[u8], rest: &[u8]) -> Vec<u8> {
        let at = value(0x17, &[b"260101000000Z"]);
        let algorithm = value(SEQUENCE, &[&value(OBJECT_ID, &[&[42]])]);
        let entry = value(SEQUENCE, &[&value(INTEGER, &[&[0, 0x80]]), &at, entry_rest]);
        let body = value(
            SEQUENCE,
            &[
                &version.map_or_else(Vec::new, |it| value(INTEGER, &[&[it]])),
                &algorithm,
                &value(SEQUENCE, &[]),
                &at,
                if next { &at } else { &[] },
                &value(SEQUENCE, &[&entry]),
                rest,
            ],
        );
        value(SEQUENCE, &[&body, &algorithm, &value(BIT_STRING, &[&[0, 1]])])
    }

    #[test]
    fn crls_without_extensions_are_read() {
        let extension = |critical: &[u8]| {
            let id = value(OBJECT_ID, &[&[0x55, 0x1d, 21]]);
            let parts = value(SEQUENCE, &[&id, critical, &value(0x04, &[&[1]])]);
            value(SEQUENCE, &[&parts])
        };
        for (what, der, is_read) in [
            ("version 1", crl(None, true, &[], &[]), true),
            ("version 2", crl(Some(1), true, &[], &[]), true),
            ("without an end", crl(None, false, &[], &[]), true),
            ("a reason", crl(Some(1), true, &extension(&[]), &[]), true),
            (
                "a critical part",
                crl(Some(1), true, &extension(&[1, 1, 0xff]), &[]),
                false,
            ),
            ("version 3", crl(Some(2), true, &[], &[]), false),
            (
                "extensions",
                crl(Some(1), true, &[], &value(CONTEXT, &[&extension(&[])])),
                false,
            ),
            (
                "an entry with more",
                crl(None, true, &value(SEQUENCE, &[]), &[1, 0]),
                false,
            ),
            ("no CRL", vec![SEQUENCE, 0], false),
        ] {
            let read = CrlWithoutExtensions::of_der(&der);
            assert_eq!(read.is_some(), is_read, "{what}");
            let ends = CrlHead::of_der(&der).map(|head| head.next_update.is_some());
            let expected = match what {
                "version 3" | "no CRL" => None,
                _ => Some(what != "without an end"),
            };
            assert_eq!(ends, expected, "{what}");
            let cut = CrlWithoutExtensions::of_der(&der[..der.len() - 1]);
            assert!(cut.is_none(), "{what}, cut off");
            if let Some(read) = read {
                let serials: Vec<_> = read.serials().collect();
                assert_eq!(serials, [[0, 0x80]], "{what}");
                assert_eq!(serial_number(serials[0]), [0x80], "{what}");
            }
        }
    }
}
