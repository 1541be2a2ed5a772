//! `authz-keycloak`: asks Keycloak whether the holder of a token may make a call (User-Managed Access).
//!
//! ```yaml
//! token_endpoint: https://id.example.com/realms/shop/protocol/openid-connect/token
//! client_id: orders
//! permissions: [orders#view]
//! ```
//!
//! Keycloak decides by the permissions that the call needs: those of the configuration, or with `by_path` those of the resources
//! that it knows for the path. For these it is asked with a token of the client's own, which serves all calls.
//!
//! Security: calls are refused while Keycloak gives no answer, and when no permission is needed unless `enforcing` is false. The
//! caller's token is only sent to Keycloak.

use crate::browser::{redirect, refused};
use crate::http_rules::HttpRules;
use crate::openid_connect::client;
use crate::shared_fetch::{Found, Wanted};
use aws_lc_rs::digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_model::Diagnostic;
use weir_plugin::headers::is_value;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Reply, SubrequestResponse, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{AskRules, HttpRequest, HttpServer, form};

/// Configuration of `authz-keycloak`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address of the discovery document, which names the endpoints that are not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<String>,
    /// The token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The endpoint with the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_endpoint: Option<String>,
    /// The client whose permissions are asked for.
    pub client_id: String,
    /// Its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Whether calls that need no permission are refused.
    #[serde(default = "weir_plugins_shared::yes")]
    pub enforcing: bool,
    /// The permissions that calls need: `resource#scope`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// Whether the permissions are those of the resources that Keycloak knows for the path.
    #[serde(default)]
    pub by_path: bool,
    /// Whether the method is the scope.
    #[serde(default)]
    pub method_as_scope: bool,
    /// Where browsers are sent whose calls are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_redirect: Option<String>,
    /// The path at which a form with `username` and `password` is exchanged for tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_path: Option<String>,
    /// The most bytes of such a form.
    #[serde(default = "sixty_four_kib")]
    pub max_body_bytes: usize,
    /// How long the discovery document is used, in seconds.
    #[serde(default = "one_day")]
    pub cache_seconds: u64,
    /// How long a token of the client is used that does not say it, in seconds.
    #[serde(default = "five_minutes")]
    pub token_seconds: u64,
    /// So long before it expires, a token of the client is not used any more, in seconds.
    #[serde(default)]
    pub early_seconds: u64,
    /// How Keycloak is asked.
    #[serde(default)]
    pub http: HttpRules,
}

/// Secrets are left out.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

fn sixty_four_kib() -> usize {
    64 << 10
}

fn one_day() -> u64 {
    86_400
}

fn five_minutes() -> u64 {
    300
}

const NAME: &str = "authz-keycloak";
const RETRY_MS: u64 = 1_000;
const CACHE_BYTES: usize = 16 << 20;
const UMA: &str = "urn:ietf:params:oauth:grant-type:uma-ticket";
const DENIED: &str = r#"{"error":"access_denied","error_description":"not_authorized"}"#;

/// Where Keycloak is asked.
#[derive(Debug, Clone, Default, Deserialize)]
struct Endpoints {
    token_endpoint: Option<String>,
    resource_registration_endpoint: Option<String>,
}

/// The plugin.
pub struct AuthzKeycloak {
    documents: Arc<ExpiringMap<Arc<Endpoints>>>,
    tokens: Arc<ExpiringMap<Arc<str>>>,
}

impl Default for AuthzKeycloak {
    fn default() -> Self {
        Self {
            documents: ExpiringMap::new(CACHE_BYTES),
            tokens: ExpiringMap::new(CACHE_BYTES),
        }
    }
}

impl Plugin for AuthzKeycloak {
    fn name(&self) -> &'static str {
        "authz-keycloak"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        for (field, url) in [
            ("discovery", &config.discovery),
            ("token_endpoint", &config.token_endpoint),
            ("resource_endpoint", &config.resource_endpoint),
        ] {
            if url.as_ref().is_some_and(|url| HttpServer::parse(url).is_none()) {
                faults.add(field, "expected an address that begins with http:// or https://");
            }
        }
        if config.discovery.is_none() && config.token_endpoint.is_none() {
            faults.add(
                "token_endpoint",
                "expected a token endpoint, or a discovery document",
            );
        }
        if config.by_path && config.discovery.is_none() && config.resource_endpoint.is_none() {
            faults.add(
                "resource_endpoint",
                "expected an endpoint with resources, or a discovery document",
            );
        }
        faults.check_value("denied_redirect", config.denied_redirect.as_ref());
        config.http.check(&mut faults);
        faults.done()?;
        Ok(Arc::new(PermissionFilter {
            rules: config.http.rules(),
            documents: Arc::clone(&self.documents),
            tokens: Arc::clone(&self.tokens),
            config,
        }))
    }
}

/// An instance of `authz-keycloak`.
struct PermissionFilter {
    config: Config,
    rules: AskRules,
    documents: Arc<ExpiringMap<Arc<Endpoints>>>,
    tokens: Arc<ExpiringMap<Arc<str>>>,
}

/// What a call has asked Keycloak for.
enum Asked {
    Resources,
    Decision,
    Password,
}

type Step<T> = Result<T, Outcome>;

fn unavailable(words: &'static str) -> Outcome {
    refused(NAME, 503, words)
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
    fn key(&self, what: &str, url: &str) -> Vec<u8> {
        let config = &self.config;
        let parts = (what, url, &config.client_id, &config.client_secret);
        let text = serde_json::to_vec(&parts).unwrap_or_default();
        digest::digest(&digest::SHA256, &text).as_ref().to_vec()
    }

    /// Where Keycloak is asked: as configured, else as it says itself.
    fn endpoints(&self, exchange: &mut Exchange) -> Step<Endpoints> {
        let config = &self.config;
        let own = Endpoints {
            token_endpoint: config.token_endpoint.clone(),
            resource_registration_endpoint: config.resource_endpoint.clone(),
        };
        let is_whole =
            own.token_endpoint.is_some() && (!config.by_path || own.resource_registration_endpoint.is_some());
        let Some(url) = config.discovery.as_ref().filter(|_| !is_whole) else {
            return Ok(own);
        };
        let wanted = Wanted {
            map: &self.documents,
            key: &self.key("discovery", url),
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        let lifetime = Lifetime::fresh((config.cache_seconds * 1_000).max(1));
        let found = wanted.find(
            self,
            exchange,
            |_| match HttpServer::parse(url) {
                Some(server) => Outcome::Subrequest(Box::new(server.request(HttpRequest::GET, &self.rules))),
                None => unavailable("Unable to determine token endpoint."),
            },
            |exchange| {
                let answer = exchange.subrequest_response.take()??;
                let read: Endpoints = serde_json::from_slice(&answer.body).ok()?;
                (answer.status == 200).then(|| (Arc::new(read), answer.body.len(), lifetime))
            },
        );
        match found {
            Found::Wait(outcome) => Err(outcome),
            Found::Nothing => Err(unavailable("Accessing discovery URL failed.")),
            Found::Value(told) => Ok(Endpoints {
                token_endpoint: own.token_endpoint.or_else(|| told.token_endpoint.clone()),
                resource_registration_endpoint: own
                    .resource_registration_endpoint
                    .or_else(|| told.resource_registration_endpoint.clone()),
            }),
        }
    }

    fn post(&self, url: &str, arguments: &[(&str, &str)], authorization: Option<&str>) -> Outcome {
        let Some(server) = HttpServer::parse(url) else {
            return unavailable("Unable to determine token endpoint.");
        };
        let body = form(arguments.iter().copied());
        let mut headers = vec![("Content-Type", "application/x-www-form-urlencoded")];
        headers.extend(authorization.map(|it| ("Authorization", it)));
        let request = HttpRequest {
            method: "POST",
            headers: &headers,
            body: Some(body.as_bytes()),
            ..HttpRequest::GET
        };
        Outcome::Subrequest(Box::new(server.request(request, &self.rules)))
    }

    /// A token of the client's own, the same for all calls.
    fn own_token(&self, exchange: &mut Exchange, url: &str) -> Step<Arc<str>> {
        let config = &self.config;
        let wanted = Wanted {
            map: &self.tokens,
            key: &self.key("token", url),
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        let found = wanted.find(
            self,
            exchange,
            |_| {
                let secret = config.client_secret.as_deref().unwrap_or_default();
                let arguments = [
                    ("grant_type", "client_credentials"),
                    ("client_id", config.client_id.as_str()),
                    ("client_secret", secret),
                ];
                self.post(url, &arguments, None)
            },
            |exchange| {
                let now_s = exchange.unix_ms() / 1_000;
                let tokens = client::tokens(exchange.subrequest_response.take()?, now_s).ok()?;
                let ends_s = tokens.expires_at_s.unwrap_or(now_s + config.token_seconds);
                let seconds = ends_s.saturating_sub(now_s + 1 + config.early_seconds);
                let token: Arc<str> = tokens.access_token.into();
                let bytes = token.len();
                Some((token, bytes, Lifetime::fresh((seconds * 1_000).max(1))))
            },
        );
        match found {
            Found::Wait(outcome) => Err(outcome),
            Found::Nothing => Err(unavailable("Accessing token endpoint URL failed.")),
            Found::Value(token) => Ok(token),
        }
    }

    /// Asks for the resources of the call's path.
    fn ask_resources(&self, exchange: &mut Exchange, endpoints: &Endpoints, token_url: &str) -> Outcome {
        let token = match self.own_token(exchange, token_url) {
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
        exchange.filter_state.put(self, Asked::Resources);
        Outcome::Subrequest(Box::new(server.request(request, &self.rules)))
    }

    /// Asks whether the caller has the permissions.
    fn ask_decision(&self, exchange: &mut Exchange, url: &str, permissions: &[String]) -> Outcome {
        let config = &self.config;
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
        exchange.filter_state.put(self, Asked::Decision);
        self.post(url, &arguments, Some(&token))
    }

    fn denied(&self, answer: Option<SubrequestResponse>) -> Outcome {
        match (&self.config.denied_redirect, answer) {
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
            200 if says_yes(&answer.body) => {
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
        self.config.password_path.as_ref().is_some_and(|path| {
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
                max_bytes: self.config.max_body_bytes,
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
        let secret = self.config.client_secret.as_deref().unwrap_or_default();
        exchange.filter_state.put(self, Asked::Password);
        let arguments = [
            ("grant_type", "password"),
            ("client_id", self.config.client_id.as_str()),
            ("client_secret", secret),
            ("username", &username),
            ("password", &password),
        ];
        self.post(url, &arguments, None)
    }
}

/// `{"result": true}`. With other modes of the answer there would be a token in place of a decision.
fn says_yes(body: &[u8]) -> bool {
    let read: Option<Value> = serde_json::from_slice(body).ok();
    read.is_some_and(|read| read.get("result") == Some(&Value::Bool(true)))
}

/// The caller's token, as Keycloak wants it. Of two, the upstream might read the one that was not asked about: they are none.
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
        let asked = exchange.filter_state.take::<_, Asked>(self);
        match asked {
            Some(Asked::Decision) => return self.decided(exchange),
            Some(Asked::Password) => {
                let answer = exchange.subrequest_response.take().flatten();
                return match answer.filter(|answer| answer.status == 200) {
                    Some(answer) => passed_on(answer),
                    None => refused(NAME, 401, "Accessing token endpoint URL failed."),
                };
            }
            Some(Asked::Resources) | None => {}
        }
        let is_password_call = self.is_password_call(exchange);
        if !is_password_call && bearer(exchange).is_none() {
            return refused(NAME, 401, "Missing JWT token in request");
        }
        let endpoints = match self.endpoints(exchange) {
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
            None if self.config.by_path => self.ask_resources(exchange, &endpoints, &url),
            None => self.ask_decision(exchange, &url, &self.config.permissions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn filter(change: Value) -> Arc<dyn Filter> {
        let mut config =
            json!({"token_endpoint": "http://id.test/token", "client_id": "c", "client_secret": "s"});
        for (field, value) in change.as_object().expect("a map") {
            config[field] = value.clone();
        }
        build(&AuthzKeycloak::default(), &config).expect("valid")
    }

    /// A call; gives what Keycloak was asked: the first line and the last.
    fn run(
        filter: &Arc<dyn Filter>,
        call: &mut Exchange,
        answers: &[Option<(u16, &str)>],
    ) -> (String, Vec<(String, String)>) {
        let mut asked = Vec::new();
        loop {
            match filter.on_request(call) {
                Outcome::Subrequest(sent) => {
                    let answer = answers[asked.len()];
                    let text = String::from_utf8(sent.message).expect("text");
                    let first = text.lines().next().unwrap_or_default().to_owned();
                    asked.push((first, text.lines().last().unwrap_or_default().to_owned()));
                    call.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
                        status,
                        body: body.as_bytes().to_vec(),
                        ..SubrequestResponse::default()
                    }));
                }
                Outcome::Refuse(refusal) => {
                    return (
                        format!("{} {}", refusal.status, refusal.message.unwrap_or_default()),
                        asked,
                    );
                }
                Outcome::Reply(reply) => {
                    return (
                        format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)),
                        asked,
                    );
                }
                outcome => return (word(&outcome), asked),
            }
        }
    }

    const YES: Option<(u16, &str)> = Some((200, r#"{"result": true}"#));

    fn call(line: &str) -> Exchange {
        let mut call = exchange();
        prepare(&mut call, line, &[("Authorization", "bearer t")]);
        call
    }

    #[test]
    fn keycloak_decides_by_permissions() {
        let uma = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Auma-ticket&audience=c&response_mode=decision";
        for (change, asked) in [
            (
                json!({"permissions": ["a", "b#view"]}),
                "&permission=a&permission=b%23view",
            ),
            (
                json!({"permissions": ["a", "b#view"], "method_as_scope": true}),
                "&permission=a%23GET&permission=b%23view%2C%20GET",
            ),
            (json!({"enforcing": false}), ""),
        ] {
            let (found, sent) = run(&filter(change.clone()), &mut call("GET /x"), &[YES]);
            assert_eq!(found, "continue", "{change}");
            assert_eq!(
                sent,
                [("POST /token HTTP/1.1".to_owned(), format!("{uma}{asked}"))],
                "{change}"
            );
        }
    }

    #[test]
    fn resources_are_found_by_path_with_one_token_for_all_calls() {
        let filter = filter(json!({
            "by_path": true, "token_endpoint": null, "discovery": "http://id.test/discovery",
        }));
        let document = r#"{"token_endpoint": "http://id.test/token", "resource_registration_endpoint": "http://id.test/set"}"#;
        let answers = [
            Some((200, document)),
            Some((200, r#"{"access_token": "own", "expires_in": 60}"#)),
            Some((200, r#"["r1"]"#)),
            YES,
        ];
        let (found, sent) = run(&filter, &mut call("GET /x"), &answers);
        let lines: Vec<&str> = sent.iter().map(|(first, _)| first.as_str()).collect();
        assert_eq!(found, "continue");
        assert_eq!(
            lines,
            [
                "GET /discovery HTTP/1.1",
                "POST /token HTTP/1.1",
                "GET /set?uri=%2Fx&matchingUri=true HTTP/1.1",
                "POST /token HTTP/1.1",
            ]
        );
        assert_eq!(
            sent[1].1,
            "grant_type=client_credentials&client_id=c&client_secret=s"
        );
        assert!(sent[3].1.ends_with("&permission=r1"));
        let (found, sent) = run(&filter, &mut call("GET /x"), &[Some((200, "[]"))]);
        assert_eq!((found, sent.len()), (format!("403 {DENIED}"), 1));
        let (found, _) = run(&filter, &mut call("GET /x"), &[None]);
        assert_eq!(found, "503 Accessing resource registration endpoint URL failed.");
    }

    #[test]
    fn two_tokens_are_none() {
        let mut call = exchange();
        let two = [("Authorization", "bearer t"), ("Authorization", "bearer u")];
        prepare(&mut call, "GET /x", &two);
        let found = run(&filter(json!({"permissions": ["a"]})), &mut call, &[]);
        assert_eq!(found, ("401 Missing JWT token in request".to_owned(), vec![]));
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        let permissions = json!({"permissions": ["a"]});
        let with = |field: &str, value: Value| {
            let mut all = permissions.clone();
            all[field] = value;
            all
        };
        for (change, answers, expected) in [
            (json!({}), vec![], format!("403 {DENIED}")),
            (
                json!({"denied_redirect": "https://a.test/no"}),
                vec![],
                "307 ".to_owned(),
            ),
            (permissions.clone(), vec![Some((403, "no"))], "403 no".to_owned()),
            (
                with("denied_redirect", json!("https://a.test/no")),
                vec![Some((403, "no"))],
                "307 ".to_owned(),
            ),
            (
                permissions.clone(),
                vec![Some((401, "bad"))],
                "401 bad".to_owned(),
            ),
            (permissions.clone(), vec![None], "503 ".to_owned()),
            (
                permissions.clone(),
                vec![Some((200, "rubbish"))],
                "503 ".to_owned(),
            ),
            (
                permissions.clone(),
                vec![Some((200, r#"{"result": false}"#))],
                "503 ".to_owned(),
            ),
            (permissions.clone(), vec![Some((302, ""))], "503 ".to_owned()),
            (
                json!({"permissions": ["a"], "token_endpoint": null, "discovery": "http://id.test/d"}),
                vec![None],
                "503 Accessing discovery URL failed.".to_owned(),
            ),
        ] {
            let (found, sent) = run(&filter(change.clone()), &mut call("GET /x"), &answers);
            assert_eq!((found, sent.len()), (expected, answers.len()), "{change}");
        }
        let mut bare = exchange();
        let found = run(&filter(permissions), &mut bare, &[]).0;
        assert_eq!(found, "401 Missing JWT token in request");
    }

    #[test]
    fn a_form_is_exchanged_for_tokens() {
        let filter = filter(json!({"password_path": "/login"}));
        for (body, answers, expected) in [
            ("password=b", vec![], "422 username is missing."),
            ("username=a", vec![], "422 password is missing."),
            (
                "username=a&password=b+c",
                vec![Some((200, "{tokens}"))],
                "200 {tokens}",
            ),
            (
                "username=a&password=b",
                vec![Some((400, "x"))],
                "401 Accessing token endpoint URL failed.",
            ),
            (
                "username=a&password=b",
                vec![None],
                "401 Accessing token endpoint URL failed.",
            ),
        ] {
            let mut call = exchange();
            prepare(
                &mut call,
                "POST /login",
                &[("Content-Type", "application/x-www-form-urlencoded")],
            );
            call.request.body = Some(body.as_bytes().to_vec());
            let (found, sent) = run(&filter, &mut call, &answers);
            assert_eq!((found.as_str(), sent.len()), (expected, answers.len()), "{body}");
            if let Some((_, form)) = sent.first().filter(|_| body.ends_with('c')) {
                let expected = "grant_type=password&client_id=c&client_secret=s&username=a&password=b%20c";
                assert_eq!(form, expected);
            }
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, place) in [
            (json!({"client_id": "c"}), "token_endpoint"),
            (json!({"client_id": "c", "token_endpoint": "x"}), "token_endpoint"),
            (
                json!({"client_id": "c", "token_endpoint": "http://a", "by_path": true}),
                "resource_endpoint",
            ),
            (json!({"client_id": "c", "discovery": "x"}), "discovery"),
        ] {
            assert_eq!(
                refused_at(&AuthzKeycloak::default(), &config),
                [place],
                "{config}"
            );
        }
        assert!(
            build(
                &AuthzKeycloak::default(),
                &example(include_str!("authz_keycloak.rs"))
            )
            .is_ok()
        );
    }
}
