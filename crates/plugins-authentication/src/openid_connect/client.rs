//! The client at the provider's endpoints: its authentication, and its requests.

use super::config::{ClientAuth, Config};
use super::provider::TokenSet;
use crate::jose::SigningKey;
use crate::jwt::Algorithm;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use weir_plugin::{Subrequest, SubrequestResponse};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules, form};
use weir_plugins_shared::random::{self, Random};

/// RFC 7523.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The client.
pub(crate) struct Client {
    id: String,
    secret: Option<String>,
    signing: Option<SigningKey>,
    assertion_seconds: u64,
    assertion_audience: Option<String>,
    random: Random,
}

/// Why there is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoToken;

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    #[serde(default)]
    id_token: Option<String>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
}

impl Client {
    /// Makes the client of a configuration.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub(crate) fn new(config: &Config, random: Random) -> Result<Self, (&'static str, String)> {
        let used = [Some(config.client_auth), config.introspection_auth];
        let pushed = config.pushed_requests.as_ref().and_then(|it| it.auth);
        let uses = |auth| used.contains(&Some(auth)) || pushed == Some(auth);
        let assertion = config.client_assertion.as_ref();
        let id = assertion.and_then(|it| it.key_id.as_deref());
        let algorithm = assertion.and_then(|it| it.algorithm);
        let signing = if uses(ClientAuth::PrivateKeyJwt) {
            let key = assertion.and_then(|it| it.private_key.as_deref());
            let key = key.ok_or(("client_assertion", "expected a private key".to_owned()))?;
            let made = SigningKey::new(algorithm.unwrap_or(Algorithm::RS256), key, id);
            Some(made.map_err(|fault| ("client_assertion", fault.to_string()))?)
        } else if uses(ClientAuth::SecretJwt) {
            let secret = config.client_secret.as_deref();
            let secret = secret.ok_or(("client_secret", "expected a secret".to_owned()))?;
            let made = SigningKey::new(algorithm.unwrap_or(Algorithm::HS256), secret, id);
            Some(made.map_err(|fault| ("client_assertion", fault.to_string()))?)
        } else {
            None
        };
        Ok(Self {
            id: config.client_id.clone(),
            secret: config.client_secret.clone(),
            signing,
            assertion_seconds: assertion.map_or(60, |it| it.seconds),
            assertion_audience: assertion.and_then(|it| it.audience.clone()),
            random,
        })
    }

    /// A form for an endpoint, with what proves who the client is.
    pub(crate) fn post(
        &self,
        endpoint: &str,
        auth: ClientAuth,
        arguments: &[(&str, &str)],
        headers: &[(&str, &str)],
        (rules, now_s): (&ServerCallRules, u64),
    ) -> Option<Subrequest> {
        let secret = self.secret.as_deref().unwrap_or_default();
        let mut arguments = arguments.to_vec();
        let (mut authorization, assertion);
        let mut headers = headers.to_vec();
        match auth {
            ClientAuth::Basic => {
                // Both are encoded as in a form first (RFC 6749, 2.3.1).
                let pair = [(self.id.as_str(), ""), (secret, "")].map(|it| form([it]));
                let pair = pair.map(|text| text.trim_end_matches('=').to_owned());
                authorization = STANDARD.encode(pair.join(":"));
                authorization.insert_str(0, "Basic ");
                headers.push(("Authorization", &authorization));
            }
            ClientAuth::Post => {
                arguments.extend([("client_id", self.id.as_str()), ("client_secret", secret)])
            }
            ClientAuth::None => arguments.push(("client_id", &self.id)),
            ClientAuth::SecretJwt | ClientAuth::PrivateKeyJwt => {
                assertion = self.assertion(endpoint, now_s)?;
                arguments.extend([
                    ("client_id", self.id.as_str()),
                    ("client_assertion_type", ASSERTION),
                    ("client_assertion", assertion.as_str()),
                ]);
            }
        }
        post_form(endpoint, arguments, headers, rules)
    }

    fn assertion(&self, endpoint: &str, now_s: u64) -> Option<String> {
        let id: [u8; 16] = random::bytes(self.random);
        self.signing.as_ref()?.sign(&json!({
            "iss": self.id,
            "sub": self.id,
            "aud": self.assertion_audience.as_deref().unwrap_or(endpoint),
            "jti": data_encoding::HEXLOWER.encode(&id),
            "iat": now_s,
            "exp": now_s + self.assertion_seconds,
        }))
    }
}

/// A form for an endpoint, with nothing that proves who the client is but these headers.
pub(crate) fn post_form(
    endpoint: &str,
    arguments: Vec<(&str, &str)>,
    mut headers: Vec<(&str, &str)>,
    rules: &ServerCallRules,
) -> Option<Subrequest> {
    let server = HttpServer::parse(endpoint)?;
    headers.push(("Content-Type", "application/x-www-form-urlencoded"));
    let body = form(arguments);
    let request = HttpRequest {
        method: "POST",
        headers: &headers,
        body: Some(body.as_bytes()),
        ..HttpRequest::GET
    };
    Some(server.request(request, rules))
}

/// Whether an endpoint refuses the client, and not what it is asked about (RFC 6749, 5.2).
pub(super) fn is_refused(answer: &SubrequestResponse) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        error: String,
    }
    let read = serde_json::from_slice(&answer.body);
    read.is_ok_and(|Answer { error }| matches!(&*error, "invalid_client" | "unauthorized_client"))
}

/// Reads the answer of a token endpoint (RFC 6749, 5.1).
pub(crate) fn tokens(answer: Option<SubrequestResponse>, now_s: u64) -> Result<TokenSet, NoToken> {
    let answer = answer.filter(|answer| answer.status == 200).ok_or(NoToken)?;
    let read: TokenResponse = serde_json::from_slice(&answer.body).map_err(|_| NoToken)?;
    if read.access_token.is_empty() {
        return Err(NoToken);
    }
    let seconds = read.expires_in.filter(|seconds| *seconds >= 0.0);
    Ok(TokenSet {
        access_token: read.access_token,
        id_token: read.id_token,
        refresh_token: read.refresh_token,
        scope: read.scope,
        expires_at_s: seconds.map(|seconds| now_s.saturating_add(seconds as u64)),
    })
}
