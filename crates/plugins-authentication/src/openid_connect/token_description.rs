//! What a provider says about a token, and what each call with the token needs of it. It asks nothing.

use super::claims::Claims;
use serde_json::{Map, Value};
use std::sync::Arc;

/// From when until when a token is good, in seconds since 1970 (RFC 7519, 4.1).
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenTimes {
    expires_s: Option<f64>,
    not_before_s: Option<f64>,
}

impl TokenTimes {
    pub(super) fn read(claims: &Map<String, Value>) -> Result<Self, &'static str> {
        let time = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or("the token's times cannot be read"),
        };
        Ok(Self {
            expires_s: time("exp")?,
            not_before_s: time("nbf")?,
        })
    }

    pub(super) fn check(self, leeway_seconds: u64, now_s: u64) -> Result<(), &'static str> {
        let (leeway, now) = (leeway_seconds as f64, now_s as f64);
        if self.expires_s.is_some_and(|at| at + leeway <= now) {
            return Err("the token has expired");
        }
        if self.not_before_s.is_some_and(|at| at - leeway > now) {
            return Err("the token is not good yet");
        }
        Ok(())
    }
}

/// What the provider says about a token. What each call with the token needs of it is read once.
#[derive(Debug)]
pub(super) struct TokenDescription {
    pub(super) claims: Arc<Claims>,
    /// `active` of RFC 7662.
    pub(super) is_active: bool,
    pub(super) times: Result<TokenTimes, &'static str>,
}

impl TokenDescription {
    pub(super) fn new(claims: Map<String, Value>) -> Arc<Self> {
        Arc::new(Self {
            is_active: claims.get("active") == Some(&Value::Bool(true)),
            times: TokenTimes::read(&claims),
            claims: Arc::new(claims.into()),
        })
    }
}
