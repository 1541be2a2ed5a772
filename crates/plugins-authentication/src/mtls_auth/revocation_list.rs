//! Certificate revocation lists (CRLs) as they are kept: read once, with a signature that is checked once, so that a
//! certificate takes a look for its serial number only.
//!
//! **What it is not**: how lists are fetched, and what a certificate without a usable list means.

use super::verify::{Authorities, has_signed};
use rustls_pki_types::pem::PemObject;
use std::sync::Arc;
use webpki::{BorrowedCertRevocationList, CertRevocationList};
use weir_model::x509_crl::{CertificateFields, CrlHead, CrlWithoutExtensions, serial_number};

/// The longest serial number that authorities should give (RFC 5280, 4.1.2.2), in bytes.
const SERIAL_BYTES: usize = 20;
/// The most of a list that is not counted by its parts.
const LIST_BYTES: usize = 256;

/// A serial number, filled up in front.
type Serial = [u8; SERIAL_BYTES];

/// Serial numbers, each list in order.
#[derive(Debug, Default)]
struct Serials {
    usual: Vec<Serial>,
    /// Those that are longer than authorities should give.
    longer: Vec<Box<[u8]>>,
}

/// A certificate revocation list.
#[derive(Debug, Clone)]
pub(super) struct RevocationList {
    content: ListContent,
    /// When there is a newer one, in seconds since the Unix epoch; `None`: it does not say.
    next_update: Option<i64>,
}

#[derive(Debug, Clone)]
enum ListContent {
    /// A list with a good signature.
    Signed(Arc<SignedSerials>),
    /// A list in DER. Nothing was found that has signed it yet.
    Unsigned(Arc<[u8]>),
    /// A list in DER about a part of the certificates only: each certificate has to be checked with all of it.
    Partial(Arc<[u8]>),
}

/// The revoked certificates of an authority.
#[derive(Debug)]
struct SignedSerials {
    issuer: Box<[u8]>,
    /// The algorithm of the key that has signed the list, and the key.
    signer: (Box<[u8]>, Box<[u8]>),
    serials: Serials,
}

/// A list as servers send it, in DER or in PEM. `None`: it is none.
pub(super) fn read_crl(body: &[u8]) -> Option<Vec<u8>> {
    let der = match body.starts_with(b"-----BEGIN") {
        true => rustls_pki_types::CertificateRevocationListDer::from_pem_slice(body)
            .ok()?
            .to_vec(),
        false => body.to_vec(),
    };
    let is_list =
        BorrowedCertRevocationList::from_der(&der).is_ok() || CrlWithoutExtensions::of_der(&der).is_some();
    is_list.then_some(der)
}

impl RevocationList {
    /// Keeps a list in DER that a client's certificate names. The chain is known to be good.
    pub(super) fn of(der: &[u8], authorities: &Authorities, chain: &[Vec<u8>]) -> Self {
        let content = match is_partial(der) {
            true => ListContent::Partial(der.into()),
            false => match SignedSerials::of(der, authorities, chain) {
                Some(signed) => ListContent::Signed(Arc::new(signed)),
                None => ListContent::Unsigned(der.into()),
            },
        };
        Self {
            next_update: CrlHead::of_der(der).and_then(|head| head.next_update),
            content,
        }
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        LIST_BYTES
            + match &self.content {
                ListContent::Signed(signed) => signed.serials.bytes(),
                ListContent::Unsigned(der) | ListContent::Partial(der) => der.len(),
            }
    }

    /// Until when it is good, in milliseconds since the Unix epoch; 0: it does not say.
    pub(super) fn ends_ms(&self) -> u64 {
        let seconds = self.next_update.and_then(|next| u64::try_from(next).ok());
        seconds.unwrap_or_default().saturating_mul(1_000)
    }

    /// Whether the client's certificate is on the list, however old that is. `None`: the list is not its authority's. The
    /// chain is known to be good.
    pub(super) fn names(&self, authorities: &Authorities, chain: &[Vec<u8>], now_ms: u64) -> Option<bool> {
        let der = match &self.content {
            ListContent::Signed(signed) => return signed.name(chain),
            ListContent::Unsigned(der) => return SignedSerials::of(der, authorities, chain)?.name(chain),
            ListContent::Partial(der) => der,
        };
        let list = CertRevocationList::Borrowed(BorrowedCertRevocationList::from_der(der).ok()?);
        match authorities.verify(chain, now_ms, Some(&list)) {
            Ok(()) => Some(false),
            Err(webpki::Error::CertRevoked) => Some(true),
            Err(_) => None,
        }
    }
}

impl SignedSerials {
    /// Reads a list and checks that the authority of the client's certificate has signed it. `None`: it has not.
    ///
    /// The name alone does not tell an authority from another one: the key that has signed the certificate must have signed
    /// the list.
    fn of(der: &[u8], authorities: &Authorities, chain: &[Vec<u8>]) -> Option<Self> {
        let head = CrlHead::of_der(der)?;
        let (own, others) = chain.split_first()?;
        let own = CertificateFields::of_der(own)?;
        if head.issuer != own.issuer {
            return None;
        }
        let serials = Serials::of(der)?;
        let issuers = others.iter().map(Vec::as_slice).chain(authorities.certificates());
        let (algorithm, key) = issuers.filter_map(CertificateFields::of_der).find_map(|issuer| {
            let is_signer = issuer.subject == own.issuer
                && issuer.may_sign_crls
                && has_signed(issuer.key, &own.signed)
                && has_signed(issuer.key, &head.signed);
            is_signer.then_some(issuer.key)
        })?;
        Some(Self {
            issuer: head.issuer.into(),
            signer: (algorithm.into(), key.into()),
            serials,
        })
    }

    /// Whether the client's certificate is among them. `None`: another authority has signed it.
    fn name(&self, chain: &[Vec<u8>]) -> Option<bool> {
        let own = CertificateFields::of_der(chain.first()?)?;
        let (algorithm, key) = &self.signer;
        let is_its = *own.issuer == *self.issuer && has_signed((algorithm, key), &own.signed);
        is_its.then(|| self.serials.contains(own.serial))
    }
}

impl Serials {
    /// Those of a list.
    fn of(der: &[u8]) -> Option<Self> {
        let mut serials = Self::default();
        match BorrowedCertRevocationList::from_der(der) {
            Ok(list) => {
                for entry in &list {
                    serials.add(entry.ok()?.serial_number);
                }
            }
            Err(_) => {
                let list = CrlWithoutExtensions::of_der(der)?;
                list.serials().for_each(|serial| serials.add(serial));
            }
        }
        serials.usual.sort_unstable();
        serials.longer.sort_unstable();
        Some(serials)
    }

    fn add(&mut self, serial: &[u8]) {
        let serial = serial_number(serial);
        match filled(serial) {
            Some(serial) => self.usual.push(serial),
            None => self.longer.push(serial.into()),
        }
    }

    fn contains(&self, serial: &[u8]) -> bool {
        let serial = serial_number(serial);
        match filled(serial) {
            Some(serial) => self.usual.binary_search(&serial).is_ok(),
            None => self.longer.binary_search_by(|it| (**it).cmp(serial)).is_ok(),
        }
    }

    /// How many bytes they take.
    fn bytes(&self) -> usize {
        let longer: usize = self.longer.iter().map(|it| size_of_val(it) + it.len()).sum();
        self.usual.len() * SERIAL_BYTES + longer
    }
}

/// Whether a list is about a part of the certificates of its authority only.
fn is_partial(der: &[u8]) -> bool {
    let list = BorrowedCertRevocationList::from_der(der).map(CertRevocationList::Borrowed);
    list.is_ok_and(|list| list.issuing_distribution_point().is_some())
}

/// A serial number at its full length; `None`: it is longer.
fn filled(serial: &[u8]) -> Option<Serial> {
    let mut filled = Serial::default();
    let (_, end) = filled.split_at_mut(SERIAL_BYTES.checked_sub(serial.len())?);
    end.copy_from_slice(serial);
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_of_any_length_are_found() {
        let numbers: [&[u8]; 5] = [&[7], &[1, 0], &[9; 20], &[0, 9, 9], &[9; 21]];
        let mut serials = Serials::default();
        for number in numbers {
            serials.add(number);
        }
        serials.usual.sort_unstable();
        serials.longer.sort_unstable();
        for (number, expected) in [
            (&[7][..], true),
            (&[0, 7], true),
            (&[1, 0], true),
            (&[1], false),
            (&[9; 20], true),
            (&[9; 19], false),
            (&[9, 9], true),
            (&[9; 21], true),
            (&[9; 22], false),
            (&[], false),
        ] {
            assert_eq!(serials.contains(number), expected, "{number:?}");
        }
    }
}
