//! An instance of `hmac-auth` at work: which signature a call carries, and whether it holds.

use super::read::{Signature, read};
use super::sign::{Keys, Text, names};
use super::{Algorithm, Config, Form};
use crate::identity::Gate;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use weir_plugin::{
    AuthFailure, CredentialEntry, CredentialIndex, Exchange, Filter, Outcome, Phases, RefusalKind, Request,
    TokenDefect,
};

/// An instance of `hmac-auth`.
pub(super) struct SignatureFilter {
    pub(super) config: Config,
    pub(super) gate: Gate,
    pub(super) index: Arc<CredentialIndex<Keys>>,
}

/// Why a call is not let through yet.
enum VerifyError {
    Failure(AuthFailure),
    NeedBody,
}

impl From<AuthFailure> for VerifyError {
    fn from(failure: AuthFailure) -> Self {
        Self::Failure(failure)
    }
}

/// The signature is not the one that the call should have.
const MISMATCH: AuthFailure = AuthFailure::Token(TokenDefect::BadSignature);

impl SignatureFilter {
    /// The credential that signed the call, and the index of the header that carried the signature.
    fn check(&self, exchange: &mut Exchange) -> (Result<&CredentialEntry<Keys>, VerifyError>, Option<usize>) {
        let now = exchange.unix_ms() / 1_000;
        let request = &exchange.request;
        let headers = self.config.headers.iter().enumerate();
        let mut values =
            headers.filter_map(|(index, name)| Some((index, request.headers.get(name.as_bytes())?)));
        let Some(first) = values.next() else {
            return (Err(AuthFailure::Missing.into()), None);
        };
        let mut found = None;
        for (index, value) in std::iter::once(first).chain(values) {
            found = read(value, self.config.form).map(|signature| (index, signature));
            if found.is_some() {
                break;
            }
        }
        // Kong looks at the time before it reads the header.
        if self.config.form == Form::Hmac && !self.is_timely(request, now) {
            return (Err(AuthFailure::Stale.into()), None);
        }
        match found {
            None => (Err(AuthFailure::Malformed.into()), None),
            Some((index, signature)) => (self.verify(&signature, request, now), Some(index)),
        }
    }

    fn verify(
        &self,
        fields: &Signature<'_>,
        request: &Request,
        now: u64,
    ) -> Result<&CredentialEntry<Keys>, VerifyError> {
        let (Some(key), Some(signature), Some(algorithm)) = (fields.key, fields.signature, fields.algorithm)
        else {
            return Err(AuthFailure::Invalid.into());
        };
        let headers = fields.headers.unwrap_or_default();
        let is_signed = |wanted: &String| names(headers).any(|name| name == wanted.as_bytes());
        let algorithm = Algorithm::named(algorithm).filter(|it| self.config.algorithms.contains(it));
        let (Some(algorithm), true) = (algorithm, self.config.required_headers.iter().all(is_signed)) else {
            return Err(AuthFailure::Invalid.into());
        };
        let entry = self.index.get(key, || now * 1_000).ok_or(AuthFailure::Invalid)?;
        if self.config.form == Form::Signature && !self.is_timely(request, now) {
            return Err(AuthFailure::Stale.into());
        }
        let text = Text {
            form: self.config.form,
            uri: self.config.uri,
            key,
            headers,
        };
        let tag = text.sign(algorithm, &entry.secret, request);
        let mut given = [0; 64];
        let length = STANDARD
            .decode_slice(signature, &mut given)
            .map_err(|_| MISMATCH)?;
        verify_slices_are_equal(tag.as_ref(), &given[..length]).map_err(|_| MISMATCH)?;
        match self.config.check_body {
            true => self.check_body(request).map(|()| entry),
            false => Ok(entry),
        }
    }

    fn is_timely(&self, request: &Request, now: u64) -> bool {
        let most = self.config.clock_skew_seconds;
        if most == 0 {
            return true;
        }
        let names: &[&[u8]] = match self.config.x_date {
            true => &[b"x-date", b"date"],
            false => &[b"date"],
        };
        let required = &self.config.required_headers;
        let is_required = |name: &&[u8]| required.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(name));
        // A time that is not signed says nothing about a call that was to have one that is.
        let is_free = !names.iter().any(is_required);
        let mut counting = names.iter().filter(|name| is_free || is_required(name));
        counting.any(|name| {
            let time = request.headers.get(name).and_then(unix_seconds);
            time.is_some_and(|time| now.abs_diff(time) <= most)
        })
    }

    /// Whether `Digest` holds the hash of the body.
    fn check_body(&self, request: &Request) -> Result<(), VerifyError> {
        let digest_header = request.headers.get(b"digest");
        if digest_header.is_none() && self.config.form == Form::Signature {
            return Err(MISMATCH.into());
        }
        let body = match (&request.body, request.has_body) {
            (Some(body), _) => body.as_slice(),
            (None, false) => b"",
            (None, true) => return Err(VerifyError::NeedBody),
        };
        let Some(digest_header) = digest_header else {
            // A call without a body needs no digest.
            return match body.is_empty() {
                true => Ok(()),
                false => Err(MISMATCH.into()),
            };
        };
        let mut made = *b"SHA-256=............................................";
        let room = &mut made[8..];
        match STANDARD.encode_slice(digest(&SHA256, body), room) {
            Ok(_) if made == digest_header => Ok(()),
            _ => Err(MISMATCH.into()),
        }
    }
}

/// A time in one of the forms of HTTP, in seconds since the Unix epoch.
fn unix_seconds(text: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
    time.duration_since(std::time::UNIX_EPOCH)
        .ok()
        .map(|since| since.as_secs())
}

impl Filter for SignatureFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            return Outcome::Continue;
        }
        let (result, header) = self.check(exchange);
        if let Err(VerifyError::NeedBody) = result {
            return Outcome::NeedBody {
                max_bytes: self.config.max_body_bytes,
            };
        }
        if let Some(name) = header.and_then(|header| self.config.headers.get(header))
            && self.config.strip
        {
            exchange.request.headers.remove(name.as_bytes());
        }
        match result {
            Ok(entry) => self.gate.accept(exchange, &entry.identity),
            Err(VerifyError::Failure(failure)) => {
                self.gate
                    .reject(exchange, failure, self.config.challenge.as_ref())
            }
            Err(VerifyError::NeedBody) => Outcome::refuse(RefusalKind::BodyTooLarge),
        }
    }
}
