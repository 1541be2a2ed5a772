//! An instance of `jwt` at work: finds a call's token, and accepts or rejects it. Signatures are verified beside.

use super::token::{ClaimValue, DecodeBuffer, Parts, algorithm, read};
use super::verifier::Verifier;
use super::{Config, MultipleTokens, TimeClaim, TokenLocation};
use crate::identity::Gate;
use crate::query::remove_argument;
use std::borrow::Cow;
use std::sync::Arc;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{
    AuthFailure, ClaimDefect, CredentialEntry, CredentialIndex, Exchange, Filter, Outcome, Phases, Request,
    TokenDefect,
};

/// An instance of `jwt`.
pub(super) struct TokenFilter {
    config: Config,
    gate: Gate,
    index: Arc<CredentialIndex<Verifier>>,
}

/// The indices of the claims to read: the key claim, `exp`, `nbf`, then the expected claims.
const KEY: usize = 0;
const EXP: usize = 1;
const NBF: usize = 2;
const FIRST_EXPECTED: usize = 3;

/// Expected claims that one configuration can have.
pub(super) const MAX_EXPECTED: usize = 13;

/// A token and its place.
type LocatedToken<'f, 'x> = (&'f TokenLocation, Cow<'x, [u8]>);

impl TokenFilter {
    pub(super) fn new(config: Config, gate: Gate, index: Arc<CredentialIndex<Verifier>>) -> Self {
        Self { config, gate, index }
    }

    /// The token and its location; `None` if there is no token.
    fn find<'x>(&self, request: &'x Request) -> Result<Option<LocatedToken<'_, 'x>>, AuthFailure> {
        let mut tokens = self.config.locations.iter().filter_map(|place| {
            let token = self.token_at(place, request)?;
            Some((place, token))
        });
        if self.config.on_multiple == MultipleTokens::First {
            return match tokens.next() {
                Some((place, token)) if self.repeats_differ(place, request, &token) => {
                    Err(AuthFailure::Duplicate)
                }
                found => Ok(found),
            };
        }
        let mut tokens = tokens.filter(|(_, token)| !token.is_empty());
        let Some(first) = tokens.next() else {
            return Ok(None);
        };
        let repeats_differ = |place| self.repeats_differ(place, request, &first.1);
        match tokens.all(|(_, token)| token == first.1) && !self.config.locations.iter().any(repeats_differ) {
            true => Ok(Some(first)),
            false => Err(AuthFailure::Duplicate),
        }
    }

    fn token_at<'x>(&self, place: &TokenLocation, request: &'x Request) -> Option<Cow<'x, [u8]>> {
        match place {
            TokenLocation::Header(name) => {
                let value = request.headers.get(name.as_bytes())?;
                self.token_of(value).map(Cow::Borrowed)
            }
            TokenLocation::Query(name) => request.query_arg(name.as_bytes()),
            TokenLocation::Cookie(name) => request.cookie(name.as_bytes()).map(Cow::Borrowed),
        }
    }

    /// The token in the value of a header.
    fn token_of<'x>(&self, value: &'x [u8]) -> Option<&'x [u8]> {
        let mut schemes = self.config.schemes.iter();
        let token = schemes.find_map(|scheme| {
            let rest = value.strip_prefix(scheme.as_bytes())?;
            let has_end = rest.first().is_some_and(u8::is_ascii_whitespace);
            has_end.then(|| rest.trim_ascii())
        });
        token.or_else(|| (!self.config.scheme_required).then_some(value))
    }

    /// Whether a place holds a further token, and another one: the upstream might believe that.
    fn repeats_differ(&self, place: &TokenLocation, request: &Request, token: &[u8]) -> bool {
        let differs = |other: &[u8]| !other.is_empty() && other != token;
        match place {
            TokenLocation::Header(name) => {
                let mut values = request.headers.get_all(name.as_bytes());
                values.any(|value| self.token_of(value).is_some_and(differs))
            }
            TokenLocation::Query(name) => {
                let mut pairs = query_pairs(request.query.as_deref().unwrap_or_default());
                pairs.any(|(key, value)| {
                    decode_form(key) == name.as_bytes() && differs(&decode_form(value.unwrap_or_default()))
                })
            }
            TokenLocation::Cookie(name) => request.cookies(name.as_bytes()).any(differs),
        }
    }

    /// The credential whose token this is.
    fn check(&self, token: &[u8], now_ms: u64) -> Result<&CredentialEntry<Verifier>, TokenDefect> {
        let config = &self.config;
        let parts = Parts::cut(token).ok_or(TokenDefect::Malformed("JSON"))?;
        let (mut header_room, mut claims_room, mut signature_room) =
            (DecodeBuffer::new(), DecodeBuffer::new(), DecodeBuffer::new());

        let header = header_room
            .decode(parts.header)
            .ok_or(TokenDefect::Malformed("JSON"))?;
        let mut parameters = [None, None, None, None];
        read(
            header,
            &["alg", "typ", "crit", &config.key_claim],
            &mut parameters,
        )?;
        let [alg, typ, crit, key_parameter] = parameters;
        // Whatever it names, nothing of that is understood here (RFC 7515, 4.1.11).
        if crit.is_some() {
            return Err(TokenDefect::Malformed("crit"));
        }

        let claims = claims_room
            .decode(parts.claims)
            .ok_or(TokenDefect::Malformed("JSON"))?;
        let mut names = [""; FIRST_EXPECTED + MAX_EXPECTED];
        names[..FIRST_EXPECTED].copy_from_slice(&[&config.key_claim, "exp", "nbf"]);
        for (name, expected) in names[FIRST_EXPECTED..]
            .iter_mut()
            .zip(config.expected_claims.keys())
        {
            *name = expected;
        }
        let count = FIRST_EXPECTED + config.expected_claims.len().min(MAX_EXPECTED);
        let mut values = [const { None }; FIRST_EXPECTED + MAX_EXPECTED];
        read(claims, &names[..count], &mut values[..count])?;
        // If two rules expect the same claim, it is read once, for the first of them.
        for place in 1..count {
            let earlier = names[..place].iter().position(|name| *name == names[place]);
            values[place] = values[place].take().or_else(|| values[earlier?].clone());
        }

        let is_jwt =
            |typ: &ClaimValue<'_>| matches!(typ, ClaimValue::Text(typ) if typ.eq_ignore_ascii_case("JWT"));
        if config.check_typ && typ.is_some_and(|typ| !is_jwt(&typ)) {
            return Err(TokenDefect::Malformed("typ"));
        }
        let algorithm = algorithm(alg.as_ref());
        let signature = signature_room.decode(parts.signature);
        // Who looks at `typ` looks at all of the token before the key.
        if config.check_typ {
            algorithm.as_ref().map_err(Clone::clone)?;
            signature.ok_or(TokenDefect::Malformed("signature"))?;
        }
        if parts.signature.is_empty() && config.signature_required {
            // Who looks at the token in pieces takes one without a third for none at all.
            return Err(TokenDefect::Malformed(if config.check_typ {
                "signature"
            } else {
                "JSON"
            }));
        }
        if parts.signature.contains(&b'.') && !config.check_typ {
            return Err(TokenDefect::Malformed("JSON"));
        }

        let key_parameter = key_parameter.filter(|_| config.key_in_header);
        let entry = self.credential(values[KEY].take().or(key_parameter), now_ms)?;
        let verifier = &entry.secret;
        let signature = signature.ok_or(TokenDefect::Malformed("signature"))?;
        if verifier.algorithm != algorithm? {
            return Err(TokenDefect::AlgorithmMismatch);
        }
        if !verifier.has_key(config.secret_is_base64) {
            return Err(TokenDefect::BadKey);
        }
        if !verifier.verify(config.secret_is_base64, parts.message, signature) {
            return Err(TokenDefect::BadSignature);
        }
        self.check_claims(&values[..count], now_ms / 1_000, verifier.leeway)?;
        Ok(entry)
    }

    fn credential(
        &self,
        key: Option<ClaimValue<'_>>,
        now_ms: u64,
    ) -> Result<&CredentialEntry<Verifier>, TokenDefect> {
        let claim = || self.config.key_claim.clone();
        match key {
            None => Err(TokenDefect::NoKeyClaim(claim())),
            Some(ClaimValue::Text(key)) if !key.is_empty() => self
                .index
                .get(key.as_bytes(), || now_ms)
                .ok_or_else(|| TokenDefect::UnknownKey {
                    claim: claim(),
                    value: key.into_owned(),
                }),
            Some(_) => Err(TokenDefect::BadKeyClaim(claim())),
        }
    }

    fn check_claims(
        &self,
        values: &[Option<ClaimValue<'_>>],
        now: u64,
        leeway: u64,
    ) -> Result<(), TokenDefect> {
        let config = &self.config;
        let leeway = leeway.max(config.leeway_seconds);
        let mut faults = Vec::new();
        for (claim, name, value) in [
            (TimeClaim::Exp, "exp", &values[EXP]),
            (TimeClaim::Nbf, "nbf", &values[NBF]),
        ] {
            let is_required = config.required_claims.contains(&claim);
            if !is_required && !config.checked_claims.contains(&claim) {
                continue;
            }
            let fault = match value {
                None => is_required.then_some(ClaimDefect::Missing),
                Some(ClaimValue::Number(time)) => claim.fault(*time, now, leeway),
                Some(_) => Some(ClaimDefect::NotANumber),
            };
            faults.extend(fault.map(|fault| (name.to_owned(), fault)));
        }
        if let Some(max) = config.max_expiration_seconds.filter(|_| faults.is_empty()) {
            let fault = match &values[EXP] {
                // A token without end lies too far ahead, too.
                None => Some(ClaimDefect::TooFarAhead),
                Some(ClaimValue::Number(time)) => {
                    (time - now as f64 > max as f64).then_some(ClaimDefect::TooFarAhead)
                }
                Some(_) => Some(ClaimDefect::NotANumber),
            };
            faults.extend(fault.map(|fault| ("exp".to_owned(), fault)));
        }
        for ((name, expected), value) in config.expected_claims.iter().zip(&values[FIRST_EXPECTED..]) {
            let fault = match value {
                None => Some(ClaimDefect::Missing),
                Some(value) => (!value.has(expected)).then_some(ClaimDefect::Mismatch),
            };
            faults.extend(fault.map(|fault| (name.clone(), fault)));
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(TokenDefect::Claims(faults)),
        }
    }

    fn strip(&self, found: usize, request: &mut Request) {
        for (index, place) in self.config.locations.iter().enumerate() {
            let goes = match self.config.on_multiple {
                MultipleTokens::First => index == found,
                MultipleTokens::Refuse => self.token_at(place, request).is_some(),
            };
            match place {
                _ if !goes => {}
                TokenLocation::Header(name) => {
                    request.headers.remove(name.as_bytes());
                }
                TokenLocation::Query(name) => remove_argument(request, name.as_bytes()),
                TokenLocation::Cookie(name) => remove_cookie(request, name.as_bytes()),
            }
        }
    }
}

impl TimeClaim {
    /// Times are in seconds.
    fn fault(self, time: f64, now: u64, leeway: u64) -> Option<ClaimDefect> {
        let (now, leeway) = (now as f64, leeway as f64);
        match self {
            Self::Exp => (time <= now - leeway).then_some(ClaimDefect::Expired),
            Self::Nbf => (time > now + leeway).then_some(ClaimDefect::NotYetValid),
        }
    }
}

/// Takes a cookie out of a request.
pub(crate) fn remove_cookie(request: &mut Request, name: &[u8]) {
    let is_named = |pair: &&[u8]| {
        pair.strip_prefix(name)
            .is_some_and(|rest| rest.first() == Some(&b'='))
    };
    let headers = request.headers.get_all(b"cookie");
    let kept: Vec<Vec<u8>> = headers
        .map(|value| {
            let pairs = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            pairs
                .filter(|pair| !is_named(pair))
                .collect::<Vec<_>>()
                .join(&b"; "[..])
        })
        .filter(|value| !value.is_empty())
        .collect();
    request.headers.remove(b"cookie");
    for value in kept {
        request.headers.append(b"Cookie", &value);
    }
}

impl Filter for TokenFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            return Outcome::Continue;
        }
        let now_ms = exchange.unix_ms();
        let (place, checked) = match self.find(&exchange.request) {
            Err(failure) => (None, Err(failure)),
            Ok(None) => (None, Err(AuthFailure::Missing)),
            Ok(Some((place, token))) => (
                Some(place),
                self.check(&token, now_ms).map_err(AuthFailure::Token),
            ),
        };
        if let Some(place) = place.filter(|_| self.config.strip) {
            let index = self
                .config
                .locations
                .iter()
                .position(|it| std::ptr::eq(it, place));
            self.strip(index.unwrap_or_default(), &mut exchange.request);
        }
        match checked {
            Ok(entry) => self.gate.accept(exchange, &entry.identity),
            Err(failure) => {
                let challenge = match failure {
                    AuthFailure::Missing => self.config.challenge.as_ref(),
                    _ => self.config.token_challenge.as_ref(),
                };
                self.gate.reject(exchange, failure, challenge)
            }
        }
    }
}
