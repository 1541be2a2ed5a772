//! Tests of `vault-auth` from a user's view, with a vault instead of the engine's network.

use super::*;
use serde_json::json;
use std::cell::RefCell;
use weir_plugins_testkit::*;

/// What the vault answers, and what it was asked.
struct Vault {
    answer: RefCell<Option<(u16, Value)>>,
    asked: RefCell<Vec<String>>,
}

fn pair() -> Value {
    json!({"access_token": "a1", "secret_token": "s1", "consumer": {"id": "alice"}, "created_at": 1})
}

impl Vault {
    fn with(answer: Option<(u16, Value)>) -> Self {
        Self {
            answer: RefCell::new(answer),
            asked: RefCell::default(),
        }
    }

    fn run(&self, filter: &Arc<dyn Filter>, call: &mut Exchange) -> Outcome {
        for _ in 0..5 {
            match filter.on_request(call) {
                Outcome::Subrequest(sent) => {
                    let message = String::from_utf8(sent.message).expect("text");
                    self.asked.borrow_mut().push(message);
                    let answer = self.answer.borrow().clone();
                    call.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
                        status,
                        body: body.to_string().into_bytes(),
                        ..SubrequestResponse::default()
                    }));
                }
                outcome => return outcome,
            }
        }
        panic!("it asks for ever");
    }
}

fn config() -> Value {
    json!({"vault": {"address": "https://vault.example:8200", "mount": "callers", "token": "root"}})
}

const TOKENS: [(&str, &str); 2] = [("access-token", "a1"), ("secret-token", "s1")];

fn call(vault: &Vault, config: &Value, line: &str, headers: &[(&str, &str)]) -> (String, Exchange) {
    let filter = build(&VaultAuth::default(), config).expect("valid");
    let mut call = exchange();
    prepare(&mut call, line, headers);
    let outcome = vault.run(&filter, &mut call);
    (word(&outcome), call)
}

#[test]
fn callers_are_those_whom_the_vault_knows() {
    let mut second = config();
    second["vault"]["version"] = json!("v2");
    let with = |field: &str, value: Value| {
        let mut pair = pair();
        pair[field] = value;
        Some((200, json!({"data": pair})))
    };
    let good = Some((200, json!({"data": pair()})));
    let unknown = "Rejected(\"the vault does not know the access token\")";
    for (what, config, answer, expected) in [
        ("known", &config(), good.clone(), "continue"),
        (
            "of the second version",
            &second,
            Some((200, json!({"data": {"data": pair()}}))),
            "continue",
        ),
        ("of the other version", &second, good, unknown),
        ("unknown", &config(), Some((404, json!({"errors": []}))), unknown),
        (
            "another secret",
            &config(),
            with("secret_token", json!("s2")),
            "Rejected(\"the secret token is wrong\")",
        ),
        (
            "the beginning of the secret",
            &config(),
            with("secret_token", json!("s11")),
            "Rejected(\"the secret token is wrong\")",
        ),
        (
            "another token",
            &config(),
            with("access_token", json!("a2")),
            unknown,
        ),
        ("no secret", &config(), with("secret_token", json!("")), unknown),
        ("no consumer", &config(), with("consumer", Value::Null), unknown),
        (
            "a consumer that does not exist",
            &config(),
            with("consumer", json!({"id": "stranger"})),
            "Rejected(\"the tokens are those of a consumer that does not exist\")",
        ),
        (
            "a consumer's name in place of its id",
            &config(),
            with("consumer", json!({"id": "ALICE"})),
            "Rejected(\"the tokens are those of a consumer that does not exist\")",
        ),
        (
            "forbidden",
            &config(),
            Some((403, json!({}))),
            "plugin_failed 500",
        ),
        (
            "sealed",
            &config(),
            Some((503, json!({"errors": ["Vault is sealed"]}))),
            "plugin_failed 500",
        ),
        (
            "elsewhere",
            &config(),
            Some((307, json!({}))),
            "plugin_failed 500",
        ),
        ("away", &config(), None, "plugin_failed 500"),
    ] {
        let vault = Vault::with(answer);
        let mut headers = TOKENS.to_vec();
        headers.push(("X-Consumer-ID", "forged"));
        let (found, call) = call(&vault, config, "GET /", &headers);
        assert_eq!(found, expected, "{what}");
        let asked = vault.asked.borrow();
        let folder = if config == &second {
            "callers/data"
        } else {
            "callers"
        };
        assert!(
            asked[0].starts_with(&format!(
                "GET /v1/{folder}/a1 HTTP/1.1\r\nHost: vault.example:8200\r\n"
            )) && asked[0].contains("X-Vault-Token: root\r\n"),
            "{}",
            asked[0]
        );
        if found == "continue" {
            let lines = lines(&call.request.headers);
            assert!(lines.contains(&"X-Consumer-ID: alice".to_owned()), "{lines:?}");
            assert!(!lines.iter().any(|line| line.contains("forged")), "{lines:?}");
        }
    }
}

#[test]
fn tokens_lead_nowhere_else() {
    let long = "a".repeat(MAX_TOKEN + 1);
    for (token, path) in [
        ("a b", None),
        ("..", None),
        (".", None),
        ("../../sys/raw", None),
        ("a/b", None),
        ("a%2Fb", None),
        ("a?list=true", None),
        ("a#b", None),
        ("a\\b", None),
        ("é", None),
        (long.as_str(), None),
        ("a=+;b", Some("a%3D%2B%3Bb")),
        ("..a", Some("..a")),
    ] {
        let vault = Vault::with(Some((404, json!({}))));
        let (found, _) = call(
            &vault,
            &config(),
            "GET /",
            &[("access-token", token), ("secret-token", "s")],
        );
        let asked = vault.asked.borrow();
        match path {
            None => {
                assert!(asked.is_empty(), "{token}: {asked:?}");
                assert!(found.starts_with("Rejected("), "{token}: {found}");
            }
            Some(path) => assert!(
                asked[0].starts_with(&format!("GET /v1/callers/{path} HTTP/1.1\r\n")),
                "{token}: {}",
                asked[0]
            ),
        }
    }
}

#[test]
fn tokens_are_found_and_taken_out() {
    let mut config = config();
    let places = |name: &str| json!([{"header": name}, {"query": name}, {"body": name}]);
    config["access_token"] = places("access");
    config["secret_token"] = places("secret");
    config["strip"] = json!(true);
    for (what, line, headers, expected) in [
        (
            "headers",
            "GET /?x=1",
            &[("access", "a1"), ("secret", "s1")][..],
            "continue",
        ),
        ("the query", "GET /?access=a1&secret=s1&x=1", &[], "continue"),
        ("one each", "GET /?access=a1&x=1", &[("secret", "s1")], "continue"),
        ("only one", "GET /?x=1", &[("access", "a1")], "Missing"),
        ("none", "GET /?x=1", &[], "Missing"),
        (
            "an empty one",
            "GET /?x=1",
            &[("access", ""), ("secret", "s1")],
            "Missing",
        ),
        (
            "two",
            "GET /?x=1",
            &[("access", "a1"), ("access", "a1"), ("secret", "s1")],
            "Duplicate",
        ),
        (
            "two in the query",
            "GET /?x=1&access=a1&access=b",
            &[("secret", "s1")],
            "Duplicate",
        ),
    ] {
        let vault = Vault::with(Some((200, json!({"data": pair()}))));
        let (found, call) = call(&vault, &config, line, headers);
        assert_eq!(found, expected, "{what}");
        assert_eq!(call.request.query.as_deref(), Some(&b"x=1"[..]), "{what}");
        let shown = lines(&call.request.headers);
        let shown = shown
            .iter()
            .filter(|line| line.starts_with("access") || line.starts_with("secret"));
        assert_eq!(shown.count(), 0, "{what}");
        assert_eq!(
            vault.asked.borrow().len(),
            usize::from(found == "continue"),
            "{what}"
        );
    }
    let filter = build(&VaultAuth::default(), &config).expect("valid");
    let mut call = exchange();
    prepare(&mut call, "POST /", &[("Content-Type", "application/json")]);
    call.request.has_body = true;
    assert_eq!(word(&filter.on_request(&mut call)), "body");
    call.request.body = Some(br#"{"access": "a1", "secret": "s1", "x": 1}"#.to_vec());
    let vault = Vault::with(Some((200, json!({"data": pair()}))));
    assert_eq!(word(&vault.run(&filter, &mut call)), "continue");
    let body: Value = serde_json::from_slice(&call.request.body.take().expect("a body")).expect("JSON");
    assert_eq!(body, json!({"x": 1}));
}

#[test]
fn the_vault_is_asked_once_until_the_time_is_over() {
    let vault = Vault::with(Some((200, json!({"data": pair()}))));
    let plugin = VaultAuth::default();
    let filter = build(&plugin, &config()).expect("valid");
    let ask = |secret: &str| {
        let mut call = exchange();
        prepare(
            &mut call,
            "GET /",
            &[("access-token", "a1"), ("secret-token", secret)],
        );
        (word(&vault.run(&filter, &mut call)), vault.asked.borrow().len())
    };
    assert_eq!(ask("s1"), ("continue".to_owned(), 1));
    assert_eq!(ask("wrong").1, 1);
    // An instance that reads another vault does not take its word.
    *vault.answer.borrow_mut() = None;
    assert_eq!(ask("s1"), ("continue".to_owned(), 1));
    let mut other = config();
    other["vault"]["token"] = json!("other");
    let other = build(&plugin, &other).expect("valid");
    let mut call = exchange();
    prepare(&mut call, "GET /", &TOKENS);
    assert_eq!(word(&vault.run(&other, &mut call)), "plugin_failed 500");
    let text = |ttl: Value| {
        let mut pair = pair();
        pair["ttl"] = ttl;
        let answer = SubrequestResponse {
            status: 200,
            body: json!({"data": pair}).to_string().into_bytes(),
            ..SubrequestResponse::default()
        };
        read(&answer, "a1", EngineVersion::V1, 60).expect("it is read").1
    };
    for (ttl, expected) in [
        (Value::Null, 60_000),
        (json!(5), 5_000),
        (json!("5"), 5_000),
        (json!(0), 1),
        (json!(-5), 60_000),
        (json!(1e300), 86_400_000),
    ] {
        assert_eq!(text(ttl.clone()), expected, "{ttl}");
    }
}

#[test]
fn what_is_no_answer_of_a_vault_is_a_failure() {
    for body in [json!("x"), json!({}), json!({"data": ["x"]})] {
        let vault = Vault::with(Some((200, body.clone())));
        let (found, _) = call(&vault, &config(), "GET /", &TOKENS);
        assert_eq!(found, "plugin_failed 500", "{body}");
    }
}

#[test]
fn instances_share_answers_only_if_they_trust_them_alike() {
    let plugin = VaultAuth::default();
    let vault = Vault::with(Some((200, json!({"data": pair()}))));
    let ask = |http: &Value, cache_seconds: u64| {
        let mut config = config();
        config["http"] = http.clone();
        config["cache_seconds"] = json!(cache_seconds);
        let filter = build(&plugin, &config).expect("valid");
        let mut call = exchange();
        prepare(&mut call, "GET /", &TOKENS);
        let before = vault.asked.borrow().len();
        let outcome = word(&vault.run(&filter, &mut call));
        (outcome, vault.asked.borrow().len() - before)
    };
    for (http, cache_seconds, questions) in [
        (json!({"verify_tls": false}), 60, 1),
        (json!({}), 60, 1),
        (json!({"proxy": "http://one:3128"}), 60, 1),
        (json!({"proxy": "http://two:3128"}), 60, 1),
        (json!({}), 5, 1),
        (json!({}), 0, 1),
        (json!({}), 0, 1),
        (json!({}), 60, 0),
    ] {
        let expected = ("continue".to_owned(), questions);
        assert_eq!(ask(&http, cache_seconds), expected, "{http} {cache_seconds}");
    }
    // A pair that was taken out of the vault is not good any more if nothing is kept.
    *vault.answer.borrow_mut() = Some((404, json!({})));
    let unknown = "Rejected(\"the vault does not know the access token\")";
    assert_eq!(ask(&json!({}), 0), (unknown.to_owned(), 1));
    assert_eq!(ask(&json!({}), 60), ("continue".to_owned(), 0));
}

#[test]
fn without_a_vault_no_call_goes_on() {
    let vault = Vault::with(Some((200, json!({"data": pair()}))));
    for (headers, expected) in [(&TOKENS[..], "plugin_failed 500"), (&[], "Missing")] {
        let (found, _) = call(&vault, &json!({}), "GET /", headers);
        assert_eq!(found, expected);
    }
    assert!(vault.asked.borrow().is_empty());
}

#[test]
fn secrets_are_not_shown() {
    let config: Config = parse_config(&config()).expect("valid");
    assert!(!format!("{:?}", config.vault).contains("root"));
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let good = config();
    for (path, value, place) in [
        ("/vault/address", json!("vault:8200"), "vault.address"),
        ("/vault/address", json!("http://vault/ui"), "vault.address"),
        ("/vault/mount", json!(""), "vault.mount"),
        ("/vault/mount", json!("a/../sys"), "vault.mount"),
        ("/vault/mount", json!("a?b"), "vault.mount"),
        ("/vault/token", json!(""), "vault.token"),
        ("/vault/token", json!("a\nb"), "vault.token"),
        ("/access_token", json!([]), "access_token"),
        ("/secret_token", json!([{"header": "a b"}]), "secret_token"),
        ("/http", json!({"timeout_ms": 0}), "http.timeout_ms"),
        (
            "/identity",
            json!({"anonymous": "stranger"}),
            "identity.anonymous",
        ),
    ] {
        let mut config = good.clone();
        let (parent, name) = path.rsplit_once('/').expect("a path");
        config.pointer_mut(parent).expect("a parent")[name] = value;
        assert_eq!(refused_at(&VaultAuth::default(), &config), [place], "{config}");
    }
    let example = example(include_str!("mod.rs"));
    assert!(build(&VaultAuth::default(), &example).is_ok());
}
