//! `upstream-oauth`: shows upstreams a token that the gateway gets for itself.
//!
//! ```yaml
//! token_endpoint: https://id.example.com/token
//! client_id: gateway
//! client_secret: TEXT
//! scopes: [orders]
//! ```
//!
//! One request gets the token for all calls, until shortly before it expires. An upstream that answers 401 makes the gateway
//! get another one with the next call.
//!
//! Security: what callers send in the token's header never reaches the upstream. Calls are refused while there is no token.

use crate::http_rules::HttpRules;
use crate::openid_connect::client::{self, Client};
use crate::openid_connect::{ClientAuth, Config as ClientConfig};
use crate::shared_fetch::{FetchRequest, FetchResult};
use aws_lc_rs::digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_model::Diagnostic;
use weir_plugin::headers::is_value;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, Reply, Suspend,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpServer, ServerCallRules};
use weir_plugins_shared::random::system_random;

/// Configuration of `upstream-oauth`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The token endpoint.
    pub token_endpoint: String,
    /// The gateway's id there.
    pub client_id: String,
    /// Its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// How the gateway proves who it is.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// The user whose token it gets (`grant_type=password`); absent: its own (`client_credentials`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Further arguments of the token endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Further headers for the token endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The header with the token, after `Bearer`.
    #[serde(default = "standard_header")]
    pub upstream_header: String,
    /// How long a token is used that does not say it, in seconds.
    #[serde(default = "one_hour")]
    pub default_seconds: u64,
    /// So long before it expires, a token is not used any more, in seconds.
    #[serde(default = "five")]
    pub refresh_leeway_seconds: u64,
    /// Statuses of upstreams that mean that the token is not accepted. The call is sent once more with a new token, if
    /// its body can be sent again; after statuses other than 401 only if its method may be repeated.
    #[serde(default = "unauthorized")]
    pub purge_on: Vec<u16>,
    /// Status of the response to callers while there is no token, 200 to 599.
    #[serde(default = "bad_gateway")]
    #[schemars(range(min = 200, max = 599))]
    pub failure_status: u16,
    /// Body of that response; absent: the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_body: Option<FailureBody>,
    /// The HTTP settings for calls to the endpoint.
    #[serde(default)]
    pub http: HttpRules,
}

/// The body of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureBody {
    /// Its media type.
    pub content_type: String,
    /// Its text.
    pub text: String,
}

/// Secrets are left out.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("token_endpoint", &self.token_endpoint)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The defaults of all options, for this endpoint and client.
    pub fn new(token_endpoint: String, client_id: String) -> Self {
        Self {
            token_endpoint,
            client_id,
            client_secret: None,
            client_auth: ClientAuth::default(),
            username: None,
            password: None,
            scopes: Vec::new(),
            arguments: BTreeMap::new(),
            headers: BTreeMap::new(),
            upstream_header: standard_header(),
            default_seconds: one_hour(),
            refresh_leeway_seconds: five(),
            purge_on: unauthorized(),
            failure_status: bad_gateway(),
            failure_body: None,
            http: HttpRules::default(),
        }
    }
}

fn standard_header() -> String {
    "Authorization".into()
}

fn one_hour() -> u64 {
    3_600
}

fn five() -> u64 {
    5
}

fn unauthorized() -> Vec<u16> {
    vec![401]
}

fn bad_gateway() -> u16 {
    502
}

/// How long no token is requested after a failure.
const RETRY_MS: u64 = 1_000;
/// Methods of calls that may be sent twice (RFC 9110, 9.2.2). All others are sent again only after a 401, with which an upstream
/// says that it has done nothing.
const MAY_BE_REPEATED: [&[u8]; 5] = [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"];
/// The most bytes of the cache.
const CACHE_BYTES: usize = 16 << 20;

type Tokens = ExpiringMap<Arc<str>>;

/// The plugin `upstream-oauth`.
pub struct UpstreamOauth(Arc<Tokens>);

impl Default for UpstreamOauth {
    fn default() -> Self {
        Self(ExpiringMap::new(CACHE_BYTES))
    }
}

impl Plugin for UpstreamOauth {
    fn name(&self) -> &'static str {
        "upstream-oauth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if HttpServer::parse(&config.token_endpoint).is_none() {
            faults.add(
                "token_endpoint",
                "expected an address that begins with http:// or https://",
            );
        }
        if config.client_id.is_empty() {
            faults.add("client_id", "expected the client's id");
        }
        if config.username.is_some() != config.password.is_some() {
            faults.add("password", "expected a name and a password, or neither");
        }
        faults.check_name("upstream_header", &config.upstream_header);
        faults.check_names("headers", &config.headers.keys().cloned().collect::<Vec<_>>());
        faults.check_status("failure_status", config.failure_status);
        if let Some(body) = &config.failure_body
            && !is_value(body.content_type.as_bytes())
        {
            faults.add_at(&["failure_body", "content_type"], "expected a header value");
        }
        config.http.check(&mut faults);
        let client = Client::new(
            &ClientConfig {
                client_secret: config.client_secret.clone(),
                client_auth: config.client_auth,
                ..ClientConfig::new(config.token_endpoint.clone(), config.client_id.clone())
            },
            system_random,
        );
        if let Err((field, words)) = &client {
            faults.add(field, words.clone());
        }
        faults.done()?;
        let key = key(&config);
        let of_all = config.purge_on.iter().copied().filter(|status| *status == 401);
        let repeated = [config.purge_on.as_slice().into(), of_all.collect()];
        let client = client.expect("invariant: a fault has been reported");
        Ok(Arc::new(TokenFilter {
            tokens: Arc::clone(&self.0),
            rules: config.http.rules(),
            client,
            key,
            repeated,
            config,
        }))
    }
}

/// A cache key for a token request that reveals no secret.
fn key(config: &Config) -> Vec<u8> {
    let asked = serde_json::to_vec(config).unwrap_or_default();
    digest::digest(&digest::SHA256, &asked).as_ref().to_vec()
}

/// An instance of `upstream-oauth`.
struct TokenFilter {
    config: Config,
    tokens: Arc<Tokens>,
    rules: ServerCallRules,
    client: Client,
    key: Vec<u8>,
    /// Statuses with which a call is sent once more, with another token: of methods that may be repeated, and of all.
    repeated: [Arc<[u16]>; 2],
}

/// The token that a call shows the upstream.
struct CallToken {
    token: Arc<str>,
    /// The call has shown another one before.
    is_second: bool,
}

impl TokenFilter {
    /// Shows the upstream a token, once there is one.
    fn show(&self, exchange: &mut Exchange, is_second: bool) -> Outcome {
        let wanted = FetchRequest {
            map: &self.tokens,
            key: &self.key,
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        match wanted.find(self, exchange, |it| self.ask(it), |it| self.read(it)) {
            FetchResult::Wait(outcome) => outcome,
            FetchResult::Value(token) => {
                let value = format!("Bearer {token}");
                let name = self.config.upstream_header.as_bytes();
                exchange.request.headers.remove_owned(name);
                exchange.request.headers.set_owned(name, value.as_bytes());
                if !is_second {
                    let is_safe = MAY_BE_REPEATED.contains(&exchange.request.method.as_slice());
                    exchange.repeat_on = Some(Arc::clone(&self.repeated[usize::from(!is_safe)]));
                }
                exchange.filter_state.put(self, CallToken { token, is_second });
                Outcome::Continue
            }
            FetchResult::Nothing => self.fail(),
        }
    }

    /// The response while there is no token.
    fn fail(&self) -> Outcome {
        let status = self.config.failure_status;
        if let Some(body) = &self.config.failure_body {
            let reply = Reply::new(status, body.content_type.clone(), body.text.clone());
            return Outcome::Reply(Box::new(reply));
        }
        let kind = RefusalKind::PluginFailed {
            plugin: "upstream-oauth",
            reason: "the token endpoint gives no token",
        };
        Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
    }

    /// Forgets a token that was refused, unless another one has taken its place.
    fn forget(&self, exchange: &mut Exchange, refused: &str) {
        let known = self.tokens.get(&self.key, exchange.unix_ms());
        if known.is_some_and(|known| *known == *refused) {
            self.tokens.remove(&self.key);
        }
    }

    fn ask(&self, exchange: &mut Exchange) -> Outcome {
        let config = &self.config;
        let now_s = exchange.unix_ms() / 1_000;
        let scope = config.scopes.join(" ");
        let mut arguments = match (&config.username, &config.password) {
            (Some(name), Some(password)) => vec![
                ("grant_type", "password"),
                ("username", name.as_str()),
                ("password", password.as_str()),
            ],
            _ => vec![("grant_type", "client_credentials")],
        };
        if !scope.is_empty() {
            arguments.push(("scope", &scope));
        }
        arguments.extend(
            config
                .arguments
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        let headers: Vec<(&str, &str)> = config
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let rules = (&self.rules, now_s);
        let asked = self.client.post(
            &config.token_endpoint,
            config.client_auth,
            &arguments,
            &headers,
            rules,
        );
        match asked {
            Some(asked) => Outcome::Subrequest(Box::new(asked)),
            None => Outcome::Suspend(Suspend::time(std::time::Duration::ZERO)),
        }
    }

    fn read(&self, exchange: &mut Exchange) -> Option<(Arc<str>, usize, Lifetime)> {
        let now_s = exchange.unix_ms() / 1_000;
        let tokens = client::tokens(exchange.subrequest_response.take()?, now_s).ok()?;
        let left_s = tokens
            .expires_at_s
            .map_or(self.config.default_seconds, |at| at.saturating_sub(now_s));
        let seconds = left_s.saturating_sub(self.config.refresh_leeway_seconds);
        let token: Arc<str> = tokens.access_token.into();
        let bytes = token.len();
        Some((token, bytes, Lifetime::fresh((seconds * 1_000).max(1))))
    }
}

impl Filter for TokenFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        self.show(exchange, false)
    }

    /// All calls that showed the refused token wait for one new token.
    fn on_refused(&self, exchange: &mut Exchange) -> Outcome {
        if !self.config.purge_on.contains(&exchange.response.status) {
            return Outcome::Continue;
        }
        if let Some(shown) = exchange.filter_state.take::<_, CallToken>(self) {
            self.forget(exchange, &shown.token);
        }
        self.show(exchange, true)
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let response = &exchange.response;
        if response.is_gateway || !self.config.purge_on.contains(&response.status) {
            return;
        }
        // A second token that is refused is as good as any: the next call would get no better one.
        if let Some(shown) = exchange.filter_state.take::<_, CallToken>(self)
            && !shown.is_second
        {
            self.forget(exchange, &shown.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugin::SubrequestResponse;
    use weir_plugins_testkit::*;

    fn filter(plugin: &UpstreamOauth, change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
        let mut config = Config::new("https://id.example/token".into(), "gw".into());
        config.client_secret = Some("s".into());
        change(&mut config);
        build(plugin, &serde_json::to_value(config).expect("JSON")).expect("valid")
    }

    /// A call; gives what the endpoint was sent.
    fn run(filter: &Arc<dyn Filter>, call: &mut Exchange, answer: Option<&str>) -> (String, Vec<String>) {
        let mut asked = Vec::new();
        loop {
            match filter.on_request(call) {
                Outcome::Subrequest(sent) => {
                    asked.push(String::from_utf8(sent.message).expect("text"));
                    call.subrequest_response = Some(answer.map(|body| SubrequestResponse {
                        status: 200,
                        body: body.as_bytes().to_vec(),
                        ..SubrequestResponse::default()
                    }));
                }
                outcome => return (word(&outcome), asked),
            }
        }
    }

    #[test]
    fn one_token_serves_all_calls_until_the_upstream_refuses_it() {
        let plugin = UpstreamOauth::default();
        let filter = filter(&plugin, |config| config.scopes = vec!["a".into(), "b".into()]);
        let answer = r#"{"access_token": "t1", "expires_in": 60}"#;
        let mut call = exchange();
        prepare(
            &mut call,
            "GET /",
            &[("Authorization", "Bearer forged"), ("authorization", "x")],
        );
        let (found, asked) = run(&filter, &mut call, Some(answer));
        assert_eq!((found.as_str(), asked.len()), ("continue", 1));
        assert!(
            asked[0].contains("Authorization: Basic Z3c6cw==\r\n"),
            "{}",
            asked[0]
        );
        assert!(
            asked[0].ends_with("\r\n\r\ngrant_type=client_credentials&scope=a%20b"),
            "{}",
            asked[0]
        );
        assert_eq!(lines(&call.request.headers), ["Authorization: Bearer t1"]);
        for (status, asks) in [(200, 0), (401, 0), (200, 1)] {
            let mut call = exchange();
            let (found, asked) = run(&filter, &mut call, Some(answer));
            assert_eq!((found.as_str(), asked.len()), ("continue", asks), "{status}");
            call.response.status = status;
            filter.on_response(&mut call);
        }
    }

    /// The defect: each of the calls that the upstream refused removed the token that had just been got for all of them.
    #[test]
    fn fifty_refused_calls_cause_one_more_request() {
        let filter = filter(&UpstreamOauth::default(), |config| {
            config.purge_on = vec![401, 403]
        });
        let token = |number: u8| format!(r#"{{"access_token": "t{number}", "expires_in": 60}}"#);
        let mut calls: Vec<Exchange> = (0..50).map(|_| exchange()).collect();
        for (at, call) in calls.iter_mut().enumerate() {
            call.request.method = if at % 2 == 0 { "GET" } else { "POST" }.into();
            assert_eq!(run(&filter, call, Some(&token(1))).0, "continue");
            let repeated: &[u16] = if at % 2 == 0 { &[401, 403] } else { &[401] };
            assert_eq!(call.repeat_on.as_deref(), Some(repeated));
        }
        let mut asked = 0;
        for call in &mut calls {
            call.response.status = 401;
            call.repeat_on = None;
            loop {
                match filter.on_refused(call) {
                    Outcome::Subrequest(_) => {
                        asked += 1;
                        call.subrequest_response = Some(Some(SubrequestResponse {
                            status: 200,
                            body: token(2).into_bytes(),
                            ..SubrequestResponse::default()
                        }));
                    }
                    outcome => break assert_eq!(word(&outcome), "continue"),
                }
            }
            assert_eq!(lines(&call.request.headers), ["Authorization: Bearer t2"]);
            assert!(call.repeat_on.is_none(), "a call is sent once more, not twice");
            // The second token is refused too: it is kept, as a third one would be no better.
            filter.on_response(call);
        }
        assert_eq!(asked, 1);
        assert_eq!(
            run(&filter, &mut exchange(), None),
            ("continue".to_owned(), Vec::new())
        );
    }

    #[test]
    fn fifty_first_calls_cause_one_request() {
        let filter = filter(&UpstreamOauth::default(), |_| {});
        let mut calls: Vec<Exchange> = (0..50).map(|_| exchange()).collect();
        let begun: Vec<String> = calls
            .iter_mut()
            .map(|call| word(&filter.on_request(call)))
            .collect();
        assert_eq!(begun.iter().filter(|it| *it == "ask").count(), 1);
        assert_eq!(begun.iter().filter(|it| *it == "wait").count(), 49);
        calls[0].subrequest_response = Some(Some(SubrequestResponse {
            status: 200,
            body: br#"{"access_token": "t"}"#.to_vec(),
            ..SubrequestResponse::default()
        }));
        for call in &mut calls {
            assert_eq!(word(&filter.on_request(call)), "continue");
        }
    }

    #[test]
    fn without_a_token_no_call_goes_on() {
        for (answer, what) in [
            (None, "down"),
            (Some("no JSON"), "rubbish"),
            (Some(r#"{"access_token": ""}"#), "empty"),
        ] {
            let filter = filter(&UpstreamOauth::default(), |_| {});
            let (found, asked) = run(&filter, &mut exchange(), answer);
            assert_eq!((found.as_str(), asked.len()), ("plugin_failed 502", 1), "{what}");
            // It is not asked again at once.
            let (found, asked) = run(&filter, &mut exchange(), answer);
            assert_eq!((found.as_str(), asked.len()), ("plugin_failed 502", 0), "{what}");
        }
    }

    #[test]
    fn callers_get_the_configured_answer_while_there_is_no_token() {
        let filter = filter(&UpstreamOauth::default(), |config| {
            config.failure_status = 503;
            config.failure_body = Some(FailureBody {
                content_type: "text/plain".into(),
                text: "later".into(),
            });
        });
        for answer in [None, Some("no JSON")] {
            let mut call = exchange();
            let outcome = loop {
                match filter.on_request(&mut call) {
                    Outcome::Subrequest(_) => {
                        call.subrequest_response = Some(answer.map(|body: &str| SubrequestResponse {
                            status: 200,
                            body: body.as_bytes().to_vec(),
                            ..SubrequestResponse::default()
                        }));
                    }
                    outcome => break outcome,
                }
            };
            let Outcome::Reply(reply) = outcome else {
                panic!("it answers");
            };
            let found = (reply.status, &*reply.content_type, reply.body.as_slice());
            assert_eq!(found, (503, "text/plain", &b"later"[..]));
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        let good = json!({"token_endpoint": "http://a", "client_id": "b"});
        for (field, value, place) in [
            ("token_endpoint", json!("a"), "token_endpoint"),
            ("client_id", json!(""), "client_id"),
            ("username", json!("a"), "password"),
            ("upstream_header", json!("a b"), "upstream_header"),
            ("client_auth", json!("secret-jwt"), "client_secret"),
            ("failure_status", json!(99), "failure_status"),
            (
                "failure_body",
                json!({"content_type": "a\nb", "text": ""}),
                "failure_body.content_type",
            ),
        ] {
            let mut config = good.clone();
            config[field] = value;
            assert_eq!(
                refused_at(&UpstreamOauth::default(), &config),
                [place],
                "{config}"
            );
        }
        assert!(
            build(
                &UpstreamOauth::default(),
                &example(include_str!("upstream_oauth.rs"))
            )
            .is_ok()
        );
    }
}
