//! Signing a call as its caller should have.

use super::{Algorithm, Form};
use aws_lc_rs::hmac::{
    Context, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512, Key, Tag,
};
use std::sync::OnceLock;
use weir_plugin::Request;
use weir_plugins_shared::request_uri::{UriForm, with_uri};

/// A secret, and the keys made of it once they are needed.
pub(super) struct Keys {
    secret: Vec<u8>,
    keys: [OnceLock<Key>; 4],
}

impl Keys {
    pub(super) fn new(secret: Vec<u8>) -> Self {
        Self {
            secret,
            keys: Default::default(),
        }
    }

    fn of(&self, algorithm: Algorithm) -> &Key {
        let made_with = match algorithm {
            Algorithm::HmacSha1 => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::HmacSha256 => HMAC_SHA256,
            Algorithm::HmacSha384 => HMAC_SHA384,
            Algorithm::HmacSha512 => HMAC_SHA512,
        };
        self.keys[algorithm as usize].get_or_init(|| Key::new(made_with, &self.secret))
    }
}

/// What is signed.
pub(super) struct Text<'x> {
    pub(super) form: Form,
    pub(super) uri: UriForm,
    /// The credential's key.
    pub(super) key: &'x [u8],
    /// The names of the headers.
    pub(super) headers: &'x [u8],
}

impl Text<'_> {
    /// The signature of this call.
    pub(super) fn sign(&self, algorithm: Algorithm, keys: &Keys, request: &Request) -> Tag {
        let mut context = Context::with_key(keys.of(algorithm));
        match self.form {
            Form::Hmac => self.write_hmac(request, &mut context),
            Form::Signature => self.write_signature(request, &mut context),
        }
        context.sign()
    }

    /// Lines with line feeds between them.
    fn write_hmac(&self, request: &Request, context: &mut Context) {
        for (index, name) in names(self.headers).enumerate() {
            if index > 0 {
                context.update(b"\n");
            }
            let mut length = itoa::Buffer::new();
            match value(name, request, &mut length) {
                Some(value) => {
                    context.update(name);
                    context.update(b": ");
                    context.update(value);
                }
                None if name == b"@request-target" => {
                    context.update(b"@request-target: ");
                    context.update(&request.method.to_ascii_lowercase());
                    context.update(b" ");
                    with_uri(self.uri, request, |uri| context.update(uri));
                }
                None if name == b"request-line" => {
                    context.update(&request.method);
                    context.update(b" ");
                    with_uri(self.uri, request, |uri| context.update(uri));
                    context.update(match request.version {
                        (1, 0) => b" HTTP/1.0",
                        (2, _) => b" HTTP/2.0",
                        (3, _) => b" HTTP/3.0",
                        _ => b" HTTP/1.1",
                    });
                }
                None => {
                    context.update(name);
                    context.update(b":");
                }
            }
        }
    }

    /// Lines that each end in a line feed. Headers that the call does not have are left out.
    fn write_signature(&self, request: &Request, context: &mut Context) {
        context.update(self.key);
        context.update(b"\n");
        for name in names(self.headers) {
            let mut length = itoa::Buffer::new();
            if let Some(value) = value(name, request, &mut length) {
                context.update(name);
                context.update(b": ");
                context.update(value);
                context.update(b"\n");
            } else if name == b"@request-target" {
                context.update(&request.method);
                context.update(b" ");
                with_uri(self.uri, request, |uri| context.update(uri));
                context.update(b"\n");
            }
        }
    }
}

/// The names in a list with spaces between them.
pub(super) fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b' ')
}

/// A header's value. The body's length is not stored with the headers.
fn value<'x>(name: &[u8], request: &'x Request, length: &'x mut itoa::Buffer) -> Option<&'x [u8]> {
    match request.content_length {
        Some(bytes) if name.eq_ignore_ascii_case(b"content-length") => Some(length.format(bytes).as_bytes()),
        _ => {
            let mut values = (request.headers.iter())
                .filter(|header| header.name.eq_ignore_ascii_case(name))
                .map(|header| header.value);
            let value = values.next()?;
            // Of several, it is unknown which one the upstream will take.
            values.next().is_none().then_some(value)
        }
    }
}
