//! Encrypted assertions (XML encryption 1.1): a key for one message, encrypted with RSA-OAEP, and what it encrypts.
//!
//! AES-GCM is always good. AES-CBC can be changed on its way, and answers about that give the text away. So it is only
//! read in a message whose signature covers it and was checked before. RSA with the padding of PKCS#1 is refused.

use crate::error::{SamlError, ensure};
use crate::keys::{BadKey, decoded, private_key};
use crate::names::{ENCRYPTION, ENCRYPTION_11, SIGNATURE};
use crate::xml::{Document, ElementId};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OAEP_SHA384_MGF1SHA384, OAEP_SHA512_MGF1SHA512,
    OaepAlgorithm, OaepPrivateDecryptingKey, PrivateDecryptingKey,
};

/// The most keys that a message brings, for several readers.
const MAX_KEYS: usize = 4;
const BLOCK: usize = 16;

/// A private RSA key that opens encrypted assertions. `Debug` does not show it.
pub struct DecryptionKey(OaepPrivateDecryptingKey);

impl std::fmt::Debug for DecryptionKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("DecryptionKey")
    }
}

impl DecryptionKey {
    /// A key in PEM (PKCS#8 or PKCS#1, not encrypted), or in Base64 without the lines around it.
    ///
    /// # Errors
    /// It is no such key.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let expected = BadKey("expected an RSA private key in PEM (not encrypted, at least 2048 bits)");
        let der = private_key(text).ok_or(expected)?;
        let key = PrivateDecryptingKey::from_pkcs8(&der);
        let key = key.or_else(|_| PrivateDecryptingKey::from_pkcs8(&pkcs8(&der)));
        let key = key.ok().and_then(|key| OaepPrivateDecryptingKey::new(key).ok());
        key.map(Self).ok_or(expected)
    }

    fn open(&self, algorithm: &'static OaepAlgorithm, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; self.0.min_output_size()];
        let key = self.0.decrypt(algorithm, sealed, &mut out, None).ok()?;
        Some(key.to_vec())
    }
}

/// A PKCS#1 key as PKCS#8 (RFC 5958).
fn pkcs8(key: &[u8]) -> Vec<u8> {
    const HEAD: [u8; 18] = [
        0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05,
        0x00,
    ];
    // Lengths in their shortest form, as DER wants them; keys are far shorter than 64 KiB.
    let value = |kind: u8, content: &[u8]| match content.len() {
        length @ 0..=0x7f => [&[kind, length as u8][..], content].concat(),
        length @ 0x80..=0xff => [&[kind, 0x81, length as u8][..], content].concat(),
        length => {
            let [high, low] = (length as u16).to_be_bytes();
            [&[kind, 0x82, high, low][..], content].concat()
        }
    };
    let inner = [&HEAD[..], &value(0x04, key)].concat();
    value(0x30, &inner)
}

/// The text of an encrypted element. `is_signed`: a signature that was checked covers it.
///
/// # Errors
/// It cannot be opened with the key, or may not.
pub(crate) fn open(
    document: &Document,
    encrypted: ElementId,
    key: &DecryptionKey,
    is_signed: bool,
) -> Result<String, SamlError> {
    let data = document.only(encrypted, ENCRYPTION, "EncryptedData")?;
    let data = data.ok_or(SamlError("the encrypted assertion has no data"))?;
    let method = method(document, data)?;
    let is_block = method.ends_with("-cbc");
    ensure(
        is_signed || !is_block,
        "an assertion that is encrypted with AES-CBC is only read in a signed response",
    )?;
    let sealed = cipher_value(document, data)?;
    let inner = document.only(data, SIGNATURE, "KeyInfo")?;
    let inside = inner
        .into_iter()
        .flat_map(|info| document.named(info, ENCRYPTION, "EncryptedKey"));
    let beside = document.named(encrypted, ENCRYPTION, "EncryptedKey");
    let keys: Vec<ElementId> = inside.chain(beside).take(MAX_KEYS).collect();
    let mut fault = SamlError("the encrypted assertion has no key");
    for id in keys {
        let algorithm = match oaep(document, id) {
            Ok(algorithm) => algorithm,
            Err(other) => {
                fault = other;
                continue;
            }
        };
        fault = SamlError("the encrypted assertion cannot be opened with the key");
        let opened = key.open(algorithm, &cipher_value(document, id)?);
        let text = opened.and_then(|opened| decrypt(method, &opened, sealed.clone()));
        if let Some(text) = text {
            return String::from_utf8(text).map_err(|_| SamlError("the encrypted assertion is not UTF-8"));
        }
    }
    Err(fault)
}

fn method(document: &Document, id: ElementId) -> Result<&str, SamlError> {
    let method = document.only(id, ENCRYPTION, "EncryptionMethod")?;
    let method = method.and_then(|it| document.attribute(it, "Algorithm"));
    method.ok_or(SamlError("the encrypted assertion does not say how"))
}

fn cipher_value(document: &Document, id: ElementId) -> Result<Vec<u8>, SamlError> {
    let data = document.only(id, ENCRYPTION, "CipherData")?;
    let value = match data {
        Some(data) => document.only(data, ENCRYPTION, "CipherValue")?,
        None => None,
    };
    let text = value.and_then(|value| document.text(value));
    let bytes = text.and_then(|text| decoded(&text));
    bytes.ok_or(SamlError("the encrypted assertion has no text"))
}

/// How a key is encrypted.
fn oaep(document: &Document, id: ElementId) -> Result<&'static OaepAlgorithm, SamlError> {
    let refused = SamlError("the key of the encrypted assertion is encrypted in a way that is not allowed");
    let method = document
        .only(id, ENCRYPTION, "EncryptionMethod")?
        .ok_or(refused)?;
    let algorithm = document.attribute(method, "Algorithm").unwrap_or_default();
    let algorithm_of = |namespace: &str, name: &str| -> Result<Option<&str>, SamlError> {
        let found = document.only(method, namespace, name)?;
        Ok(found.and_then(|it| document.attribute(it, "Algorithm")))
    };
    let digest = algorithm_of(SIGNATURE, "DigestMethod")?.unwrap_or("http://www.w3.org/2000/09/xmldsig#sha1");
    let mask = algorithm_of(ENCRYPTION_11, "MGF")?;
    ensure(
        document.only(method, ENCRYPTION, "OAEPparams")?.is_none(),
        refused.0,
    )?;
    let is_old = algorithm == "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p";
    ensure(
        is_old || algorithm == "http://www.w3.org/2009/xmlenc11#rsa-oaep",
        refused.0,
    )?;
    let mask = match (is_old, mask) {
        (true, _) | (false, None) => "mgf1sha1",
        (false, Some(uri)) => uri.strip_prefix(ENCRYPTION_11).ok_or(refused)?,
    };
    let hash = digest.rsplit('#').next().unwrap_or_default();
    match (hash, mask) {
        ("sha1", "mgf1sha1") => Ok(&OAEP_SHA1_MGF1SHA1),
        ("sha256", "mgf1sha256") => Ok(&OAEP_SHA256_MGF1SHA256),
        ("sha384", "mgf1sha384") => Ok(&OAEP_SHA384_MGF1SHA384),
        ("sha512", "mgf1sha512") => Ok(&OAEP_SHA512_MGF1SHA512),
        _ => Err(SamlError(
            "the key of the encrypted assertion has a hash and a mask that do not go together",
        )),
    }
}

fn decrypt(method: &str, key: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
    let name = method.rsplit('#').next()?;
    let authenticated = match (name, key.len()) {
        ("aes128-gcm", 16) => Some(&AES_128_GCM),
        ("aes192-gcm", 24) => Some(&AES_192_GCM),
        ("aes256-gcm", 32) => Some(&AES_256_GCM),
        _ => None,
    };
    if let Some(algorithm) = authenticated.filter(|_| method.starts_with(ENCRYPTION_11)) {
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
        let nonce: [u8; NONCE_LEN] = sealed.get(..NONCE_LEN)?.try_into().ok()?;
        let mut text = sealed.split_off(NONCE_LEN);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let length = key.open_in_place(nonce, Aad::empty(), &mut text).ok()?.len();
        text.truncate(length);
        return Some(text);
    }
    let algorithm = match (name, key.len()) {
        ("aes128-cbc", 16) => &AES_128,
        ("aes192-cbc", 24) => &AES_192,
        ("aes256-cbc", 32) => &AES_256,
        _ => return None,
    };
    let key = UnboundCipherKey::new(algorithm, key).ok()?;
    let start: [u8; BLOCK] = sealed.get(..BLOCK)?.try_into().ok()?;
    let mut text = sealed.split_off(BLOCK);
    let context = DecryptionContext::Iv128(FixedLength::from(start));
    let key = PaddedBlockDecryptingKey::cbc_iso10126(key).ok()?;
    let length = key.decrypt(&mut text, context).ok()?.len();
    text.truncate(length);
    Some(text)
}
