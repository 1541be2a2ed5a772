//! `session`: remembers callers that another plugin has recognised.
//!
//! ```yaml
//! session: {secret: 0123456789abcdef}
//! ```
//!
//! It stands before the plugins that recognise callers, and these let calls without credentials pass (`anonymous`, with
//! `skip_authenticated`). A call that one of them has recognised begins a session in a sealed cookie; from then on the cookie
//! is enough. The session ends with the time, when its consumer is deleted, or when the caller logs out.
//!
//! Groups that a directory or a token has named are remembered too, for `acl`.
//!
//! Security: a session is a new one each time, whatever the caller sends. All gateways with the same secret know it. After the
//! logout, copies of its cookie are refused by all gateways of a store; without a store, only by the gateway that got the logout.

use crate::body_fields::{Field, Form};
use crate::consumer_names::{ConsumerName, ConsumerNames};
use crate::identity::{self, Gate};
use crate::session_cookie::{Session, SessionConfig, Sessions, ended_sessions};
use crate::shared_revocations::{RevocationRecords, SharedRevocations};
use crate::{authenticated_groups, user_headers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Identity, Outcome, Phases, Plugin, Reply, SharedRecords, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::random::{Random, system_random};

/// Configuration of `session`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The session and its cookie.
    pub session: SessionConfig,
    /// The query argument that logs out; absent: none does.
    #[serde(default = "logout_argument", skip_serializing_if = "Option::is_none")]
    pub logout_query_argument: Option<String>,
    /// The field of a form or of a JSON object in the body that logs out; absent: bodies are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logout_body_argument: Option<String>,
    /// The longest body that is read for that, in bytes; calls with a longer one are refused.
    #[serde(default = "one_mebibyte")]
    pub max_body_bytes: usize,
    /// The methods with which a call logs out.
    #[serde(default = "logout_methods")]
    pub logout_methods: Vec<String>,
    /// The request header with the groups that the session holds, for the upstream. The caller's own copy is always
    /// removed. Absent: upstreams do not get the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_header: Option<String>,
    /// Whether upstreams get the session's id, in `Session-Id`.
    #[serde(default)]
    pub upstream_id: bool,
    /// Whether callers get the session's id, in `Session-Id`.
    #[serde(default)]
    pub client_id: bool,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
}

impl Config {
    /// The defaults of all options, with this session.
    pub fn new(session: SessionConfig) -> Self {
        Self {
            session,
            logout_query_argument: logout_argument(),
            logout_body_argument: None,
            max_body_bytes: one_mebibyte(),
            logout_methods: logout_methods(),
            groups_header: None,
            upstream_id: false,
            client_id: false,
            identity: identity::Config::default(),
        }
    }
}

fn logout_argument() -> Option<String> {
    Some("session_logout".into())
}

fn logout_methods() -> Vec<String> {
    ["POST", "DELETE"].map(str::to_owned).to_vec()
}

fn one_mebibyte() -> usize {
    1 << 20
}

/// The methods whose bodies may log out.
const METHODS_WITH_BODIES: [&[u8]; 4] = [b"DELETE", b"PATCH", b"POST", b"PUT"];

/// The header with a session's id.
const ID: &[u8] = b"Session-Id";

/// The plugin.
pub struct SessionPlugin {
    random: Random,
    ended: Arc<SharedRevocations>,
}

impl Default for SessionPlugin {
    fn default() -> Self {
        Self {
            random: system_random,
            ended: ended_sessions(),
        }
    }
}

impl Plugin for SessionPlugin {
    fn name(&self) -> &'static str {
        "session"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = config.session.faults(&DocPath::root().field("session"));
        let mut own = ConfigErrors::default();
        if let Some(header) = &config.groups_header {
            own.check_name("groups_header", header);
        }
        faults.extend(own.done().err().into_iter().flatten());
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Arc::new(SessionFilter {
            gate: Gate::build("session", config.identity.clone(), context)?,
            sessions: Sessions::new(config.session.clone(), self.random).remembering(&self.ended),
            consumers: ConsumerNames::of(context),
            config,
        }))
    }

    fn shared_records(&self) -> Option<Arc<dyn SharedRecords>> {
        Some(Arc::new(RevocationRecords(Arc::clone(&self.ended))))
    }
}

/// An instance of `session`.
struct SessionFilter {
    config: Config,
    gate: Gate,
    sessions: Sessions,
    consumers: Arc<ConsumerNames>,
}

/// Who a session is for.
#[derive(Debug, Serialize, Deserialize)]
struct SessionIdentity {
    consumer: String,
    credential: String,
    /// The groups that a directory or a token has named; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<String>>,
}

/// That the call has a session already, or has just ended it.
struct SessionHandled;

impl SessionFilter {
    /// Whether the call logs out. If its body has to be read for that, the outcome that requests it.
    fn is_logout(&self, exchange: &Exchange) -> Result<bool, Outcome> {
        let (config, request) = (&self.config, &exchange.request);
        let is_method = |method: &String| method.as_bytes() == request.method;
        if !config.logout_methods.iter().any(is_method) {
            return Ok(false);
        }
        let argument = config.logout_query_argument.as_ref();
        if argument.is_some_and(|name| request.query_arg(name.as_bytes()).is_some()) {
            return Ok(true);
        }
        let Some(name) = &config.logout_body_argument else {
            return Ok(false);
        };
        if !METHODS_WITH_BODIES.contains(&request.method.as_slice()) || !request.has_body {
            return Ok(false);
        }
        let form = request.headers.get(b"content-type").and_then(Form::of);
        match (form, &request.body) {
            (None, _) => Ok(false),
            (Some(_), None) => Err(Outcome::NeedBody {
                max_bytes: config.max_body_bytes,
            }),
            (Some(Form::Json), Some(body)) => {
                let value: Value = serde_json::from_slice(body).unwrap_or_default();
                Ok(value
                    .get(name)
                    .is_some_and(|it| !matches!(it, Value::Null | Value::Bool(false))))
            }
            (Some(form), Some(body)) => Ok(form.field(body, name) != Field::Absent),
        }
    }

    /// Who a session is for, with their groups, if its consumer still exists.
    fn identity(&self, session: &Session) -> Option<(Identity, Option<Vec<String>>)> {
        let remembered: SessionIdentity = serde_json::from_slice(&session.data).ok()?;
        let consumer = self.consumers.find(&remembered.consumer, &[ConsumerName::Id])?;
        let identity = Identity {
            consumer: Arc::clone(consumer),
            credential_id: Some(remembered.credential.into()),
        };
        Some((identity, remembered.groups))
    }
}

impl Filter for SessionFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        exchange.request.headers.remove_owned(ID);
        if let Some(header) = &self.config.groups_header {
            user_headers::remove_forged(exchange, [header.as_str()].into_iter());
        }
        let now_s = exchange.unix_ms() / 1_000;
        let Some(mut session) = self.sessions.open(&exchange.request, now_s) else {
            return Outcome::Continue;
        };
        match self.is_logout(exchange) {
            Err(wanted) => return wanted,
            Ok(false) => {}
            Ok(true) => {
                self.sessions.end(&session, exchange);
                exchange.filter_state.put(self, SessionHandled);
                return Outcome::Reply(Box::new(Reply::new(200, "", Vec::new())));
            }
        }
        let Some((identity, groups)) = self.identity(&session) else {
            self.sessions.close(exchange);
            return Outcome::Continue;
        };
        self.sessions.touch(&mut session, exchange);
        exchange.filter_state.put(self, SessionHandled);
        let id = session.id_text();
        if self.config.client_id {
            exchange.response_headers.set(ID, id.as_bytes());
        }
        self.sessions.strip(&mut exchange.request);
        self.gate.accept(exchange, &identity);
        if let Some(groups) = groups {
            if let Some(header) = &self.config.groups_header {
                authenticated_groups::set_header(exchange, header, &groups);
            }
            authenticated_groups::note(exchange, groups);
        }
        if self.config.upstream_id {
            exchange.request.headers.set_owned(ID, id.as_bytes());
        }
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if exchange.filter_state.get_mut::<_, SessionHandled>(self).is_some() {
            return;
        }
        let Some(identity) = &exchange.identity else {
            return;
        };
        // The anonymous consumer has no credential.
        let Some(credential) = &identity.credential_id else {
            return;
        };
        let (consumer, credential) = (identity.consumer.id.clone(), credential.to_string());
        let groups = authenticated_groups::of(exchange).map(|groups| groups.to_vec());
        let remembered = SessionIdentity {
            consumer,
            credential,
            groups,
        };
        let now_s = exchange.unix_ms() / 1_000;
        let data = serde_json::to_vec(&remembered).unwrap_or_default();
        let mut session = self.sessions.begin(data, now_s);
        let Exchange {
            request, response, ..
        } = exchange;
        self.sessions
            .write_to(&mut session, request, &mut response.headers, now_s);
        if self.config.client_id {
            response.headers.set(ID, session.id_text().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn filter(change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
        let mut config = Config::new(SessionConfig::new("0123456789abcdef".into()));
        change(&mut config);
        build(
            &SessionPlugin::default(),
            &serde_json::to_value(config).expect("JSON"),
        )
        .expect("valid")
    }

    /// The cookie that a response sets.
    fn cookie(call: &Exchange) -> Option<String> {
        let all = lines(&call.response.headers)
            .into_iter()
            .chain(lines(&call.response_headers));
        let mut cookies = all.filter_map(|line| line.strip_prefix("Set-Cookie: ").map(str::to_owned));
        cookies
            .next()
            .map(|line| line.split(';').next().unwrap_or_default().to_owned())
    }

    fn recognised(filter: &Arc<dyn Filter>, who: &str, credential: Option<&str>) -> Option<String> {
        let mut call = exchange();
        assert_eq!(word(&filter.on_request(&mut call)), "continue");
        call.identity = Some(identity(who, credential));
        filter.on_response(&mut call);
        cookie(&call)
    }

    #[test]
    fn callers_that_were_recognised_are_remembered() {
        let filter = filter(|_| {});
        let cookie = recognised(&filter, "alice", Some("c1")).expect("a session");
        let mut call = exchange();
        prepare(
            &mut call,
            "GET /",
            &[("Cookie", &cookie), ("X-Consumer-ID", "forged")],
        );
        assert_eq!(word(&filter.on_request(&mut call)), "continue");
        let found = call.identity.clone().expect("a caller");
        assert_eq!(
            (found.consumer.id.as_str(), found.credential_id.as_deref()),
            ("alice", Some("c1"))
        );
        assert_eq!(call.request.headers.get(b"x-consumer-id"), Some(&b"alice"[..]));
        assert!(call.request.headers.get(b"cookie").is_none());
        filter.on_response(&mut call);
        assert_eq!(self::cookie(&call), None, "a session is begun once");
        // Each login begins another session.
        assert_ne!(recognised(&filter, "alice", Some("c1")), Some(cookie));
        assert_eq!(
            recognised(&filter, "guest", None),
            None,
            "the caller was not recognised"
        );
    }

    #[test]
    fn cookies_of_others_are_nothing() {
        let cookie = recognised(
            &filter(|config| config.session.audience = "a".into()),
            "alice",
            Some("c1"),
        );
        let cookie = cookie.expect("a session");
        for other in [
            filter(|config| config.session.audience = "b".into()),
            filter(|config| config.session.secret = "another".into()),
            filter(|config| {
                config.session.audience = "a".into();
                config.session.cookie_name = "other".into();
            }),
        ] {
            let mut call = exchange();
            let renamed = cookie.replacen("session=", "other=", 1);
            prepare(&mut call, "GET /", &[("Cookie", &cookie), ("Cookie", &renamed)]);
            assert_eq!(word(&other.on_request(&mut call)), "continue");
            assert!(call.identity.is_none());
        }
    }

    #[test]
    fn logging_out_removes_the_cookie() {
        let filter = filter(|_| {});
        for (line, expected) in [
            ("GET /?session_logout", "continue"),
            ("DELETE /?session_logout=1", "reply 200"),
            ("POST /?session_logout", "reply 200"),
            ("DELETE /", "continue"),
        ] {
            let cookie = recognised(&filter, "alice", Some("c1")).expect("a session");
            let mut call = exchange();
            prepare(&mut call, line, &[("Cookie", &cookie)]);
            assert_eq!(word(&filter.on_request(&mut call)), expected, "{line}");
            let removed = lines(&call.response_headers)
                .iter()
                .any(|line| line.contains("Max-Age=0"));
            assert_eq!(removed, expected == "reply 200", "{line}");
        }
    }

    #[test]
    fn a_copy_of_the_cookie_is_dead_after_the_logout() {
        let plugin = SessionPlugin::default();
        let config = Config::new(SessionConfig::new("0123456789abcdef".into()));
        let config = serde_json::to_value(config).expect("JSON");
        // An instance that takes the place of the first one knows it too.
        let [first, second] = [0, 1].map(|_| build(&plugin, &config).expect("valid"));
        let cookies = [0, 1].map(|_| recognised(&first, "alice", Some("c1")).expect("a session"));
        let known = |filter: &Arc<dyn Filter>, cookie: &String| {
            let mut call = exchange();
            prepare(&mut call, "GET /", &[("Cookie", cookie)]);
            assert_eq!(word(&filter.on_request(&mut call)), "continue");
            call.identity.is_some()
        };
        let mut call = exchange();
        prepare(&mut call, "DELETE /?session_logout", &[("Cookie", &cookies[0])]);
        assert_eq!(word(&first.on_request(&mut call)), "reply 200");
        for filter in [&first, &second] {
            assert_eq!(
                (known(filter, &cookies[0]), known(filter, &cookies[1])),
                (false, true)
            );
        }
    }

    #[test]
    fn a_copy_of_the_cookie_is_dead_at_other_gateways_of_the_store() {
        let plugins = [SessionPlugin::default(), SessionPlugin::default()];
        let [from, to] = [0, 1].map(|at| plugins[at].shared_records().expect("it shares"));
        crate::shared_revocations::tests::relay(&*from, to);
        let config = Config::new(SessionConfig::new("0123456789abcdef".into()));
        let config = serde_json::to_value(config).expect("JSON");
        let [first, second] = [0, 1].map(|at| build(&plugins[at], &config).expect("valid"));
        let cookie = recognised(&first, "alice", Some("c1")).expect("a session");
        let is_known = || {
            let mut call = exchange();
            prepare(&mut call, "GET /", &[("Cookie", &cookie)]);
            assert_eq!(word(&second.on_request(&mut call)), "continue");
            call.identity.is_some()
        };
        assert!(is_known());
        let mut call = exchange();
        prepare(&mut call, "DELETE /?session_logout", &[("Cookie", &cookie)]);
        assert_eq!(word(&first.on_request(&mut call)), "reply 200");
        assert!(!is_known());
    }

    #[test]
    fn groups_are_remembered() {
        let filter = filter(|config| config.groups_header = Some("X-Groups".into()));
        for (groups, header) in [
            (None, None),
            (Some(vec!["a".to_owned(), "b".to_owned()]), Some("a, b")),
        ] {
            let mut call = exchange();
            assert_eq!(word(&filter.on_request(&mut call)), "continue");
            call.identity = Some(identity("alice", Some("c1")));
            if let Some(groups) = groups.clone() {
                authenticated_groups::note(&mut call, groups);
            }
            filter.on_response(&mut call);
            let cookie = cookie(&call).expect("a session");
            let mut next = exchange();
            prepare(&mut next, "GET /", &[("Cookie", &cookie), ("x_groups", "forged")]);
            assert_eq!(word(&filter.on_request(&mut next)), "continue");
            let found = authenticated_groups::of(&mut next);
            assert_eq!(found.map(|groups| groups.to_vec()), groups);
            let headers = &next.request.headers;
            assert_eq!(headers.get(b"x-groups"), header.map(str::as_bytes));
            assert!(!headers.contains(b"x_groups"), "{groups:?}");
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, place) in [
            (json!({"session": {"secret": ""}}), "session.secret"),
            (
                json!({"session": {"secret": "a", "cookie_name": "a b"}}),
                "session.cookie_name",
            ),
            (
                json!({"session": {"secret": "a", "cookie_path": "x"}}),
                "session.cookie_path",
            ),
        ] {
            assert_eq!(
                refused_at(&SessionPlugin::default(), &config),
                [place],
                "{config}"
            );
        }
        let example = example(include_str!("session.rs"));
        assert!(build(&SessionPlugin::default(), &example).is_ok());
    }
}
