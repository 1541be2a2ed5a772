//! `saml` with a real identity provider: Node's `samlp`, which `make deps FOR=test` installs.

use crate::browser::{Answer, Jar, target};
use crate::directory::echo;
use crate::provider::Provider;
use crate::weir::Weir;
use serde_json::{Value, json};
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/saml-provider");
const HOST: &str = "shop.test";
const CALLBACK: &str = "http://shop.test/saml/acs";
const LOGOUT: &str = "http://shop.test/saml/slo";
const KEY: &str = include_str!("../../../saml/tests/data/idp.key.pem");
const CERTIFICATE: &str = include_str!("../../../saml/tests/data/idp.crt.pem");
const OTHER: &str = include_str!("../../../saml/tests/data/other.crt.pem");
const OWN_KEY: &str = include_str!("../../../saml/tests/data/sp.key.pem");
const OWN_CERTIFICATE: &str = include_str!("../../../saml/tests/data/sp.crt.pem");

impl Provider {
    fn of_shop(more: &Value) -> Self {
        let mut options = json!({
            "key": KEY, "cert": CERTIFICATE, "sp_cert": OWN_CERTIFICATE, "callback": CALLBACK, "logout": LOGOUT,
            "audience": "urn:shop",
        });
        let fields = options.as_object_mut().expect("a map");
        fields.extend(more.as_object().cloned().unwrap_or_default());
        Self::start(FOLDER, &options)
    }

    /// Brings what a gateway has sent the browser with to the provider.
    fn visit(&self, answer: &Answer) -> Answer {
        match answer.status {
            302 => Jar::default().get(
                &self.address,
                &self.address,
                target(&answer.location, &self.address),
            ),
            _ => {
                let place = between(&answer.text, "action=\"", "\"");
                let place = target(&place, &self.address).to_owned();
                Jar::default().send(
                    &self.address,
                    &self.address,
                    ("POST", &place),
                    &posted(&answer.text),
                )
            }
        }
    }
}

fn between(text: &str, begin: &str, end: &str) -> String {
    let rest = text.split_once(begin).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once(end));
    found
        .unwrap_or_else(|| panic!("{begin} is in {text}"))
        .0
        .to_owned()
}

/// The fields of the form of a page, as a browser posts them.
fn posted(page: &str) -> String {
    let fields = page
        .split("<input ")
        .skip(1)
        .filter(|it| it.contains("type=\"hidden\""));
    let pairs = fields.map(|field| {
        let value = between(field, "value=\"", "\"")
            .replace("&#x3D;", "=")
            .replace("&#43;", "+");
        let value = value
            .replace('%', "%25")
            .replace('+', "%2B")
            .replace('=', "%3D")
            .replace('/', "%2F");
        format!("{}={value}", between(field, "name=\"", "\""))
    });
    pairs.collect::<Vec<_>>().join("&")
}

fn saml(provider: &Provider, more: &Value) -> Value {
    let mut config = json!({
        "issuer": "urn:shop",
        "provider": {
            "issuer": "urn:idp.test",
            "login_url": format!("http://{}/sso", provider.address),
            "logout_url": format!("http://{}/slo", provider.address),
            "certificates": [CERTIFICATE],
        },
        "callback": "/saml/acs",
        "logout": {"path": "/logout", "callback": "/saml/slo", "redirect": "/bye"},
        "request": {"signing": {"key": OWN_KEY, "certificate": OWN_CERTIFICATE}},
        "response": {"decryption_key": OWN_KEY},
        "upstream_headers": [
            {"name": "X-User", "value": "name-id"},
            {"name": "X-Groups", "value": {"attribute": "http://schemas.passportjs.com/groups"}},
        ],
        "session": {"secret": "0123456789abcdef", "cookie_secure": false},
    });
    for (pointer, value) in more.as_object().expect("a map") {
        *config.pointer_mut(pointer).expect("a field") = value.clone();
    }
    config
}

fn gateway(folder: &Path, config: &Value) -> Weir {
    let document = json!({"weir": 1, "services": [{
        "name": "api",
        "url": format!("http://127.0.0.1:{}", echo()),
        "routes": [{"name": "shop", "paths": ["/"], "plugins": [{"saml": config}]}],
    }]});
    std::fs::write(folder.join("weir.yaml"), document.to_string()).expect("written");
    Weir::start(folder, &["-c", "weir.yaml"])
}

/// Logs a browser in, up to the answer of the callback.
fn log_in(weir: &Weir, provider: &Provider, browser: &mut Jar) -> Answer {
    let start = browser.get(&weir.proxy(), HOST, "/a?x=1");
    let page = provider.visit(&start);
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(between(&page.text, "action=\"", "\""), CALLBACK);
    browser.send(&weir.proxy(), HOST, ("POST", "/saml/acs"), &posted(&page.text))
}

#[test]
fn browsers_log_in_at_a_real_provider() {
    let gcm = "http://www.w3.org/2009/xmlenc11#aes256-gcm";
    let cbc = "http://www.w3.org/2001/04/xmlenc#aes128-cbc";
    for (of_provider, binding, status) in [
        (json!({}), "redirect", 302),
        (json!({}), "post", 302),
        (json!({"sign_response": true}), "redirect", 302),
        (
            json!({"sign_response": true, "sign_assertion": false}),
            "redirect",
            302,
        ),
        (json!({"encrypt": gcm}), "redirect", 302),
        (json!({"encrypt": cbc, "sign_response": true}), "post", 302),
        // What must not let anybody in.
        (json!({"encrypt": cbc}), "redirect", 401),
        (json!({"sign_assertion": false}), "redirect", 401),
        (json!({"audience": "urn:other"}), "redirect", 401),
    ] {
        let provider = Provider::of_shop(&of_provider);
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = saml(&provider, &json!({}));
        config["request"]["binding"] = json!(binding);
        let weir = gateway(folder.path(), &config);
        let mut browser = Jar::default();
        let back = log_in(&weir, &provider, &mut browser);
        assert_eq!(back.status, status, "{of_provider}: {}", back.text);
        if status == 401 {
            // The answer to the client contains nothing that it could use.
            assert!(
                !back.text.contains("sign") && !back.text.contains("audience"),
                "{}",
                back.text
            );
            continue;
        }
        assert_eq!(back.location, "/a?x=1", "{of_provider}");
        let call = browser.get(&weir.proxy(), HOST, "/a?x=1");
        assert_eq!(call.status, 200, "{}", call.text);
        let head = call.text.to_lowercase();
        assert!(head.contains("x-user: ada\r\n"), "{}", call.text);
        assert!(head.contains("x-groups: admins,developers\r\n"), "{}", call.text);
        assert!(!head.contains("mallory"), "{}", call.text);
    }
}

#[test]
fn an_answer_lets_one_browser_in_once() {
    let provider = Provider::of_shop(&json!({}));
    let folder = tempfile::tempdir().expect("a folder");
    let weir = gateway(folder.path(), &saml(&provider, &json!({})));
    let mut browser = Jar::default();
    let start = browser.get(&weir.proxy(), HOST, "/a");
    let page = provider.visit(&start);
    let form = posted(&page.text);
    let stolen = Jar::default().send(&weir.proxy(), HOST, ("POST", "/saml/acs"), &form);
    assert_eq!(stolen.status, 401, "{}", stolen.text);
    let copy = browser.clone();
    let first = browser.send(&weir.proxy(), HOST, ("POST", "/saml/acs"), &form);
    assert_eq!(
        (first.status, first.location.as_str()),
        (302, "/a"),
        "{}",
        first.text
    );
    for mut again in [browser, copy] {
        let again = again.send(&weir.proxy(), HOST, ("POST", "/saml/acs"), &form);
        assert_eq!(again.status, 401, "{}", again.text);
    }
}

#[test]
fn only_the_configured_certificate_counts() {
    let provider = Provider::of_shop(&json!({}));
    let folder = tempfile::tempdir().expect("a folder");
    let other = json!({"/provider/certificates": [OTHER]});
    let weir = gateway(folder.path(), &saml(&provider, &other));
    // The answer carries the certificate that it is signed with; that does not help.
    assert_eq!(log_in(&weir, &provider, &mut Jar::default()).status, 401);
}

#[test]
fn logouts_go_both_ways() {
    let provider = Provider::of_shop(&json!({}));
    let folder = tempfile::tempdir().expect("a folder");
    let weir = gateway(folder.path(), &saml(&provider, &json!({})));
    let mut browser = Jar::default();
    assert_eq!(log_in(&weir, &provider, &mut browser).status, 302);
    let copy = browser.clone();
    // Begun here: the provider checks the request's signature and answers.
    let leaving = browser.get(&weir.proxy(), HOST, "/logout");
    let answer = provider.visit(&leaving);
    assert_eq!(answer.status, 302, "{}", answer.text);
    let done = browser.get(&weir.proxy(), HOST, target(&answer.location, HOST));
    assert_eq!(
        (done.status, done.location.as_str()),
        (302, "/bye"),
        "{}",
        done.text
    );
    assert_eq!(copy.clone().get(&weir.proxy(), HOST, "/a").status, 302);
    // Begun at the provider: it checks the answer's signature.
    assert_eq!(log_in(&weir, &provider, &mut browser).status, 302);
    assert_eq!(browser.get(&weir.proxy(), HOST, "/a").status, 200);
    let copy = browser.clone();
    let asked = Jar::default().get(&provider.address, &provider.address, "/slo");
    assert_eq!(asked.status, 302, "{}", asked.text);
    let ended = browser.get(&weir.proxy(), HOST, target(&asked.location, HOST));
    assert_eq!(ended.status, 302, "{}", ended.text);
    let page = provider.visit(&ended);
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(copy.clone().get(&weir.proxy(), HOST, "/a").status, 302);
}
