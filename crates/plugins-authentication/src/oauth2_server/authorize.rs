//! The endpoint at which the application that logs users in says what a user has allowed (RFC 6749, 4.1 and 4.2).

use super::clients::Client;
use super::parameters::Parameters;
use super::records::{Change, Code, GrantedAccess, Put, Record, hash};
use super::redirect::with_members;
use super::responses::{OauthError, endpoint};
use super::{CODE_MS, Decision, Grant, Pkce, Server};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};
use weir_plugin::Exchange;
use weir_plugin::headers::is_value;

/// Base64 for URIs whose last letter may have bits that mean nothing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);

/// The longest name of a user: it is kept with each of the user's tokens.
const MAX_USER: usize = 1_024;
/// The longest challenge (RFC 7636, 4.2).
const MAX_CHALLENGE: usize = 128;

/// Where the application is sent, and what is wrong.
#[derive(Default)]
struct Request<'r> {
    client: Option<&'r Client>,
    redirect_uri: Option<&'r str>,
    scope: Option<String>,
    challenge: Option<String>,
    fault: Option<OauthError>,
}

impl Server {
    pub(super) fn authorize(&self, exchange: &Exchange, now_ms: u64) -> Decision {
        let parameters = Parameters::read(&exchange.request);
        let state = parameters.text("state");
        let fault = if !self.is_tls(&exchange.request) {
            Some(OauthError::no_https())
        } else if !self.is_provisioned(&parameters) {
            Some(OauthError::provision_key())
        } else {
            check_user(&parameters).err()
        };
        let request = match fault {
            Some(fault) => Request {
                fault: Some(fault),
                ..Request::default()
            },
            None => self.read_request(&parameters, now_ms),
        };
        match (&request.fault, request.client, request.redirect_uri) {
            (None, Some(client), Some(uri)) => {
                let grant = GrantedAccess {
                    service: self.service(exchange),
                    scope: request.scope.as_deref().map(Into::into),
                    user: user(&parameters).map(Into::into),
                };
                match parameters.text("response_type") {
                    Some("code") => {
                        let code = Code {
                            owner: client.owner.clone(),
                            instance: self.instance.clone(),
                            grant,
                            challenge: request.challenge,
                            redirect_uri: uri.to_owned(),
                        };
                        self.give_code(code, uri, state, now_ms)
                    }
                    _ => self.give_token(client, grant, (uri, state), now_ms),
                }
            }
            (fault, _, uri) => {
                let fault = fault.clone().unwrap_or_else(OauthError::invalid_client);
                let reply = match uri {
                    Some(uri) => endpoint(400, &redirected(uri, fault.members(), state, false)),
                    None => fault.reply(state),
                };
                Decision::only(reply)
            }
        }
    }

    /// Whether the caller is the application that logs users in.
    pub(super) fn is_provisioned(&self, parameters: &Parameters) -> bool {
        let keys = self
            .config
            .provision_key
            .as_deref()
            .zip(parameters.text("provision_key"));
        keys.is_some_and(|(own, given)| verify_slices_are_equal(own.as_bytes(), given.as_bytes()).is_ok())
    }

    /// Reads the request. If it has several faults, the last one is reported.
    fn read_request<'s>(&'s self, parameters: &'s Parameters, now_ms: u64) -> Request<'s> {
        let mut request = Request::default();
        let is_served = match parameters.text("response_type") {
            Some("code") => self.allows(Grant::AuthorizationCode),
            Some("token") => self.allows(Grant::Implicit),
            _ => false,
        };
        if !is_served {
            request.fault = Some(OauthError::new(
                "unsupported_response_type",
                "Invalid response_type",
            ));
        }
        match self.read_scope(parameters) {
            Ok(scope) => request.scope = scope,
            Err(fault) => request.fault = Some(fault),
        }
        let client = parameters
            .text("client_id")
            .and_then(|name| self.clients.named(name, now_ms));
        let uris = client.and_then(|client| client.redirect_uris.as_deref());
        match uris {
            None => request.fault = Some(OauthError::invalid_client()),
            Some(uris) => {
                let (uri, is_known) = choose(uris, parameters);
                request.redirect_uri = uri;
                if !is_known {
                    request.fault = Some(OauthError::unknown_uri());
                }
                request.client = client.map(AsRef::as_ref);
            }
        }
        match read_challenge(parameters) {
            Err(description) => request.fault = Some(OauthError::invalid_request(description)),
            Ok(challenge) => {
                if let Some(client) = request.client
                    && challenge.is_none()
                    && self.requires_pkce(client)
                {
                    let kind = if client.is_public {
                        "public"
                    } else {
                        "confidential"
                    };
                    let description = format!("code_challenge is required for {kind} clients");
                    request.fault = Some(OauthError::invalid_request(&description));
                }
                request.challenge = challenge;
            }
        }
        request
    }

    /// Whether a client must always prove that it began the login.
    pub(super) fn requires_pkce(&self, client: &Client) -> bool {
        match self.config.pkce {
            Pkce::None => false,
            Pkce::Lax => client.is_public,
            Pkce::Strict => true,
        }
    }

    /// The requested scope, if all of it is allowed.
    pub(super) fn read_scope(&self, parameters: &Parameters) -> Result<Option<String>, OauthError> {
        let Some(known) = self.config.scopes.as_ref().filter(|_| parameters.has("scope")) else {
            return match self.config.mandatory_scope && !parameters.has("scope") {
                true => Err(OauthError::new("invalid_scope", "You must specify a scope")),
                false => Ok(None),
            };
        };
        let asked = parameters
            .text("scope")
            .ok_or_else(|| OauthError::new("invalid_scope", "scope must be a string"))?;
        // Each once: what is kept of a token is as long as the configuration allows, not as long as a call.
        let mut parts: Vec<&str> = Vec::new();
        for part in asked.split_ascii_whitespace() {
            if !known.iter().any(|known| known == part) {
                return Err(OauthError::new(
                    "invalid_scope",
                    format!("\"{part}\" is an invalid scope"),
                ));
            }
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        match parts.is_empty() {
            // The original lets an empty text pass for a scope.
            true if self.config.mandatory_scope => {
                Err(OauthError::new("invalid_scope", "You must specify a scope"))
            }
            true => Ok(None),
            false => Ok(Some(parts.join(" "))),
        }
    }

    fn give_code(&self, code: Code, uri: &str, state: Option<&str>, now_ms: u64) -> Decision {
        let text = self.new_text();
        let members = Map::from_iter([("code".to_owned(), json!(text))]);
        let reply = endpoint(200, &redirected(uri, members, state, false));
        let put = Put {
            hash: hash(&text),
            record: Record::Code(code),
            ends_ms: Some(now_ms + CODE_MS),
            made_ms: now_ms,
        };
        Decision {
            change: Change {
                puts: vec![put],
                ..Change::default()
            },
            ..Decision::only(reply)
        }
    }

    fn give_token(
        &self,
        client: &Client,
        grant: GrantedAccess,
        (uri, state): (&str, Option<&str>),
        now_ms: u64,
    ) -> Decision {
        let (put, _, members) = self.new_token(client, grant, (None, None), now_ms);
        let reply = endpoint(200, &redirected(uri, members, state, true));
        Decision {
            change: Change {
                puts: vec![put],
                ..Change::default()
            },
            ..Decision::only(reply)
        }
    }
}

impl OauthError {
    pub(super) fn unknown_uri() -> Self {
        Self::invalid_request(
            "Invalid redirect_uri that does not match with any redirect_uri created with the application",
        )
    }
}

/// The user who granted access, if the call names one that can be forwarded to upstreams.
pub(super) fn user(parameters: &Parameters) -> Option<&str> {
    check_user(parameters).ok()
}

/// The user, or what is wrong with the one that the call names.
pub(super) fn check_user(parameters: &Parameters) -> Result<&str, OauthError> {
    let user = parameters.text("authenticated_userid").unwrap_or_default();
    if user.len() > MAX_USER {
        let description = format!("authenticated_userid is longer than {MAX_USER} bytes");
        return Err(OauthError::new("invalid_authenticated_userid", description));
    }
    match !user.trim().is_empty() && is_value(user.as_bytes()) {
        true => Ok(user),
        false => Err(OauthError::no_user()),
    }
}

/// The URI that a call names, or the client's first one; and whether it is one of the client's. If not, the client's first
/// one gets the error.
pub(super) fn choose<'u>(uris: &'u [String], parameters: &Parameters) -> (Option<&'u str>, bool) {
    let first = uris.first().map(String::as_str);
    if !parameters.has("redirect_uri") {
        return (first, first.is_some());
    }
    let named = parameters.text("redirect_uri");
    match uris.iter().find(|uri| Some(uri.as_str()) == named) {
        Some(uri) => (Some(uri), true),
        None => (first, false),
    }
}

/// `{"redirect_uri": …}` with members in the URI.
fn redirected(uri: &str, members: Map<String, Value>, state: Option<&str>, in_fragment: bool) -> Value {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut all: Vec<(&str, String)> = members
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect();
    if let Some(state) = state {
        all.push(("state", state.to_owned()));
    }
    json!({"redirect_uri": with_members(uri, &all, in_fragment)})
}

/// The challenge of a call, in its usual form.
fn read_challenge(parameters: &Parameters) -> Result<Option<String>, &'static str> {
    let Some(challenge) = parameters.text("code_challenge") else {
        return match parameters.has("code_challenge_method") || parameters.has("code_challenge") {
            true => Err("code_challenge is required when code_method is present"),
            false => Ok(None),
        };
    };
    let is_method = match parameters.has("code_challenge_method") {
        true => matches!(parameters.text("code_challenge_method"), Some("S256" | "s256")),
        false => true,
    };
    if !is_method {
        return Err("code_challenge_method is not supported, must be S256");
    }
    if challenge.len() > MAX_CHALLENGE {
        return Err("code_challenge must be between 43 and 128 characters");
    }
    let plain = challenge
        .trim_end_matches('=')
        .replace('+', "-")
        .replace('/', "_");
    Ok(Some(match LENIENT.decode(&plain) {
        Ok(bytes) => URL_SAFE_NO_PAD.encode(bytes),
        Err(_) => challenge.to_owned(),
    }))
}
