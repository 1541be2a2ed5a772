//! `jwt-signer` at work: which tokens a call brings, whether they are good, and what the upstream is shown.

use super::NAME;
use super::claims::{ClaimError, Claims, name};
use super::config::TokenRules;
use super::sources::{Caches, Explainer, KeySource};
use crate::consumer_names::ConsumerNames;
use crate::identity::Gate;
use crate::jose::{Jws, JwsError, KeySet, SigningKey};
use crate::shared_fetch::Step;
use serde_json::Value;
use std::sync::Arc;
use weir_plugin::{
    AuthFailure, ConsumerIdentity, Exchange, Filter, Identity, Outcome, Phases, Refusal, RefusalKind,
};
use weir_plugins_shared::http_request::ServerCallRules;

/// A token that calls may bring.
pub(super) struct Token {
    pub(super) rules: TokenRules,
    pub(super) verification: Option<KeySource>,
    pub(super) explainer: Option<Explainer>,
    pub(super) signer: Option<Signer>,
}

/// What signs for upstreams.
pub(super) struct Signer {
    pub(super) own: Option<Arc<SigningKey>>,
    pub(super) source: Option<KeySource>,
}

/// An instance of `jwt-signer`.
pub(super) struct SignerFilter {
    pub(super) tokens: Vec<Token>,
    pub(super) gate: Gate,
    /// Absent: no token names one.
    pub(super) consumers: Option<Arc<ConsumerNames>>,
    pub(super) caches: Arc<Caches>,
    pub(super) rules: ServerCallRules,
    pub(super) realm: Option<String>,
}

/// A good token.
struct VerifiedToken {
    text: String,
    claims: Claims,
    /// What a server has said of it.
    explained: Option<Arc<Claims>>,
}

/// What is known of a call so far, a place for each token; `None`: the call does not bring that one.
#[derive(Default)]
struct Progress(Vec<Option<VerifiedToken>>);

/// A good token, or none, or why the call is refused.
type TokenResult = Result<Option<VerifiedToken>, ClaimError>;

impl Token {
    pub(super) fn names_consumer(&self) -> bool {
        let explained = self.rules.introspection.as_ref();
        let is_named = explained.is_some_and(|it| !it.claims.consumer_claim.is_empty());
        is_named || !self.rules.claims.consumer_claim.is_empty()
    }
}

impl SignerFilter {
    fn run(&self, exchange: &mut Exchange, progress: &mut Progress) -> Step<Outcome> {
        for token in self.tokens.iter().skip(progress.0.len()) {
            match self.evaluate(token, exchange)? {
                Ok(judged) => progress.0.push(judged),
                Err(fault) => return Ok(self.refuse(fault)),
            }
        }
        let mut signed = Vec::new();
        for (token, judged) in self.tokens.iter().zip(&progress.0) {
            let made = match judged {
                Some(judged) => self.sign(token, judged, exchange)?,
                None => Ok(None),
            };
            match made {
                Ok(made) => signed.push(made),
                Err(fault) => return Ok(self.refuse(fault)),
            }
        }
        match self.consumer(&progress.0) {
            // What callers say about themselves is not true, unless another plugin has said it.
            Ok(None) if self.consumers.is_some() || exchange.identity.is_none() => self.gate.clear(exchange),
            Ok(None) => {}
            Ok(Some((consumer, judged))) => {
                let subject = judged.claims.get("sub").and_then(Value::as_str);
                let identity = Identity {
                    consumer,
                    credential_id: subject.map(Arc::from),
                };
                self.gate.accept(exchange, &identity);
            }
            Err(fault) => return Ok(self.refuse(fault)),
        }
        self.set_headers(exchange, &progress.0, &signed);
        Ok(Outcome::Continue)
    }

    fn evaluate(&self, token: &Token, exchange: &mut Exchange) -> Step<TokenResult> {
        let rules = &token.rules;
        let Some(header) = &rules.request_header else {
            return Ok(match rules.optional {
                true => Ok(None),
                false => Err(ClaimError::Failed(
                    "no header is configured for a token that must be there",
                )),
            });
        };
        let Some(value) = exchange.request.headers.get(header.as_bytes()) else {
            return Ok(match rules.optional {
                true => Ok(None),
                false => Err(ClaimError::Unauthorized(MISSING)),
            });
        };
        let bare = match value.split_at_checked(7) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => rest,
            _ => value,
        };
        let Ok(text) = String::from_utf8(bare.trim_ascii().to_vec()) else {
            return Ok(Err(ClaimError::Unauthorized("the token is not a text")));
        };
        let jws = match Jws::parse(&text) {
            // What cannot be checked here, the server may know.
            Ok(_) if rules.verify_signature && token.verification.is_none() && token.explainer.is_some() => {
                None
            }
            Ok(jws) => Some(jws),
            Err(JwsError::Malformed) => None,
            Err(_) => {
                return Ok(Err(ClaimError::Unauthorized(
                    "the token needs what is not known here",
                )));
            }
        };
        let judged = match (jws, &token.explainer) {
            (Some(jws), _) => self.signed(token, exchange, &jws)?.map(|claims| (claims, None)),
            (None, Some(explainer)) => self.explained(token, explainer, exchange, &text)?,
            (None, None) => Err(ClaimError::Unauthorized("the token is not signed")),
        };
        Ok(judged.map(|(claims, explained)| {
            Some(VerifiedToken {
                text,
                claims,
                explained,
            })
        }))
    }

    /// The claims of a signed token.
    fn signed(
        &self,
        token: &Token,
        exchange: &mut Exchange,
        jws: &Jws<'_>,
    ) -> Step<Result<Claims, ClaimError>> {
        let rules = &token.rules;
        if rules.verify_signature {
            match self.verify(token, exchange, jws)? {
                Ok(()) => {}
                Err(fault) => return Ok(Err(fault)),
            }
        }
        let Ok(claims) = jws.claims() else {
            return Ok(Err(ClaimError::Unauthorized("the token's claims cannot be read")));
        };
        let now_s = exchange.unix_ms() / 1_000;
        Ok(rules.claims.check(&claims, now_s).map(|()| claims))
    }

    fn verify(&self, token: &Token, exchange: &mut Exchange, jws: &Jws<'_>) -> Step<Result<(), ClaimError>> {
        let Some(source) = &token.verification else {
            return Ok(Err(ClaimError::Failed(
                "there is no document with keys to check signatures by",
            )));
        };
        let takes_secrets = token.rules.allow_symmetric_keys;
        let read = |body: &[u8]| match takes_secrets {
            true => KeySet::parse_with_secrets(body).map(Arc::new),
            false => KeySet::parse(body).map(Arc::new),
        };
        let check = |keys: &KeySet| match takes_secrets {
            true => jws.verify_any(keys),
            false => jws.verify(keys),
        };
        let map = &self.caches.keys;
        let Some(keys) = source.find(map, &self.rules, exchange, false, read)? else {
            return Ok(Err(ClaimError::Failed(
                "the keys that check signatures are not available",
            )));
        };
        let mut checked = check(&keys);
        // Its keys may be others by now, even under the same ids.
        if matches!(checked, Err(JwsError::UnknownKey | JwsError::Signature))
            && let Some(keys) = source.find(map, &self.rules, exchange, true, read)?
        {
            checked = check(&keys);
        }
        Ok(checked.map_err(|fault| {
            ClaimError::Unauthorized(match fault {
                JwsError::UnknownKey => "the token's key is not known",
                JwsError::Algorithm => "the token's algorithm is not accepted",
                _ => "the token's signature is not good",
            })
        }))
    }

    /// What a server says of an opaque token, and the claims that follow from that.
    #[allow(clippy::type_complexity, reason = "the pair is taken apart at once")]
    fn explained(
        &self,
        token: &Token,
        explainer: &Explainer,
        exchange: &mut Exchange,
        text: &str,
    ) -> Step<Result<(Claims, Option<Arc<Claims>>), ClaimError>> {
        let Some(rules) = &token.rules.introspection else {
            return Ok(Err(ClaimError::Failed("there is no server that explains tokens")));
        };
        let Some(answer) = explainer.ask(&self.caches, exchange, text)? else {
            return Ok(Err(ClaimError::Failed(
                "the server that explains tokens does not answer",
            )));
        };
        let now_s = exchange.unix_ms() / 1_000;
        let claims = || {
            if answer.get("active") != Some(&Value::Bool(true)) {
                return Err(ClaimError::Unauthorized("the token is not active"));
            }
            rules.claims.check(&answer, now_s)?;
            let claims = match rules.token_claim.is_empty() {
                true => (*answer).clone(),
                false => {
                    let inner = super::claims::claim(&answer, &rules.token_claim).and_then(Value::as_str);
                    let inner = inner.and_then(|inner| Jws::parse(inner).ok()?.claims().ok());
                    inner.ok_or(ClaimError::Unauthorized("the answer has no signed token"))?
                }
            };
            if !rules.is_trusted {
                token.rules.claims.check(&claims, now_s)?;
            }
            Ok(claims)
        };
        Ok(claims().map(|claims| (claims, Some(Arc::clone(&answer)))))
    }

    /// The token for the upstream that replaces a valid one.
    fn sign(
        &self,
        token: &Token,
        judged: &VerifiedToken,
        exchange: &mut Exchange,
    ) -> Step<Result<Option<String>, ClaimError>> {
        let (Some(signer), Some(rules)) = (&token.signer, &token.rules.signing) else {
            return Ok(Ok(None));
        };
        let key = match (&signer.own, &signer.source) {
            (Some(own), _) => Some(Arc::clone(own)),
            (None, Some(source)) => {
                let read = |body: &[u8]| SigningKey::of_set(rules.algorithm, body).map(Arc::new);
                source.find(&self.caches.signing, &self.rules, exchange, false, read)?
            }
            (None, None) => None,
        };
        let made = key.and_then(|key| key.sign(&Value::Object(rules.claims(&judged.claims))));
        let made = made.map(|made| match &rules.scheme {
            Some(scheme) => format!("{scheme} {made}"),
            None => made,
        });
        Ok(made
            .map(Some)
            .ok_or(ClaimError::Failed("there is no key to sign with")))
    }

    /// The first consumer that the tokens name.
    #[allow(clippy::type_complexity, reason = "the pair is taken apart at once")]
    fn consumer<'j>(
        &self,
        judged: &'j [Option<VerifiedToken>],
    ) -> Result<Option<(Arc<ConsumerIdentity>, &'j VerifiedToken)>, ClaimError> {
        let Some(names) = &self.consumers else {
            return Ok(None);
        };
        for (token, judged) in self.tokens.iter().zip(judged) {
            let Some(judged) = judged else {
                continue;
            };
            let explained = judged.explained.as_deref();
            let of_explained = token.rules.introspection.as_ref().map(|it| &it.claims);
            for (rules, claims) in [
                (of_explained, explained),
                (Some(&token.rules.claims), Some(&judged.claims)),
            ] {
                let (Some(rules), Some(claims)) = (rules, claims) else {
                    continue;
                };
                if rules.consumer_claim.is_empty() {
                    continue;
                }
                let named = name(claims, &rules.consumer_claim);
                let found = named.and_then(|named| names.find(&named, &rules.consumer_by));
                let consumer = found.ok_or(ClaimError::Forbidden)?;
                return Ok(Some((Arc::clone(consumer), judged)));
            }
        }
        Ok(None)
    }

    /// Removes the headers that callers sent, and sets those for the upstream.
    fn set_headers(
        &self,
        exchange: &mut Exchange,
        judged: &[Option<VerifiedToken>],
        signed: &[Option<String>],
    ) {
        let headers = &mut exchange.request.headers;
        for token in &self.tokens {
            let rules = &token.rules;
            let signed = rules.signing.as_ref().map(|it| &it.header);
            let names = [
                rules.request_header.as_ref(),
                signed,
                rules.original_header.as_ref(),
            ];
            for name in names.into_iter().flatten() {
                headers.remove_owned(name.as_bytes());
            }
        }
        for ((token, judged), signed) in self.tokens.iter().zip(judged).zip(signed) {
            let Some(judged) = judged else {
                continue;
            };
            if let (Some(text), Some(rules)) = (signed, &token.rules.signing) {
                headers.append(rules.header.as_bytes(), text.as_bytes());
            }
            if let Some(name) = &token.rules.original_header {
                headers.append(name.as_bytes(), judged.text.as_bytes());
            }
        }
        for judged in judged.iter().flatten() {
            exchange.add_fingerprint(judged.text.as_bytes());
        }
    }

    fn refuse(&self, fault: ClaimError) -> Outcome {
        let plugin = NAME;
        let (kind, error) = match fault {
            ClaimError::Unauthorized(MISSING) => {
                let failure = AuthFailure::Missing;
                (RefusalKind::Unauthenticated { plugin, failure }, None)
            }
            ClaimError::Unauthorized(reason) => {
                let failure = AuthFailure::Rejected(reason);
                (
                    RefusalKind::Unauthenticated { plugin, failure },
                    Some("invalid_token"),
                )
            }
            ClaimError::Forbidden => (RefusalKind::Forbidden { plugin }, Some("insufficient_scope")),
            ClaimError::Failed(reason) => (RefusalKind::PluginFailed { plugin, reason }, None),
        };
        let mut refusal = Refusal::new(kind);
        let realm = self.realm.as_ref().map(|realm| format!("realm=\"{realm}\""));
        let error = error.map(|error| format!("error=\"{error}\""));
        let parts: Vec<String> = realm.into_iter().chain(error).collect();
        refusal.challenge = Some(format!("Bearer {}", parts.join(", ")).trim_end().to_owned());
        Outcome::Refuse(Box::new(refusal))
    }
}

/// The one reason that is distinguished from all others.
const MISSING: &str = "there is no token";

impl Filter for SignerFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let kept = exchange.filter_state.take::<_, Progress>(self);
        let mut progress = kept.unwrap_or_default();
        match self.run(exchange, &mut progress) {
            Ok(outcome) => outcome,
            Err(wait) => {
                exchange.filter_state.put(self, progress);
                *wait
            }
        }
    }
}
