//! What is said between a server and the responder that knows whether its certificate was revoked (OCSP, RFC 6960), as
//! bytes. It computes no hash, checks no signature and does no I/O: signatures and times are for the caller to judge.

use crate::x509::{BIT_STRING, CONTEXT, Extension, INTEGER, OBJECT_ID, OCTET_STRING, SEQUENCE, Values, time};

/// `1.3.6.1.5.5.7.1.1`: who knows more of a certificate.
const AUTHORITY_INFORMATION: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x01];
/// `1.3.6.1.5.5.7.48.1`: a responder.
const RESPONDER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01];
/// `1.3.6.1.5.5.7.48.1.1`: the basic form of an answer.
const BASIC_RESPONSE: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];
/// `1.3.14.3.2.26`: SHA-1, by which responders know certificates.
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// A place in the World Wide Web, in a name.
const URL: u8 = 0x86;
const ENUMERATED: u8 = 0x0a;
const NULL: u8 = 0x05;
/// Certificates that a response brings, and answers that it gives, at most.
const MAX_ITEMS: usize = 16;

/// What is read of a certificate to ask about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Subject<'d> {
    /// Its number.
    serial: &'d [u8],
    /// The name of its issuer, with kind and length.
    pub issuer_name: &'d [u8],
    /// The public key of its issuer.
    pub issuer_key: &'d [u8],
}

/// How a responder knows a certificate: by hashes (SHA-1) of its issuer's name and key, and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateId {
    name_hash: Vec<u8>,
    key_hash: Vec<u8>,
    serial: Vec<u8>,
}

impl<'d> Subject<'d> {
    /// Reads a certificate and its issuer's, both in DER. `None` if one of them is invalid.
    pub fn of(certificate: &'d [u8], issuer: &'d [u8]) -> Option<Self> {
        let (serial, issuer_name, _) = parts(certificate)?;
        let (.., mut rest) = parts(issuer)?;
        // Its validity and its own name.
        rest.sequence()?;
        rest.sequence()?;
        let mut key = rest.sequence()?;
        key.sequence()?;
        Some(Self {
            serial,
            issuer_name,
            issuer_key: key.expect(BIT_STRING)?.get(1..)?,
        })
    }

    /// How responders know it.
    pub fn id(&self, sha1: impl Fn(&[u8]) -> Vec<u8>) -> CertificateId {
        CertificateId {
            name_hash: sha1(self.issuer_name),
            key_hash: sha1(self.issuer_key),
            serial: self.serial.to_vec(),
        }
    }
}

/// A certificate's number, its issuer's name with kind and length, and what follows.
fn parts(certificate: &[u8]) -> Option<(&[u8], &[u8], Values<'_>)> {
    let mut body = Values(certificate).sequence()?.sequence()?;
    let mut version = body;
    if version.next()?.0 == CONTEXT {
        body = version;
    }
    let serial = body.expect(INTEGER)?;
    body.sequence()?;
    let name = body.whole_sequence()?;
    Some((serial, name, body))
}

/// Where a certificate's responder is; `None`: it names none.
pub fn responder(certificate: &[u8]) -> Option<String> {
    let (.., rest) = parts(certificate)?;
    let mut descriptions = Extension::find(rest, AUTHORITY_INFORMATION)?.value.sequence()?;
    while let Some(mut description) = descriptions.sequence() {
        if description.expect(OBJECT_ID)? == RESPONDER
            && let Some((URL, text)) = description.next()
        {
            return String::from_utf8(text.to_vec()).ok();
        }
    }
    None
}

impl CertificateId {
    /// The question about the certificate, for its responder.
    pub fn request(&self) -> Vec<u8> {
        let algorithm = value(SEQUENCE, &[value(OBJECT_ID, &[SHA1]), value::<&[u8]>(NULL, &[])]);
        let id = value(
            SEQUENCE,
            &[
                algorithm,
                value(OCTET_STRING, &[&self.name_hash]),
                value(OCTET_STRING, &[&self.key_hash]),
                value(INTEGER, &[&self.serial]),
            ],
        );
        // A question, in a list of them, in what could be signed, in the request.
        (0..4).fold(id, |inside, _| value(SEQUENCE, &[inside]))
    }
}

/// A value of this kind.
fn value<T: AsRef<[u8]>>(kind: u8, parts: &[T]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.as_ref().len()).sum();
    let mut out = vec![kind];
    match length {
        0..0x80 => out.push(length as u8),
        _ => {
            let bytes = length.to_be_bytes();
            let used = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            out.push(0x80 | (bytes.len() - used) as u8);
            out.extend_from_slice(&bytes[used..]);
        }
    }
    for part in parts {
        out.extend_from_slice(part.as_ref());
    }
    out
}

/// What a responder says of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was not revoked.
    Good,
    /// It was revoked.
    Revoked,
    /// The responder does not know it.
    Unknown,
}

/// What a responder says of one certificate.
#[derive(Debug, PartialEq, Eq)]
pub struct SingleResponse {
    /// Which certificate.
    pub id: CertificateId,
    /// What it says.
    pub status: Status,
    /// The second since which it is so, since the Unix epoch.
    pub this_update: i64,
    /// The second in which there is news; `None`: at any time.
    pub next_update: Option<i64>,
}

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response<'d> {
    /// What is signed.
    pub signed: &'d [u8],
    /// By which algorithm: what is in its sequence.
    pub algorithm: &'d [u8],
    /// The signature.
    pub signature: &'d [u8],
    /// Certificates that it brings, one of which may be the signer's.
    pub certificates: Vec<&'d [u8]>,
    /// What it says of certificates.
    pub answers: Vec<SingleResponse>,
}

/// Why a response is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResponse {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable,
    /// The responder has refused to answer.
    #[error("the responder has refused with status {0}")]
    Refused(u8),
}

impl<'d> Response<'d> {
    /// Reads a response.
    ///
    /// # Errors
    /// It cannot be read, or is a refusal.
    pub fn parse(bytes: &'d [u8]) -> Result<Self, InvalidResponse> {
        let outer = || {
            let mut outer = Values(bytes).sequence()?;
            Some((*outer.expect(ENUMERATED)?.first()?, outer))
        };
        match outer() {
            None => Err(InvalidResponse::Unreadable),
            Some((0, outer)) => Self::basic(outer).ok_or(InvalidResponse::Unreadable),
            Some((status, _)) => Err(InvalidResponse::Refused(status)),
        }
    }

    fn basic(mut outer: Values<'d>) -> Option<Self> {
        let mut typed = Values(outer.expect(CONTEXT)?).sequence()?;
        if typed.expect(OBJECT_ID)? != BASIC_RESPONSE {
            return None;
        }
        let mut basic = Values(typed.expect(OCTET_STRING)?).sequence()?;
        let signed = basic.whole_sequence()?;
        let algorithm = basic.expect(SEQUENCE)?;
        let signature = basic.expect(BIT_STRING)?.get(1..)?;
        let mut certificates = Vec::new();
        if let Some((kind, content)) = basic.next()
            && kind == CONTEXT
        {
            let mut brought = Values(content).sequence()?;
            while !brought.0.is_empty() && certificates.len() < MAX_ITEMS {
                certificates.push(brought.whole_sequence()?);
            }
        }
        let mut data = Values(signed).sequence()?;
        let mut version = data;
        if version.next()?.0 == CONTEXT {
            data = version;
        }
        // Who answers, and since when.
        data.next()?;
        data.next()?;
        let mut list = data.sequence()?;
        let mut answers = Vec::new();
        while !list.0.is_empty() && answers.len() < MAX_ITEMS {
            answers.push(answer(list.sequence()?)?);
        }
        Some(Self {
            signed,
            algorithm,
            signature,
            certificates,
            answers,
        })
    }
}

fn answer(mut values: Values<'_>) -> Option<SingleResponse> {
    let mut id = values.sequence()?;
    // Answers whose hashes are others name no certificate that was asked about.
    id.sequence()?;
    let id = CertificateId {
        name_hash: id.expect(OCTET_STRING)?.to_vec(),
        key_hash: id.expect(OCTET_STRING)?.to_vec(),
        serial: id.expect(INTEGER)?.to_vec(),
    };
    let status = match values.next()?.0 & 0x1f {
        0 => Status::Good,
        1 => Status::Revoked,
        _ => Status::Unknown,
    };
    let this_update = time(values.next()?)?;
    let next_update = match values.next() {
        Some((CONTEXT, content)) => Some(time(Values(content).next()?)?),
        _ => None,
    };
    Some(SingleResponse {
        id,
        status,
        this_update,
        next_update,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> CertificateId {
        CertificateId {
            name_hash: vec![1; 20],
            key_hash: vec![2; 20],
            serial: vec![5],
        }
    }

    #[test]
    fn requests_name_the_certificate() {
        let request = id().request();
        let expected = [
            &[0x30, 0x42, 0x30, 0x40, 0x30, 0x3e, 0x30, 0x3c, 0x30, 0x3a][..],
            &[0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00],
            &[0x04, 0x14],
            &[1; 20],
            &[0x04, 0x14],
            &[2; 20],
            &[0x02, 0x01, 0x05],
        ];
        assert_eq!(request, expected.concat());
    }

    /// A response with this content and an invalid signature.
    fn response(status: u8, next: Option<&str>) -> Vec<u8> {
        let algorithm = value(SEQUENCE, &[value(OBJECT_ID, &[SHA1])]);
        let id = value(
            SEQUENCE,
            &[
                algorithm.clone(),
                value(OCTET_STRING, &[[1_u8; 20]]),
                value(OCTET_STRING, &[[2_u8; 20]]),
                value(INTEGER, &[[5_u8]]),
            ],
        );
        let time = |text: &str| value(0x18, &[text]);
        let mut parts = vec![id, vec![0x80 | status, 0], time("20261123120000Z")];
        if let Some(next) = next {
            parts.push(value(CONTEXT, &[time(next)]));
        }
        let list = value(SEQUENCE, &[value(SEQUENCE, &parts)]);
        let by = value(CONTEXT | 2, &[value(OCTET_STRING, &[[2_u8; 20]])]);
        let signed = value(SEQUENCE, &[by, time("20261123120000Z"), list]);
        let certificates = value(CONTEXT, &[value(SEQUENCE, &[value(SEQUENCE, &[[7_u8]])])]);
        let signature = value(BIT_STRING, &[[0_u8, 9, 9]]);
        let basic = value(SEQUENCE, &[signed, algorithm, signature, certificates]);
        let typed = value(
            SEQUENCE,
            &[value(OBJECT_ID, &[BASIC_RESPONSE]), value(OCTET_STRING, &[basic])],
        );
        value(
            SEQUENCE,
            &[value(ENUMERATED, &[[0_u8]]), value(CONTEXT, &[typed])],
        )
    }

    #[test]
    fn responses_are_read() {
        for (status, expected) in [(0, Status::Good), (1, Status::Revoked), (2, Status::Unknown)] {
            let bytes = response(status, Some("20261124120000Z"));
            let read = Response::parse(&bytes).expect("a response");
            let answer = SingleResponse {
                id: id(),
                status: expected,
                this_update: 1_795_435_200,
                next_update: Some(1_795_435_200 + 86_400),
            };
            assert_eq!(read.answers, [answer]);
            assert_eq!(
                (read.signature, &read.certificates[..]),
                (&[9, 9][..], &[&[0x30, 1, 7][..]][..])
            );
        }
        let bytes = response(0, None);
        assert_eq!(
            Response::parse(&bytes).expect("a response").answers[0].next_update,
            None
        );
        let refused = [SEQUENCE, 3, ENUMERATED, 1, 6];
        assert_eq!(Response::parse(&refused), Err(InvalidResponse::Refused(6)));
    }

    #[test]
    fn every_change_of_a_byte_is_borne() {
        let whole = response(0, Some("20261124120000Z"));
        for at in 0..whole.len() {
            assert!(Response::parse(&whole[..at]).is_err(), "cut off at {at}");
            for byte in 0..=u8::MAX {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                if let Ok(read) = Response::parse(&bytes) {
                    assert!(read.signed.len() <= bytes.len());
                }
                let _url = responder(&bytes);
                let _subject = Subject::of(&bytes, &whole);
            }
        }
    }
}
