//! The certificates that a call comes with: of its connection, or in a header of a proxy that is believed.

use super::{HeaderEncoding, HeaderSource, Source};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use weir_plugin::Exchange;

/// The most certificates of a call.
const MAX_CHAIN: usize = 16;

/// What a call shows.
pub(super) enum PresentedCertificates {
    /// Certificates in DER, the caller's own first.
    Chain(Vec<Vec<u8>>),
    /// None.
    Nothing,
    /// Something that cannot be read.
    Unreadable,
}

/// What a call shows. A header of a peer that is not believed is removed.
pub(super) fn of(source: &Source, exchange: &mut Exchange) -> PresentedCertificates {
    let Source::Header(source) = source else {
        return match &exchange.request.client_certificates {
            Some(shown) if shown.chain.len() <= MAX_CHAIN => {
                PresentedCertificates::Chain(shown.chain.clone())
            }
            Some(_) => PresentedCertificates::Unreadable,
            None => PresentedCertificates::Nothing,
        };
    };
    let peer = exchange.request.peer.ip().to_canonical();
    if !source.trusted.iter().any(|net| net.contains(&peer)) {
        exchange.request.headers.remove_owned(source.name.as_bytes());
        return PresentedCertificates::Nothing;
    }
    let mut values = exchange.request.headers.get_all(source.name.as_bytes());
    match (values.next(), values.next()) {
        (None, _) => PresentedCertificates::Nothing,
        (Some(value), None) => match read(value, source) {
            Some(chain) if (1..=MAX_CHAIN).contains(&chain.len()) => PresentedCertificates::Chain(chain),
            _ => PresentedCertificates::Unreadable,
        },
        (Some(_), Some(_)) => PresentedCertificates::Unreadable,
    }
}

fn read(value: &[u8], source: &HeaderSource) -> Option<Vec<Vec<u8>>> {
    let text = match source.encoding {
        HeaderEncoding::Url => unescaped(value)?,
        HeaderEncoding::Base64 => {
            let value = value.trim_ascii();
            let value = value.strip_prefix(b":").unwrap_or(value);
            let bytes = STANDARD.decode(value.strip_suffix(b":").unwrap_or(value)).ok()?;
            if !bytes.starts_with(b"-----BEGIN") {
                return Some(vec![bytes]);
            }
            bytes
        }
    };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.ok()?;
    Some(certificates.iter().map(|it| it.to_vec()).collect())
}

/// Undoes `%20` and the like. A plus stays one, as Base64 has it.
fn unescaped(value: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    Some(out)
}
