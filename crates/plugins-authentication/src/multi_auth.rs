//! `multi-auth`: any one of several ways to authenticate is enough.
//!
//! ```yaml
//! any_of:
//!   - key-auth: {}
//!   - basic-auth: {strip: true}
//! ```
//!
//! They are tried in order; the first that knows the caller ends the search.
//!
//! Security: calls get in by the weakest of the ways. One with an anonymous consumer lets everybody in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    AuthFailure, BuildContext, Exchange, Filter, Headers, Outcome, Phases, Plugin, Refusal, RefusalKind,
    Request, parse_config,
};
use weir_plugins_shared::config_checks::within;

/// Configuration of `multi-auth`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The ways: each a map of a plugin's name to its configuration. Plugins of one map are tried in the order of their
    /// names.
    #[schemars(length(min = 1))]
    pub any_of: Vec<BTreeMap<String, Value>>,
    /// Whether a response names the last way that failed even if another one succeeds, as Apache APISIX does.
    #[serde(default)]
    pub report_failures: bool,
}

/// The plugin `multi-auth`.
#[derive(Default)]
pub struct MultiAuth {
    /// The cached answers of directories.
    directories: crate::ldap_auth::LdapAuth,
    /// The cached answers of identity providers.
    providers: crate::openid_connect::OpenIdConnect,
    /// What its ways have found about certificates.
    certificates: crate::mtls_auth::MtlsAuth,
}

impl MultiAuth {
    /// The plugins that it can try.
    fn way(&self, name: &str) -> Option<&dyn Plugin> {
        Some(match name {
            "basic-auth" => &crate::basic_auth::BasicAuth,
            "hmac-auth" => &crate::hmac_auth::HmacAuth,
            "jwe-decrypt" => &crate::jwe_decrypt::JweDecrypt,
            "jwt" => &crate::jwt::Jwt,
            "key-auth" => &crate::key_auth::KeyAuth,
            "ldap-auth" => &self.directories,
            "mtls-auth" => &self.certificates,
            "openid-connect" => &self.providers,
            "wolf-rbac" => &crate::wolf_rbac::WolfRbac,
            _ => return None,
        })
    }
}

impl Plugin for MultiAuth {
    fn name(&self) -> &'static str {
        "multi-auth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root().field("any_of");
        let (mut ways, mut faults, mut strips) = (Vec::new(), Vec::new(), false);
        for (index, plugins) in config.any_of.iter().enumerate() {
            for (name, config) in plugins {
                let path = root.index(index).field(name.as_str());
                if let Some((field, message)) = unfit(name, config) {
                    faults.push(Diagnostic::error(path.field(field), message));
                    continue;
                }
                let strip = config.get("strip").unwrap_or(&Value::Null);
                strips |= !matches!(strip, Value::Null | Value::Bool(false)) && strip != "no";
                match self.way(name).map(|plugin| plugin.build(config, context)) {
                    Some(Ok(filter)) => ways.push(filter),
                    Some(Err(found)) => faults.extend(within(&path, found)),
                    None => faults.push(Diagnostic::error(path, "expected a plugin that authenticates")),
                }
            }
        }
        if config.any_of.is_empty() {
            faults.push(Diagnostic::error(root, "expected at least one way"));
        }
        match faults.is_empty() {
            true => Ok(Arc::new(AnyOf {
                // Before the last of them nothing is lost by what it strips.
                strips: strips && ways.len() > 1,
                ways,
                report_failures: config.report_failures,
            })),
            false => Err(faults),
        }
    }
}

/// The field of a way that would let everybody pass, or that sends browsers away before the others were asked; and why.
fn unfit(name: &str, config: &Value) -> Option<(&'static str, &'static str)> {
    let proof = "expected a way that every caller has to prove something by";
    match name {
        "jwe-decrypt" if config.get("required") == Some(&Value::Bool(false)) => Some(("required", proof)),
        "openid-connect" => {
            let methods = config.get("methods").and_then(Value::as_array);
            let is_of_tokens =
                |it: &Value| matches!(it.as_str(), Some("bearer" | "introspection" | "userinfo"));
            match (methods, config.get("unauthenticated").and_then(Value::as_str)) {
                (_, Some("pass")) => Some(("unauthenticated", proof)),
                (Some(methods), _) if methods.iter().all(is_of_tokens) => None,
                _ => Some((
                    "methods",
                    "expected `bearer`, `introspection` or `userinfo` only: a login would begin before other ways are tried",
                )),
            }
        }
        _ => None,
    }
}

/// A call that waits for a server in one of its ways.
struct WaitingCall {
    /// The way that asks.
    at: usize,
    /// Where the notes about the headers that this way has set begin.
    place: Option<usize>,
    challenge: Option<String>,
    shown: Option<CredentialSnapshot>,
}

/// An instance of `multi-auth`.
struct AnyOf {
    ways: Vec<Arc<dyn Filter>>,
    report_failures: bool,
    /// Whether a way takes credentials out of the request.
    strips: bool,
}

/// What ways take credentials out of.
struct CredentialSnapshot {
    headers: Headers,
    query: Option<Vec<u8>>,
    body: Option<Vec<u8>>,
}

impl CredentialSnapshot {
    fn of(request: &Request) -> Self {
        Self {
            headers: request.headers.clone(),
            query: request.query.clone(),
            body: request.body.clone(),
        }
    }

    /// Shows again what a way has hidden that does not know the caller: another one may know it by that.
    fn restore(&self, request: &mut Request) {
        request.headers.copy_from(&self.headers);
        request.query.clone_from(&self.query);
        request.body.clone_from(&self.body);
    }
}

impl Filter for AnyOf {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn requests_client_certificate(&self) -> bool {
        self.ways.iter().any(|way| way.requests_client_certificate())
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let waiting = exchange.filter_state.take::<_, WaitingCall>(self);
        let WaitingCall {
            at,
            mut place,
            mut challenge,
            mut shown,
        } = waiting.unwrap_or_else(|| WaitingCall {
            at: 0,
            place: None,
            challenge: None,
            shown: self.strips.then(|| CredentialSnapshot::of(&exchange.request)),
        });
        // A method that has requested the body continues with it: the next methods need it, too.
        if let Some(shown) = shown.as_mut().filter(|it| it.body.is_none()) {
            shown.body.clone_from(&exchange.request.body);
        }
        for (at, way) in self.ways.iter().enumerate().skip(at) {
            let place = place.take().unwrap_or_else(|| exchange.user_headers_place());
            match way.on_request(exchange) {
                Outcome::Refuse(refusal) => {
                    challenge = refusal.challenge.or(challenge);
                    exchange.drop_user_headers(place);
                    if let Some(shown) = &shown {
                        shown.restore(&mut exchange.request);
                    }
                }
                Outcome::Continue => {
                    let others = self.ways.iter().enumerate().filter(|(other, _)| *other != at);
                    others.for_each(|(_, other)| other.remove_forged(exchange));
                    if let Some(challenge) = challenge.filter(|_| self.report_failures) {
                        exchange
                            .response_headers
                            .set(b"WWW-Authenticate", challenge.as_bytes());
                    }
                    return Outcome::Continue;
                }
                Outcome::Reply(reply) => return Outcome::Reply(reply),
                // The way is called again, and not those before it: the result of the request belongs to it.
                other => {
                    let waiting = WaitingCall {
                        at,
                        place: Some(place),
                        challenge,
                        shown,
                    };
                    exchange.filter_state.put(self, waiting);
                    return other;
                }
            }
        }
        let mut refusal = Refusal::new(RefusalKind::Unauthenticated {
            plugin: "multi-auth",
            failure: AuthFailure::Invalid,
        });
        refusal.challenge = challenge;
        Outcome::Refuse(Box::new(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn one_way_is_enough() {
        let ways = json!([{"basic-auth": {}}, {"key-auth": {"identity": {"anonymous": null}}}]);
        for (tells, headers, expected, challenge) in [
            (true, &[("apikey", "k")][..], "Invalid", Some("Key")),
            (false, &[], "Invalid", Some("Key")),
        ] {
            let config = json!({"any_of": ways, "report_failures": tells});
            let filter = build(&MultiAuth::default(), &config).expect("valid");
            let mut exchange = exchange();
            prepare(&mut exchange, "GET /", headers);
            let outcome = filter.on_request(&mut exchange);
            assert_eq!(word(&outcome), expected);
            if let Outcome::Refuse(refusal) = outcome {
                assert_eq!(refusal.challenge.as_deref(), challenge);
            }
        }
    }

    #[test]
    fn failures_before_a_success_are_shown_as_configured() {
        for (tells, challenges) in [
            (true, &["WWW-Authenticate: Basic realm=\"service\""][..]),
            (false, &[]),
        ] {
            let config = json!({
                "any_of": [{"basic-auth": {}}, {"key-auth": {"identity": {"anonymous": "guest"}}}],
                "report_failures": tells,
            });
            let filter = build(&MultiAuth::default(), &config).expect("valid");
            let mut exchange = exchange();
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            assert_eq!(lines(&exchange.response_headers), challenges);
        }
    }

    /// A way that waited for the body and does not know the caller leaves it to the others, and to the upstream.
    #[test]
    fn a_body_that_a_way_waited_for_stays() {
        let ways = json!([
            {"key-auth": {"locations": [{"body": "apikey"}], "strip": "found"}},
            {"key-auth": {"identity": {"anonymous": "guest"}}},
        ]);
        let filter = build(&MultiAuth::default(), &json!({"any_of": ways})).expect("valid");
        let mut exchange = exchange();
        let form = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Content-Length", "12"),
        ];
        prepare(&mut exchange, "POST /", &form);
        exchange.request.has_body = true;
        let outcome = filter.on_request(&mut exchange);
        assert!(matches!(outcome, Outcome::NeedBody { .. }), "{}", word(&outcome));
        exchange.request.body = Some(b"apikey=k&a=1".to_vec());
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(exchange.request.body.as_deref(), Some(&b"apikey=k&a=1"[..]));
    }

    #[test]
    fn what_one_way_hides_another_one_sees() {
        let header = json!({"locations": [{"header": "apikey"}], "strip": "found"});
        let ways =
            json!([{"jwt": {"locations": [{"header": "apikey"}], "strip": true}}, {"key-auth": header}]);
        let config = json!({"any_of": ways});
        let filter = build(&MultiAuth::default(), &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /?a=1", &[("apikey", "k"), ("X-A", "1")]);
        assert_eq!(word(&filter.on_request(&mut exchange)), "Invalid");
        assert_eq!(lines(&exchange.request.headers), ["apikey: k", "X-A: 1"]);
        // The one that knows the caller strips what it knows it by.
        let ways = json!([{"key-auth": header}, {"key-auth": {
            "locations": [{"header": "apikey"}], "strip": "found", "identity": {"anonymous": "guest"},
        }}]);
        let filter = build(&MultiAuth::default(), &json!({"any_of": ways})).expect("valid");
        prepare(&mut exchange, "GET /?a=1", &[("apikey", "k"), ("X-A", "1")]);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert!(!exchange.request.headers.contains(b"apikey") && exchange.request.headers.contains(b"x-a"));
    }

    /// Headers about a user come from the way that knows the caller: neither from the client, nor from a way that has
    /// refused the call after it had asked its server.
    #[test]
    fn headers_of_other_ways_never_pass() {
        let guest = json!({"key-auth": {"identity": {"anonymous": "guest"}}});
        let strips = json!({"key-auth": {"strip": "found"}});
        let wolf = json!({"wolf-rbac": {}});
        let credential = json!({"app_id": "shop", "server": "http://wolf.test"});
        let credentials = [("alice", Some("c1"), credential)];
        for ways in [
            json!([guest, wolf]),
            json!([wolf, guest]),
            json!([strips, wolf, guest]),
        ] {
            let filter = build_with(&MultiAuth::default(), &json!({ "any_of": ways }), &credentials);
            let filter = filter.expect("valid");
            let mut exchange = exchange();
            let headers = [("X-UserId", "admin"), ("x-rbac-token", "V1#shop#t"), ("X-A", "1")];
            prepare(&mut exchange, "GET /", &headers);
            let mut outcome = filter.on_request(&mut exchange);
            while matches!(outcome, Outcome::Subrequest(_)) {
                exchange.subrequest_response = Some(Some(weir_plugin::SubrequestResponse {
                    status: 403,
                    body: br#"{"ok": false, "data": {"userInfo": {"id": 7, "username": "ada"}}}"#.to_vec(),
                    ..Default::default()
                }));
                outcome = filter.on_request(&mut exchange);
            }
            assert_eq!(word(&outcome), "continue", "{ways}");
            let headers = lines(&exchange.request.headers);
            assert!(headers.contains(&"X-A: 1".to_owned()), "{ways}: {headers:?}");
            let is_about_user =
                |line: &String| line.starts_with("X-UserId") || line.starts_with("X-Username");
            assert!(!headers.iter().any(is_about_user), "{ways}: {headers:?}");
        }
    }

    /// A method that asks a server resumes where it was, after methods that do not know the caller.
    #[test]
    fn ways_may_ask_a_directory() {
        let directory = json!({"host": "127.0.0.1", "base_dn": "o=x", "attribute": "uid"});
        let config = json!({"any_of": [{"key-auth": {}}, {"ldap-auth": directory}]});
        let filter = build(&MultiAuth::default(), &config).expect("valid");
        for (authorization, expected) in [
            ("Basic YWxpY2U6Z29vZA==", "converse"),
            ("Basic YWxpY2U6", "Invalid"),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, "GET /", &[("Authorization", authorization)]);
            assert_eq!(
                word(&filter.on_request(&mut exchange)),
                expected,
                "{authorization}"
            );
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({"any_of": []}), &["any_of"][..]),
            (
                json!({"any_of": [{"cors": {}}, {"key-auth": {"strip": "x"}}]}),
                &["any_of[0].cors", "any_of[1].key-auth.strip"],
            ),
        ] {
            assert_eq!(refused_at(&MultiAuth::default(), &config), places, "{config}");
        }
        assert!(build(&MultiAuth::default(), &example(include_str!("multi_auth.rs"))).is_ok());
    }
}
