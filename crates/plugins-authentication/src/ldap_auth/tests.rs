//! Tests of `ldap-auth` from a user's view, with a directory instead of the engine's network.

use super::dialogue::{User, Verdict};
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

fn accepted_as(entry: &str, groups: &[&str]) -> Verdict {
    Verdict::Accepted(User {
        entry: entry.into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    })
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
    let accepted = || Some(accepted_as("uid=alice,o=x", &[]));
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

/// The defect: an instance with a wrong password for the directory used the answers of one with the right one.
#[test]
fn answers_belong_to_who_has_asked() {
    let plugin = LdapAuth::default();
    let search = |password: &str, size_limit: u32| {
        Some(Search {
            bind_dn: Some("cn=service".into()),
            password: Some(password.into()),
            size_limit,
            time_limit_seconds: 5,
        })
    };
    for (search, requests) in [
        (search("right", 2), 1),
        (search("right", 2), 0),
        (search("wrong", 2), 1),
        (search("right", 3), 1),
        (None, 1),
    ] {
        let filter = filter(&plugin, |config| config.search = search.clone());
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Authorization", &basic("alice:good"))]);
        let answer = Some(accepted_as("uid=alice,o=x", &[]));
        assert_eq!(
            run(&filter, &mut call, answer),
            ("continue".to_owned(), requests),
            "{search:?}"
        );
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
        let (found, _) = run(&filter, &mut call, Some(accepted_as(entry, &[])));
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
fn groups_decide_and_are_forwarded() {
    let groups = |required: &[&str]| Groups {
        attribute: "memberOf".into(),
        base_dn: Some("ou=g,o=x".into()),
        name_attribute: Some("cn".into()),
        required: required.iter().map(|it| (*it).to_owned()).collect(),
        header: Some("X-Authenticated-Groups".into()),
    };
    let (admins, users) = ("cn=admins,ou=g,o=x", "cn=users,ou=g,o=x");
    for (required, has, expected, header) in [
        (&[][..], &[][..], "continue", None),
        (
            &[],
            &[admins, users, "cn=other,o=x"],
            "continue",
            Some("admins, users"),
        ),
        (&["admins"], &[users], "forbidden 403", None),
        (&["admins users"], &[users], "forbidden 403", None),
        (
            &["admins users"],
            &[users, admins],
            "continue",
            Some("users, admins"),
        ),
        (&["admins", "users"], &[users], "continue", Some("users")),
    ] {
        let filter = filter(&LdapAuth::default(), |config| {
            config.groups = Some(groups(required))
        });
        let authorization = basic("bob:good");
        let mut call = exchange();
        let forged = [
            ("Authorization", authorization.as_str()),
            ("X-Authenticated-Groups", "admins"),
            ("x_authenticated_groups", "admins"),
        ];
        prepare(&mut call, "GET /", &forged);
        let (found, _) = run(&filter, &mut call, Some(accepted_as("uid=bob,o=x", has)));
        assert_eq!(found, expected, "{required:?} {has:?}");
        if found == "continue" {
            let headers = &call.request.headers;
            assert_eq!(
                headers.get(b"x-authenticated-groups"),
                header.map(str::as_bytes),
                "{has:?}"
            );
            assert!(headers.get(b"x_authenticated_groups").is_none());
            let noted = crate::authenticated_groups::of(&mut call).expect("groups, for `acl`");
            assert_eq!(noted.join(", "), header.unwrap_or_default(), "{has:?}");
        }
    }
}

#[test]
fn users_are_consumers_of_their_names() {
    // The consumer is known by its name and not by a credential.
    for (user, by, expected) in [
        ("ALICE", &[ConsumerName::Username][..], "continue"),
        (
            "cid",
            &[ConsumerName::Username, ConsumerName::CustomId],
            "continue",
        ),
        ("ALICE", &[], "ConsumerMissing"),
        (
            "unknown",
            &[ConsumerName::Username, ConsumerName::CustomId],
            "ConsumerMissing",
        ),
    ] {
        let filter = filter(&LdapAuth::default(), |config| {
            config.consumer_required = true;
            config.consumer_by = by.to_vec();
        });
        let mut call = exchange();
        prepare(
            &mut call,
            "GET /",
            &[("Authorization", &basic(&format!("{user}:good")))],
        );
        let (found, _) = run(&filter, &mut call, Some(accepted_as("uid=elsewhere,o=x", &[])));
        assert_eq!(found, expected, "{user} {by:?}");
        if expected == "continue" {
            let name = call.request.headers.get(b"x-credential-identifier");
            assert_eq!(name, Some(user.as_bytes()));
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
        ("groups", json!({"attribute": ""}), "groups.attribute"),
        ("groups", json!({"header": "a b"}), "groups.header"),
    ] {
        let mut config = good.clone();
        config[field] = value;
        assert_eq!(refused_at(&LdapAuth::default(), &config), [place], "{config}");
    }
    assert!(build(&LdapAuth::default(), &example(include_str!("mod.rs"))).is_ok());
}
