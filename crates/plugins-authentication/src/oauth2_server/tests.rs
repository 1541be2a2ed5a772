//! Configurations and credentials; what calls get is in the tables of the dialect that has this plugin from its original.

use super::*;
use weir_plugins_testkit::{build_with, example, refused_at};

fn credential(change: impl FnOnce(&mut Value)) -> Value {
    let mut credential = json!({"client_id": "c", "client_secret": "s"});
    change(&mut credential);
    credential
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let grants = json!(["client-credentials"]);
    for (config, places) in [
        (json!({}), &[""][..]),
        (json!({"grants": []}), &["grants"]),
        (json!({"grants": ["magic"]}), &["grants[0]"]),
        (json!({"grants": grants, "mandatory_scope": true}), &["scopes"]),
        (
            json!({"grants": grants, "header": "a b", "realm": "a\"b"}),
            &["header", "realm"],
        ),
        (json!({"grants": grants, "provision_key": ""}), &["provision_key"]),
        (
            json!({"grants": grants, "tls_terminated_by": ["10.0.0.0/99"]}),
            &["tls_terminated_by[0]"],
        ),
        (json!({"grants": grants, "pkce": "some"}), &["pkce"]),
    ] {
        assert_eq!(refused_at(&OAuth2Server::default(), &config), places, "{config}");
    }
    let example = example(include_str!("mod.rs"));
    assert!(build_with(&OAuth2Server::default(), &example, &[]).is_ok());
}

#[test]
fn bad_credentials_are_refused_at_their_place() {
    let kind = OAuth2Server::default().credentials().expect("it has some");
    let hash =
        "$pbkdf2-sha512$i=10000,l=32$AAECAwQFBgcICQoLDA0ODw$AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    for (change, place) in [
        (json!({}), None),
        (json!({"client_id": ""}), Some("client_id")),
        (json!({"client_secret": null}), Some("client_secret")),
        (json!({"client_secret": ""}), Some("client_secret")),
        (json!({"client_secret": null, "public": true}), None),
        (json!({"client_secret": null, "client_secret_pbkdf2": hash}), None),
        (
            json!({"client_secret_pbkdf2": hash}),
            Some("client_secret_pbkdf2"),
        ),
        (
            json!({"client_secret": null, "client_secret_pbkdf2": "$pbkdf2-sha512$i=900000,l=32$AA$AA"}),
            Some("client_secret_pbkdf2"),
        ),
        (
            json!({"redirect_uris": ["http://a/", "/b"]}),
            Some("redirect_uris[1]"),
        ),
        (
            json!({"redirect_uris": ["http://a/#b"]}),
            Some("redirect_uris[0]"),
        ),
        (
            json!({"tokens": [{"access_token_sha256": "00"}]}),
            Some("tokens[0].access_token_sha256"),
        ),
    ] {
        let config = credential(|credential| {
            for (name, value) in change.as_object().expect("members") {
                credential[name] = value.clone();
            }
        });
        let found = (kind.check)(&config).err().unwrap_or_default();
        let found = found.first().map(|it| it.path.to_string());
        assert_eq!(found.as_deref(), place, "{config}");
    }
}

#[test]
fn texts_of_codes_and_tokens_are_random_and_of_the_same_length() {
    let filter = |random: Random| Server {
        config: Config::new(vec![Grant::ClientCredentials]),
        gate: gate(),
        clients: Arc::default(),
        records: Arc::default(),
        secret_checks: Arc::default(),
        random,
        instance: String::new(),
        scope_headers: ScopeHeaders::new(),
    };
    let server = filter(system_random);
    let (one, other) = (server.new_text(), server.new_text());
    assert_ne!(one, other);
    assert!(!may_be_made_here(&one[1..]) && !may_be_made_here(&format!("{}-", &one[1..])));
    for text in [one, other] {
        assert!(text.len() == 32 && may_be_made_here(&text), "{text}");
    }
}

fn gate() -> Gate {
    let empty = weir_plugin::EmptyContext::default();
    let context = empty.of("i", weir_model::DialectName::NATIVE);
    Gate::build(NAME, identity::Config::default(), &context).expect("good")
}
