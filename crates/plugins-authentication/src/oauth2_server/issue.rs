//! The endpoint from which clients fetch tokens (RFC 6749, 3.2).

use super::authorize::{check_user, choose, user};
use super::clients::Client;
use super::parameters::Parameters;
use super::records::{Change, Code, GrantedAccess, Hash, Put, Record, Token, hash};
use super::responses::{ErrorStatus, OauthError, endpoint};
use super::secret_checks::{SecretAttempt, SecretCheck};
use super::{Decision, Grant, Server};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;
use std::sync::Arc;
use weir_plugin::{Exchange, Request};

/// What a client says about itself.
struct Proof {
    client_id: Option<String>,
    /// `None`: it says none.
    secret: Option<String>,
    in_header: bool,
}

/// A token that can be refreshed.
pub(super) struct Refreshable {
    access: Hash,
    record: Arc<Record>,
    /// Whether an administrator has written it.
    is_configured: bool,
}

impl Server {
    pub(super) fn issue(&self, exchange: &Exchange, now_ms: u64) -> Decision {
        let parameters = Parameters::read(&exchange.request);
        let state = parameters.text("state");
        let decided = match self.is_tls(&exchange.request) {
            false => Err(OauthError::no_https()),
            true => self.decide(exchange, &parameters, now_ms),
        };
        decided.unwrap_or_else(|fault| Decision::only(fault.reply(state)))
    }

    fn decide(
        &self,
        exchange: &Exchange,
        parameters: &Parameters,
        now_ms: u64,
    ) -> Result<Decision, OauthError> {
        let grant = parameters.text("grant_type");
        let client = self.authenticate(grant, parameters, (&exchange.request, now_ms))?;
        match (grant, client) {
            (Some("authorization_code"), Some(client)) => self.redeem(exchange, parameters, client, now_ms),
            (Some("refresh_token"), Some(client)) => self.refresh(exchange, parameters, client, now_ms),
            (Some("client_credentials"), client) => {
                if parameters.has("authenticated_userid") && !self.is_provisioned(parameters) {
                    return Err(OauthError::provision_key());
                }
                // A client that cannot prove itself has nothing to act with (RFC 6749, 4.4).
                let client = client
                    .filter(|client| !client.is_public)
                    .ok_or_else(OauthError::invalid_client)?;
                self.give(exchange, parameters, client, false, now_ms)
            }
            (Some(_), Some(client)) => {
                if !self.is_provisioned(parameters) {
                    return Err(OauthError::provision_key());
                }
                check_user(parameters)?;
                self.give(exchange, parameters, client, true, now_ms)
            }
            _ => Err(OauthError::invalid_client()),
        }
    }

    /// Finds the client and authenticates it. If there are several faults, the last one is reported.
    fn authenticate(
        &self,
        grant: Option<&str>,
        parameters: &Parameters,
        (request, now_ms): (&Request, u64),
    ) -> Result<Option<&Client>, OauthError> {
        let is_served = match grant {
            Some("authorization_code" | "refresh_token") => true,
            Some("client_credentials") => self.allows(Grant::ClientCredentials),
            Some("password") => self.allows(Grant::Password),
            _ => false,
        };
        let mut fault = (!is_served).then(|| OauthError::new("unsupported_grant_type", "Invalid grant_type"));
        let proof = self.read_proof(parameters, request);
        let invalid = || OauthError {
            status: match proof.in_header {
                true => ErrorStatus::Unauthorized,
                false => ErrorStatus::BadRequest,
            },
            ..OauthError::invalid_client()
        };
        let client = proof
            .client_id
            .as_deref()
            .and_then(|name| self.clients.named(name, now_ms));
        if grant != Some("client_credentials") {
            match client.and_then(|client| client.redirect_uris.as_deref()) {
                None => fault = Some(invalid()),
                Some(uris) if !choose(uris, parameters).1 => fault = Some(OauthError::unknown_uri()),
                Some(_) => {}
            }
        }
        if let Some(client) = client {
            let secret = proof.secret.as_deref();
            if !client.is_public {
                let check = secret.map(|secret| {
                    let attempt = SecretAttempt {
                        secret,
                        from: request.client,
                        now_ms,
                    };
                    client.check_secret(attempt, &self.secret_checks)
                });
                match check {
                    Some(SecretCheck::Right) => {}
                    Some(SecretCheck::TooMany) => fault = Some(OauthError::too_many_secrets()),
                    Some(SecretCheck::Wrong) | None => fault = Some(invalid()),
                }
            } else if secret.is_some_and(|secret| !secret.trim().is_empty()) {
                let description = "client_secret is disallowed for public clients";
                fault = Some(OauthError::invalid_request(description));
            }
        }
        match fault {
            Some(fault) => Err(fault),
            None => Ok(client.map(AsRef::as_ref)),
        }
    }

    /// Reads who the client says it is, from parameters or from a header.
    fn read_proof(&self, parameters: &Parameters, request: &Request) -> Proof {
        let header = request.headers.get(self.config.header.as_bytes());
        let in_parameters = parameters.has("client_id") && parameters.has("client_secret");
        let Some(header) = header.filter(|_| !in_parameters) else {
            let text = |name| parameters.text(name).map(str::to_owned);
            return Proof {
                client_id: text("client_id").filter(|name| !name.is_empty()),
                // What is no text is no secret, but it is said.
                secret: parameters
                    .has("client_secret")
                    .then(|| text("client_secret").unwrap_or_default()),
                in_header: false,
            };
        };
        let decoded = basic(header);
        let (client_id, secret) = match decoded.as_deref().map(|text| text.split_once(':')) {
            Some(Some((name, secret))) => (Some(name.to_owned()), Some(secret.to_owned())),
            Some(None) => (decoded.clone(), None),
            None => (None, None),
        };
        Proof {
            client_id: client_id.filter(|name| !name.is_empty()),
            secret,
            in_header: true,
        }
    }

    /// A code for a token.
    fn redeem(
        &self,
        exchange: &Exchange,
        parameters: &Parameters,
        client: &Client,
        now_ms: u64,
    ) -> Result<Decision, OauthError> {
        let invalid = || OauthError::invalid_request("Invalid code");
        let text = parameters.text("code").ok_or_else(invalid)?;
        let place = hash(text);
        let found = self.records.find(&place, now_ms).ok_or_else(invalid)?;
        let code = match &*found {
            Record::Code(code) if code.owner == client.owner => code,
            Record::UsedCode { owner, token } if *owner == client.owner => {
                // The code is in two hands: what was given for it is taken back (RFC 6749, 4.1.2).
                let change = Change {
                    removes: vec![*token],
                    ..Change::default()
                };
                return Ok(Decision {
                    change,
                    ..Decision::only(invalid().reply(parameters.text("state")))
                });
            }
            _ => return Err(invalid()),
        };
        let service = self.service(exchange);
        let is_here = match &service {
            Some(_) => code.grant.service == service,
            None => true,
        };
        // A client that names the redirect address must name the same one as before (RFC 6749, 4.1.3).
        let is_there = parameters
            .text("redirect_uri")
            .is_none_or(|uri| uri == code.redirect_uri);
        if !is_here || !is_there {
            return Err(invalid());
        }
        // A client that has a verifier has sent a challenge: a code without one is not from its login (RFC 9700, 2.1.1).
        if code.challenge.is_some() || self.requires_pkce(client) || parameters.has("code_verifier") {
            check_verifier(parameters, code)?;
        }
        if self.config.all_services && code.instance != self.instance {
            return Err(invalid());
        }
        let grant = GrantedAccess {
            service,
            ..code.grant.clone()
        };
        let refresh = (self.config.token_seconds > 0).then(|| self.new_text());
        let (put, token, response) = self.new_token(client, grant, (refresh, Some(place)), now_ms);
        let used = Put {
            hash: place,
            record: Record::UsedCode {
                owner: client.owner.clone(),
                token,
            },
            ends_ms: Some(now_ms + super::CODE_MS),
            made_ms: now_ms,
        };
        let change = Change {
            unless_changed: Some((place, Arc::clone(&found))),
            puts: vec![used, put],
            ..Change::default()
        };
        Ok(answer(response, parameters, change, invalid()))
    }

    /// A refresh token for another access token. The scope stays what it was.
    fn refresh(
        &self,
        exchange: &Exchange,
        parameters: &Parameters,
        client: &Client,
        now_ms: u64,
    ) -> Result<Decision, OauthError> {
        let invalid = || OauthError::invalid_request("Invalid refresh_token");
        let text = parameters.text("refresh_token").ok_or_else(invalid)?;
        let found = self.find_refresh(&hash(text), now_ms).ok_or_else(invalid)?;
        let Record::Token(token) = &*found.record else {
            return Err(invalid());
        };
        // Nor does a token of one service become one of all that share theirs.
        let service = self.service(exchange);
        if token.grant.service != service {
            return Err(invalid());
        }
        if token.owner != client.owner {
            return Err(OauthError::invalid_client());
        }
        let known = self.config.scopes.as_deref().unwrap_or_default();
        let mut scopes = token
            .grant
            .scope
            .as_deref()
            .unwrap_or_default()
            .split_ascii_whitespace();
        if scopes.any(|scope| !known.iter().any(|known| known == scope)) {
            return Err(OauthError::new("invalid_scope", "Scope mismatch"));
        }
        Ok(self.rotate(&found, token, (client, text, service), parameters, now_ms))
    }

    pub(super) fn find_refresh(&self, refresh: &Hash, now_ms: u64) -> Option<Refreshable> {
        if let Some((access, record)) = self.records.find_refresh(refresh, now_ms) {
            return Some(Refreshable {
                access,
                record,
                is_configured: false,
            });
        }
        let (access, record) = self.clients.refreshed_by(refresh)?;
        let is_refreshed = self.records.find(&access, now_ms).is_some();
        (!is_refreshed).then(|| Refreshable {
            access,
            record: Arc::clone(record),
            is_configured: true,
        })
    }

    /// Puts another token in the place of one.
    fn rotate(
        &self,
        found: &Refreshable,
        token: &Token,
        (client, refresh, service): (&Client, &str, Option<Arc<str>>),
        parameters: &Parameters,
        now_ms: u64,
    ) -> Decision {
        let config = &self.config;
        let (grant, next) = match config.reuse_refresh_token {
            true => (token.grant.clone(), Some(refresh.to_owned())),
            false => {
                let grant = GrantedAccess {
                    service,
                    ..token.grant.clone()
                };
                (grant, (config.token_seconds > 0).then(|| self.new_text()))
            }
        };
        let (put, hash, response) = self.new_token(client, grant, (next, token.code), now_ms);
        let mut change = match found.is_configured {
            true => Change {
                unless_there: Some(found.access),
                puts: vec![
                    Put {
                        hash: found.access,
                        record: Record::Refreshed {
                            owner: client.owner.clone(),
                        },
                        ends_ms: None,
                        made_ms: now_ms,
                    },
                    put,
                ],
                ..Change::default()
            },
            false => Change {
                unless_changed: Some((found.access, Arc::clone(&found.record))),
                removes: vec![found.access],
                puts: vec![put],
                ..Change::default()
            },
        };
        // What is taken back if the code is used again is the token that there is then.
        if let Some(code) = token.code
            && let Some(used) = self.records.find(&code, now_ms)
            && matches!(*used, Record::UsedCode { .. })
        {
            change.puts.push(Put {
                hash: code,
                record: Record::UsedCode {
                    owner: client.owner.clone(),
                    token: hash,
                },
                ends_ms: Some(now_ms + super::CODE_MS),
                made_ms: now_ms,
            });
        }
        answer(
            response,
            parameters,
            change,
            OauthError::invalid_request("Invalid refresh_token"),
        )
    }

    /// A token for a client itself, or for a user whose password was checked.
    fn give(
        &self,
        exchange: &Exchange,
        parameters: &Parameters,
        client: &Client,
        has_refresh: bool,
        now_ms: u64,
    ) -> Result<Decision, OauthError> {
        let grant = GrantedAccess {
            service: self.service(exchange),
            scope: self.read_scope(parameters)?.map(Into::into),
            user: user(parameters).map(Into::into),
        };
        let refresh = (has_refresh && self.config.token_seconds > 0).then(|| self.new_text());
        let (put, _, response) = self.new_token(client, grant, (refresh, None), now_ms);
        let change = Change {
            puts: vec![put],
            ..Change::default()
        };
        Ok(answer(response, parameters, change, OauthError::invalid_client()))
    }
}

/// The answer with a token.
fn answer(
    mut response: serde_json::Map<String, Value>,
    parameters: &Parameters,
    change: Change,
    otherwise: OauthError,
) -> Decision {
    let state = parameters.text("state");
    if let Some(state) = state {
        response.insert("state".to_owned(), state.into());
    }
    Decision {
        reply: endpoint(200, &Value::Object(response)),
        change,
        otherwise: otherwise.reply(state),
    }
}

/// The text of `Basic` in a header.
fn basic(header: &[u8]) -> Option<String> {
    let header = std::str::from_utf8(header).ok()?.trim_ascii();
    let (scheme, rest) = header.split_at_checked(5)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    String::from_utf8(STANDARD.decode(rest.trim_ascii()).ok()?).ok()
}

/// Whether the client proves that it began the login (RFC 7636, 4.6).
fn check_verifier(parameters: &Parameters, code: &Code) -> Result<(), OauthError> {
    if !parameters.has("code_verifier") {
        let description = "code_verifier is required for PKCE authorization requests";
        return Err(OauthError::invalid_request(description));
    }
    let verifier = parameters
        .text("code_verifier")
        .ok_or_else(|| OauthError::invalid_request("code_verifier is not a string"))?;
    if !(43..=128).contains(&verifier.len()) {
        let description = "code_verifier must be between 43 and 128 characters";
        return Err(OauthError::invalid_request(description));
    }
    let expected = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()).as_ref());
    let is_right = code
        .challenge
        .as_ref()
        .is_some_and(|challenge| verify_slices_are_equal(challenge.as_bytes(), expected.as_bytes()).is_ok());
    match is_right {
        true => Ok(()),
        false => Err(OauthError::new("invalid_grant", "Invalid code")),
    }
}
