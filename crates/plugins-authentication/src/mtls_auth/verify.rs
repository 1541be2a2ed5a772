//! Whether a certificate leads to an authority, is good now, and was not revoked (RFC 5280, 6).

use super::Revocation;
use super::revocation_list::RevocationList;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use std::time::Duration;
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationCheckDepth,
    RevocationOptionsBuilder, UnknownStatusPolicy,
};
use weir_model::x509::Certificate;
use weir_model::x509_crl::Signed;
use weir_model::x509_details::CertificateDetails;

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

    /// All of them, in DER.
    pub(super) fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        self.between.iter().map(|it| &it[..])
    }

    /// Whether the client's certificate was revoked, by this list. The chain is known to be good.
    pub(super) fn is_revoked(
        &self,
        chain: &[Vec<u8>],
        now_ms: u64,
        list: Option<&RevocationList>,
        mode: Revocation,
    ) -> bool {
        let is_strict = mode == Revocation::Strict;
        match list.map(|list| (list.names(self, chain, now_ms), list.ends_ms())) {
            Some((Some(true), _)) => true,
            Some((Some(false), ends_ms)) => is_strict && now_ms >= ends_ms,
            Some((None, _)) | None => is_strict,
        }
    }

    /// Checks the way to an authority, and that a list of the client's authority, however old, does not name its certificate.
    pub(super) fn verify(
        &self,
        chain: &[Vec<u8>],
        now_ms: u64,
        list: Option<&CertRevocationList<'_>>,
    ) -> Result<(), webpki::Error> {
        let (own, others) = chain.split_first().ok_or(webpki::Error::UnknownIssuer)?;
        let own = CertificateDer::from(own.as_slice());
        let own = EndEntityCert::try_from(&own)?;
        let others = others.iter().map(|it| CertificateDer::from(it.as_slice()));
        let between: Vec<CertificateDer<'_>> = others.chain(self.between.iter().cloned()).collect();
        let lists = list.map(|list| [list]);
        let revocation = match &lists {
            Some(lists) => {
                let options = RevocationOptionsBuilder::new(lists)
                    .map_err(|_| webpki::Error::UnknownRevocationStatus)?
                    .with_depth(RevocationCheckDepth::EndEntity)
                    .with_status_policy(UnknownStatusPolicy::Deny)
                    .with_expiration_policy(ExpirationPolicy::Ignore);
                Some(options.build())
            }
            None => None,
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

/// Whether a key has signed this. The key's algorithm must be one of those of the signature's.
pub(super) fn has_signed((algorithm, key): (&[u8], &[u8]), signed: &Signed<'_>) -> bool {
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
