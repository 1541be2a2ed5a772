//! XML signatures, as SAML profiles them: one reference, to the element in which the signature stands.
//!
//! Keys come from the configuration alone: what a signature says about its key is not read. Algorithms with shared secrets,
//! other transforms than the two of the profile, and other canonical forms are refused.

use crate::canonical::exclusive;
use crate::error::{SamlError, ensure};
use crate::keys::{Algorithm, Hash, SigningKey, VerifyingKey, decoded};
use crate::names::{ENVELOPED, EXCLUSIVE, SIGNATURE};
use crate::xml::{Document, ElementId, Limits};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Whose signatures count.
#[derive(Debug, Clone)]
pub struct Trust {
    /// The partner's keys: one of them must have signed.
    pub keys: Vec<VerifyingKey>,
    /// Whether signatures and hashes with SHA-1 count.
    pub sha1: bool,
}

impl Trust {
    fn allows(&self, hash: Hash) -> Result<(), SamlError> {
        ensure(
            self.sha1 || hash != Hash::Sha1,
            "the message is signed with SHA-1",
        )
    }

    /// Checks a signature of these bytes.
    ///
    /// # Errors
    /// None of the keys has made it, or it is made with an algorithm that is not allowed.
    pub(crate) fn check(&self, algorithm: &str, bytes: &[u8], signed: &[u8]) -> Result<(), SamlError> {
        let algorithm = Algorithm::of_uri(algorithm);
        let algorithm = algorithm.ok_or(SamlError(
            "the signature is made with an algorithm that is not allowed",
        ))?;
        self.allows(algorithm.hash())?;
        let mut keys = self.keys.iter();
        ensure(
            keys.any(|key| key.verifies(algorithm, bytes, signed)),
            "the signature is not one of the configured certificates",
        )
    }
}

/// Checks the signature that stands directly in an element. Says whether there is one; if so, the element is signed.
///
/// # Errors
/// There is one, and it is not good.
pub(crate) fn signed(document: &Document, element: ElementId, trust: &Trust) -> Result<bool, SamlError> {
    let Some(signature) = document.only(element, SIGNATURE, "Signature")? else {
        return Ok(false);
    };
    let parts: Vec<ElementId> = document.children(signature).collect();
    let (info, value) = match parts.as_slice() {
        [info, value] => (*info, *value),
        [info, value, key] if document.is(*key, SIGNATURE, "KeyInfo") => (*info, *value),
        _ => return Err(SamlError("the signature has parts that it may not have")),
    };
    ensure(
        document.is(info, SIGNATURE, "SignedInfo") && document.is(value, SIGNATURE, "SignatureValue"),
        "the signature has parts that it may not have",
    )?;
    let signed_info = SignedInfo::read(document, info)?;
    let own = document.attribute(element, "ID").unwrap_or_default();
    ensure(
        !own.is_empty() && signed_info.target.strip_prefix('#') == Some(own),
        "the signature is one of another element",
    )?;
    trust.allows(signed_info.digest)?;
    // The signature comes first: it covers a few elements only. The canonical form of the whole message costs far more,
    // above all with a long list of prefixes: only the partner may cause that work.
    let value = document.text(value).and_then(|text| decoded(&text));
    let value = value.ok_or(SamlError("the signature cannot be read"))?;
    let bytes = exclusive(document, info, &signed_info.own_inclusive, None);
    trust.check(signed_info.algorithm, &bytes, &value)?;
    let bytes = exclusive(document, element, &signed_info.inclusive, Some(signature));
    ensure(
        signed_info.digest.of(&bytes) == signed_info.digest_value,
        "what is signed was changed",
    )?;
    Ok(true)
}

/// Every signature stands directly in one of these elements.
///
/// # Errors
/// One stands somewhere else.
pub(crate) fn allowed_only_in(document: &Document, elements: &[ElementId]) -> Result<(), SamlError> {
    let mut all = document
        .all()
        .filter(|it| document.is(*it, SIGNATURE, "Signature"));
    let is_placed = |id: ElementId| document.parent(id).is_some_and(|it| elements.contains(&it));
    ensure(
        all.all(is_placed),
        "a signature is in a place where none is allowed",
    )
}

/// What a signature says about itself.
struct SignedInfo<'d> {
    algorithm: &'d str,
    own_inclusive: Vec<&'d str>,
    target: &'d str,
    inclusive: Vec<&'d str>,
    digest: Hash,
    digest_value: Vec<u8>,
}

impl<'d> SignedInfo<'d> {
    fn read(document: &'d Document, info: ElementId) -> Result<Self, SamlError> {
        let bad = SamlError("the signature has parts that it may not have");
        let parts: Vec<ElementId> = document.children(info).collect();
        let [canonical, method, reference] = parts.as_slice() else {
            return Err(SamlError("the signature has not one reference"));
        };
        let names = [
            (*canonical, "CanonicalizationMethod"),
            (*method, "SignatureMethod"),
            (*reference, "Reference"),
        ];
        let mut names = names.into_iter();
        ensure(names.all(|(id, name)| document.is(id, SIGNATURE, name)), bad.0)?;
        ensure(
            algorithm(document, *canonical) == EXCLUSIVE,
            "the signature has another canonical form than the exclusive one",
        )?;
        ensure(document.children(*method).next().is_none(), bad.0)?;
        let parts: Vec<ElementId> = document.children(*reference).collect();
        let [transforms, digest, value] = parts.as_slice() else {
            return Err(bad);
        };
        let is_shaped = document.is(*transforms, SIGNATURE, "Transforms")
            && document.is(*digest, SIGNATURE, "DigestMethod")
            && document.is(*value, SIGNATURE, "DigestValue");
        ensure(is_shaped, bad.0)?;
        let hash = Hash::of_uri(algorithm(document, *digest));
        let value = document.text(*value).and_then(|text| decoded(&text));
        Ok(Self {
            algorithm: algorithm(document, *method),
            own_inclusive: inclusive(document, *canonical)?,
            target: document.attribute(*reference, "URI").unwrap_or_default(),
            inclusive: transformed(document, *transforms)?,
            digest: hash.ok_or(SamlError("the signature has a hash that is not allowed"))?,
            digest_value: value.ok_or(bad)?,
        })
    }
}

fn algorithm(document: &Document, id: ElementId) -> &str {
    document.attribute(id, "Algorithm").unwrap_or_default()
}

/// The transforms are those of the profile: without the signature, then the exclusive form, with these prefixes.
fn transformed(document: &Document, transforms: ElementId) -> Result<Vec<&str>, SamlError> {
    let bad = SamlError("the signature has transforms that are not allowed");
    let parts: Vec<ElementId> = document.children(transforms).collect();
    let [enveloped, canonical] = parts.as_slice() else {
        return Err(bad);
    };
    let is_good = document.is(*enveloped, SIGNATURE, "Transform")
        && document.is(*canonical, SIGNATURE, "Transform")
        && algorithm(document, *enveloped) == ENVELOPED
        && algorithm(document, *canonical) == EXCLUSIVE
        && document.children(*enveloped).next().is_none();
    ensure(is_good, bad.0)?;
    inclusive(document, *canonical)
}

/// The prefixes of a canonical form that are treated inclusively.
fn inclusive(document: &Document, method: ElementId) -> Result<Vec<&str>, SamlError> {
    let bad = SamlError("the signature has transforms that are not allowed");
    let parts: Vec<ElementId> = document.children(method).collect();
    match parts.as_slice() {
        [] => Ok(Vec::new()),
        [list] if document.is(*list, EXCLUSIVE, "InclusiveNamespaces") => {
            let list = document.attribute(*list, "PrefixList").unwrap_or_default();
            let prefixes: Vec<&str> = list.split_ascii_whitespace().collect();
            ensure(prefixes.len() <= 32, bad.0)?;
            Ok(prefixes)
        }
        _ => Err(bad),
    }
}

/// Signs a message. The signature is placed after its issuer, as SAML requires.
///
/// # Errors
/// The message was not made by this crate.
pub(crate) fn sign(message: &str, key: &SigningKey) -> Result<String, SamlError> {
    let bad = SamlError("the message to sign is invalid");
    let document = Document::parse(message, Limits::default())?;
    let root = document.root();
    let id = document.attribute(root, "ID").ok_or(bad)?;
    let digest = key.digest.of(&exclusive(&document, root, &[], None));
    let info = format!(
        "<ds:SignedInfo xmlns:ds=\"{SIGNATURE}\"><ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\">\
         </ds:CanonicalizationMethod><ds:SignatureMethod Algorithm=\"{}\"></ds:SignatureMethod><ds:Reference URI=\"#{id}\">\
         <ds:Transforms><ds:Transform Algorithm=\"{ENVELOPED}\"></ds:Transform><ds:Transform Algorithm=\"{EXCLUSIVE}\">\
         </ds:Transform></ds:Transforms><ds:DigestMethod Algorithm=\"{}\"></ds:DigestMethod><ds:DigestValue>{}\
         </ds:DigestValue></ds:Reference></ds:SignedInfo>",
        key.uri(),
        key.digest.uri(),
        STANDARD.encode(digest),
    );
    let value = STANDARD.encode(key.sign(info.as_bytes()));
    let certificate = key.certificate.as_ref().map(|text| {
        format!(
            "<ds:KeyInfo><ds:X509Data><ds:X509Certificate>{text}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>"
        )
    });
    let signature = format!(
        "<ds:Signature xmlns:ds=\"{SIGNATURE}\">{info}<ds:SignatureValue>{value}</ds:SignatureValue>{}</ds:Signature>",
        certificate.unwrap_or_default(),
    );
    let end = "</saml:Issuer>";
    let at = message.find(end).ok_or(bad)? + end.len();
    Ok(format!("{}{signature}{}", &message[..at], &message[at..]))
}
