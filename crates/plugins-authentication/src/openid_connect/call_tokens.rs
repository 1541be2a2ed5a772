//! The caller as the tokens describe it: claims, whether they suffice, and the headers that carry them.

use super::claims::Claims;
use super::config::{RequiredClaims, TokenHeader, TokenValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use weir_plugin::Exchange;
use weir_plugins_shared::json_schema::Schema;

/// What the tokens of a call say.
#[derive(Debug, Default)]
pub(super) struct CallTokens {
    /// By a session, not by a token of the call.
    pub(super) by_session: bool,
    pub(super) access_token: Option<Arc<str>>,
    pub(super) id_token: Option<String>,
    pub(super) refresh_token: Option<String>,
    pub(super) session_id: Option<String>,
    /// What the token endpoint has said.
    pub(super) scope: Option<String>,
    pub(super) access_claims: Option<Arc<Claims>>,
    pub(super) introspection: Option<Arc<Claims>>,
    pub(super) id_claims: Option<Arc<Claims>>,
    pub(super) userinfo: Option<Arc<Claims>>,
}

/// Why a token does not suffice.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InsufficientToken {
    /// It lacks a right; the words for that.
    Forbidden(String),
    /// Its claims do not fit the schema.
    Schema(String),
}

impl CallTokens {
    /// A claim, of the first token that has it.
    pub(super) fn claim(&self, path: &[String]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        self.all_claims().find_map(|claims| {
            let start = claims.get(first)?;
            rest.iter().try_fold(start, |value, step| value.get(step))
        })
    }

    /// The claims of all tokens, in the order in which they count.
    fn all_claims(&self) -> impl Iterator<Item = &Claims> {
        let all = [
            &self.access_claims,
            &self.introspection,
            &self.id_claims,
            &self.userinfo,
        ];
        all.into_iter().flatten().map(|claims| &**claims)
    }

    /// A claim as a text; numbers and truth values are written out.
    pub(super) fn text(&self, path: &[String]) -> Option<Cow<'_, str>> {
        written(self.claim(path)?)
    }

    /// Whom the tokens are about.
    pub(super) fn subject(&self) -> Option<Cow<'_, str>> {
        written(self.all_claims().find_map(|claims| claims.get("sub"))?)
    }

    /// The words of a claim; empty if no token has the claim.
    pub(super) fn words(&self, path: &[String]) -> Vec<String> {
        self.claim(path).map(words).unwrap_or_default()
    }

    /// Reads the claims of an access token that the provider itself has sent; it came over a connection to the provider.
    pub(super) fn read_access_token(&mut self) {
        let Some(token) = self.access_token.as_deref() else {
            return;
        };
        let claims = token
            .split('.')
            .nth(1)
            .and_then(|it| URL_SAFE_NO_PAD.decode(it).ok());
        let claims = claims.and_then(|json| serde_json::from_slice(&json).ok());
        self.access_claims = claims.map(Arc::new);
    }

    /// Whether the tokens say what is required.
    pub(super) fn suffices(
        &self,
        required: &RequiredClaims,
        schema: Option<&Schema>,
        exchange: &Exchange,
    ) -> Result<(), InsufficientToken> {
        let forbid = |words: String| Err(InsufficientToken::Forbidden(words));
        if !required.scopes.is_empty() {
            let claimed = self.claim(&required.scopes_claim).map(words);
            let own = || {
                self.scope
                    .as_deref()
                    .map(|scope| blanks(scope).map(str::to_owned).collect())
            };
            match claimed.or_else(own) {
                None if self.by_session => return forbid("required scopes not present".into()),
                held => {
                    if !holds(&required.scopes, &held.unwrap_or_default()) {
                        let names: Vec<&str> = required.scopes.iter().flat_map(|it| blanks(it)).collect();
                        return forbid(format!("required scopes {} not present", names.join(", ")));
                    }
                }
            }
        }
        if !self.by_session
            && (required.audience_present || !required.audiences.is_empty())
            && self.claim(&required.audiences_claim).is_none()
        {
            return forbid("required audience claim not present".into());
        }
        for (wanted, claim, words_of_it) in [
            (
                &required.audiences,
                &required.audiences_claim,
                "mismatched audience",
            ),
            (
                &required.groups,
                &required.groups_claim,
                "required groups not present",
            ),
            (
                &required.roles,
                &required.roles_claim,
                "required roles not present",
            ),
        ] {
            let is_own_audience = self.by_session && std::ptr::eq(wanted, &required.audiences);
            let held = || self.claim(claim).map(words).unwrap_or_default();
            if !wanted.is_empty() && !is_own_audience && !holds(wanted, &held()) {
                return forbid(words_of_it.into());
            }
        }
        let is_there = |name: &&String| self.claim(std::slice::from_ref(name)).is_some();
        if required.forbidden.iter().any(|name| is_there(&name)) {
            return forbid("forbidden claims are present".into());
        }
        match schema {
            Some(schema) => {
                let mut claims = self.for_schema();
                let checked = schema.check(&mut claims, &exchange.request.work);
                checked.map_err(InsufficientToken::Schema)
            }
            None => Ok(()),
        }
    }

    /// The claims as schemas see them.
    fn for_schema(&self) -> Value {
        let value = |claims: Option<&Arc<Claims>>| match claims {
            Some(claims) => Value::Object(Map::clone(claims)),
            None => Value::Null,
        };
        if !self.by_session {
            return value(self.access_claims.as_ref().or(self.introspection.as_ref()));
        }
        let mut all = Map::new();
        let token = self.access_token.as_deref().map_or(Value::Null, Value::from);
        for (name, value) in [
            ("user", value(self.userinfo.as_ref())),
            ("access_token", token),
            ("id_token", value(self.id_claims.as_ref())),
        ] {
            if !value.is_null() {
                all.insert(name.to_owned(), value);
            }
        }
        Value::Object(all)
    }

    /// The value of a header of the list, if the tokens have it. All other headers of the list have already been
    /// removed. The first part is empty, or the scheme with its blank.
    pub(super) fn header(&self, header: &TokenHeader) -> Option<(&'static str, Cow<'_, str>)> {
        let scheme = match header.value {
            TokenValue::BearerToken => "Bearer ",
            _ => "",
        };
        let value = match &header.value {
            TokenValue::AccessToken | TokenValue::BearerToken => borrowed(self.access_token.as_deref()),
            TokenValue::IdToken => borrowed(self.id_token.as_deref()),
            TokenValue::RefreshToken => borrowed(self.refresh_token.as_deref()),
            TokenValue::IdClaims => encoded(self.id_claims.as_ref()),
            TokenValue::Userinfo => {
                let own = self.access_claims.as_ref().filter(|_| !self.by_session);
                encoded(self.userinfo.as_ref().or(own).or(self.introspection.as_ref()))
            }
            TokenValue::Introspection => encoded(self.introspection.as_ref()),
            TokenValue::SessionId => borrowed(self.session_id.as_deref()),
            TokenValue::Claim(path) => self.text(path),
        };
        Some((scheme, value?))
    }
}

fn borrowed(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(Cow::Borrowed)
}

fn encoded(claims: Option<&Arc<Claims>>) -> Option<Cow<'_, str>> {
    claims.map(|claims| Cow::Borrowed(claims.header()))
}

fn written(claim: &Value) -> Option<Cow<'_, str>> {
    match claim {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Null => None,
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// The words of a claim: a list of texts, or a text with blanks.
fn words(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => blanks(text).map(str::to_owned).collect(),
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

fn blanks(text: &str) -> impl Iterator<Item = &str> {
    text.split_ascii_whitespace()
}

/// Whether one of the alternatives is held, with all of its words.
fn holds(alternatives: &[String], held: &[String]) -> bool {
    let mut alternatives = alternatives.iter();
    alternatives.any(|all| blanks(all).all(|word| held.iter().any(|it| it == word)))
}
