//! `opa` as its users see it.

use super::*;
use serde_json::json;
use weir_plugin::{ConsumerIdentity, Identity, RouteInfo, SubrequestResponse};
use weir_plugins_testkit::*;

fn filter(change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
    let mut config = Config::new("http://opa:8181/v1/data/p".into());
    change(&mut config);
    build(&Opa::default(), &serde_json::to_value(config).expect("JSON")).expect("valid")
}

fn sent(filter: &Arc<dyn Filter>, exchange: &mut Exchange) -> Value {
    let Outcome::Subrequest(subrequest) = filter.on_request(exchange) else {
        panic!("the agent is asked");
    };
    assert_eq!((subrequest.host.as_str(), subrequest.port), ("opa", 8181));
    let text = String::from_utf8(subrequest.message).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("POST /v1/data/p HTTP/1.1\r\n"), "{head}");
    serde_json::from_str(body).expect("JSON")
}

#[test]
fn the_agent_gets_the_facts_of_the_call() {
    let mut call = exchange();
    let headers = [("X-A", "1"), ("X-A", "2"), ("B", "c")];
    prepare(&mut call, "PUT /a?x=1&x=%202&y", &headers);
    let input = sent(&filter(|_| {}), &mut call);
    assert_eq!(
        input,
        json!({"input": {
            "type": "http",
            "request": {
                "scheme": "http", "method": "PUT", "host": "api.example", "port": 8000, "path": "/a",
                "headers": {"x-a": ["1", "2"], "b": "c"},
                "query": {"x": ["1", " 2"], "y": true},
            },
            "var": {
                "server_addr": "10.0.0.2", "server_port": "8000", "remote_addr": "10.0.0.1",
                "remote_port": "4711", "timestamp": NOW_MS / 1_000,
            },
        }})
    );
    let nested = filter(|config| {
        config.input = InputForm::Nested;
        config.consumer = true;
        config.body = BodyForm::Json;
    });
    prepare(&mut call, "POST /", &[]);
    call.request.has_body = true;
    assert_eq!(word(&nested.on_request(&mut call)), "body");
    call.request.body = Some(b"{\"a\":1}".to_vec());
    call.identity = Some(identity("alice", None));
    let input = sent(&nested, &mut call);
    assert_eq!(input["input"]["request"]["http"]["parsed_body"], json!({"a": 1}));
    assert_eq!(input["input"]["consumer"]["id"], json!("alice"));
    assert_eq!(input["input"]["client_ip"], json!("10.0.0.1"));
}

#[test]
fn consumers_are_told_in_the_words_of_each_form() {
    let consumer = |details: Value| {
        let Value::Object(details) = details else {
            panic!("a map")
        };
        Identity {
            consumer: Arc::new(ConsumerIdentity {
                id: "u1".into(),
                username: Some("ada".into()),
                group: Some("g".into()),
                labels: vec![("plan".into(), "gold".into())],
                details: details.into_iter().collect(),
                ..ConsumerIdentity::default()
            }),
            credential_id: Some("cred".into()),
        }
    };
    for (form, details, expected) in [
        (
            InputForm::Flat,
            json!({"desc": "d", "create_time": 5}),
            json!({
                "id": "u1", "consumer_name": "u1", "username": "ada", "group": "g", "group_id": "g",
                "labels": {"plan": "gold"}, "credential_id": "cred", "desc": "d", "create_time": 5,
            }),
        ),
        (
            InputForm::Nested,
            json!({"tags": ["a"], "created_at": 7}),
            json!({"id": "u1", "username": "ada", "group": "g", "tags": ["a"], "created_at": 7}),
        ),
    ] {
        let mut call = exchange();
        call.identity = Some(consumer(details));
        let filter = filter(|config| {
            config.input = form;
            config.consumer = true;
        });
        assert_eq!(sent(&filter, &mut call)["input"]["consumer"], expected);
    }
}

#[test]
fn captures_of_the_path_are_told() {
    let mut call = exchange();
    let taken = [("1", "a"), ("3", "c"), ("third", "c")];
    call.captures = taken.map(|(name, value)| (name.into(), value.into())).to_vec();
    let filter = filter(|config| {
        config.input = InputForm::Nested;
        config.captures = true;
    });
    let captures = &sent(&filter, &mut call)["input"]["request"]["http"]["uri_captures"];
    assert_eq!(
        captures,
        &json!({"named": {"third": "c"}, "unnamed": ["a", false, "c"]})
    );
}

#[test]
fn documents_stand_for_route_and_service() {
    let route = RouteInfo {
        name: "r1".into(),
        service: "s1".into(),
        labels: [("matched_uri".to_owned(), "/a".to_owned())].into(),
        ..RouteInfo::default()
    };
    for (change, expected) in [
        (
            (|_| {}) as fn(&mut Config),
            json!({"route": {"name": "r1", "matched_uri": "/a"}, "service": {"name": "s1"}}),
        ),
        (
            |config| config.route_document = Some(json!({"id": "1", "plugins": {}})),
            json!({"route": {"id": "1", "plugins": {}}, "service": {"name": "s1"}}),
        ),
        (
            |config| config.service_document = Some(json!({"id": "2"})),
            json!({"route": {"name": "r1", "matched_uri": "/a"}, "service": {"id": "2"}}),
        ),
        (
            |config| {
                (config.route, config.service) = (false, false);
                config.route_document = Some(json!({"id": "1"}));
                config.service_document = Some(json!({"id": "2"}));
            },
            json!({"route": null, "service": null}),
        ),
    ] {
        let mut call = exchange();
        call.route = Some(Arc::new(route.clone()));
        let filter = filter(|config| {
            (config.route, config.service) = (true, true);
            change(config);
        });
        let input = &sent(&filter, &mut call)["input"];
        let input_field = |field: &str| input.get(field).cloned().unwrap_or_default();
        assert_eq!(
            json!({"route": input_field("route"), "service": input_field("service")}),
            expected
        );
    }
}

/// Kong's instances may be for many routes, so each route has its documents.
#[test]
fn labels_hold_the_documents_of_route_and_service() {
    let labels = [
        ("route_document", r#"{"id": "1", "paths": ["/a"]}"#),
        ("service_document", r#"{"id": "2"}"#),
    ];
    let mut call = exchange();
    call.route = Some(Arc::new(RouteInfo {
        name: "r1".into(),
        labels: labels
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into(),
        ..RouteInfo::default()
    }));
    let filter = filter(|config| (config.route, config.service) = (true, true));
    let input = &sent(&filter, &mut call)["input"];
    assert_eq!(input["route"], json!({"id": "1", "paths": ["/a"]}));
    assert_eq!(input["service"], json!({"id": "2"}));
}

#[test]
fn answers_decide() {
    let filter = filter(|config| {
        config.upstream_headers = vec!["X-User".into()];
        (config.failure_status, config.invalid_status) = (403, 503);
    });
    for (status, answer, expected) in [
        (200, r#"{"result": true}"#, "continue"),
        (200, r#"{"result": {"allow": true}}"#, "continue"),
        (200, r#"{"result": false}"#, "forbidden 403"),
        (200, r#"{"result": {}}"#, "forbidden 403"),
        (200, r#"{"result": {"allow": "true"}}"#, "forbidden 403"),
        (
            200,
            r#"{"result": {"allow": false, "status_code": 302, "headers": {"Location": "/l"}}}"#,
            "reply 302",
        ),
        (
            200,
            r#"{"result": {"allow": false, "reason": "no"}}"#,
            "reply 403",
        ),
        (
            200,
            r#"{"result": {"allow": false, "status_code": 99}}"#,
            "forbidden 403",
        ),
        (200, r#"{"result": 7}"#, "plugin_failed 503"),
        (200, "{}", "plugin_failed 503"),
        (200, "no JSON", "plugin_failed 503"),
        (500, r#"{"result": true}"#, "plugin_failed 503"),
    ] {
        let mut call = exchange();
        call.subrequest_response = Some(Some(SubrequestResponse {
            status,
            body: answer.as_bytes().to_vec(),
            ..SubrequestResponse::default()
        }));
        assert_eq!(word(&filter.on_request(&mut call)), expected, "{answer}");
    }
    let mut call = exchange();
    call.subrequest_response = Some(None);
    assert_eq!(word(&filter.on_request(&mut call)), "forbidden 403");
}

#[test]
fn headers_of_callers_are_replaced() {
    let forged = [("X-User", "admin"), ("x_user", "admin"), ("X-Other", "own")];
    for (answer, all, expected) in [
        (
            r#"{"result": {"allow": true, "headers": {"X-User": "bob", "X-More": "1"}}}"#,
            false,
            vec!["X-Other: own", "X-User: bob"],
        ),
        (r#"{"result": {"allow": true}}"#, false, vec!["X-Other: own"]),
        (
            r#"{"result": {"allow": true, "headers": {"X-User": "a\r\nX-B: c", "X-More": "1"}}}"#,
            true,
            vec!["X-Other: own", "X-More: 1"],
        ),
    ] {
        let filter = filter(|config| {
            config.upstream_headers = vec!["X-User".into()];
            config.all_headers = all;
        });
        let mut call = exchange();
        prepare(&mut call, "GET /", &forged);
        call.subrequest_response = Some(Some(SubrequestResponse {
            status: 200,
            body: answer.as_bytes().to_vec(),
            ..SubrequestResponse::default()
        }));
        assert_eq!(word(&filter.on_request(&mut call)), "continue");
        assert_eq!(lines(&call.request.headers), expected, "{answer}");
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({"url": "opa:8181"}), ["url"]),
        (
            json!({"url": "http://opa", "upstream_headers": ["a b"]}),
            ["upstream_headers[0]"],
        ),
        (
            json!({"url": "http://opa", "failure_status": 99}),
            ["failure_status"],
        ),
        (
            json!({"url": "http://opa", "http": {"timeout_ms": 0}}),
            ["http.timeout_ms"],
        ),
    ] {
        assert_eq!(refused_at(&Opa::default(), &config), places, "{config}");
    }
    assert!(build(&Opa::default(), &example(include_str!("mod.rs"))).is_ok());
}

#[test]
fn decisions_are_used_again_for_calls_that_are_alike() {
    let plugin = Opa::default();
    let built = |change: fn(&mut Config)| {
        let mut config = Config::new("http://opa:8181/v1/data/p".into());
        config.cache_seconds = 5;
        config.upstream_headers = vec!["X-User".into()];
        change(&mut config);
        build(&plugin, &serde_json::to_value(config).expect("JSON")).expect("valid")
    };
    // Whether the agent is asked, and the outcome of the call.
    let run = |filter: &Arc<dyn Filter>,
               line: &str,
               headers: &[(&str, &str)],
               result: &str,
               caller: Option<&str>| {
        let mut call = exchange();
        prepare(&mut call, line, headers);
        call.identity = caller.map(|caller| identity(caller, None));
        let mut asked = false;
        loop {
            match filter.on_request(&mut call) {
                Outcome::Subrequest(_) => {
                    asked = true;
                    call.subrequest_response = Some(Some(SubrequestResponse {
                        status: 200,
                        body: format!("{{\"result\": {result}}}").into_bytes(),
                        ..SubrequestResponse::default()
                    }));
                }
                outcome => {
                    let user = call.request.headers.get(b"x-user").map(<[u8]>::to_vec);
                    return (asked, word(&outcome), user);
                }
            }
        }
    };
    let filter = built(|_| {});
    let allowed = r#"{"allow": true, "headers": {"X-User": "ada"}}"#;
    let user = Some(b"ada".to_vec());
    let forged = [("X-A", "1"), ("X-User", "forged")];
    assert_eq!(
        run(&filter, "GET /a", &forged, allowed, None),
        (true, "continue".into(), user.clone())
    );
    assert_eq!(
        run(&filter, "GET /a", &forged, "false", None),
        (false, "continue".into(), user)
    );
    // Anything else that the agent would be sent makes another call of it.
    for (line, headers) in [
        ("POST /a", &forged[..]),
        ("GET /b", &forged),
        ("GET /a?x", &forged),
        ("GET /a", &[("X-A", "2"), ("X-User", "forged")]),
        ("GET /a", &[("X-A", "1"), ("X-User", "forged"), ("X-B", "")]),
    ] {
        let (asked, outcome, _) = run(&filter, line, headers, "false", None);
        assert_eq!(
            (asked, outcome.as_str()),
            (true, "forbidden 403"),
            "{line} {headers:?}"
        );
        let (asked, outcome, _) = run(&filter, line, headers, "true", None);
        assert_eq!(
            (asked, outcome.as_str()),
            (false, "forbidden 403"),
            "{line} {headers:?}"
        );
    }
    let other = built(|config| config.consumer = true);
    for (caller, asks) in [("alice", true), ("bob", true), ("alice", false)] {
        assert_eq!(
            run(&other, "GET /a", &forged, "true", Some(caller)).0,
            asks,
            "{caller}"
        );
    }
    // What cannot be read is no decision.
    let third = built(|config| config.route = true);
    assert_eq!(run(&third, "GET /a", &[], "[]", None).1, "plugin_failed 503");
}

/// The defect: parts that were missing had no place in the key, so headers could stand for a route and its service.
#[test]
fn headers_do_not_stand_for_a_route() {
    let mut config = Config::new("http://opa:8181/v1/data/p".into());
    config.route = true;
    let key = |headers: &[(&str, &str)], has_route: bool| {
        let mut call = exchange();
        prepare(&mut call, "GET /a", headers);
        call.route = has_route.then(|| {
            Arc::new(RouteInfo {
                name: "pay".into(),
                service: "api".into(),
                dialect: weir_model::DialectName::NATIVE,
                labels: std::collections::BTreeMap::new(),
            })
        });
        input::key(&config, &KeyParts::of(&["instance"]), &call)
    };
    let (short, long) = ([("X-A", "1")], [("pay", "api"), ("X-A", "1")]);
    assert_ne!(key(&short, true), key(&long, false));
    assert_ne!(key(&short, true), key(&short, false));
    assert_eq!(key(&short, true), key(&short, true));
}
