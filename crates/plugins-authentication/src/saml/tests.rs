//! Logins and logouts, with an identity provider that signs as `weir-saml` does. A real one, and files of others, are in the
//! tests of `weir` and of `weir-saml`.

use super::*;
use crate::shared_revocations::RevocationLifetime;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{AuthFailure, Exchange, Outcome, RefusalKind};
use weir_plugins_testkit::{NOW_MS, build, exchange, prepare, word};
use weir_saml::{instant_text, logout_request, logout_response, redirect_url};

const KEY: &str = include_str!("../../../saml/tests/data/idp.key.pem");
const CERTIFICATE: &str = include_str!("../../../saml/tests/data/idp.crt.pem");
const OWN_KEY: &str = include_str!("../../../saml/tests/data/sp.key.pem");
const OWN_CERTIFICATE: &str = include_str!("../../../saml/tests/data/sp.crt.pem");
const CALLBACK: &str = "http://api.example/saml/acs";

fn config() -> Value {
    json!({
        "issuer": "urn:sp",
        "provider": {
            "issuer": "urn:idp", "login_url": "https://idp.test/sso", "logout_url": "https://idp.test/slo",
            "certificates": [CERTIFICATE],
        },
        "callback": "/saml/acs",
        "logout": {"path": "/logout", "callback": "/saml/slo", "redirect": "/bye"},
        "unauthenticated": "login",
        "upstream_headers": [
            {"name": "X-User", "value": "name-id"},
            {"name": "X-Groups", "value": {"attribute": "groups"}},
        ],
        "session": {"secret": "0123456789abcdef"},
    })
}

fn key() -> SigningKey {
    SigningKey::new(KEY, None, Hash::Sha256, Hash::Sha256).expect("a key")
}

/// A browser: its cookies, by name.
#[derive(Clone, Default)]
struct Browser(Vec<(String, String)>);

struct LoginResult {
    summary: String,
    call: Exchange,
}

impl LoginResult {
    fn upstream(&self, name: &str) -> Option<String> {
        let value = self.call.request.headers.get(name.as_bytes())?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// A parameter of the address that the browser is sent to.
    fn parameter(&self, name: &str) -> String {
        let (_, query) = self.summary.split_once('?').expect("a query");
        let mut pairs = query_pairs(query.as_bytes());
        let found = pairs
            .find(|(key, _)| *key == name.as_bytes())
            .and_then(|(_, value)| value);
        String::from_utf8_lossy(&decode_form(found.expect("the parameter"))).into_owned()
    }
}

impl Browser {
    fn call(&mut self, filter: &Arc<dyn Filter>, line: &str, body: &str) -> LoginResult {
        self.call_at(filter, line, body, &[])
    }

    fn call_at(
        &mut self,
        filter: &Arc<dyn Filter>,
        line: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> LoginResult {
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookie = pairs.join("; ");
        let mut all = vec![
            ("Cookie", cookie.as_str()),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("X-User", "forged"),
            ("X_Groups", "forged"),
        ];
        all.extend(headers);
        let mut call = exchange();
        prepare(&mut call, line, &all);
        call.request.body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
        let outcome = filter.on_request(&mut call);
        for set in call.response_headers.get_all(b"set-cookie") {
            let set = String::from_utf8_lossy(set).into_owned();
            let pair = set.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a name");
            self.0.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.0.push((name.to_owned(), value.to_owned()));
            }
        }
        let location = match &outcome {
            Outcome::Reply(reply) => {
                let found = reply.headers.iter().find(|(name, _)| name == "Location");
                let address = found.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
                format!("{} {}", reply.status, address.unwrap_or_default())
            }
            Outcome::Refuse(refusal) => match &refusal.kind {
                RefusalKind::Unauthenticated {
                    failure: AuthFailure::Rejected(reason),
                    ..
                } => (*reason).to_owned(),
                RefusalKind::Unauthenticated { failure, .. } => format!("{} {failure:?}", refusal.status),
                other => other.as_str().to_owned(),
            },
            other => word(other),
        };
        LoginResult {
            summary: location,
            call,
        }
    }

    /// Begins a login: the id of the request.
    fn begin(&mut self, filter: &Arc<dyn Filter>, target: &str) -> String {
        let answer = self.call(filter, &format!("GET {target}"), "");
        assert!(
            answer
                .summary
                .starts_with("302 https://idp.test/sso?SAMLRequest="),
            "{}",
            answer.summary
        );
        format!("_{}", answer.parameter("RelayState"))
    }
}

fn response(request_id: &str, name: &str) -> String {
    let now = (NOW_MS / 1_000) as i64;
    let (now, end) = (instant_text(now), instant_text(now + 300));
    let (protocol, assertion) = (
        "urn:oasis:names:tc:SAML:2.0:protocol",
        "urn:oasis:names:tc:SAML:2.0:assertion",
    );
    format!(
        "<samlp:Response xmlns:samlp=\"{protocol}\" xmlns:saml=\"{assertion}\" ID=\"_r\" Version=\"2.0\" IssueInstant=\"{now}\" \
         Destination=\"{CALLBACK}\" InResponseTo=\"{request_id}\"><saml:Issuer>urn:idp</saml:Issuer><samlp:Status>\
         <samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:Success\"/></samlp:Status><saml:Assertion ID=\"_a\" \
         Version=\"2.0\" IssueInstant=\"{now}\"><saml:Issuer>urn:idp</saml:Issuer><saml:Subject><saml:NameID>{name}\
         </saml:NameID><saml:SubjectConfirmation Method=\"urn:oasis:names:tc:SAML:2.0:cm:bearer\">\
         <saml:SubjectConfirmationData NotOnOrAfter=\"{end}\" Recipient=\"{CALLBACK}\" InResponseTo=\"{request_id}\"/>\
         </saml:SubjectConfirmation></saml:Subject><saml:Conditions NotOnOrAfter=\"{end}\"><saml:AudienceRestriction>\
         <saml:Audience>urn:sp</saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement \
         AuthnInstant=\"{now}\" SessionIndex=\"_s1\"/><saml:AttributeStatement><saml:Attribute Name=\"groups\">\
         <saml:AttributeValue>a</saml:AttributeValue><saml:AttributeValue>b</saml:AttributeValue></saml:Attribute>\
         </saml:AttributeStatement></saml:Assertion></samlp:Response>"
    )
}

/// The line of a call that brings a signed message with a redirect.
fn redirected(path: &str, name: &str, message: &str, state: Option<&str>) -> String {
    format!("GET {}", redirect_url(path, name, message, state, Some(&key())))
}

/// A form with a message.
fn form(message: &str, state: &str) -> String {
    let message = STANDARD
        .encode(message)
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    format!("SAMLResponse={message}&RelayState={state}")
}

fn logged_in(filter: &Arc<dyn Filter>) -> Browser {
    let mut browser = Browser::default();
    let id = browser.begin(filter, "/a?x=1");
    let line = redirected("/saml/acs", "SAMLResponse", &response(&id, "ada"), Some(&id[1..]));
    let back = browser.call(filter, &line, "");
    assert_eq!(back.summary, "302 /a?x=1");
    browser
}

#[test]
fn a_login_begins_a_session() {
    let filter = build(&Saml::default(), &config()).expect("valid");
    let mut browser = logged_in(&filter);
    assert_eq!(browser.0.len(), 1, "the cookie of the login is gone");
    let call = browser.call(&filter, "GET /b", "");
    assert_eq!(call.summary, "continue");
    assert_eq!(call.upstream("X-User").as_deref(), Some("ada"));
    assert_eq!(call.upstream("X-Groups").as_deref(), Some("a,b"));
    assert_eq!(call.upstream("X_Groups"), None);
    assert_eq!(call.upstream("X-Credential-Identifier").as_deref(), Some("ada"));
    assert_eq!(call.upstream("Cookie"), None);
    // Another provider's sessions are not this one's, with the same secret.
    let mut other = config();
    other["provider"]["login_url"] = json!("https://other.test/sso");
    let other = build(&Saml::default(), &other).expect("valid");
    assert!(
        browser
            .call(&other, "GET /b", "")
            .summary
            .starts_with("302 https://other.test/sso?")
    );
}

#[test]
fn an_answer_is_good_once_for_the_browser_that_asked() {
    let filter = build(&Saml::default(), &config()).expect("valid");
    let mut browser = Browser::default();
    let id = browser.begin(&filter, "/a");
    let before = browser.clone();
    let line = redirected("/saml/acs", "SAMLResponse", &response(&id, "ada"), Some(&id[1..]));
    let of_another = "the response answers no request of this browser";
    let mut stranger = Browser::default();
    assert_eq!(stranger.call(&filter, &line, "").summary, of_another);
    stranger.begin(&filter, "/b");
    assert_eq!(stranger.call(&filter, &line, "").summary, of_another);
    let wrong_state = redirected("/saml/acs", "SAMLResponse", &response(&id, "ada"), Some("x"));
    assert_eq!(
        browser.call(&filter, &wrong_state, "").summary,
        "the response has another state than its request"
    );
    assert_eq!(browser.call(&filter, &line, "").summary, "302 /a");
    assert_eq!(browser.call(&filter, &line, "").summary, of_another);
    // A copy of the login's cookie does not help.
    assert_eq!(
        before.clone().call(&filter, &line, "").summary,
        "the response was used before"
    );
    // Two tabs log in at the same time.
    let (mut two, first) = (Browser::default(), "/1");
    let ids = [first, "/2"].map(|target| (two.begin(&filter, target), target));
    for (id, target) in ids {
        let line = redirected("/saml/acs", "SAMLResponse", &response(&id, "ada"), None);
        assert_eq!(two.call(&filter, &line, "").summary, format!("302 {target}"));
    }
}

#[test]
fn what_comes_to_the_callback_is_checked() {
    let filter = build(&Saml::default(), &config()).expect("valid");
    let mut browser = Browser::default();
    let id = browser.begin(&filter, "/a");
    let good = response(&id, "ada");
    for (line, body, expected) in [
        (
            "GET /saml/acs",
            String::new(),
            "the call brings no response to a login",
        ),
        (
            "POST /saml/acs",
            "a=b".to_owned(),
            "the call brings no response to a login",
        ),
        (
            "POST /saml/acs",
            form("<a/>", "x"),
            "the message is not a response to a login",
        ),
        (
            "POST /saml/acs",
            format!("{}&SAMLResponse=x", form(&good, "x")),
            "the form has a field twice",
        ),
        (
            "POST /saml/acs",
            form(&good, &id[1..]),
            "the assertion is not signed",
        ),
        (
            "PUT /saml/acs",
            form(&good, &id[1..]),
            "the call brings no response to a login",
        ),
        (
            "GET /saml/slo",
            String::new(),
            "the call brings no message about a logout",
        ),
    ] {
        assert_eq!(browser.call(&filter, line, &body).summary, expected, "{line}");
    }
    let mut call = exchange();
    prepare(&mut call, "POST /saml/acs", &[]);
    call.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut call)), "body");
}

#[test]
fn forms_ask_and_the_page_runs_nothing_else() {
    let mut changed = config();
    changed["request"] = json!({
        "binding": "post", "name_id_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
        "signing": {"key": OWN_KEY, "certificate": OWN_CERTIFICATE},
    });
    changed["unauthenticated"] = json!("login-pages");
    let filter = build(&Saml::default(), &changed).expect("valid");
    let mut browser = Browser::default();
    assert_eq!(browser.call(&filter, "GET /a", "").summary, "401 Missing");
    let answer = browser.call_at(
        &filter,
        "GET /a",
        "",
        &[("Accept", "application/xml, text/HTML;q=0.9")],
    );
    assert_eq!(answer.summary, "200 ");
    let cookie = answer
        .call
        .response_headers
        .get(b"set-cookie")
        .expect("a cookie")
        .to_vec();
    let cookie = String::from_utf8_lossy(&cookie).into_owned();
    assert!(cookie.ends_with("; Secure; HttpOnly; SameSite=None"), "{cookie}");
}

#[test]
fn sessions_end_here_and_at_the_provider() {
    let filter = build(&Saml::default(), &config()).expect("valid");
    let mut browser = logged_in(&filter);
    let copy = browser.clone();
    let gone = |browser: &Browser| {
        browser
            .clone()
            .call(&filter, "GET /b", "")
            .summary
            .starts_with("302 ")
    };
    let left = browser.call(&filter, "GET /logout", "");
    assert!(
        left.summary.starts_with("302 https://idp.test/slo?SAMLRequest="),
        "{}",
        left.summary
    );
    assert!(browser.0.is_empty() && gone(&copy));
    assert_eq!(browser.call(&filter, "GET /logout", "").summary, "302 /bye");
    let now_s = (NOW_MS / 1_000) as i64;
    let place = "http://api.example/saml/slo";
    let answer = logout_response("_1", now_s, place, "urn:idp", "_2");
    let line = redirected("/saml/slo", "SAMLResponse", &answer, None);
    assert_eq!(browser.call(&filter, &line, "").summary, "302 /bye");
    // The provider ends a session, by its index or all of a user's.
    for (index, ends) in [(Some("_s1"), true), (Some("_s2"), false), (None, true)] {
        let filter = build(&Saml::default(), &config()).expect("valid");
        let browser = logged_in(&filter);
        let name = weir_saml::NameId {
            value: "ada".into(),
            format: None,
            qualifier: None,
            service_qualifier: None,
        };
        let message = logout_request("_1", now_s, place, "urn:idp", (&name, index));
        let line = redirected("/saml/slo", "SAMLRequest", &message, Some("state"));
        let response = browser.clone().call(&filter, &line, "");
        assert!(
            response
                .summary
                .starts_with("302 https://idp.test/slo?SAMLResponse="),
            "{}",
            response.summary
        );
        assert_eq!(response.parameter("RelayState"), "state");
        let after = browser.clone().call(&filter, "GET /b", "").summary;
        assert_eq!(after.starts_with("302 "), ends, "{index:?}: {after}");
        assert_eq!(
            browser.clone().call(&filter, &line, "").summary,
            "the message was used before"
        );
        let unsigned = format!(
            "GET {}",
            redirect_url("/saml/slo", "SAMLRequest", &message, None, None)
        );
        assert_eq!(
            browser.clone().call(&filter, &unsigned, "").summary,
            "the message is not signed"
        );
    }
}

#[test]
fn users_are_consumers_if_the_configuration_says_so() {
    for (rules, name, expected, consumer) in [
        (json!({}), "ALICE", "continue", Some("ALICE")),
        (json!({}), "cid", "continue", Some("ALICE")),
        (json!({}), "stranger", "401 ConsumerMissing", None),
        (json!({"optional": true}), "stranger", "continue", None),
        (
            json!({"attribute": "groups"}),
            "alice",
            "401 ConsumerMissing",
            None,
        ),
    ] {
        let mut changed = config();
        changed["consumer"] = rules;
        let filter = build(&Saml::default(), &changed).expect("valid");
        let mut browser = Browser::default();
        let id = browser.begin(&filter, "/a");
        let line = redirected("/saml/acs", "SAMLResponse", &response(&id, name), None);
        assert_eq!(browser.call(&filter, &line, "").summary, "302 /a");
        let call = browser.call(&filter, "GET /a", "");
        assert_eq!(
            (
                call.summary.as_str(),
                call.upstream("X-Consumer-Username").as_deref()
            ),
            (expected, consumer),
            "{name}"
        );
    }
}

/// A call that is admitted without a check of its session sends upstreams nothing in this plugin's name.
#[test]
fn headers_of_a_client_are_removed_from_calls_that_are_not_looked_at() {
    let mut changed = config();
    changed["identity"] = json!({"on_preflight": false, "skip_authenticated": true});
    let filter = build(&Saml::default(), &changed).expect("valid");
    let call = Browser::default().call(&filter, "OPTIONS /a", "");
    assert_eq!(call.summary, "continue");
    assert_eq!((call.upstream("X-User"), call.upstream("X_Groups")), (None, None));
    // A plugin before this one has identified the caller and set the header.
    let mut known = exchange();
    prepare(
        &mut known,
        "OPTIONS /a",
        &[("X-User", "forged"), ("X-Groups", "forged")],
    );
    crate::user_headers::set_header(&mut known, "X-User", b"ada");
    filter.on_request(&mut known);
    let header = |name: &str| known.request.headers.get(name.as_bytes()).map(<[u8]>::to_vec);
    assert_eq!(
        (header("X-User"), header("X-Groups")),
        (Some(b"ada".to_vec()), None)
    );
}

#[test]
fn anonymous_callers_pass_if_there_is_a_consumer_for_them() {
    let mut changed = config();
    changed["identity"] = json!({"anonymous": "guest"});
    let filter = build(&Saml::default(), &changed).expect("valid");
    let call = Browser::default().call(&filter, "GET /a", "");
    assert_eq!(
        (call.summary.as_str(), call.upstream("X-User")),
        ("continue", None)
    );
    assert_eq!(call.upstream("X-Anonymous-Consumer").as_deref(), Some("true"));
}

#[test]
fn memory_is_bounded() {
    let saml = Saml {
        marks: SharedRevocations::new(64 << 10),
        random: system_random,
    };
    for number in 0..10_000_u32 {
        let life = RevocationLifetime::everywhere(1);
        assert!(saml.marks.set_first(&number.to_be_bytes(), life, NOW_MS));
    }
    assert!(saml.marks.bytes() <= 64 << 10);
}

#[test]
fn configurations_are_checked() {
    for (place, value, expected) in [
        (
            "/issuer",
            json!(""),
            "expected the name by which the provider knows this gateway",
        ),
        ("/provider/login_url", json!("idp.test"), URL_EXPECTED),
        ("/provider/logout_url", json!("ftp://idp.test"), URL_EXPECTED),
        (
            "/provider/certificates",
            json!(vec![CERTIFICATE; 9]),
            "expected at most eight certificates",
        ),
        (
            "/provider/certificates/0",
            json!("MIIC..."),
            "expected a certificate in PEM",
        ),
        ("/callback", json!("acs"), PLACE_EXPECTED),
        ("/logout/path", json!("logout"), "expected a path"),
        (
            "/logout/callback",
            json!("/saml/acs"),
            "expected three different paths: `path`, `callback`, and that of logins",
        ),
        ("/logout/redirect", json!("bye"), PLACE_EXPECTED),
        (
            "/session/cookie_same_site",
            json!("Strict"),
            "expected Lax, None or Default: with Strict, browsers that come back from the provider have no session",
        ),
        ("/session/secret", json!(""), "expected a secret"),
        ("/upstream_headers/0/name", json!("a b"), "expected a header name"),
        (
            "/request",
            json!({"signing": {"key": "x"}}),
            "expected an RSA private key in PEM (not encrypted, at least 2048 bits)",
        ),
        (
            "/request",
            json!({"signing": {"key": OWN_KEY, "hash": "sha1"}}),
            "expected sha256, sha384 or sha512",
        ),
        (
            "/request",
            json!({"signing": {"key": OWN_KEY, "certificate": CERTIFICATE}}),
            "the certificate is not that of the key",
        ),
        (
            "/response",
            json!({"decryption_key": "x"}),
            "expected an RSA private key in PEM (not encrypted, at least 2048 bits)",
        ),
        (
            "/response",
            json!({"max_bytes": 10}),
            "expected a number from 1024 to 1048576",
        ),
        (
            "/response",
            json!({"leeway_seconds": 601}),
            "expected at most 600",
        ),
    ] {
        let mut changed = config();
        let (outer, inner) = place.rsplit_once('/').expect("a path");
        match changed.pointer_mut(place) {
            Some(field) => *field = value,
            None => changed.pointer_mut(outer).expect("a map")[inner] = value,
        }
        let faults = build(&Saml::default(), &changed).err().expect("refused");
        assert_eq!(faults[0].message, expected, "{place}");
        let path = faults[0].path.to_string();
        let dotted = place[1..].split('/').next().unwrap_or_default().to_owned();
        assert!(path.contains(&dotted), "{place}: {path}");
    }
}
