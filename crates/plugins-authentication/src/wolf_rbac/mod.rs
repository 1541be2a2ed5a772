//! `wolf-rbac`: asks a wolf server whether the holder of a token may make a call.
//!
//! ```yaml
//! {}
//! ```
//!
//! A token is `V1#app#token`, in the argument `rbac_token`, in `Authorization`, in `x-rbac-token`, or in a cookie of
//! that name. The app leads to a consumer, whose credential names the server. Upstreams and callers get the user in
//! `X-UserId`, `X-Username` and `X-Nickname`.
//!
//! Security: a caller's own copies of these headers never get through. Calls are refused while the server does not
//! answer.

mod endpoints;

pub use endpoints::{Endpoint, EndpointKind, Endpoints};

use crate::browser::refused;
use crate::http_rules::HttpRules;
use crate::identity::{self, Gate};
use crate::user_headers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use weir_model::Diagnostic;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{
    BuildContext, CredentialIndex, CredentialKind, Exchange, Filter, Outcome, Phases, Plugin, Suspend,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules, form};

/// Configuration of `wolf-rbac`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The HTTP settings for calls to servers. Whether certificates are verified is the credential's choice.
    pub http: HttpRules,
    /// The headers that name the consumer to upstreams, and the anonymous consumer.
    pub identity: identity::Config,
}

/// A credential of `wolf-rbac`: an app of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The app's id.
    pub app_id: String,
    /// The server's address.
    pub server: String,
    /// How the names of headers about the user begin.
    #[serde(default = "standard_prefix")]
    pub header_prefix: String,
    /// Whether the server's certificate is verified.
    #[serde(default = "weir_plugins_shared::yes")]
    pub verify_tls: bool,
}

fn standard_prefix() -> String {
    "X-".into()
}

const NAME: &str = "wolf-rbac";
/// The content type of what is sent to the server.
const CONTENT_TYPE: (&str, &str) = ("Content-Type", "application/json; charset=utf-8");
/// What headers about the user are called, after the prefix.
const USER_HEADERS: [&str; 3] = ["UserId", "Username", "Nickname"];
/// How often a server that fails is asked.
const TRIES: u8 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// The plugin `wolf-rbac`.
pub struct WolfRbac;

/// What is made of a credential.
struct App {
    access_check: HttpServer,
    login: HttpServer,
    user_info: HttpServer,
    change_password: HttpServer,
    prefix: String,
    verify_tls: bool,
}

impl App {
    fn read(credential: &Value) -> Option<(Vec<u8>, Self)> {
        let credential = Credential::deserialize(credential).ok()?;
        let server = |name: &str| HttpServer::parse(&format!("{}/wolf/rbac/{name}", credential.server));
        let app = Self {
            access_check: server("access_check")?,
            login: server("login.rest")?,
            user_info: server("user_info")?,
            change_password: server("change_pwd")?,
            prefix: credential.header_prefix,
            verify_tls: credential.verify_tls,
        };
        Some((credential.app_id.into_bytes(), app))
    }
}

fn check(config: &Value) -> Result<(), Vec<Diagnostic>> {
    let credential: Credential = parse_config(config)?;
    let mut faults = ConfigErrors::default();
    if HttpServer::parse(&credential.server).is_none() {
        faults.add(
            "server",
            "expected an address that begins with http:// or https://",
        );
    }
    if !credential.header_prefix.is_empty() && !is_name(credential.header_prefix.as_bytes()) {
        faults.add("header_prefix", "expected the beginning of a header name");
    }
    faults.done()
}

impl Plugin for WolfRbac {
    fn name(&self) -> &'static str {
        "wolf-rbac"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        config.http.check(&mut faults);
        faults.done()?;
        let apps = context.credential_index(NAME, App::read);
        let standard = standard_prefix();
        let prefixes = apps.secrets().map(|app: &App| app.prefix.as_str());
        let prefixes: BTreeSet<&str> = prefixes.chain([standard.as_str()]).collect();
        let own_headers = (prefixes.iter())
            .flat_map(|prefix| USER_HEADERS.map(|name| format!("{prefix}{name}")))
            .collect();
        Ok(Arc::new(RbacFilter {
            gate: Gate::build(NAME, config.identity, context)?,
            own_headers,
            apps,
            rules: config.http.rules(),
        }))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["app_id"],
            schema: schemars::schema_for!(Credential),
            check,
        })
    }
}

/// An instance of `wolf-rbac`.
struct RbacFilter {
    gate: Gate,
    /// The headers about users, of each app.
    own_headers: Vec<String>,
    apps: Arc<CredentialIndex<App>>,
    rules: ServerCallRules,
}

/// How often the server was asked, and whether its answer is there.
struct AccessCheck {
    tries: u8,
    is_sent: bool,
}

#[derive(Deserialize)]
struct WolfResponse {
    #[serde(default)]
    ok: Option<bool>,
    #[serde(default)]
    data: Option<WolfResponseData>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct WolfResponseData {
    #[serde(default, rename = "userInfo")]
    user: Option<User>,
}

impl WolfResponse {
    fn user(&self) -> Option<&User> {
        self.data.as_ref()?.user.as_ref()
    }

    /// Whether it is what the server says if the call is allowed. Another server at its address may say anything with 200.
    fn allows(&self) -> bool {
        self.ok.unwrap_or_else(|| self.user().is_some())
    }
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    nickname: Option<String>,
}

fn token(exchange: &Exchange) -> Option<String> {
    let request = &exchange.request;
    let argument = request.query_arg(b"rbac_token").map(|it| it.into_owned());
    let header = |name: &[u8]| request.headers.get(name).map(<[u8]>::to_vec);
    let token = argument
        .or_else(|| header(b"authorization"))
        .or_else(|| header(b"x-rbac-token"))
        .or_else(|| request.cookie(b"x-rbac-token").map(<[u8]>::to_vec))?;
    String::from_utf8(token).ok()
}

/// The app and the server's own token.
fn parse(token: &str) -> Option<(&str, &str)> {
    let mut parts = token.splitn(3, '#');
    let version = parts.next()?;
    let (app, own) = (parts.next()?, parts.next()?);
    (version == "V1").then_some((app, own))
}

impl RbacFilter {
    fn ask(&self, exchange: &mut Exchange, app: &App, (app_id, token): (&str, &str), tries: u8) -> Outcome {
        let request = &exchange.request;
        let (path, method) = (
            String::from_utf8_lossy(&request.path),
            String::from_utf8_lossy(&request.method),
        );
        let client = request.client.to_string();
        let query = form([
            ("appID", app_id),
            ("resName", &*path),
            ("action", &*method),
            ("clientIP", client.as_str()),
        ]);
        let rules = ServerCallRules {
            verify_tls: app.verify_tls,
            ..self.rules.clone()
        };
        let question = HttpRequest {
            query: &query,
            headers: &[("x-rbac-token", token), CONTENT_TYPE],
            ..HttpRequest::GET
        };
        let asked = app.access_check.request(question, &rules);
        exchange.filter_state.put(
            self,
            AccessCheck {
                tries: tries + 1,
                is_sent: true,
            },
        );
        Outcome::Subrequest(Box::new(asked))
    }

    /// Tells the upstream and the caller about the user.
    fn set_headers(exchange: &mut Exchange, prefix: &str, user: Option<&User>) {
        let id = user.map(|user| match &user.id {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        });
        let username = user.and_then(|user| user.username.clone());
        let nickname = user.and_then(|user| user.nickname.as_ref().or(user.username.as_ref()));
        let nickname = nickname.map(|it| form([(it.as_str(), "")]).trim_end_matches('=').to_owned());
        for (name, value) in USER_HEADERS.into_iter().zip([id, username, nickname]) {
            let name = format!("{prefix}{name}");
            if let Some(value) = value.filter(|it| !it.is_empty() && is_value(it.as_bytes())) {
                user_headers::set_header(exchange, &name, value.as_bytes());
                exchange.response_headers.set(name.as_bytes(), value.as_bytes());
            }
        }
    }
}

impl Filter for RbacFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn remove_forged(&self, exchange: &mut Exchange) {
        user_headers::remove_forged(exchange, self.own_headers.iter().map(String::as_str));
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        self.remove_forged(exchange);
        if self.gate.skips(exchange) {
            return Outcome::Continue;
        }
        let Some(token) = token(exchange) else {
            return refused(NAME, 401, "Missing rbac token in request");
        };
        let Some((app_id, own)) = parse(&token) else {
            return refused(NAME, 401, "invalid rbac token: parse failed");
        };
        if self.apps.is_empty() {
            return refused(NAME, 401, "Missing related consumer");
        }
        let Some(entry) = self.apps.get(app_id.as_bytes(), || exchange.now_ms()) else {
            return refused(NAME, 401, "Invalid appid in rbac token");
        };
        let app = &entry.secret;
        let asked = exchange.filter_state.take::<_, AccessCheck>(self);
        let Some(asked) = asked else {
            return self.ask(exchange, app, (app_id, own), 0);
        };
        if !asked.is_sent {
            return self.ask(exchange, app, (app_id, own), asked.tries);
        }
        let Some(answer) = exchange.subrequest_response.take().flatten() else {
            return refused(NAME, 500, "request to wolf-server failed");
        };
        if answer.status >= 500 {
            if asked.tries == TRIES {
                let message = format!("request to wolf-server failed, status:{}", answer.status);
                return refused(NAME, 500, message);
            }
            exchange.filter_state.put(
                self,
                AccessCheck {
                    is_sent: false,
                    ..asked
                },
            );
            return Outcome::Suspend(Suspend::time(PAUSE));
        }
        let read: Option<WolfResponse> = serde_json::from_slice(&answer.body).ok();
        let user = read.as_ref().and_then(WolfResponse::user);
        Self::set_headers(exchange, &app.prefix, user);
        if answer.status != 200 {
            let words = match read {
                Some(read) => read.reason.unwrap_or_default(),
                None => "check permission failed! parse response json failed!".to_owned(),
            };
            // A status of the server that is no refusal does not let the call pass.
            let status = if (400..500).contains(&answer.status) {
                answer.status
            } else {
                403
            };
            return refused(NAME, status, words);
        }
        match read {
            None => {
                return refused(NAME, 500, "check permission failed! parse response json failed!");
            }
            Some(read) if !read.allows() => {
                return refused(NAME, 403, read.reason.unwrap_or_default());
            }
            Some(_) => {}
        }
        // The consumer is the app: its users are told apart by their tokens.
        exchange.add_fingerprint(own.as_bytes());
        self.gate.accept(exchange, &entry.identity)
    }
}

#[cfg(test)]
mod tests;
