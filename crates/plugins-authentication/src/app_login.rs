//! `app-login`: logs browsers in through an app of DingTalk or Feishu.
//!
//! ```yaml
//! provider: dingtalk
//! client_id: app
//! client_secret: TEXT
//! login_url: https://login.dingtalk.com/oauth2/auth?client_id=app
//! token_url: https://api.dingtalk.com/v1.0/oauth2/accessToken
//! userinfo_url: https://oapi.dingtalk.com/topapi/v2/user/getuserinfo
//! session: {secret: 0123456789abcdef}
//! ```
//!
//! A call with a code, in a header or an argument, begins a session: the code is exchanged for the user. Calls with neither are
//! sent to `login_url`. Upstreams get the user as JSON in Base64, in `X-Userinfo`.
//!
//! Security: a caller's own `X-Userinfo` never gets through. A session is a new one each time. The code is bound to the app
//! and not to the browser, as these providers have it: pages that must know who began a login need `openid-connect`.

use crate::browser::{redirect, refused};
use crate::http_rules::HttpRules;
use crate::session_cookie::{SessionConfig, Sessions};
use crate::shared_fetch::{FetchRequest, FetchResult, trust};
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, SubrequestResponse, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules, form};
use weir_plugins_shared::random::{Random, system_random};

/// Configuration of `app-login`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whose app it is.
    pub provider: Provider,
    /// The app's id.
    pub client_id: String,
    /// The app's secret.
    pub client_secret: String,
    /// The address to which browsers without a session are sent.
    pub login_url: String,
    /// The redirect address that was sent to the provider when the login began; Feishu checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The header with the code.
    #[serde(default = "standard_header")]
    pub code_header: String,
    /// The query argument with the code.
    #[serde(default = "standard_argument")]
    pub code_query: String,
    /// The token endpoint.
    pub token_url: String,
    /// The userinfo endpoint.
    pub userinfo_url: String,
    /// Whether upstreams get the user, in `X-Userinfo`.
    #[serde(default = "weir_plugins_shared::yes")]
    pub set_userinfo_header: bool,
    /// The session and its cookie.
    pub session: SessionConfig,
    /// The HTTP settings for calls to the provider.
    #[serde(default)]
    pub http: HttpRules,
}

/// Secrets are left out.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("provider", &self.provider)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// Whose app it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// DingTalk: the app has a token of its own, with which it looks up the user of a code.
    Dingtalk,
    /// Feishu: the code is exchanged for the user's token.
    Feishu,
}

fn standard_header() -> String {
    "X-Code".into()
}

fn standard_argument() -> String {
    "code".into()
}

const NAME: &str = "app-login";
const USERINFO: &[u8] = b"X-Userinfo";
/// How long an app's token is used; it is good for 7,200 seconds.
const TOKEN_MS: u64 = 7_000_000;
const RETRY_MS: u64 = 1_000;
const CACHE_BYTES: usize = 4 << 20;

/// The plugin `app-login`.
pub struct AppLogin {
    tokens: Arc<ExpiringMap<Arc<str>>>,
    random: Random,
}

impl Default for AppLogin {
    fn default() -> Self {
        Self {
            tokens: ExpiringMap::new(CACHE_BYTES),
            random: system_random,
        }
    }
}

impl Plugin for AppLogin {
    fn name(&self) -> &'static str {
        "app-login"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let [token, userinfo] = [
            ("token_url", &config.token_url),
            ("userinfo_url", &config.userinfo_url),
        ]
        .map(|(field, url)| {
            let server = HttpServer::parse(url);
            if server.is_none() {
                faults.add(field, "expected an address that begins with http:// or https://");
            }
            server
        });
        faults.check_name("code_header", &config.code_header);
        faults.check_value("login_url", Some(&config.login_url));
        config.http.check(&mut faults);
        faults.extend(config.session.faults(&DocPath::root().field("session")));
        faults.done()?;
        // Sessions of one app are not those of another.
        let owner = (config.provider, &config.client_id);
        let owner = serde_json::to_vec(&owner).unwrap_or_default();
        let owner = digest::digest(&digest::SHA256, &owner);
        let owner = data_encoding::HEXLOWER.encode(owner.as_ref());
        config.session.audience.push_str(&owner);
        let rules = config.http.rules();
        let trust = trust(&rules, 0);
        let app = [
            &config.token_url,
            &config.client_id,
            &config.client_secret,
            &trust,
        ];
        let app = serde_json::to_vec(&app).unwrap_or_default();
        Ok(Arc::new(LoginFilter {
            token: token.expect("invariant: its absence has been reported"),
            userinfo: userinfo.expect("invariant: its absence has been reported"),
            sessions: Sessions::new(config.session.clone(), self.random),
            rules,
            tokens: Arc::clone(&self.tokens),
            key: digest::digest(&digest::SHA256, &app).as_ref().to_vec(),
            config,
        }))
    }
}

/// An instance of `app-login`.
struct LoginFilter {
    config: Config,
    token: HttpServer,
    userinfo: HttpServer,
    sessions: Sessions,
    rules: ServerCallRules,
    tokens: Arc<ExpiringMap<Arc<str>>>,
    /// The app, as a key that shows no secret.
    key: Vec<u8>,
}

/// What a call has asked the provider for.
enum ProviderCall {
    Token,
    User,
}

/// An answer that is JSON, whatever its status.
fn read(answer: Option<SubrequestResponse>) -> Option<Value> {
    let answer = answer.filter(|answer| answer.status == 200)?;
    serde_json::from_slice(&answer.body).ok()
}

impl LoginFilter {
    fn code(&self, exchange: &Exchange) -> Option<String> {
        let request = &exchange.request;
        let header = request.headers.get(self.config.code_header.as_bytes());
        let code = match header {
            Some(code) => code.to_vec(),
            None => request.query_arg(self.config.code_query.as_bytes())?.into_owned(),
        };
        String::from_utf8(code).ok().filter(|code| !code.is_empty())
    }

    fn ask(
        &self,
        server: &HttpServer,
        (query, body): (&str, Option<&Value>),
        bearer: Option<&str>,
    ) -> Outcome {
        let body = body.map(Value::to_string);
        let authorization = bearer.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(authorization.as_deref().map(|it| ("Authorization", it)));
        let request = HttpRequest {
            method: if body.is_some() { "POST" } else { "GET" },
            query,
            headers: &headers,
            body: body.as_deref().map(str::as_bytes),
            ..HttpRequest::GET
        };
        Outcome::Subrequest(Box::new(server.request(request, &self.rules)))
    }

    /// The token of a DingTalk app, the same for all calls.
    fn app_token(&self, exchange: &mut Exchange) -> FetchResult<Arc<str>> {
        let wanted = FetchRequest {
            map: &self.tokens,
            key: &self.key,
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        let body = json!({"appKey": self.config.client_id, "appSecret": self.config.client_secret});
        wanted.find(
            self,
            exchange,
            |_| self.ask(&self.token, ("", Some(&body)), None),
            |exchange| {
                let answer = read(exchange.subrequest_response.take()?)?;
                let token: Arc<str> = answer.get("accessToken")?.as_str()?.into();
                let bytes = token.len();
                Some((token, bytes, Lifetime::fresh(TOKEN_MS)))
            },
        )
    }

    fn dingtalk(&self, exchange: &mut Exchange, code: &str) -> Result<Value, Outcome> {
        if exchange.filter_state.take::<_, ProviderCall>(self).is_none() {
            let token = match self.app_token(exchange) {
                FetchResult::Wait(outcome) => return Err(outcome),
                FetchResult::Nothing => return Err(refused(NAME, 500, "Failed to obtain access token")),
                FetchResult::Value(token) => token,
            };
            exchange.filter_state.put(self, ProviderCall::User);
            let query = form([("access_token", &*token)]);
            return Err(self.ask(&self.userinfo, (&query, Some(&json!({ "code": code }))), None));
        }
        let answer = exchange.subrequest_response.take().flatten();
        let Some(mut answer) = read(answer) else {
            return Err(refused(NAME, 503, "Failed to obtain user info from DingTalk"));
        };
        match answer.get("errcode").and_then(Value::as_i64) {
            Some(0) => Ok(answer["result"].take()),
            _ => Err(refused(NAME, 401, "Invalid authorization code")),
        }
    }

    fn feishu(&self, exchange: &mut Exchange, code: &str) -> Result<Value, Outcome> {
        let config = &self.config;
        let wrong = || refused(NAME, 401, "Invalid authorization code");
        let asked = exchange.filter_state.take::<_, ProviderCall>(self);
        let answer = exchange.subrequest_response.take().flatten();
        match asked {
            None => {
                exchange.filter_state.put(self, ProviderCall::Token);
                let body = json!({
                    "grant_type": "authorization_code",
                    "client_id": config.client_id,
                    "client_secret": config.client_secret,
                    "redirect_uri": config.redirect_uri,
                    "code": code,
                });
                Err(self.ask(&self.token, ("", Some(&body)), None))
            }
            Some(ProviderCall::Token) => {
                let answer = read(answer).ok_or_else(wrong)?;
                let token = answer.get("access_token").and_then(Value::as_str);
                let token = token.ok_or_else(wrong)?;
                exchange.filter_state.put(self, ProviderCall::User);
                Err(self.ask(&self.userinfo, ("", None), Some(token)))
            }
            Some(ProviderCall::User) => {
                let mut answer = read(answer).ok_or_else(wrong)?;
                let is_good = answer.get("code").and_then(Value::as_i64) == Some(0);
                is_good.then(|| answer["data"].take()).ok_or_else(wrong)
            }
        }
    }

    /// Begins a session for a user, and goes on.
    fn begin(&self, exchange: &mut Exchange, user: &Value) -> Outcome {
        let text = user.to_string();
        let now_s = exchange.unix_ms() / 1_000;
        let mut session = self.sessions.begin(text.clone().into_bytes(), now_s);
        if user.is_object() && self.sessions.write(&mut session, exchange) {
            return self.go_on(exchange, text.as_bytes());
        }
        refused(NAME, 500, "Failed to save session")
    }

    fn go_on(&self, exchange: &mut Exchange, user: &[u8]) -> Outcome {
        self.sessions.strip(&mut exchange.request);
        if self.config.set_userinfo_header {
            let value = STANDARD.encode(user);
            exchange.request.headers.set_owned(USERINFO, value.as_bytes());
        }
        exchange.add_fingerprint(user);
        Outcome::Continue
    }
}

impl Filter for LoginFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        exchange.request.headers.remove_owned(USERINFO);
        let now_s = exchange.unix_ms() / 1_000;
        if let Some(mut session) = self.sessions.open(&exchange.request, now_s) {
            self.sessions.touch(&mut session, exchange);
            return self.go_on(exchange, &session.data);
        }
        let Some(code) = self.code(exchange) else {
            return redirect(302, &self.config.login_url);
        };
        let user = match self.config.provider {
            Provider::Dingtalk => self.dingtalk(exchange, &code),
            Provider::Feishu => self.feishu(exchange, &code),
        };
        match user {
            Ok(user) => self.begin(exchange, &user),
            Err(outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::*;

    fn config(provider: Provider) -> Config {
        let mut session = SessionConfig::new("0123456789abcdef".into());
        session.cookie_name = "s".into();
        Config {
            provider,
            client_id: "app".into(),
            client_secret: "secret".into(),
            login_url: "https://login.test/".into(),
            redirect_uri: Some("https://a.test/back".into()),
            code_header: "X-Code".into(),
            code_query: "code".into(),
            token_url: "http://id.test/token".into(),
            userinfo_url: "http://id.test/user".into(),
            set_userinfo_header: true,
            session,
            http: HttpRules::default(),
        }
    }

    fn filter(provider: Provider) -> Arc<dyn Filter> {
        let config = serde_json::to_value(config(provider)).expect("JSON");
        build(&AppLogin::default(), &config).expect("valid")
    }

    /// A call; gives what the provider was asked.
    fn run(
        filter: &Arc<dyn Filter>,
        call: &mut Exchange,
        answers: &[Option<(u16, &str)>],
    ) -> (String, Vec<String>) {
        let mut asked = Vec::new();
        loop {
            match filter.on_request(call) {
                Outcome::Subrequest(sent) => {
                    let answer = answers[asked.len()];
                    asked.push(String::from_utf8(sent.message).expect("text"));
                    call.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
                        status,
                        body: body.as_bytes().to_vec(),
                        ..SubrequestResponse::default()
                    }));
                }
                Outcome::Refuse(refusal) => {
                    return (format!("{} {:?}", refusal.status, refusal.message), asked);
                }
                outcome => return (word(&outcome), asked),
            }
        }
    }

    fn userinfo(call: &Exchange) -> Option<String> {
        let value = call.request.headers.get(USERINFO)?;
        String::from_utf8(STANDARD.decode(value).ok()?).ok()
    }

    #[test]
    fn a_code_begins_a_session() {
        let dingtalk = [
            Some((200, r#"{"accessToken": "t"}"#)),
            Some((200, r#"{"errcode": 0, "result": {"userid": "u"}}"#)),
        ];
        let feishu = [
            Some((200, r#"{"access_token": "t", "expires_in": 60}"#)),
            Some((200, r#"{"code": 0, "data": {"userid": "u"}}"#)),
        ];
        for (provider, answers, first, second) in [
            (
                Provider::Dingtalk,
                dingtalk,
                r#"{"appKey":"app","appSecret":"secret"}"#,
                ("POST /user?access_token=t ", r#"{"code":"c1"}"#),
            ),
            (
                Provider::Feishu,
                feishu,
                r#""code":"c1"}"#,
                ("GET /user ", "Authorization: Bearer t\r\n\r\n"),
            ),
        ] {
            let filter = filter(provider);
            let mut call = exchange();
            prepare(
                &mut call,
                "GET /a",
                &[("X-Userinfo", "forged"), ("x_userinfo", "forged")],
            );
            assert_eq!(run(&filter, &mut call, &[]), ("reply 302".into(), vec![]));
            prepare(&mut call, "GET /a?code=c1", &[("X-Userinfo", "forged")]);
            let (found, asked) = run(&filter, &mut call, &answers);
            assert_eq!((found.as_str(), asked.len()), ("continue", 2), "{provider:?}");
            assert!(
                asked[0].starts_with("POST /token ") && asked[0].ends_with(first),
                "{}",
                asked[0]
            );
            assert!(
                asked[1].starts_with(second.0) && asked[1].ends_with(second.1),
                "{}",
                asked[1]
            );
            assert_eq!(userinfo(&call).as_deref(), Some(r#"{"userid":"u"}"#));
            let cookie = call
                .response_headers
                .get(b"set-cookie")
                .expect("a cookie")
                .to_vec();
            let cookie = String::from_utf8(cookie).expect("text");
            let cookie = cookie.split(';').next().expect("a pair").to_owned();
            prepare(&mut call, "GET /b", &[("Cookie", &cookie)]);
            assert_eq!(run(&filter, &mut call, &[]), ("continue".into(), vec![]));
            assert_eq!(userinfo(&call).as_deref(), Some(r#"{"userid":"u"}"#));
            assert!(
                !call.request.headers.contains(b"cookie"),
                "upstreams do not see it"
            );
        }
    }

    #[test]
    fn a_session_is_good_for_its_app_only() {
        let answers = [
            Some((200, r#"{"access_token": "t", "expires_in": 60}"#)),
            Some((200, r#"{"code": 0, "data": {"userid": "u"}}"#)),
        ];
        let mut call = exchange();
        prepare(&mut call, "GET /a?code=c1", &[]);
        let (found, _) = run(&filter(Provider::Feishu), &mut call, &answers);
        assert_eq!(found, "continue");
        let cookie = call.response_headers.get(b"set-cookie").expect("a cookie");
        let cookie = String::from_utf8_lossy(cookie).into_owned();
        let cookie = cookie.split(';').next().expect("a pair");
        for (provider, client_id, expected) in [
            (Provider::Feishu, "app", "continue"),
            (Provider::Feishu, "other", "reply 302"),
            (Provider::Dingtalk, "app", "reply 302"),
        ] {
            let mut config = config(provider);
            config.client_id = client_id.to_owned();
            let config = serde_json::to_value(config).expect("JSON");
            let filter = build(&AppLogin::default(), &config).expect("valid");
            let mut call = exchange();
            prepare(&mut call, "GET /b", &[("Cookie", cookie)]);
            let (found, _) = run(&filter, &mut call, &[]);
            assert_eq!(found, expected, "{provider:?} {client_id}");
        }
    }

    #[test]
    fn what_the_provider_does_not_know_gets_no_session() {
        let token = Some((200, r#"{"accessToken": "t", "access_token": "t"}"#));
        for (provider, answers, expected) in [
            (
                Provider::Dingtalk,
                vec![None],
                r#"500 Some("Failed to obtain access token")"#,
            ),
            (
                Provider::Dingtalk,
                vec![Some((200, "rubbish"))],
                r#"500 Some("Failed to obtain access token")"#,
            ),
            (
                Provider::Dingtalk,
                vec![token, None],
                r#"503 Some("Failed to obtain user info from DingTalk")"#,
            ),
            (
                Provider::Dingtalk,
                vec![token, Some((200, r#"{"errcode": 40078}"#))],
                r#"401 Some("Invalid authorization code")"#,
            ),
            (
                Provider::Dingtalk,
                vec![token, Some((200, r#"{"errcode": 0}"#))],
                r#"500 Some("Failed to save session")"#,
            ),
            (
                Provider::Feishu,
                vec![None],
                r#"401 Some("Invalid authorization code")"#,
            ),
            (
                Provider::Feishu,
                vec![token, Some((500, "{}"))],
                r#"401 Some("Invalid authorization code")"#,
            ),
            (
                Provider::Feishu,
                vec![token, Some((200, r#"{"code": 1, "data": {}}"#))],
                r#"401 Some("Invalid authorization code")"#,
            ),
        ] {
            let mut call = exchange();
            prepare(&mut call, "GET /", &[("X-Code", "c")]);
            let (found, asked) = run(&filter(provider), &mut call, &answers);
            assert_eq!(
                (found.as_str(), asked.len()),
                (expected, answers.len()),
                "{provider:?} {answers:?}"
            );
            assert!(call.response_headers.is_empty());
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        let good = serde_json::to_value(config(Provider::Feishu)).expect("JSON");
        for (field, value, place) in [
            ("token_url", json!("a"), "token_url"),
            ("userinfo_url", json!("a"), "userinfo_url"),
            ("code_header", json!("a b"), "code_header"),
            ("session", json!({"secret": ""}), "session.secret"),
        ] {
            let mut config = good.clone();
            config[field] = value;
            assert_eq!(refused_at(&AppLogin::default(), &config), [place], "{config}");
        }
    }
}
