//! The rules for certificates and keys in documents, beyond their shapes.

use super::shaped;
use crate::admin::kind::Kind;
use crate::schema::is_secret_reference;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use weir_model::x509::Certificate;

/// Checks a certificate's document.
///
/// # Errors
/// In APISIX's words.
pub fn check(value: &mut Value) -> Result<(), String> {
    shaped(Kind::Ssl, value)?;
    let field = |name: &str| value.get(name).and_then(Value::as_str);
    if let Some(certificate) = field("cert") {
        check_pair(certificate, field("key"))?;
    }
    if field("type") == Some("client") {
        return Ok(());
    }
    let list = |name: &str| -> Vec<&str> {
        let items = value.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let (certificates, keys) = (list("certs"), list("keys"));
    if certificates.len() != keys.len() {
        return Err("mismatched number of certs and keys".to_owned());
    }
    for (index, (certificate, key)) in certificates.iter().zip(keys).enumerate() {
        check_pair(certificate, Some(key))
            .map_err(|error| format!("failed to handle cert-key pair[{}]: {error}", index + 1))?;
    }
    match value.pointer("/client/ca").and_then(Value::as_str) {
        Some(ca) => check_pair(ca, None).map_err(|error| format!("failed to validate client_cert: {error}")),
        None => Ok(()),
    }
}

/// Checks a certificate and, if it has one, its key. References to secrets are not looked into.
///
/// # Errors
/// In APISIX's words.
pub fn check_pair(certificate: &str, key: Option<&str>) -> Result<(), String> {
    if is_secret_reference(certificate) || key.is_some_and(is_secret_reference) {
        return Ok(());
    }
    if !holds(
        certificate,
        &["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"],
    ) {
        return Err("failed to parse cert: PEM_read_bio_X509_AUX() failed".to_owned());
    }
    let Some(key) = key else {
        return Ok(());
    };
    if !key.contains("---") {
        return Err("failed to decrypt previous encrypted key".to_owned());
    }
    if !holds(key, &["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"]) {
        return Err("failed to parse key: PEM_read_bio_PrivateKey() failed".to_owned());
    }
    // The original takes it and then fails each handshake.
    match Certificate::of_pem(certificate) {
        Some(read) if !read.fits(key) => Err("the key is not that of the cert".to_owned()),
        _ => Ok(()),
    }
}

/// Whether there is a block of PEM with one of these labels, and its content is one value of DER.
fn holds(text: &str, labels: &[&str]) -> bool {
    labels.iter().any(|label| {
        let (begin, end) = (
            format!("-----BEGIN {label}-----"),
            format!("-----END {label}-----"),
        );
        let block = text
            .split_once(&begin)
            .and_then(|(_, rest)| rest.split_once(&end))
            .map(|(block, _)| block);
        block.is_some_and(|block| {
            // Parameters of a curve may stand before, and headers in, the block of a key.
            let encoded: String = block.split_ascii_whitespace().collect();
            STANDARD.decode(encoded).is_ok_and(|bytes| is_sequence(&bytes))
        })
    })
}

/// Whether bytes are one sequence of DER, whole.
fn is_sequence(bytes: &[u8]) -> bool {
    let [0x30, length, rest @ ..] = bytes else {
        return false;
    };
    if *length < 0x80 {
        return rest.len() == usize::from(*length);
    }
    let count = usize::from(length & 0x7f);
    if count == 0 || count > 4 || rest.len() < count {
        return false;
    }
    let (digits, content) = rest.split_at(count);
    let length = digits
        .iter()
        .fold(0_usize, |length, digit| (length << 8) | usize::from(*digit));
    content.len() == length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_checked() {
        let block = |label: &str, content: &str| {
            format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n")
        };
        let certificate = block("CERTIFICATE", "MAMCAQE=");
        for (certificate, key, wanted) in [
            (certificate.as_str(), None, None),
            (&certificate, Some(block("EC PRIVATE KEY", "MAMC\nAQE=")), None),
            ("$secret://vault/1/a", Some("x".to_owned()), None),
            ("$ENV://A", Some("x".to_owned()), None),
            (
                &certificate,
                Some("abc".to_owned()),
                Some("failed to decrypt previous encrypted key"),
            ),
            (
                &certificate,
                Some(block("PRIVATE KEY", "MAQCAQE=")),
                Some("failed to parse key: PEM_read_bio_PrivateKey() failed"),
            ),
            (
                &block("CERTIFICATE", "****"),
                None,
                Some("failed to parse cert: PEM_read_bio_X509_AUX() failed"),
            ),
        ] {
            let result = check_pair(certificate, key.as_deref());
            assert_eq!(result.err().as_deref(), wanted, "{certificate} {key:?}");
        }
    }
}
