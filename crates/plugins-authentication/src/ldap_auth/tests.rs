//! `ldap-auth` as its users see it, with a directory in place of the engine's network.

use super::dialogue::Verdict;
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use weir_plugin::{Exchange, Outcome};
use weir_plugins_testkit::*;

fn filter(plugin: &LdapAuth, change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
    let mut config = Config::new("ldap".into(), "o=x".into(), "uid".into());
    change(&mut config);
    let credential = json!({"user_dn": "uid=alice,o=x"});
    let config = serde_json::to_value(config).expect("JSON");
    build_with(plugin, &config, &[("alice", Some("c1"), credential)]).expect("valid")
}

fn basic(pair: &str) -> String {
    format!("ldap {}", STANDARD.encode(pair))
}

/// A call, and how often the directory was asked; it accepts everybody whose password is `good`.
fn run(filter: &Arc<dyn Filter>, call: &mut Exchange, verdict: Option<Verdict>) -> (String, usize) {
    let mut asked = 0;
    loop {
        match filter.on_request(call) {
            Outcome::Converse(conversation) => {
                asked += 1;
                assert_eq!((conversation.host.as_str(), conversation.port), ("ldap", 389));
                let answer = Box::new(verdict.clone());
                call.filter_state.put_answer(Some(answer));
            }
            outcome => return (word(&outcome), asked),
        }
    }
}

#[test]
fn credentials_are_read_and_verdicts_are_kept() {
    let accepted = || Some(Verdict::Accepted("uid=alice,o=x".into()));
    let plugin = LdapAuth::default();
    let filter = filter(&plugin, |config| config.strip = true);
    for (what, headers, verdict, expected) in [
        ("none", vec![], accepted(), ("Missing", 0)),
        (
            "good",
            vec![("Authorization", basic("alice:good"))],
            accepted(),
            ("continue", 1),
        ),
        (
            "kept",
            vec![("Authorization", basic("alice:good"))],
            None,
            ("continue", 0),
        ),
        (
            "bad",
            vec![("Authorization", basic("alice:bad"))],
            Some(Verdict::Refused),
            ("Invalid", 1),
        ),
        (
            "bad and kept",
            vec![("Authorization", basic("alice:bad"))],
            accepted(),
            ("Invalid", 0),
        ),
        (
            "an empty password",
            vec![("Authorization", basic("alice:"))],
            accepted(),
            ("Malformed", 0),
        ),
        (
            "an empty name",
            vec![("Authorization", basic(":good"))],
            accepted(),
            ("Malformed", 0),
        ),
        (
            "no pair",
            vec![("Authorization", basic("alice"))],
            accepted(),
            ("Malformed", 0),
        ),
        (
            "another scheme",
            vec![("Authorization", "Bearer x".into())],
            accepted(),
            ("Malformed", 0),
        ),
        (
            "no Base64",
            vec![("Authorization", "Basic %".into())],
            accepted(),
            ("Malformed", 0),
        ),
        (
            "a proxy's own",
            vec![
                ("Proxy-Authorization", "Digest x".into()),
                ("Authorization", basic("alice:good")),
            ],
            None,
            ("continue", 0),
        ),
        (
            "down",
            vec![("Authorization", basic("bob:x"))],
            None,
            ("plugin_failed 500", 1),
        ),
        (
            "still down",
            vec![("Authorization", basic("bob:x"))],
            None,
            ("plugin_failed 500", 0),
        ),
    ] {
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut call = exchange();
        prepare(&mut call, "GET /", &headers);
        let (found, asked) = run(&filter, &mut call, verdict);
        assert_eq!((found.as_str(), asked), expected, "{what}");
        if found == "continue" {
            assert!(call.request.headers.get(b"authorization").is_none(), "{what}");
            assert_eq!(
                call.identity.as_ref().map(|it| it.consumer.id.as_str()),
                Some("alice")
            );
        }
    }
}

#[test]
fn users_need_not_be_consumers() {
    for (required, entry, expected) in [
        (false, "uid=bob,o=x", "continue"),
        (true, "uid=bob,o=x", "ConsumerMissing"),
        (true, "uid=alice,o=x", "continue"),
    ] {
        let filter = filter(&LdapAuth::default(), |config| config.consumer_required = required);
        let forged = [
            ("Authorization", basic("bob:good")),
            ("X-Consumer-ID", "forged".into()),
            ("x_credential_identifier", "forged".into()),
        ];
        let forged: Vec<(&str, &str)> = forged
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut call = exchange();
        prepare(&mut call, "GET /", &forged);
        let (found, _) = run(&filter, &mut call, Some(Verdict::Accepted(entry.into())));
        assert_eq!(found, expected, "{required} {entry}");
        if !required {
            assert_eq!(
                call.request.headers.get(b"x-credential-identifier"),
                Some(&b"bob"[..])
            );
            assert!(call.request.headers.get(b"x-consumer-id").is_none());
        }
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let good = json!({"host": "a", "base_dn": "b", "attribute": "c"});
    for (field, value, place) in [
        ("host", json!(""), "host"),
        ("port", json!(0), "port"),
        ("schemes", json!([]), "schemes"),
        ("timeout_ms", json!(0), "timeout_ms"),
        ("search", json!({"bind_dn": "x"}), "search.password"),
        ("search", json!({"size_limit": 1}), "search.size_limit"),
    ] {
        let mut config = good.clone();
        config[field] = value;
        assert_eq!(refused_at(&LdapAuth::default(), &config), [place], "{config}");
    }
    assert!(build(&LdapAuth::default(), &example(include_str!("mod.rs"))).is_ok());
}
