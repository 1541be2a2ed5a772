//! Requests to an identity provider, and the rules for its answers (OpenID Connect Core 1.0, section 3.1; RFC 7636
//! for PKCE, RFC 9207 for `iss` in the callback). No I/O, and time and randomness are arguments.

use super::jose::{KeySet, TokenError, verify};
use super::provider::Provider;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};
use weir_model::unix_time::seconds;

/// How far the clocks may be apart.
const SKEW: Duration = Duration::from_secs(60);
/// How long a user may take to log in there.
pub const LONGEST_LOGIN: Duration = Duration::from_secs(600);
/// All but unreserved characters (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A provider's metadata (OpenID Connect Discovery 1.0).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    /// The address at which codes are exchanged for tokens.
    pub token_endpoint: String,
    /// The address of its keys.
    pub jwks_uri: String,
    /// The address of more claims.
    #[serde(default)]
    pub userinfo_endpoint: Option<String>,
    /// The address for logging out.
    #[serde(default)]
    pub end_session_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Why a user is not logged in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The provider cannot be asked, or gives no good answer.
    #[error("the identity provider gave an unexpected answer: {0}")]
    Provider(String),
    /// The provider has refused the login.
    #[error("the identity provider has refused the login: {0}")]
    Refused(String),
    /// The callback does not belong to a login that this browser has begun.
    #[error("this browser did not start this login, or started it too long ago")]
    State,
    /// The token is not accepted.
    #[error("the identity provider's token is not accepted: {0}")]
    Token(#[from] TokenError),
    /// The person may do nothing here.
    #[error("{0} is in no group that has rights here")]
    NoRights(String),
}

impl LoginError {
    /// The name for pages and programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Provider(_) => "provider-unavailable",
            Self::Refused(_) => "refused",
            Self::State => "not-begun-here",
            Self::Token(_) => "token-not-accepted",
            Self::NoRights(_) => "no-rights",
        }
    }
}

/// Whether what goes to a URL is private: over TLS, or to this machine.
pub fn is_private(url: &str) -> bool {
    match url.split_once("://") {
        Some(("https", rest)) => !rest.is_empty(),
        Some(("http", rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = match authority.strip_prefix('[') {
                Some(rest) => rest.split(']').next().unwrap_or_default(),
                None => authority.split(':').next().unwrap_or_default(),
            };
            let is_loopback = host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
            is_loopback || host == "localhost"
        }
        _ => false,
    }
}

/// The address of a provider's metadata.
pub fn discovery_url(issuer: &str) -> String {
    format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    )
}

impl Metadata {
    /// Reads what a provider says of itself.
    ///
    /// # Errors
    /// It is another provider, or something is missing or not private.
    pub fn read(provider: &Provider, document: &[u8]) -> Result<Self, LoginError> {
        let failed = |reason: String| LoginError::Provider(reason);
        let metadata: Self = serde_json::from_slice(document)
            .map_err(|error| failed(format!("its discovery document: {error}")))?;
        if metadata.issuer != provider.issuer {
            let reason = format!("its issuer is '{}', not '{}'", metadata.issuer, provider.issuer);
            return Err(failed(reason));
        }
        let needed = [
            &metadata.authorization_endpoint,
            &metadata.token_endpoint,
            &metadata.jwks_uri,
        ];
        let more = [&metadata.userinfo_endpoint, &metadata.end_session_endpoint];
        let all = needed.into_iter().chain(more.into_iter().flatten());
        let exposed: Vec<String> = all.filter(|it| !is_private(it)).cloned().collect();
        match exposed.first() {
            Some(url) => Err(failed(format!("{url} is not https"))),
            None => Ok(metadata),
        }
    }
}

/// A login that has begun. The browser keeps it in a cookie until it comes back. What stands there is no secret from
/// the browser: it only has to be the same browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingLogin {
    /// The provider.
    provider: String,
    state: String,
    nonce: String,
    /// The code verifier of PKCE.
    verifier: String,
    /// The address to which the provider sends the browser back.
    redirect_uri: String,
    /// The last target of the browser: a path of this server.
    pub return_to: String,
    /// When, in seconds since the Unix epoch.
    time: u64,
    /// Whether the provider has to ask the person again, whatever it knows of the browser.
    #[serde(default)]
    is_fresh: bool,
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Pairs as a query, or as the body of a form.
fn form(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn with_query(url: &str, query: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{query}")
}

/// A safe last target for a browser: a path of this server's console, and no other site.
pub fn safe_return(wanted: Option<&str>) -> String {
    let is_safe = |it: &&str| {
        it.starts_with("/ui/") && !it.contains(['\\', '\r', '\n']) && it.len() <= 1000 && it.is_ascii()
    };
    wanted.filter(is_safe).unwrap_or("/ui/").to_owned()
}

impl PendingLogin {
    /// Begins a login. Each of the three texts is random, with at least 256 bits.
    pub fn new(
        provider: &Provider,
        redirect_uri: String,
        return_to: String,
        [state, nonce, verifier]: [String; 3],
        now: SystemTime,
    ) -> Self {
        Self {
            provider: provider.name.clone(),
            state,
            nonce,
            verifier,
            redirect_uri,
            return_to,
            time: seconds(now),
            is_fresh: false,
        }
    }

    /// The same, with a provider that has to ask the person again.
    #[must_use]
    pub fn fresh(self) -> Self {
        Self {
            is_fresh: true,
            ..self
        }
    }

    /// As a cookie holds it.
    pub fn to_cookie(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the value of a cookie.
    pub fn from_cookie(value: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(value).ok()?).ok()
    }

    /// The address to which the browser is sent.
    pub fn authorization_url(
        &self,
        provider: &Provider,
        metadata: &Metadata,
        login_hint: Option<&str>,
    ) -> String {
        let challenge = digest::digest(&digest::SHA256, self.verifier.as_bytes());
        let (scope, challenge) = (provider.scopes.join(" "), URL_SAFE_NO_PAD.encode(challenge));
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &provider.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", &scope),
            ("state", &self.state),
            ("nonce", &self.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        pairs.extend(login_hint.map(|it| ("login_hint", it)));
        if self.is_fresh {
            // With `max_age`, the token has to say when the person was asked (OpenID Connect Core 1.0, section 2).
            pairs.extend([("prompt", "login"), ("max_age", "0")]);
        }
        with_query(&metadata.authorization_endpoint, &form(&pairs))
    }

    /// The code in a callback that belongs to this login.
    ///
    /// # Errors
    /// The callback belongs to another login, or the provider has refused.
    pub fn code<'c>(
        &self,
        provider: &Provider,
        metadata: &Metadata,
        callback: &'c Callback,
        now: SystemTime,
    ) -> Result<&'c str, LoginError> {
        let state = callback.state.as_deref().unwrap_or_default();
        let is_same = verify_slices_are_equal(state.as_bytes(), self.state.as_bytes()).is_ok();
        let age = seconds(now).checked_sub(self.time);
        let is_fresh = age.is_some_and(|it| it <= LONGEST_LOGIN.as_secs());
        // Another provider may have been made to answer in the place of this one.
        let is_of_issuer = match &callback.iss {
            Some(issuer) => *issuer == provider.issuer,
            None => !metadata.authorization_response_iss_parameter_supported,
        };
        if !is_same || !is_fresh || !is_of_issuer || self.provider != provider.name {
            return Err(LoginError::State);
        }
        if let Some(error) = &callback.error {
            let reason = callback.error_description.as_deref().unwrap_or_default();
            let message = format!("{error} {reason}").trim().chars().take(300).collect();
            return Err(LoginError::Refused(message));
        }
        let missing = || LoginError::Provider("there is no code in its callback".to_owned());
        callback.code.as_deref().ok_or_else(missing)
    }

    /// The body of the token request, and the header that shows who asks.
    pub fn token_request(
        &self,
        provider: &Provider,
        metadata: &Metadata,
        code: &str,
    ) -> (String, Option<String>) {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", &self.verifier),
        ];
        let Some(secret) = &provider.client_secret else {
            pairs.push(("client_id", &provider.client_id));
            return (form(&pairs), None);
        };
        let methods = metadata.token_endpoint_auth_methods_supported.as_ref();
        // Without a list it is `client_secret_basic`.
        if methods.is_none_or(|all| all.iter().any(|it| it == "client_secret_basic")) {
            let both = format!("{}:{}", encoded(&provider.client_id), encoded(secret));
            let both = base64::engine::general_purpose::STANDARD.encode(both);
            return (form(&pairs), Some(format!("Basic {both}")));
        }
        pairs.push(("client_id", &provider.client_id));
        pairs.push(("client_secret", secret));
        (form(&pairs), None)
    }

    /// The claims of the ID token, if it is for this login.
    ///
    /// # Errors
    /// It is not accepted.
    pub fn claims(
        &self,
        provider: &Provider,
        (token, keys): (&str, &KeySet),
        now: SystemTime,
    ) -> Result<Value, TokenError> {
        let claims = verify(token, keys)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let time = |name: &str| claims.get(name).and_then(Value::as_f64);
        if text("iss") != Some(&provider.issuer) {
            return Err(TokenError::Claim("iss"));
        }
        let client = provider.client_id.as_str();
        let (is_for_us, is_for_others) = match claims.get("aud") {
            Some(Value::String(only)) => (only == client, false),
            Some(Value::Array(all)) => (all.iter().any(|it| it == client), all.len() > 1),
            _ => (false, false),
        };
        let authorized = text("azp");
        if !is_for_us || (is_for_others && authorized.is_none()) {
            return Err(TokenError::Claim("aud"));
        }
        if authorized.is_some_and(|it| it != client) {
            return Err(TokenError::Claim("azp"));
        }
        let (now, skew) = (seconds(now) as f64, SKEW.as_secs_f64());
        if time("exp").is_none_or(|it| it + skew <= now) {
            return Err(TokenError::Claim("exp"));
        }
        if time("iat").is_none_or(|it| it - skew > now) {
            return Err(TokenError::Claim("iat"));
        }
        if self.is_fresh && authenticated(&claims).is_none_or(|it| it + SKEW.as_secs() < self.time) {
            return Err(TokenError::Claim("auth_time"));
        }
        let nonce = text("nonce").unwrap_or_default();
        if verify_slices_are_equal(nonce.as_bytes(), self.nonce.as_bytes()).is_err() {
            return Err(TokenError::Claim("nonce"));
        }
        match text("sub") {
            Some(subject) if !subject.is_empty() => Ok(claims),
            _ => Err(TokenError::Claim("sub")),
        }
    }
}

/// When the provider asked the person last, in seconds since the Unix epoch, if its token says so.
pub fn authenticated(claims: &Value) -> Option<u64> {
    claims.get("auth_time")?.as_u64()
}

/// The query with which a provider sends a browser back.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
pub struct Callback {
    /// The code to exchange for tokens.
    #[serde(default)]
    pub code: Option<String>,
    /// The login that it belongs to.
    #[serde(default)]
    pub state: Option<String>,
    /// The issuer of the answer.
    #[serde(default)]
    pub iss: Option<String>,
    /// Why there is no code.
    #[serde(default)]
    pub error: Option<String>,
    /// The same in words.
    #[serde(default)]
    pub error_description: Option<String>,
}

/// The answer of the token endpoint.
#[derive(Deserialize)]
pub struct Tokens {
    /// The token about the person.
    pub id_token: String,
    /// The token for the userinfo endpoint.
    #[serde(default)]
    pub access_token: Option<String>,
}

/// More claims, from the userinfo endpoint: they have to be of the same person. Those of the token stay.
///
/// # Errors
/// They are those of another user.
pub fn with_userinfo(mut claims: Value, more: &Value) -> Result<Value, TokenError> {
    if more.get("sub") != claims.get("sub") {
        return Err(TokenError::Claim("sub"));
    }
    if let (Some(claims), Some(more)) = (claims.as_object_mut(), more.as_object()) {
        for (name, value) in more {
            claims.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    Ok(claims)
}

/// The address at which a user who has logged out here logs out of the provider as well.
pub fn logout_url(provider: &Provider, metadata: &Metadata, return_to: &str) -> Option<String> {
    let end = metadata.end_session_endpoint.as_ref()?;
    let pairs = [
        ("client_id", provider.client_id.as_str()),
        ("post_logout_redirect_uri", return_to),
    ];
    Some(with_query(end, &form(&pairs)))
}

#[cfg(test)]
mod tests;
