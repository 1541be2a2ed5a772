//! An instance of `authz-keycloak` at work: which permissions a call needs, and what becomes of it.

use super::NAME;
use super::server::{Endpoints, Keycloak, unavailable};
use crate::browser::{redirect, refused};
use serde_json::Value;
use weir_plugin::headers::is_value;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Exchange, Filter, Outcome, Phases, Reply, SubrequestResponse};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, form};

const UMA: &str = "urn:ietf:params:oauth:grant-type:uma-ticket";
pub(super) const DENIED: &str = r#"{"error":"access_denied","error_description":"not_authorized"}"#;

/// An instance of `authz-keycloak`.
pub(super) struct PermissionFilter {
    pub(super) keycloak: Keycloak,
}

/// What a call has asked Keycloak for.
enum KeycloakCall {
    Resources,
    Decision,
    Password,
}

/// Passes on what Keycloak says.
fn passed_on(answer: SubrequestResponse) -> Outcome {
    let content_type = answer.headers.get(b"content-type");
    let content_type = content_type.map_or("application/json".into(), |it| {
        String::from_utf8_lossy(it).into_owned()
    });
    let mut reply = Reply::new(answer.status, "", answer.body);
    reply.content_type = content_type.into();
    Outcome::Reply(Box::new(reply))
}

impl PermissionFilter {
    /// Asks for the resources of the call's path.
    fn ask_resources(&self, exchange: &mut Exchange, endpoints: &Endpoints, token_url: &str) -> Outcome {
        let token = match self.keycloak.own_token(exchange, token_url) {
            Ok(token) => token,
            Err(outcome) => return outcome,
        };
        let url = endpoints.resource_registration_endpoint.as_deref();
        let Some(server) = url.and_then(HttpServer::parse) else {
            return unavailable("Unable to determine registration endpoint.");
        };
        let path = String::from_utf8_lossy(&exchange.request.path).into_owned();
        let query = form([("uri", path.as_str()), ("matchingUri", "true")]);
        let authorization = format!("Bearer {token}");
        let request = HttpRequest {
            query: &query,
            headers: &[("Authorization", &authorization)],
            ..HttpRequest::GET
        };
        exchange.filter_state.put(self, KeycloakCall::Resources);
        Outcome::Subrequest(Box::new(server.request(request, &self.keycloak.rules)))
    }

    /// Asks whether the caller has the permissions.
    fn ask_decision(&self, exchange: &mut Exchange, url: &str, permissions: &[String]) -> Outcome {
        let config = &self.keycloak.config;
        if permissions.is_empty() && config.enforcing {
            return self.denied(None);
        }
        let Some(token) = bearer(exchange) else {
            return refused(NAME, 401, "Missing JWT token in request");
        };
        let scope = String::from_utf8_lossy(&exchange.request.method).into_owned();
        let permissions: Vec<String> = permissions
            .iter()
            .map(
                |permission| match (config.method_as_scope, permission.contains('#')) {
                    (false, _) => permission.clone(),
                    (true, true) => format!("{permission}, {scope}"),
                    (true, false) => format!("{permission}#{scope}"),
                },
            )
            .collect();
        let mut arguments = vec![
            ("grant_type", UMA),
            ("audience", config.client_id.as_str()),
            ("response_mode", "decision"),
        ];
        arguments.extend(permissions.iter().map(|it| ("permission", it.as_str())));
        exchange.filter_state.put(self, KeycloakCall::Decision);
        self.keycloak.post(url, &arguments, Some(&token))
    }

    fn denied(&self, answer: Option<SubrequestResponse>) -> Outcome {
        match (&self.keycloak.config.denied_redirect, answer) {
            (Some(address), _) => redirect(307, address),
            (None, Some(answer)) => passed_on(answer),
            (None, None) => Outcome::Reply(Box::new(Reply::new(403, "application/json", DENIED))),
        }
    }

    /// What Keycloak has decided.
    fn decided(&self, exchange: &mut Exchange) -> Outcome {
        let Some(answer) = exchange.subrequest_response.take().flatten() else {
            return unavailable("");
        };
        match answer.status {
            // Only what says so lets a call pass.
            200 if is_granted(&answer.body) => {
                let token = bearer(exchange).unwrap_or_default();
                exchange.add_fingerprint(token.as_bytes());
                Outcome::Continue
            }
            403 => self.denied(Some(answer)),
            400..=599 => passed_on(answer),
            _ => unavailable(""),
        }
    }

    fn is_password_call(&self, exchange: &Exchange) -> bool {
        let request = &exchange.request;
        let form = b"application/x-www-form-urlencoded";
        self.keycloak.config.password_path.as_ref().is_some_and(|path| {
            request.method == b"POST"
                && request.query.is_none()
                && request.path == path.as_bytes()
                && request.headers.get(b"content-type") == Some(form)
        })
    }

    /// Exchanges a form for tokens.
    fn exchange_password(&self, exchange: &mut Exchange, url: &str) -> Outcome {
        if exchange.request.body.is_none() && exchange.request.has_body {
            return Outcome::NeedBody {
                max_bytes: self.keycloak.config.max_body_bytes,
            };
        }
        let body = exchange.request.body.clone().unwrap_or_default();
        let field = |name: &[u8]| {
            let found = query_pairs(&body).find(|(key, _)| decode_form(key).as_ref() == name);
            let value = found.and_then(|(_, value)| Some(decode_form(value?).into_owned()))?;
            String::from_utf8(value).ok()
        };
        let Some(username) = field(b"username") else {
            return refused(NAME, 422, "username is missing.");
        };
        let Some(password) = field(b"password") else {
            return refused(NAME, 422, "password is missing.");
        };
        let secret = self.keycloak.config.client_secret.as_deref().unwrap_or_default();
        exchange.filter_state.put(self, KeycloakCall::Password);
        let arguments = [
            ("grant_type", "password"),
            ("client_id", self.keycloak.config.client_id.as_str()),
            ("client_secret", secret),
            ("username", &username),
            ("password", &password),
        ];
        self.keycloak.post(url, &arguments, None)
    }
}

/// `{"result": true}`. In the other response modes Keycloak would send a token instead of a decision.
fn is_granted(body: &[u8]) -> bool {
    let read: Option<Value> = serde_json::from_slice(body).ok();
    read.is_some_and(|read| read.get("result") == Some(&Value::Bool(true)))
}

/// The caller's token, in the form that Keycloak expects. Two tokens count as none: the upstream might read the one
/// that was not checked.
fn bearer(exchange: &Exchange) -> Option<String> {
    let mut values = exchange.request.headers.get_all(b"authorization");
    let value = values.next().filter(|_| values.next().is_none())?;
    let value = std::str::from_utf8(value)
        .ok()
        .filter(|it| is_value(it.as_bytes()))?;
    let has_scheme = value
        .get(..7)
        .is_some_and(|it| it.eq_ignore_ascii_case("bearer "));
    Some(if has_scheme {
        value.to_owned()
    } else {
        format!("Bearer {value}")
    })
}

impl Filter for PermissionFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let asked = exchange.filter_state.take::<_, KeycloakCall>(self);
        match asked {
            Some(KeycloakCall::Decision) => return self.decided(exchange),
            Some(KeycloakCall::Password) => {
                let answer = exchange.subrequest_response.take().flatten();
                return match answer.filter(|answer| answer.status == 200) {
                    Some(answer) => passed_on(answer),
                    None => refused(NAME, 401, "Accessing token endpoint URL failed."),
                };
            }
            Some(KeycloakCall::Resources) | None => {}
        }
        let is_password_call = self.is_password_call(exchange);
        if !is_password_call && bearer(exchange).is_none() {
            return refused(NAME, 401, "Missing JWT token in request");
        }
        let endpoints = match self.keycloak.endpoints(exchange) {
            Ok(endpoints) => endpoints,
            Err(outcome) => return outcome,
        };
        let Some(url) = endpoints.token_endpoint.clone() else {
            return unavailable("Unable to determine token endpoint.");
        };
        if is_password_call {
            return self.exchange_password(exchange, &url);
        }
        match asked {
            Some(_) => {
                let answer = exchange.subrequest_response.take().flatten();
                let answer = answer.filter(|answer| answer.status == 200);
                let ids: Option<Vec<String>> =
                    answer.and_then(|answer| serde_json::from_slice(&answer.body).ok());
                match ids {
                    Some(ids) => self.ask_decision(exchange, &url, &ids),
                    None => unavailable("Accessing resource registration endpoint URL failed."),
                }
            }
            None if self.keycloak.config.by_path => self.ask_resources(exchange, &endpoints, &url),
            None => self.ask_decision(exchange, &url, &self.keycloak.config.permissions),
        }
    }
}
