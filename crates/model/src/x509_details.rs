//! The details of a certificate that plugins report: names, serial number, and the address of its authority's
//! revocation list. Trust is not checked here.

use crate::x509::{CONTEXT, Extension, OBJECT_ID, SEQUENCE, Values};
use std::fmt::Write;

/// What can be said about a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateDetails {
    /// The serial number in hexadecimal digits.
    pub serial: String,
    /// Who signed it (RFC 2253).
    pub issuer: String,
    /// Whose it is (RFC 2253).
    pub subject: String,
    /// The last common name of the subject.
    pub common_name: Option<String>,
    /// Further names of the subject: mail addresses, host names and URIs.
    pub alternative_names: Vec<String>,
    /// Whether issuer and subject have the same name.
    pub is_self_issued: bool,
    /// Where certificate revocation lists (CRLs) can be had.
    pub revocation_lists: Vec<String>,
}

/// `2.5.29.17`
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// `2.5.29.31`
const DISTRIBUTION_POINTS: &[u8] = &[0x55, 0x1d, 0x1f];
/// `2.5.4.3`
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

const SET: u8 = 0x31;
/// `[n]` with a text inside.
const TAGGED: u8 = 0x80;
const MAIL: u8 = TAGGED | 1;
const HOST: u8 = TAGGED | 2;
const URI: u8 = TAGGED | 6;

/// The types of attributes that have a short name (RFC 2253, 2.3, and the usual ones).
const SHORT: [(&[u8], &str); 10] = [
    (COMMON_NAME, "CN"),
    (&[0x55, 0x04, 0x05], "serialNumber"),
    (&[0x55, 0x04, 0x06], "C"),
    (&[0x55, 0x04, 0x07], "L"),
    (&[0x55, 0x04, 0x08], "ST"),
    (&[0x55, 0x04, 0x09], "street"),
    (&[0x55, 0x04, 0x0a], "O"),
    (&[0x55, 0x04, 0x0b], "OU"),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19],
        "DC",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01],
        "emailAddress",
    ),
];

impl CertificateDetails {
    /// Reads a certificate in DER.
    pub fn of_der(der: &[u8]) -> Option<Self> {
        let mut body = Values(der).sequence()?.sequence()?;
        let mut ahead = body;
        if ahead.next()?.0 == CONTEXT {
            body = ahead;
        }
        let (_, serial) = body.next()?;
        body.sequence()?;
        let issuer = body.expect(SEQUENCE)?;
        body.sequence()?;
        let subject = body.expect(SEQUENCE)?;
        body.sequence()?;
        let mut details = Self {
            serial: hexadecimal(serial),
            issuer: name(issuer)?.0,
            is_self_issued: issuer == subject,
            ..Self::default()
        };
        (details.subject, details.common_name) = name(subject)?;
        while let Some((kind, content)) = body.next() {
            if kind == CONTEXT | 3 {
                details.read_extensions(content)?;
            }
        }
        Some(details)
    }

    fn read_extensions(&mut self, content: &[u8]) -> Option<()> {
        let mut extensions = Values(content).sequence()?;
        while let Some(mut extension) = Extension::next(&mut extensions) {
            match extension.id {
                ALTERNATIVE_NAME => {
                    let mut names = extension.value.sequence()?;
                    while let Some((kind, text)) = names.next() {
                        if matches!(kind, MAIL | HOST | URI) {
                            self.alternative_names
                                .extend(String::from_utf8(text.to_vec()).ok());
                        }
                    }
                }
                DISTRIBUTION_POINTS => {
                    let mut points = extension.value.sequence()?;
                    while let Some((_, point)) = points.next() {
                        self.revocation_lists.extend(address(point));
                    }
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// The address of a distribution point (RFC 5280, 4.2.1.13).
fn address(point: &[u8]) -> Option<String> {
    let name = Values(point).expect(CONTEXT)?;
    let mut names = Values(Values(name).expect(CONTEXT)?);
    loop {
        let (kind, text) = names.next()?;
        if kind == URI {
            return String::from_utf8(text.to_vec()).ok();
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    // A leading zero only says that the number is positive.
    let bytes = match bytes {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing into a text does not fail.
        let _always = write!(out, "{byte:02X}");
        out
    })
}

/// A name as text, the last part first (RFC 2253), and its last common name.
fn name(content: &[u8]) -> Option<(String, Option<String>)> {
    let mut parts = Vec::new();
    let mut common_name = None;
    let mut sets = Values(content);
    while let Some((kind, set)) = sets.next() {
        if kind != SET {
            return None;
        }
        let mut attributes = Vec::new();
        let mut values = Values(set);
        while let Some((_, attribute)) = values.next() {
            let mut attribute = Values(attribute);
            let id = attribute.expect(OBJECT_ID)?;
            let (kind, value) = attribute.next()?;
            let value = text(kind, value);
            let short = SHORT.iter().find(|(known, _)| *known == id);
            let label = short.map_or_else(|| dotted(id), |(_, label)| (*label).to_owned());
            attributes.push(format!("{label}={}", escaped(&value)));
            if id == COMMON_NAME {
                common_name = Some(value);
            }
        }
        parts.push(attributes.join("+"));
    }
    parts.reverse();
    Some((parts.join(","), common_name))
}

/// The text of a value: UTF-8, one byte a letter, or two.
fn text(kind: u8, value: &[u8]) -> String {
    match kind {
        0x14 => value.iter().copied().map(char::from).collect(),
        0x1e => {
            let units: Vec<u16> = value
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16_lossy(&units)
        }
        _ => String::from_utf8_lossy(value).into_owned(),
    }
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                out.push('\\');
                out.push(byte.into());
            }
            b'#' if at == 0 => out.push_str("\\#"),
            b' ' if at == 0 || at == last => out.push_str("\\ "),
            b' '..=b'~' => out.push(byte.into()),
            _ => {
                let _always = write!(out, "\\{byte:02X}");
            }
        }
    }
    out
}

/// An object identifier as numbers and dots.
fn dotted(id: &[u8]) -> String {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0_u64;
    for byte in id {
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.extend([first, number - first * 40]);
            } else {
                numbers.push(number);
            }
            number = 0;
        }
    }
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        for (value, expected) in [
            ("a b", "a b"),
            (" a ", "\\ a\\ "),
            ("a,b+c", "a\\,b\\+c"),
            ("#a#", "\\#a#"),
            ("ä", "\\C3\\A4"),
            ("a\r\nX: y", "a\\0D\\0AX: y"),
        ] {
            assert_eq!(escaped(value), expected);
        }
    }

    #[test]
    fn numbers_are_written() {
        assert_eq!(dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]), "1.2.840.113549");
        assert_eq!(dotted(&[0x55, 0x1d, 0x11]), "2.5.29.17");
        assert_eq!(hexadecimal(&[0, 0xab, 1]), "AB01");
        assert_eq!(hexadecimal(&[0]), "00");
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        assert_eq!(CertificateDetails::of_der(&[]), None);
        assert_eq!(CertificateDetails::of_der(&[0x30, 0x82, 0xff]), None);
    }
}
