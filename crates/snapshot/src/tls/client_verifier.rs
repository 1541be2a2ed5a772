//! Which clients a handshake lets in: those with a certificate of one of the named authorities. Beside what webpki takes,
//! these are certificates of X.509 version 1 that an authority signed itself, as OpenSSL and so both originals take them.
//!
//! **What it is not**: longer chains of version 1. Nothing in such a certificate says that it may sign others, so none
//! ever does. Without extensions it cannot say either what it is for: who signs servers' certificates with the same
//! authority lets those servers in.

use super::provider;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, TrustAnchor, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, RootCertStore,
    SignatureScheme,
};
use std::sync::Arc;
use weir_model::x509_version_1::{Version1, public_key};

/// Lets in clients with a certificate of these authorities; if `is_optional`, clients without a certificate, too.
///
/// # Errors
/// There is no authority.
pub fn client_verifier(
    authorities: Arc<RootCertStore>,
    is_optional: bool,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&authorities), provider());
    let builder = match is_optional {
        true => builder.allow_unauthenticated(),
        false => builder,
    };
    let of_version_3 = builder.build().map_err(|error| error.to_string())?;
    Ok(Arc::new(OfAuthorities {
        authorities,
        of_version_3,
    }))
}

/// Takes certificates of authorities.
#[derive(Debug)]
struct OfAuthorities {
    authorities: Arc<RootCertStore>,
    of_version_3: Arc<dyn ClientCertVerifier>,
}

impl OfAuthorities {
    fn verify_version_1(&self, client: &Version1<'_>, now: UnixTime) -> Result<ClientCertVerified, Error> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now < client.not_before {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > client.not_after {
            return Err(CertificateError::Expired.into());
        }
        match self
            .authorities
            .roots
            .iter()
            .any(|authority| has_signed(authority, client))
        {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }
}

/// Whether an authority signed a certificate. One that may sign only certain names signs none of version 1: what it may
/// sign is not looked up here.
fn has_signed(authority: &TrustAnchor<'_>, client: &Version1<'_>) -> bool {
    if authority.subject.as_ref() != client.issuer || authority.name_constraints.is_some() {
        return false;
    }
    let Some((kind, key)) = public_key(authority.subject_public_key_info.as_ref()) else {
        return false;
    };
    let known = provider().signature_verification_algorithms.all;
    known
        .iter()
        .filter(|known| {
            known.signature_alg_id().as_ref() == client.algorithm
                && known.public_key_alg_id().as_ref() == kind
        })
        .any(|known| {
            known
                .verify_signature(key, client.signed, client.signature)
                .is_ok()
        })
}

/// Whether a client of TLS 1.2 has the key of its certificate.
fn verify_tls12_version_1(
    message: &[u8],
    client: &Version1<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let mut named = provider().signature_verification_algorithms.mapping.iter();
    let Some((_, algorithms)) = named.find(|(scheme, _)| *scheme == signature.scheme) else {
        return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
    };
    let key = SubjectPublicKeyInfoDer::from(client.key);
    let Ok(key) = webpki::RawPublicKeyEntity::try_from(&key) else {
        return Err(CertificateError::BadEncoding.into());
    };
    // In TLS 1.2 a scheme does not name the curve of the key.
    let is_good = algorithms.iter().any(|algorithm| {
        key.verify_signature(*algorithm, message, signature.signature())
            .is_ok()
    });
    match is_good {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(CertificateError::BadSignature.into()),
    }
}

impl ClientCertVerifier for OfAuthorities {
    fn client_auth_mandatory(&self) -> bool {
        self.of_version_3.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.of_version_3.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match Version1::of_der(certificate) {
            None => self
                .of_version_3
                .verify_client_cert(certificate, intermediates, now),
            Some(client) => self.verify_version_1(&client, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match Version1::of_der(certificate) {
            None => self
                .of_version_3
                .verify_tls12_signature(message, certificate, signature),
            Some(client) => verify_tls12_version_1(message, &client, signature),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match Version1::of_der(certificate) {
            None => self
                .of_version_3
                .verify_tls13_signature(message, certificate, signature),
            Some(client) => {
                let key = SubjectPublicKeyInfoDer::from(client.key);
                let algorithms = &provider().signature_verification_algorithms;
                rustls::crypto::verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_version_3.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::tests::OLD;
    use rustls::pki_types::pem::PemObject;
    use std::time::Duration;

    #[test]
    fn certificates_of_version_1_are_good_in_their_time_and_as_they_were_signed() {
        // It has signed itself, so it is its own authority.
        let old = CertificateDer::from_pem_slice(OLD.as_bytes()).expect("PEM");
        let mut roots = RootCertStore::empty();
        roots.add(old.clone()).expect("an authority");
        let verifier = client_verifier(Arc::new(roots), false).expect("an authority");
        // Seconds since the epoch, the byte that is changed, and what is wrong.
        let (begin, end) = (1_795_380_026, 4_948_980_026);
        for (seconds, changed, expected) in [
            (begin, None, None),
            (end, None, None),
            (begin - 1, None, Some(CertificateError::NotValidYet)),
            (end + 1, None, Some(CertificateError::Expired)),
            // The serial number, the name of the authority, the signature.
            (begin, Some(20), Some(CertificateError::UnknownIssuer)),
            (begin, Some(60), Some(CertificateError::UnknownIssuer)),
            (begin, Some(old.len() - 1), Some(CertificateError::UnknownIssuer)),
        ] {
            let mut der = old.to_vec();
            if let Some(place) = changed {
                der[place] ^= 1;
            }
            let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            let result = verifier.verify_client_cert(&CertificateDer::from(der), &[], now);
            let expected = expected.map(Error::InvalidCertificate);
            assert_eq!(result.err(), expected, "{seconds} {changed:?}");
        }
    }
}
