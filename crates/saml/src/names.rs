//! Names of SAML, XML signatures and XML encryption.

/// Assertions.
pub(crate) const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
/// Messages.
pub(crate) const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
/// XML signatures.
pub(crate) const SIGNATURE: &str = "http://www.w3.org/2000/09/xmldsig#";
/// XML encryption.
pub(crate) const ENCRYPTION: &str = "http://www.w3.org/2001/04/xmlenc#";
/// XML encryption 1.1.
pub(crate) const ENCRYPTION_11: &str = "http://www.w3.org/2009/xmlenc11#";
/// Exclusive canonical XML, also the namespace of its options.
pub(crate) const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
/// The signature is left out of what is signed.
pub(crate) const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";
/// `xml:`.
pub(crate) const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The status of an answer that says yes.
pub(crate) const SUCCESS: &str = "urn:oasis:names:tc:SAML:2.0:status:Success";
/// Who brings an assertion is its subject.
pub(crate) const BEARER: &str = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
/// The POST binding.
pub(crate) const POST: &str = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST";
/// The redirect binding.
pub(crate) const REDIRECT: &str = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
