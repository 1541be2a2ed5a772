//! Whether a certificate leads to an authority, is good now, and was not revoked (RFC 5280, 6).

use super::Revocation;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use std::sync::Arc;
use std::time::Duration;
use webpki::{
    BorrowedCertRevocationList, CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage,
    RevocationCheckDepth, RevocationOptionsBuilder, UnknownStatusPolicy,
};
use weir_model::x509::Certificate;
use weir_model::x509_crl::{CertificateFields, CrlWithoutExtensions, Signed};
use weir_model::x509_details::CertificateDetails;

/// A certificate revocation list (CRL) in DER.
pub(super) type CrlDer = Arc<[u8]>;

/// A CRL as it is read.
enum ParsedCrl<'l> {
    WithExtensions(Box<CertRevocationList<'l>>),
    WithoutExtensions(CrlWithoutExtensions<'l>),
}

impl<'l> ParsedCrl<'l> {
    fn of(der: &'l [u8]) -> Option<Self> {
        match BorrowedCertRevocationList::from_der(der) {
            Ok(list) => Some(Self::WithExtensions(Box::new(CertRevocationList::Borrowed(list)))),
            Err(_) => CrlWithoutExtensions::of_der(der).map(Self::WithoutExtensions),
        }
    }
}

/// The authorities of a configuration.
#[derive(Default)]
pub(super) struct Authorities {
    anchors: Vec<TrustAnchor<'static>>,
    /// Those that others have signed.
    between: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Reads authorities in PEM. `partial_chain`: those that others have signed are enough by themselves.
    ///
    /// # Errors
    /// The position of the one that cannot be read.
    pub(super) fn read(texts: &[String], partial_chain: bool) -> Result<Self, usize> {
        let mut read = Self::default();
        for (index, text) in texts.iter().enumerate() {
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
            let certificates = certificates.map_err(|_| index)?;
            if certificates.is_empty() {
                return Err(index);
            }
            for certificate in certificates {
                let details = CertificateDetails::of_der(&certificate).ok_or(index)?;
                if partial_chain || details.is_self_issued {
                    let anchor = webpki::anchor_from_trusted_cert(&certificate).map_err(|_| index)?;
                    read.anchors.push(anchor.to_owned());
                }
                read.between.push(certificate);
            }
        }
        Ok(read)
    }

    /// Whether nothing leads anywhere.
    pub(super) fn has_no_root(&self) -> bool {
        self.anchors.is_empty()
    }

    /// Whether a client's certificates lead to an authority, at this time.
    pub(super) fn accept(&self, chain: &[Vec<u8>], now_ms: u64) -> bool {
        self.verify(chain, now_ms, None).is_ok()
    }

    /// Whether the client's certificate was revoked, by this CRL. The chain is known to be good.
    pub(super) fn is_revoked(
        &self,
        chain: &[Vec<u8>],
        now_ms: u64,
        list: Option<&CrlDer>,
        mode: Revocation,
    ) -> bool {
        let is_strict = mode == Revocation::Strict;
        match list.and_then(|list| ParsedCrl::of(list)) {
            None => is_strict,
            Some(ParsedCrl::WithExtensions(list)) => {
                match self.verify(chain, now_ms, Some((&list, is_strict))) {
                    Ok(()) => false,
                    Err(webpki::Error::CertRevoked) => true,
                    Err(_) => is_strict,
                }
            }
            Some(ParsedCrl::WithoutExtensions(list)) => match self.is_revoked_by(chain, &list) {
                Some(true) => true,
                Some(false) => is_strict && !lasts(&list, now_ms),
                None => is_strict,
            },
        }
    }

    /// Whether the client's certificate is revoked by a CRL without extensions. `None`: the CRL is not its authority's.
    ///
    /// The name alone does not tell an authority from another one: the key that has signed the certificate must have signed
    /// the CRL.
    fn is_revoked_by(&self, chain: &[Vec<u8>], list: &CrlWithoutExtensions<'_>) -> Option<bool> {
        let (own, others) = chain.split_first()?;
        let own = CertificateFields::of_der(own)?;
        let between = self.between.iter().map(|it| &it[..]);
        let mut issuers = others.iter().map(Vec::as_slice).chain(between);
        let is_its = |issuer: &[u8]| {
            CertificateFields::of_der(issuer).is_some_and(|issuer| {
                issuer.subject == own.issuer
                    && issuer.may_sign_crls
                    && has_signed(issuer.key, &own.signed)
                    && has_signed(issuer.key, &list.signed)
            })
        };
        (list.issuer == own.issuer && issuers.any(is_its)).then(|| list.revokes(own.serial))
    }

    /// Whether a list says something about the client's certificate: its authority has signed it, and it is not too old.
    /// The chain is known to be good.
    pub(super) fn can_use(&self, chain: &[Vec<u8>], now_ms: u64, list: &CrlDer) -> bool {
        match ParsedCrl::of(list) {
            None => false,
            Some(ParsedCrl::WithExtensions(list)) => {
                let found = self.verify(chain, now_ms, Some((&list, true)));
                matches!(found, Ok(()) | Err(webpki::Error::CertRevoked))
            }
            Some(ParsedCrl::WithoutExtensions(list)) => {
                lasts(&list, now_ms) && self.is_revoked_by(chain, &list).is_some()
            }
        }
    }

    fn verify(
        &self,
        chain: &[Vec<u8>],
        now_ms: u64,
        list: Option<(&CertRevocationList<'_>, bool)>,
    ) -> Result<(), webpki::Error> {
        let (own, others) = chain.split_first().ok_or(webpki::Error::UnknownIssuer)?;
        let own = CertificateDer::from(own.as_slice());
        let own = EndEntityCert::try_from(&own)?;
        let others = others.iter().map(|it| CertificateDer::from(it.as_slice()));
        let between: Vec<CertificateDer<'_>> = others.chain(self.between.iter().cloned()).collect();
        let lists = list.map(|(list, _)| [list]);
        let revocation = match (&lists, list) {
            (Some(lists), Some((_, is_strict))) => {
                let options = RevocationOptionsBuilder::new(lists)
                    .map_err(|_| webpki::Error::UnknownRevocationStatus)?
                    .with_depth(RevocationCheckDepth::EndEntity);
                let options = match is_strict {
                    true => options
                        .with_status_policy(UnknownStatusPolicy::Deny)
                        .with_expiration_policy(ExpirationPolicy::Enforce),
                    false => options
                        .with_status_policy(UnknownStatusPolicy::Allow)
                        .with_expiration_policy(ExpirationPolicy::Ignore),
                };
                Some(options.build())
            }
            _ => None,
        };
        own.verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &self.anchors,
            &between,
            UnixTime::since_unix_epoch(Duration::from_millis(now_ms)),
            KeyUsage::client_auth(),
            revocation,
            None,
        )
        .map(|_| ())
    }
}

/// Whether a CRL is not too old. One that does not say when there is a newer one is.
fn lasts(list: &CrlWithoutExtensions<'_>, now_ms: u64) -> bool {
    let now = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
    list.next_update.is_some_and(|next| now <= next)
}

/// Whether a key has signed this. The key's algorithm must be one of those of the signature's.
fn has_signed((algorithm, key): (&[u8], &[u8]), signed: &Signed<'_>) -> bool {
    let known = webpki::ALL_VERIFICATION_ALGS.iter();
    let mut fitting = known
        .filter(|it| *it.signature_alg_id() == *signed.algorithm && *it.public_key_alg_id() == *algorithm);
    fitting.any(|it| it.verify_signature(key, signed.content, signed.signature).is_ok())
}

/// Whether the caller's own certificate is within its time. It looks at no signature: for certificates that are
/// known one by one. That the caller has the private key is what the handshake shows.
pub(super) fn is_current(chain: &[Vec<u8>], now_ms: u64) -> bool {
    let own = chain.first().and_then(|own| Certificate::of_der(own));
    let now = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
    own.is_some_and(|own| own.not_before <= now && now <= own.not_after)
}

/// A CRL as servers send it: in DER, or in PEM.
pub(super) fn read_crl(body: &[u8]) -> Option<CrlDer> {
    let der = match body.starts_with(b"-----BEGIN") {
        true => rustls_pki_types::CertificateRevocationListDer::from_pem_slice(body)
            .ok()?
            .to_vec(),
        false => body.to_vec(),
    };
    ParsedCrl::of(&der)?;
    Some(der.into())
}
