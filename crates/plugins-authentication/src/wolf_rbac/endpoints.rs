//! The endpoints at which users of a wolf server log in, change their passwords, and ask who they are.
//!
//! **What it is not**: a plugin. `metrics-endpoint` answers calls with it.

use super::{App, CONTENT_TYPE, NAME, parse, token};
use crate::browser::refused;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{BuildContext, CredentialIndex, Exchange, Outcome, Reply, SubrequestResponse};
use weir_plugins_shared::http_request::{HttpRequest, ServerCallRules};

/// An endpoint at which users of a wolf server are served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// What it is for.
    pub serves: EndpointKind,
    /// Only calls of this path are for it. Absent: calls of all paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The purpose of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointKind {
    /// `POST` with `appid` and the fields that the server needs, as JSON or a form. The response has a token.
    Login,
    /// `GET` with a token: who its holder is.
    UserInfo,
    /// `PUT` with a token and what the server wants to know: the holder's password is changed.
    ChangePassword,
}

/// The most bytes of a call's body.
const MAX_BODY: usize = 1 << 20;
const FAILED: &str = "request to wolf-server failed!";

/// Endpoints, ready for use.
pub struct Endpoints {
    endpoints: Vec<Endpoint>,
    apps: Arc<CredentialIndex<App>>,
    rules: ServerCallRules,
}

impl Endpoints {
    /// These endpoints, for the apps of all credentials of `wolf-rbac`.
    pub fn build(endpoints: Vec<Endpoint>, context: &BuildContext<'_>) -> Self {
        let rules = crate::http_rules::HttpRules::default().rules();
        Self {
            endpoints,
            apps: context.credential_index(NAME, App::read),
            rules: ServerCallRules {
                timeout: Duration::from_secs(5),
                ..rules
            },
        }
    }

    /// The answer to a call; `None`: it is for no endpoint.
    pub fn answer(&self, exchange: &mut Exchange) -> Option<Outcome> {
        let request = &exchange.request;
        let endpoint = self.endpoints.iter().find(|endpoint| {
            let path = endpoint.path.as_ref();
            let is_it = path.is_none_or(|path| path.as_bytes() == request.path);
            is_it && request.method == endpoint.serves.method()
        })?;
        if request.has_body && request.body.is_none() {
            return Some(Outcome::NeedBody { max_bytes: MAX_BODY });
        }
        let outcome = self.call(endpoint.serves, exchange);
        Some(outcome.unwrap_or_else(|refusal| refusal))
    }

    fn call(&self, kind: EndpointKind, exchange: &mut Exchange) -> Result<Outcome, Outcome> {
        let answered = exchange.subrequest_response.take();
        let sent = arguments(exchange);
        let held = match kind {
            EndpointKind::Login => None,
            EndpointKind::UserInfo | EndpointKind::ChangePassword => Some(held_token(exchange)?),
        };
        let (app_id, own) = match &held {
            Some((app_id, own)) => (app_id.as_str(), Some(own.as_str())),
            None => {
                let sent = sent
                    .as_ref()
                    .ok_or_else(|| refused(NAME, 400, "invalid request"))?;
                let app_id = sent.get("appid").and_then(Value::as_str);
                (
                    app_id.ok_or_else(|| refused(NAME, 400, "appid is missing"))?,
                    None,
                )
            }
        };
        if self.apps.is_empty() {
            return Err(refused(NAME, 500, ""));
        }
        let entry = self.apps.get(app_id.as_bytes(), || exchange.now_ms());
        let app = &entry.ok_or_else(|| refused(NAME, 400, "appid not found"))?.secret;
        match answered {
            Some(answer) => outcome_of(kind, app_id, answer),
            None => Ok(self.ask(kind, app, own, sent)),
        }
    }

    fn ask(
        &self,
        kind: EndpointKind,
        app: &App,
        token: Option<&str>,
        sent: Option<Map<String, Value>>,
    ) -> Outcome {
        let (server, method) = match kind {
            EndpointKind::Login => (&app.login, "POST"),
            EndpointKind::UserInfo => (&app.user_info, "GET"),
            EndpointKind::ChangePassword => (&app.change_password, "POST"),
        };
        let body = (method == "POST").then(|| Value::from(sent.unwrap_or_default()).to_string());
        let mut headers = vec![CONTENT_TYPE];
        headers.extend(token.map(|token| ("x-rbac-token", token)));
        let request = HttpRequest {
            method,
            headers: &headers,
            body: body.as_deref().map(str::as_bytes),
            ..HttpRequest::GET
        };
        let rules = ServerCallRules {
            verify_tls: app.verify_tls,
            ..self.rules.clone()
        };
        Outcome::Subrequest(Box::new(server.request(request, &rules)))
    }
}

impl EndpointKind {
    fn method(self) -> &'static [u8] {
        match self {
            Self::Login => b"POST",
            Self::UserInfo => b"GET",
            Self::ChangePassword => b"PUT",
        }
    }
}

/// App and token of a call.
fn held_token(exchange: &Exchange) -> Result<(String, String), Outcome> {
    let token = token(exchange).ok_or_else(|| refused(NAME, 401, "Missing rbac token in request"))?;
    let (app_id, own) =
        parse(&token).ok_or_else(|| refused(NAME, 401, "invalid rbac token: parse failed"))?;
    Ok((app_id.to_owned(), own.to_owned()))
}

/// What a call sends, as JSON or a form; `None`: it is not JSON though it says so.
fn arguments(exchange: &Exchange) -> Option<Map<String, Value>> {
    let request = &exchange.request;
    let body = request.body.as_deref().unwrap_or_default();
    let kind = request.headers.get(b"content-type").unwrap_or_default();
    if String::from_utf8_lossy(kind).contains("application/json") {
        return serde_json::from_slice(body).ok();
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(&decode_form(bytes)).into_owned();
    let mut found = Map::new();
    for (name, value) in query_pairs(body) {
        let value = value.map_or(Value::Bool(true), |value| text(value).into());
        match found.get_mut(&text(name)) {
            None => {
                found.insert(text(name), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Some(found)
}

/// The response to the caller, made from the server's answer.
fn outcome_of(
    kind: EndpointKind,
    app_id: &str,
    answer: Option<SubrequestResponse>,
) -> Result<Outcome, Outcome> {
    let failed = || refused(NAME, 500, FAILED);
    let answer = answer.filter(|answer| answer.status == 200).ok_or_else(failed)?;
    let answer: Value = serde_json::from_slice(&answer.body).map_err(|_| failed())?;
    if answer.get("ok") != Some(&Value::Bool(true)) {
        return Ok(reply(&json!({ "message": FAILED })));
    }
    let data = |field: &str| answer.get("data").and_then(|data| data.get(field));
    let user = data("userInfo").cloned().unwrap_or_default();
    Ok(reply(&match kind {
        EndpointKind::Login => {
            let token = data("token").and_then(Value::as_str).ok_or_else(failed)?;
            json!({ "rbac_token": format!("V1#{app_id}#{token}"), "user_info": user })
        }
        EndpointKind::UserInfo => json!({ "user_info": user }),
        EndpointKind::ChangePassword => json!({ "message": "success to change password" }),
    }))
}

fn reply(body: &Value) -> Outcome {
    let reply =
        Reply::new(200, "application/json", format!("{body}\n")).with_header("Cache-Control", "no-store");
    Outcome::Reply(Box::new(reply))
}
