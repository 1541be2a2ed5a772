//! Certificate revocation lists (CRLs) as they are kept: read once, with a signature that is checked once, so that a
//! certificate takes a look for its serial number only.
//!
//! **What it is not**: how lists are fetched, and what a certificate without a usable list means.

use super::verify::{Authorities, has_signed};
use rustls_pki_types::pem::PemObject;
use std::sync::Arc;
use webpki::{BorrowedCertRevocationList, CertRevocationList};
use weir_model::x509_crl::{CertificateFields, CrlHead, CrlWithoutExtensions, serial_number};

/// The longest serial number (RFC 5280, 4.1.2.2), in bytes.
const SERIAL_BYTES: usize = 20;
/// The most of a list that is not counted by its parts.
const LIST_BYTES: usize = 256;

/// A serial number, filled up in front.
type Serial = [u8; SERIAL_BYTES];

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
    /// A list in DER. Nothing was found that has signed it, or it is about a part of the certificates only: each certificate
    /// has to be checked with all of it.
    Whole(Arc<[u8]>),
}

/// The revoked certificates of an authority.
#[derive(Debug)]
struct SignedSerials {
    issuer: Box<[u8]>,
    /// The algorithm of the key that has signed the list, and the key.
    signer: (Box<[u8]>, Box<[u8]>),
    /// In order.
    serials: Box<[Serial]>,
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
        let signed = SignedSerials::of(der, authorities, chain);
        Self {
            next_update: CrlHead::of_der(der).and_then(|head| head.next_update),
            content: match signed {
                Some(signed) => ListContent::Signed(Arc::new(signed)),
                None => ListContent::Whole(der.into()),
            },
        }
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        LIST_BYTES
            + match &self.content {
                ListContent::Signed(signed) => signed.serials.len() * SERIAL_BYTES,
                ListContent::Whole(der) => der.len(),
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
            ListContent::Whole(der) => der,
        };
        if let Some(signed) = SignedSerials::of(der, authorities, chain) {
            return signed.name(chain);
        }
        let list = CertRevocationList::Borrowed(BorrowedCertRevocationList::from_der(der).ok()?);
        match authorities.verify(chain, now_ms, Some(&list)) {
            Ok(()) => Some(false),
            Err(webpki::Error::CertRevoked) => Some(true),
            Err(_) => None,
        }
    }
}

impl SignedSerials {
    /// Reads a list and checks that the authority of the client's certificate has signed it. `None`: it has not, or the list
    /// is about a part of the certificates only.
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
        let serials = serials(der)?;
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
        // A longer number than the longest one is on no list that was read.
        is_its.then(|| filled(own.serial).is_some_and(|it| self.serials.binary_search(&it).is_ok()))
    }
}

/// The serial numbers of a list about all certificates of its authority, in order.
fn serials(der: &[u8]) -> Option<Box<[Serial]>> {
    let mut serials: Vec<Serial> = match BorrowedCertRevocationList::from_der(der) {
        Ok(list) => {
            let entries = list.into_iter().map(|entry| filled(entry.ok()?.serial_number));
            let serials = entries.collect::<Option<_>>()?;
            let list = CertRevocationList::Borrowed(list);
            list.issuing_distribution_point().is_none().then_some(serials)?
        }
        Err(_) => CrlWithoutExtensions::of_der(der)?
            .serials()
            .map(filled)
            .collect::<Option<_>>()?,
    };
    serials.sort_unstable();
    Some(serials.into())
}

fn filled(serial: &[u8]) -> Option<Serial> {
    let serial = serial_number(serial);
    let mut filled = Serial::default();
    let (_, end) = filled.split_at_mut(SERIAL_BYTES.checked_sub(serial.len())?);
    end.copy_from_slice(serial);
    Some(filled)
}
