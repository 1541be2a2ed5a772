//! `casdoor-login`: logs browsers in through Casdoor.
//!
//! ```yaml
//! url: https://door.example.com
//! client_id: app
//! client_secret: TEXT
//! callback_url: https://www.example.com/callback
//! session: {secret: 0123456789abcdef}
//! ```
//!
//! Browsers without a session are sent to Casdoor, and come back to `callback_url`, whose path must lead to the same plugin. The
//! session lasts as long as Casdoor's token.
//!
//! Security: the state of a login is 128 random bits in a sealed cookie, good once and for ten minutes. Browsers are only sent
//! back to a path of the same host.

use crate::browser::{redirect, refused};
use crate::http_rules::HttpRules;
use crate::login_cookie::LoginCookie;
use crate::openid_connect::client;
use crate::session_cookie::{SessionConfig, Sessions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules, form};
use weir_plugins_shared::random::{self, Random, system_random};

/// Configuration of `casdoor-login`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Casdoor's address, without a `/` at its end.
    pub url: String,
    /// The app's id.
    pub client_id: String,
    /// The app's secret.
    pub client_secret: String,
    /// The address to which Casdoor sends browsers back.
    pub callback_url: String,
    /// The session and its cookie.
    pub session: SessionConfig,
    /// The HTTP settings for calls to Casdoor.
    #[serde(default)]
    pub http: HttpRules,
}

/// Secrets are left out.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("url", &self.url)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

const NAME: &str = "casdoor-login";

/// The plugin `casdoor-login`.
pub struct CasdoorLogin(Random);

impl Default for CasdoorLogin {
    fn default() -> Self {
        Self(system_random)
    }
}

impl Plugin for CasdoorLogin {
    fn name(&self) -> &'static str {
        "casdoor-login"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let expected = "expected an address that begins with http:// or https://";
        let token = HttpServer::parse(&format!("{}/api/login/oauth/access_token", config.url));
        if token.is_none() {
            faults.add("url", expected);
        }
        let callback = HttpServer::parse(&config.callback_url);
        if callback.is_none() {
            faults.add("callback_url", expected);
        }
        config.http.check(&mut faults);
        faults.extend(config.session.faults(&DocPath::root().field("session")));
        faults.done()?;
        let callback = callback.expect("invariant: its absence has been reported");
        Ok(Arc::new(LoginFilter {
            token: token.expect("invariant: its absence has been reported"),
            callback_path: callback.target.split('?').next().unwrap_or_default().to_owned(),
            login_cookie_name: format!("{}_login", config.session.cookie_name),
            sessions: Sessions::new(config.session.clone(), self.0),
            rules: config.http.rules(),
            random: self.0,
            config,
        }))
    }
}

/// An instance of `casdoor-login`.
struct LoginFilter {
    config: Config,
    token: HttpServer,
    callback_path: String,
    login_cookie_name: String,
    sessions: Sessions,
    rules: ServerCallRules,
    random: Random,
}

/// What a session remembers.
#[derive(Serialize, Deserialize)]
struct CasdoorSession {
    client_id: String,
    ends_s: u64,
}

/// That Casdoor was asked, for the login with this address.
struct TokenExchange(String);

fn unavailable() -> Outcome {
    Outcome::Refuse(Box::new(Refusal::new(RefusalKind::Answered { plugin: NAME })))
}

fn unacceptable(message: &str) -> Outcome {
    let mut refusal = Refusal::new(RefusalKind::Unacceptable { plugin: NAME });
    refusal.message = Some(message.to_owned());
    Outcome::Refuse(Box::new(refusal))
}

impl LoginFilter {
    fn login_cookie(&self) -> LoginCookie<'_> {
        let name = &self.login_cookie_name;
        LoginCookie::new(&self.sessions, name, [b"login", name.as_bytes()])
    }

    fn begin(&self, exchange: &mut Exchange) -> Outcome {
        // Digits only, as APISIX writes it: clients look for that.
        let state = u128::from_be_bytes(random::bytes::<16>(self.random)).to_string();
        let query = form([
            ("response_type", "code"),
            ("scope", "read"),
            ("state", &state),
            ("client_id", &self.config.client_id),
            ("redirect_uri", &self.config.callback_url),
        ]);
        self.login_cookie().begin(exchange, state);
        redirect(302, &format!("{}/login/oauth/authorize?{query}", self.config.url))
    }

    /// What the browser brings back.
    fn end(&self, exchange: &mut Exchange) -> Outcome {
        let Some(login) = self.login_cookie().read(exchange) else {
            return unavailable();
        };
        let argument = |name: &[u8]| {
            let value = exchange.request.query_arg(name)?;
            String::from_utf8(value.into_owned())
                .ok()
                .filter(|it| !it.is_empty())
        };
        let (Some(code), Some(state)) = (argument(b"code"), argument(b"state")) else {
            return unacceptable("failed when accessing token. Invalid code or state");
        };
        if state != login.state {
            return unacceptable("invalid state");
        }
        let body = form([
            ("code", code.as_str()),
            ("grant_type", "authorization_code"),
            ("client_id", &self.config.client_id),
            ("client_secret", &self.config.client_secret),
        ]);
        exchange.filter_state.put(self, TokenExchange(login.url));
        let request = HttpRequest {
            method: "POST",
            headers: &[("Content-Type", "application/x-www-form-urlencoded")],
            body: Some(body.as_bytes()),
            ..HttpRequest::GET
        };
        Outcome::Subrequest(Box::new(self.token.request(request, &self.rules)))
    }

    /// What Casdoor says about the code.
    fn finish(&self, exchange: &mut Exchange, url: &str) -> Outcome {
        let now_s = exchange.unix_ms() / 1_000;
        let answer = exchange.subrequest_response.take().flatten();
        let Ok(tokens) = client::tokens(answer, now_s) else {
            return unavailable();
        };
        // Casdoor says 0 of a token that is not good.
        let Some(ends_s) = tokens.expires_at_s.filter(|ends_s| *ends_s > now_s) else {
            return unavailable();
        };
        let remembered = CasdoorSession {
            client_id: self.config.client_id.clone(),
            ends_s,
        };
        match self.login_cookie().end(exchange, &remembered) {
            true => redirect(302, url),
            false => refused(NAME, 503, ""),
        }
    }
}

impl Filter for LoginFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(TokenExchange(url)) = exchange.filter_state.take(self) {
            return self.finish(exchange, &url);
        }
        if exchange.request.is_for_path(self.callback_path.as_bytes()) {
            return self.end(exchange);
        }
        let now_s = exchange.unix_ms() / 1_000;
        let Some(mut session) = self.sessions.open(&exchange.request, now_s) else {
            return self.begin(exchange);
        };
        let remembered: Option<CasdoorSession> = serde_json::from_slice(&session.data).ok();
        let is_good = remembered.is_some_and(|it| it.client_id == self.config.client_id && now_s < it.ends_s);
        if !is_good {
            return self.begin(exchange);
        }
        self.sessions.touch(&mut session, exchange);
        self.sessions.strip(&mut exchange.request);
        exchange.add_fingerprint(&session.id);
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugin::SubrequestResponse;
    use weir_plugins_testkit::*;

    fn config() -> Value {
        json!({
            "url": "http://door.test", "client_id": "app", "client_secret": "s",
            "callback_url": "https://a.test/callback", "session": {"secret": "0123456789abcdef"},
        })
    }

    /// The cookies that a browser has got, as it sends them back.
    fn cookies(call: &Exchange) -> String {
        let set = call.response_headers.get_all(b"set-cookie");
        let pairs = set.map(|it| {
            String::from_utf8_lossy(it)
                .split(';')
                .next()
                .unwrap_or_default()
                .to_owned()
        });
        pairs
            .filter(|it| !it.ends_with('='))
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn location(outcome: &Outcome) -> String {
        let Outcome::Reply(reply) = outcome else {
            panic!("a redirect: {outcome:?}");
        };
        let found = reply.headers.iter().find(|(name, _)| name == "Location");
        String::from_utf8(found.expect("an address").1.clone()).expect("text")
    }

    /// A login that has begun: the filter, the browser's cookies, the state.
    fn begun(target: &str) -> (Arc<dyn Filter>, String, String) {
        let filter = build(&CasdoorLogin::default(), &config()).expect("valid");
        let mut call = exchange();
        prepare(&mut call, &format!("GET {target}"), &[]);
        let address = location(&filter.on_request(&mut call));
        let state = address.split("state=").nth(1).and_then(|it| it.split('&').next());
        let state = state.expect("a state").to_owned();
        assert!(address.starts_with("http://door.test/login/oauth/authorize?response_type=code&scope=read&"));
        (filter, cookies(&call), state)
    }

    /// The browser's response: the outcome as a word, the redirect target, and its cookies.
    fn ended(
        filter: &Arc<dyn Filter>,
        target: &str,
        cookie: &str,
        answer: Option<&str>,
    ) -> (String, String, String) {
        let mut call = exchange();
        prepare(&mut call, &format!("GET {target}"), &[("Cookie", cookie)]);
        let mut outcome = filter.on_request(&mut call);
        if let Outcome::Subrequest(sent) = &outcome {
            let message = String::from_utf8_lossy(&sent.message).into_owned();
            assert!(
                message.ends_with("grant_type=authorization_code&client_id=app&client_secret=s"),
                "{message}"
            );
            call.subrequest_response = Some(answer.map(|body| SubrequestResponse {
                status: 200,
                body: body.as_bytes().to_vec(),
                ..SubrequestResponse::default()
            }));
            outcome = filter.on_request(&mut call);
        }
        let address = match &outcome {
            Outcome::Reply(_) => location(&outcome),
            _ => String::new(),
        };
        (word(&outcome), address, cookies(&call))
    }

    const GOOD: Option<&str> = Some(r#"{"access_token": "t", "expires_in": 60}"#);

    #[test]
    fn a_login_leads_back_and_its_session_is_enough() {
        let (filter, cookie, state) = begun("//evil.test/a?x=1");
        let back = format!("/callback?code=c&state={state}");
        let (found, address, session) = ended(&filter, &back, &cookie, GOOD);
        assert_eq!(
            (found.as_str(), address.as_str()),
            ("reply 302", "/.//evil.test/a?x=1")
        );
        assert_eq!(ended(&filter, "/b", &session, None).0, "continue");
        // Another app does not know it.
        let mut other = config();
        other["client_id"] = json!("other");
        let other = build(&CasdoorLogin::default(), &other).expect("valid");
        assert_eq!(ended(&other, "/b", &session, None).0, "reply 302");
    }

    #[test]
    fn answers_that_do_not_belong_to_the_browser_are_refused() {
        let (filter, cookie, state) = begun("/a");
        let (_, other_cookie, other_state) = begun("/a");
        for (target, cookie, answer, expected) in [
            (
                format!("/callback?code=c&state={state}"),
                "",
                GOOD,
                "answered 503",
            ),
            (
                format!("/callback?code=c&state={other_state}"),
                cookie.as_str(),
                GOOD,
                "unacceptable 400",
            ),
            (
                format!("/callback?code=c&state={state}"),
                &other_cookie,
                GOOD,
                "unacceptable 400",
            ),
            (
                format!("/callback?state={state}"),
                &cookie,
                GOOD,
                "unacceptable 400",
            ),
            ("/callback?code=c".to_owned(), &cookie, GOOD, "unacceptable 400"),
            (
                format!("/callback?code=c&state={state}"),
                &cookie,
                None,
                "answered 503",
            ),
            (
                format!("/callback?code=c&state={state}"),
                &cookie,
                Some("rubbish"),
                "answered 503",
            ),
            (
                format!("/callback?code=c&state={state}"),
                &cookie,
                Some(r#"{"access_token": "t", "expires_in": 0}"#),
                "answered 503",
            ),
        ] {
            let (found, _, session) = ended(&filter, &target, cookie, answer);
            assert_eq!(
                (found.as_str(), session.as_str()),
                (expected, ""),
                "{target} {answer:?}"
            );
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (field, value, place) in [
            ("url", json!("door"), "url"),
            ("callback_url", json!("/callback"), "callback_url"),
            ("session", json!({"secret": ""}), "session.secret"),
        ] {
            let mut config = config();
            config[field] = value;
            assert_eq!(refused_at(&CasdoorLogin::default(), &config), [place], "{config}");
        }
        assert!(
            build(
                &CasdoorLogin::default(),
                &example(include_str!("casdoor_login.rs"))
            )
            .is_ok()
        );
    }
}
