//! Calls with bearer tokens, and the consumers that tokens stand for.

use super::*;

#[test]
fn bearer_tokens_are_checked_by_the_providers_keys() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Bearer];
        config.realm = Some("shop".into());
        config.required.scopes = vec!["read write".into(), "admin".into()];
        config.explain = true;
    });
    let (other, _, _) = key("k1");
    let (unknown, _, _) = key("k2");
    let claims = json!({"iss": ISSUER, "sub": "alice", "exp": NOW_S + 60, "scope": "read write"});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = format!("{}.{}.", part(&json!({"alg": "none"})), part(&claims));
    let point = provider.jwk["x"].as_str().expect("a key").to_owned();
    let confused = SigningKey::new(Algorithm::HS256, &point, Some("k1")).expect("a key");
    let confused_pem = SigningKey::new(Algorithm::HS256, &provider.pem, Some("k1")).expect("a key");
    let secret = SigningKey::new(Algorithm::HS256, "secret", None).expect("a key");
    for (what, token, expected) in [
        ("good", provider.token(json!({"scope": "read write"})), "continue"),
        (
            "one alternative",
            provider.token(json!({"scope": ["admin"]})),
            "continue",
        ),
        (
            "a scope is missing",
            provider.token(json!({"scope": "read"})),
            "reply 403",
        ),
        ("no scope", provider.token(json!({})), "reply 403"),
        (
            "expired",
            provider.token(json!({"scope": "admin", "exp": NOW_S - 1})),
            "answered 401",
        ),
        (
            "not good yet",
            provider.token(json!({"scope": "admin", "nbf": NOW_S + 9})),
            "answered 401",
        ),
        (
            "times are texts",
            provider.token(json!({"scope": "admin", "exp": "never"})),
            "answered 401",
        ),
        (
            "another issuer",
            provider.token(json!({"scope": "admin", "iss": "x"})),
            "answered 401",
        ),
        ("none", unsigned, "answered 401"),
        (
            "another key",
            other.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "an unknown key",
            unknown.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "the public key as a secret",
            confused.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "its PEM as a secret",
            confused_pem.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "the client's secret",
            secret.sign(&claims).expect("signed"),
            "answered 401",
        ),
        ("no token at all", "x".into(), "answered 401"),
    ] {
        let mut bearer = call("GET /", &[("Authorization", &format!("Bearer {token}"))]);
        assert_eq!(word(&provider.run(&filter, &mut bearer)), expected, "{what}");
    }
    let Outcome::Refuse(refusal) = provider.run(&filter, &mut call("GET /", &[])) else {
        panic!("a refusal");
    };
    assert_eq!(refusal.challenge.as_deref(), Some("Bearer realm=\"shop\""));
    let mut malformed = call("GET /", &[("Authorization", "Bearer")]);
    assert_eq!(word(&provider.run(&filter, &mut malformed)), "unacceptable 400");
    assert_eq!(
        (
            provider.count("/.well-known/openid-configuration"),
            provider.count("/keys")
        ),
        (1, 1)
    );
}

/// The defect: where access tokens were asked for, identity tokens and tokens without an end were taken.
#[test]
fn identity_tokens_and_tokens_without_an_end_are_no_access_tokens() {
    // Whether they are taken where any is, where an access token is asked for, and where one for pets is.
    const ALL: [bool; 3] = [true, true, true];
    const NONE: [bool; 3] = [true, false, false];
    let provider = FakeProvider::new();
    for (kind, claims, expected) in [
        ("JWT", json!({"aud": "pets"}), ALL),
        ("JWT", json!({}), [true, true, false]),
        ("at+jwt", json!({"aud": "pets", "nonce": "n"}), ALL),
        ("application/AT+JWT", json!({"aud": "pets", "azp": "pets"}), ALL),
        ("at+jwt", json!({"aud": "pets", "exp": null}), NONE),
        ("JWT", json!({"aud": "pets", "nonce": "n"}), NONE),
        // Keycloak's access tokens may have one, too.
        ("JWT", json!({"aud": "pets", "nonce": "n", "typ": "Bearer"}), ALL),
        ("JWT", json!({"aud": "pets", "at_hash": "h"}), NONE),
        ("JWT", json!({"aud": "pets", "c_hash": "h"}), NONE),
        // Keycloak and Cognito say which it is.
        ("JWT", json!({"aud": "pets", "typ": "ID"}), NONE),
        ("JWT", json!({"aud": "pets", "typ": "Bearer"}), ALL),
        ("JWT", json!({"aud": "pets", "token_use": "id"}), NONE),
        // For its client, and for one that is asked for by its name.
        ("JWT", json!({"aud": ["shop"], "azp": "shop"}), NONE),
        (
            "JWT",
            json!({"aud": "pets", "client_id": "pets"}),
            [true, false, true],
        ),
    ] {
        let token = format!("Bearer {}", provider.token_of(kind, &claims));
        for (index, expected) in expected.into_iter().enumerate() {
            let filter = filter(|config| {
                config.methods = vec![Method::Bearer];
                config.required.access_token = index > 0;
                config.required.audiences = (index > 1).then(|| "pets".to_owned()).into_iter().collect();
            });
            let mut bearer = call("GET /", &[("Authorization", &token)]);
            let is_taken = word(&provider.run(&filter, &mut bearer)) == "continue";
            assert_eq!(is_taken, expected, "{kind} {claims} {index}");
        }
    }
}

#[test]
fn random_key_ids_cause_one_fetch() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.methods = vec![Method::Bearer]);
    let claims = json!({"iss": ISSUER, "sub": "alice", "exp": NOW_S + 60});
    let (_, _, pem) = key("x");
    for number in 0..1_000 {
        let signer = SigningKey::new(Algorithm::ES256, &pem, Some(&format!("k{number}x"))).expect("a key");
        let token = signer.sign(&claims).expect("signed");
        let mut bearer = call("GET /", &[("Authorization", &format!("Bearer {token}"))]);
        assert_eq!(word(&provider.run(&filter, &mut bearer)), "answered 401");
    }
    assert_eq!(provider.count("/keys"), 1);
}

/// The defect: an instance took the documents, keys and answers that another one had got without checking certificates, through
/// another proxy, or for longer than it may keep them.
#[test]
fn instances_share_what_they_trust_alike() {
    let plugin = OpenIdConnect::default();
    let provider = FakeProvider::new();
    let signed = format!("Bearer {}", provider.token(json!({})));
    let asked = |change: &Value, authorization: &str| {
        let mut config = serde_json::to_value(config(|config| {
            config.methods = vec![Method::Bearer, Method::Introspection];
        }))
        .expect("JSON");
        for (pointer, value) in change.as_object().expect("changes") {
            let (object, field) = pointer.rsplit_once('/').expect("a pointer");
            config.pointer_mut(object).expect("an object")[field] = value.clone();
        }
        let filter = build(&plugin, &config).expect("valid");
        let before = provider.asked.borrow().len();
        let mut call = call("GET /", &[("Authorization", authorization)]);
        assert_eq!(word(&provider.run(&filter, &mut call)), "continue", "{change}");
        provider.asked.borrow()[before..].join(" ")
    };
    let documents = "/.well-known/openid-configuration /keys";
    for (change, of_signed, of_opaque) in [
        (json!({"/http/verify_tls": false}), documents, "/introspect"),
        (json!({}), documents, "/introspect"),
        (
            json!({"/http/proxy": "http://one:3128"}),
            documents,
            "/introspect",
        ),
        (
            json!({"/http/proxy": "http://two:3128"}),
            documents,
            "/introspect",
        ),
        (json!({"/cache_seconds": 5}), documents, ""),
        (json!({"/introspection_seconds": 5}), "", "/introspect"),
        (json!({}), "", ""),
        (json!({"/http/verify_tls": false}), "", ""),
    ] {
        assert_eq!(asked(&change, &signed), of_signed, "{change}");
        assert_eq!(asked(&change, "Bearer opaque"), of_opaque, "{change}");
    }
}

#[test]
fn tokens_of_a_new_key_pass_at_once() {
    let mut provider = FakeProvider::new();
    let filter = filter(|config| config.methods = vec![Method::Bearer]);
    let run = |provider: &FakeProvider| {
        let token = format!("Bearer {}", provider.token(json!({})));
        let mut bearer = Exchange::new(|| NOW_MS + 31_000, 7);
        prepare(&mut bearer, "GET /", &[("Authorization", &token)]);
        word(&provider.run(&filter, &mut bearer))
    };
    let mut first = call(
        "GET /",
        &[("Authorization", &format!("Bearer {}", provider.token(json!({}))))],
    );
    assert_eq!(word(&provider.run(&filter, &mut first)), "continue");
    (provider.key, provider.jwk, provider.pem) = key("k2");
    assert_eq!((run(&provider), provider.count("/keys")), ("continue".into(), 2));
}

#[test]
fn a_hundred_calls_with_one_token_cause_one_introspection() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Introspection];
        config.introspection_endpoint = Some("https://id.example/introspect".into());
    });
    let mut calls: Vec<Exchange> = (0..100)
        .map(|_| call("GET /", &[("Authorization", "Bearer opaque")]))
        .collect();
    let begun: Vec<Outcome> = calls.iter_mut().map(|call| filter.on_request(call)).collect();
    for (call, outcome) in calls.iter_mut().zip(begun) {
        if let Outcome::Subrequest(asked) = outcome {
            call.subrequest_response = Some(provider.answer(&asked.message));
        }
        assert_eq!(word(&provider.run(&filter, call)), "continue");
    }
    assert_eq!(provider.count("/introspect"), 1);
}

/// Methods are tried one after the other, and each asks the provider once, whether its answer is kept or not.
#[test]
fn each_method_asks_the_provider_once() {
    for (active, sub, seconds, expected) in [
        (true, "alice", 60, ("continue", 1, 0)),
        (false, "alice", 60, ("continue", 1, 1)),
        (false, "alice", 0, ("continue", 1, 1)),
        (false, "", 60, ("answered 401", 1, 1)),
        (false, "", 0, ("answered 401", 1, 1)),
    ] {
        let provider = FakeProvider::new();
        *provider.introspection.borrow_mut() = json!({"active": active, "sub": "alice"});
        *provider.userinfo_sub.borrow_mut() = sub.to_owned();
        let filter = filter(|config| {
            config.methods = vec![Method::Bearer, Method::Introspection, Method::Userinfo];
            config.introspection_seconds = seconds;
        });
        let mut opaque = call("GET /", &[("Authorization", "Bearer opaque")]);
        let outcome = word(&provider.run(&filter, &mut opaque));
        let asked = (
            outcome.as_str(),
            provider.count("/introspect"),
            provider.count("/me"),
        );
        assert_eq!(asked, expected, "{active} {sub:?} {seconds}");
    }
}

/// A method that cannot find out whether a token is good is told, whatever the others found.
#[test]
fn a_token_may_be_good_if_one_method_cannot_tell() {
    let (active, inactive) = (json!({"active": true, "sub": "alice"}), json!({"active": false}));
    for (introspection, sub, broken, expected) in [
        (inactive.clone(), "alice", "", "continue"),
        (inactive.clone(), "", "", "answered 401"),
        (json!("invalid_client"), "", "", "plugin_failed 503"),
        (inactive, "", "/me", "plugin_failed 503"),
        (active, "", "/me", "continue"),
    ] {
        let provider = FakeProvider::new();
        *provider.introspection.borrow_mut() = introspection.clone();
        *provider.userinfo_sub.borrow_mut() = sub.to_owned();
        provider.broken.set(broken);
        for methods in [
            vec![Method::Introspection, Method::Userinfo],
            vec![Method::Userinfo, Method::Introspection],
        ] {
            let filter = filter(|config| config.methods = methods.clone());
            let mut opaque = call("GET /", &[("Authorization", "Bearer opaque")]);
            let outcome = word(&provider.run(&filter, &mut opaque));
            assert_eq!(outcome, expected, "{introspection} {methods:?}");
        }
    }
}

/// A provider that is down, or refuses the gateway, says nothing about a caller.
#[test]
fn endpoints_that_fail_are_no_verdict() {
    let refused = |status: u16, error: &'static str| Some((status, error));
    for (method, broken, refusal, expected) in [
        (Method::Bearer, "/keys", None, "plugin_failed 503"),
        (Method::Userinfo, "/me", None, "plugin_failed 503"),
        (Method::Introspection, "/introspect", None, "plugin_failed 503"),
        (Method::Password, "/token", None, "plugin_failed 503"),
        (Method::ClientCredentials, "/token", None, "plugin_failed 503"),
        (
            Method::Password,
            "",
            refused(400, "invalid_grant"),
            "answered 401",
        ),
        (
            Method::Password,
            "",
            refused(401, "invalid_client"),
            "plugin_failed 503",
        ),
        (
            Method::ClientCredentials,
            "",
            refused(401, "invalid_client"),
            "answered 401",
        ),
        (
            Method::ClientCredentials,
            "",
            refused(429, ""),
            "plugin_failed 503",
        ),
    ] {
        let provider = FakeProvider::new();
        let filter = filter(|config| config.methods = vec![method]);
        provider.broken.set(broken);
        provider.refusal.set(refusal);
        let authorization = match method {
            Method::Password | Method::ClientCredentials => "Basic YWxpY2U6c2VjcmV0".to_owned(),
            _ => format!("Bearer {}", provider.token(json!({}))),
        };
        let mut call = call("GET /", &[("Authorization", &authorization)]);
        let outcome = word(&provider.run(&filter, &mut call));
        assert_eq!(outcome, expected, "{method:?} {broken} {refusal:?}");
    }
}

/// Instances that ask as others, or otherwise, do not use each other's answers.
#[test]
fn answers_belong_to_who_has_asked() {
    let provider = FakeProvider::new();
    let plugin = OpenIdConnect::default();
    let instance = |change: &dyn Fn(&mut Config)| {
        filter_of(&plugin, |config| {
            config.methods = vec![Method::Introspection];
            change(config);
        })
    };
    let changes: [&dyn Fn(&mut Config); 6] = [
        &|_| {},
        &|config| config.introspection_authorization = Some("Basic YTpi".into()),
        &|config| config.introspection_authorization = Some("Basic YTpj".into()),
        &|config| config.introspection_hint = "refresh_token".into(),
        &|config| config.client_secret = Some("another".into()),
        &|config| config.introspection_headers = vec!["X-Tenant".into()],
    ];
    let call_of = |tenant: &str| call("GET /", &[("Authorization", "Bearer t"), ("X-Tenant", tenant)]);
    for (index, change) in changes.into_iter().enumerate() {
        for _ in 0..2 {
            assert_eq!(
                word(&provider.run(&instance(change), &mut call_of("a"))),
                "continue"
            );
            assert_eq!(provider.count("/introspect"), index + 1);
        }
    }
    let forwarding = instance(changes[5]);
    assert_eq!(word(&provider.run(&forwarding, &mut call_of("b"))), "continue");
    assert_eq!(provider.count("/introspect"), changes.len() + 1);
}

#[test]
fn a_token_in_a_body_is_found() {
    let provider = FakeProvider::new();
    let token = provider.token(json!({}));
    let filter = filter(|config| {
        config.methods = vec![Method::Bearer];
        config.bearer_locations = vec![TokenSource::Bearer, TokenSource::Body("access_token".into())];
    });
    let (form, json_type) = ("application/x-www-form-urlencoded", "application/json");
    for (content_type, body, expected) in [
        (form, format!("a=1&access_token={token}"), "continue"),
        (
            json_type,
            json!({ "access_token": token }).to_string(),
            "continue",
        ),
        (
            form,
            format!("access_token={token}&access_token={token}"),
            "answered 401",
        ),
        (form, "a=1".to_owned(), "answered 401"),
        ("text/plain", format!("access_token={token}"), "answered 401"),
    ] {
        let mut call = call("POST /", &[("Content-Type", content_type)]);
        call.request.has_body = true;
        if let Outcome::NeedBody { .. } = filter.on_request(&mut call) {
            call.request.body = Some(body.clone().into_bytes());
        }
        assert_eq!(
            word(&provider.run(&filter, &mut call)),
            expected,
            "{content_type} {body}"
        );
    }
}

/// A value of `Authorization` says who asks: the client's id beside it may be of another client.
#[test]
fn introspections_say_no_more_than_is_configured() {
    for (authorization, hint, expected) in [
        (Some("Basic eDp5"), "", "token=opaque"),
        (
            Some("Basic eDp5"),
            "access_token",
            "token=opaque&token_type_hint=access_token",
        ),
        (None, "", "token=opaque&client_id=shop"),
    ] {
        let filter = filter(|config| {
            config.methods = vec![Method::Introspection];
            config.introspection_endpoint = Some("https://id.example/introspect".into());
            config.introspection_authorization = authorization.map(str::to_owned);
            config.introspection_hint = hint.to_owned();
            config.client_auth = ClientAuth::None;
        });
        let mut opaque = call("GET /", &[("Authorization", "Bearer opaque")]);
        let Outcome::Subrequest(asked) = filter.on_request(&mut opaque) else {
            panic!("the provider is asked");
        };
        let message = String::from_utf8_lossy(&asked.message).into_owned();
        let (_, body) = message.split_once("\r\n\r\n").expect("a message");
        assert_eq!(body, expected, "{authorization:?} {hint:?}");
    }
}

#[test]
fn calls_are_refused_while_the_provider_is_down() {
    let provider = FakeProvider::new();
    provider.is_up.set(false);
    let bearer = filter(|config| config.methods = vec![Method::Bearer]);
    let token = provider.token(json!({}));
    let authorization = format!("Bearer {token}");
    let mut first = call("GET /", &[("Authorization", &authorization)]);
    // The token may be good: the caller is not to throw it away.
    assert_eq!(word(&provider.run(&bearer, &mut first)), "plugin_failed 503");
    let login = filter(|_| {});
    assert_eq!(
        word(&provider.run(&login, &mut call("GET /", &[]))),
        "plugin_failed 503"
    );
    // It is not asked again at once.
    let asked = provider.asked.borrow().len();
    let mut second = call("GET /", &[("Authorization", &authorization)]);
    provider.run(&bearer, &mut second);
    assert_eq!(provider.asked.borrow().len(), asked);
    // Once it is there, calls go on without a reload.
    provider.is_up.set(true);
    let mut third = Exchange::new(|| NOW_MS + 30_000, 7);
    prepare(&mut third, "GET /", &[("Authorization", &authorization)]);
    assert_eq!(word(&provider.run(&bearer, &mut third)), "continue");
}

#[test]
fn opaque_tokens_are_explained_by_the_provider() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Introspection];
        config.required.scopes = vec!["read".into()];
    });
    let run = |token: &str| {
        let mut bearer = call("GET /", &[("Authorization", &format!("bearer {token}"))]);
        word(&provider.run(&filter, &mut bearer))
    };
    assert_eq!((run("t1"), run("t1")), ("continue".into(), "continue".into()));
    assert_eq!(provider.count("/introspect"), 1);
    for (answer, expected) in [
        (json!({"active": false}), "answered 401"),
        (json!({"active": "true"}), "plugin_failed 503"),
        (
            json!({"active": true, "exp": NOW_S - 1, "scope": "read"}),
            "answered 401",
        ),
        (json!({"active": true, "scope": "other"}), "answered 403"),
        (json!([]), "plugin_failed 503"),
        (json!("invalid_request"), "answered 401"),
        (json!("invalid_client"), "plugin_failed 503"),
        (json!("unauthorized_client"), "plugin_failed 503"),
    ] {
        *provider.introspection.borrow_mut() = answer.clone();
        assert_eq!(run(&format!("t {answer}")), expected, "{answer}");
    }
}

#[test]
fn consumers_are_found_by_a_claim() {
    let provider = FakeProvider::new();
    for (claims, optional, expected) in [
        (json!({"name": "ALICE"}), false, "alice"),
        (json!({"name": "cid"}), false, "alice"),
        (json!({"name": "unknown"}), false, "answered 403"),
        (json!({}), false, "answered 403"),
        (json!({"name": "unknown"}), true, "no consumer"),
        // The defect: these were refused, though calls without a token pass as the anonymous consumer.
        (json!({"name": "unknown", "guests": true}), false, "guest"),
        (json!({"guests": true}), false, "guest"),
        (json!({"name": "ALICE", "guests": true}), false, "alice"),
        (json!({"name": "unknown", "guests": true}), true, "no consumer"),
    ] {
        let filter = filter(|config| {
            config.methods = vec![Method::Bearer];
            config.identity.anonymous = claims.get("guests").map(|_| "guest".to_owned());
            config.consumer = Some(ConsumerRules {
                claim: vec!["name".into()],
                by: vec![
                    crate::consumer_names::ConsumerName::Username,
                    crate::consumer_names::ConsumerName::CustomId,
                ],
                optional,
            });
        });
        let token = provider.token(claims.clone());
        let headers = [
            ("Authorization", format!("Bearer {token}")),
            ("X-Consumer-Username", "forged".into()),
        ];
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut bearer = call("GET /", &headers);
        let outcome = word(&provider.run(&filter, &mut bearer));
        let (found, username) = match outcome.as_str() {
            "continue" => {
                let found = bearer.identity.map(|it| it.consumer.id.clone());
                let username = bearer.request.headers.get(b"x-consumer-username");
                (found.unwrap_or_else(|| "no consumer".to_owned()), username)
            }
            _ => (outcome, None),
        };
        assert_eq!(found, expected, "{claims} {optional}");
        let name = match expected {
            "alice" | "guest" => Some(expected.to_uppercase()),
            _ => None,
        };
        assert_eq!(
            username,
            name.as_deref().map(str::as_bytes),
            "{claims} {optional}"
        );
    }
}

/// A client counts in the scope of its credential only, and the first claim that a token has names it.
#[test]
fn clients_are_found_by_their_credentials() {
    let provider = FakeProvider::new();
    let credential = |scope: &str, client: &str| json!({"scope": scope, "client_id": client});
    let credentials = [
        ("alice", Some("c1"), credential("gold", "app-1")),
        ("bob", Some("c2"), credential("silver", "app-1")),
    ];
    let filter = |scope: &str, anonymous: bool| {
        let mut config = serde_json::to_value(config(|config| {
            config.methods = vec![Method::Bearer];
            config.client = Some(ClientRules {
                scope: scope.into(),
                claims: vec!["client_id".into(), "azp".into()],
            });
        }))
        .expect("JSON");
        if anonymous {
            config["identity"]["anonymous"] = "guest".into();
        }
        build_with(&OpenIdConnect::default(), &config, &credentials).expect("valid")
    };
    for (scope, anonymous, claims, expected, who) in [
        (
            "gold",
            false,
            json!({"client_id": "app-1"}),
            "continue",
            Some("alice"),
        ),
        ("silver", false, json!({"azp": "app-1"}), "continue", Some("bob")),
        (
            "gold",
            false,
            json!({"client_id": "app-2", "azp": "app-1"}),
            "answered 401",
            None,
        ),
        ("gold", false, json!({}), "answered 401", None),
        ("iron", false, json!({"client_id": "app-1"}), "answered 401", None),
        (
            "iron",
            true,
            json!({"client_id": "app-1"}),
            "continue",
            Some("guest"),
        ),
    ] {
        let token = format!("Bearer {}", provider.token(claims.clone()));
        let mut bearer = call("GET /", &[("Authorization", &token)]);
        let outcome = word(&provider.run(&filter(scope, anonymous), &mut bearer));
        assert_eq!(outcome, expected, "{scope} {claims}");
        let found = bearer.identity.map(|it| it.consumer.id.clone());
        assert_eq!(found.as_deref(), who, "{scope} {claims}");
    }
}

/// The result of a request belongs to the method that has sent it: the method before it, which also sends one, does not
/// get it.
#[test]
fn ways_of_multi_auth_ask_one_after_the_other() {
    let provider = FakeProvider::new();
    let way = |name: &str| {
        let mut way = serde_json::to_value(config(|config| {
            config.methods = vec![Method::Introspection];
            config.introspection_endpoint = Some(format!("https://id.example/{name}"));
        }))
        .expect("JSON");
        way["unauthenticated"] = "refuse".into();
        json!({"openid-connect": way})
    };
    let plugin = crate::multi_auth::MultiAuth::default();
    let ways = json!({"any_of": [way("gone"), {"key-auth": {"strip": "found"}}, way("introspect")]});
    let filter = build(&plugin, &ways).expect("valid");
    let mut bearer = call("GET /", &[("Authorization", "Bearer opaque"), ("apikey", "k")]);
    assert_eq!(word(&provider.run(&filter, &mut bearer)), "continue");
    assert_eq!((provider.count("/gone"), provider.count("/introspect")), (1, 1));
    assert!(
        bearer.request.headers.contains(b"apikey"),
        "the way that strips it does not know the caller"
    );
    for (change, place) in [
        (json!({"methods": ["session", "authorization-code"]}), "methods"),
        (
            json!({"methods": ["bearer"], "unauthenticated": "pass"}),
            "unauthenticated",
        ),
    ] {
        let mut way = way("introspect");
        for (name, value) in change.as_object().expect("fields") {
            way["openid-connect"][name] = value.clone();
        }
        let refused = refused_at(&plugin, &json!({"any_of": [way]}));
        assert_eq!(refused, [format!("any_of[0].openid-connect.{place}")]);
    }
}

#[test]
fn callers_without_a_token_who_may_pass_do_not_say_who_they_are() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Bearer];
        config.unauthenticated = Unauthenticated::Pass;
    });
    let forged = [
        ("X-Consumer-Username", "root"),
        ("x_consumer_id", "1"),
        ("X-Credential-Identifier", "root"),
        ("X-Userinfo", "forged"),
        ("X-Other", "stays"),
    ];
    let mut call = call("GET /", &forged);
    assert_eq!(word(&provider.run(&filter, &mut call)), "continue");
    assert_eq!(lines(&call.request.headers), ["X-Other: stays"]);
}

#[test]
fn groups_of_a_claim_are_noted_and_forwarded() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Bearer];
        config.groups = Some(GroupsClaim {
            path: vec!["realm".into(), "groups".into()],
            header: Some("X-Authenticated-Groups".into()),
        });
    });
    for (claims, expected) in [
        (
            json!({"realm": {"groups": ["staff", "all hands"]}}),
            &["staff", "all hands"][..],
        ),
        (json!({"realm": {"groups": "staff admins"}}), &["staff", "admins"]),
        (json!({"realm": {"groups": [1, "staff"]}}), &["staff"]),
        (json!({"groups": ["staff"]}), &[]),
    ] {
        let authorization = format!("Bearer {}", provider.token(claims.clone()));
        let headers = [
            ("Authorization", authorization.as_str()),
            ("X_Authenticated-Groups", "forged"),
            ("X-Consumer-Username", "forged"),
        ];
        let mut call = call("GET /", &headers);
        assert_eq!(word(&provider.run(&filter, &mut call)), "continue", "{claims}");
        let groups = crate::authenticated_groups::of(&mut call).expect("groups");
        assert_eq!(groups.to_vec(), expected, "{claims}");
        let joined = Some(expected.join(", ")).filter(|joined| !joined.is_empty());
        let found = call.request.headers.get(b"x-authenticated-groups");
        assert_eq!(found, joined.as_deref().map(str::as_bytes), "{claims}");
        for name in ["x_authenticated-groups", "x-consumer-username"] {
            assert!(!call.request.headers.contains(name.as_bytes()), "{claims} {name}");
        }
    }
}

#[test]
fn headers_of_a_client_are_removed_from_calls_that_are_not_looked_at() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.identity.on_preflight = false;
        config.cleared_headers = vec!["X-Cleared".into()];
        config.upstream_headers =
            serde_json::from_value(json!([{"name": "X-Who", "value": "id-claims"}])).expect("good");
    });
    let mut preflight = call(
        "OPTIONS /",
        &[
            ("X-Who", "forged"),
            ("X_Cleared", "forged"),
            ("Authorization", "a"),
        ],
    );
    assert_eq!(word(&provider.run(&filter, &mut preflight)), "continue");
    let headers = &preflight.request.headers;
    for (name, is_there) in [("X-Who", false), ("X_Cleared", false), ("Authorization", true)] {
        assert_eq!(headers.contains(name.as_bytes()), is_there, "{name}");
    }
}
