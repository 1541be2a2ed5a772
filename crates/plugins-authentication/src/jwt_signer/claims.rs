//! The claims of tokens: whether they suffice, which consumer they name, and the claims of the token for upstreams.

use super::config::{ClaimRules, Signing};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Claims of a token, or what a server says of one.
pub(super) type Claims = Map<String, Value>;

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimError {
    /// There is no good token; the reason, for logs.
    Unauthorized(&'static str),
    /// The token lacks a right, or names no consumer.
    Forbidden,
    /// The gateway could not decide, or could not sign; the reason, for logs.
    Failed(&'static str),
}

/// A claim at a path.
pub(super) fn claim<'c>(claims: &'c Claims, path: &[String]) -> Option<&'c Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(claims.get(first)?, |value, step| value.get(step))
}

/// A claim that names something, as a text.
pub(super) fn name<'c>(claims: &'c Claims, path: &[String]) -> Option<Cow<'c, str>> {
    match claim(claims, path)? {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

impl ClaimRules {
    /// Whether the claims suffice now.
    pub(super) fn check(&self, claims: &Claims, now_s: u64) -> Result<(), ClaimError> {
        if self.verify_expiry {
            self.check_times(claims, now_s)?;
        }
        if self.scopes.is_empty() {
            return Ok(());
        }
        let held = match claim(claims, &self.scopes_claim) {
            Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let holds = |all: &String| {
            // An alternative without a word would let everybody in.
            !all.trim().is_empty() && all.split_ascii_whitespace().all(|word| held.contains(&word))
        };
        match self.scopes.iter().any(holds) {
            true => Ok(()),
            false => Err(ClaimError::Forbidden),
        }
    }

    fn check_times(&self, claims: &Claims, now_s: u64) -> Result<(), ClaimError> {
        let (now, leeway) = (now_s as f64, self.leeway_seconds as f64);
        let expires = claims.get("exp").and_then(Value::as_f64);
        let expires = expires.ok_or(ClaimError::Unauthorized("the token does not say when it expires"))?;
        if expires + leeway <= now {
            return Err(ClaimError::Unauthorized("the token has expired"));
        }
        match claims.get("nbf").map(Value::as_f64) {
            None => Ok(()),
            Some(Some(at)) if at - leeway <= now => Ok(()),
            Some(_) => Err(ClaimError::Unauthorized("the token is not good yet")),
        }
    }
}

impl Signing {
    /// The claims of the token for upstreams.
    pub(super) fn claims(&self, claims: &Claims) -> Claims {
        let mut made = claims.clone();
        made.retain(|name, _| !self.remove_claims.contains(name));
        // Only the issuer that was checked becomes the original one.
        made.remove("original_iss");
        if let Some(issuer) = made.insert("iss".to_owned(), self.issuer.as_str().into()) {
            made.insert("original_iss".to_owned(), issuer);
        }
        if let Some(expires) = made.get_mut("exp")
            && self.leeway_seconds != 0
        {
            match (expires.as_i64(), expires.as_f64()) {
                (Some(at), _) => *expires = at.saturating_add(self.leeway_seconds).into(),
                (None, Some(at)) => *expires = (at + self.leeway_seconds as f64).into(),
                (None, None) => {}
            }
        }
        for (name, value) in &self.add_claims {
            made.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        for (name, value) in &self.set_claims {
            made.insert(name.clone(), value.clone());
        }
        made
    }
}
