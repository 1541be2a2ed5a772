//! Calls through an instance of `authz-keycloak`, with a Keycloak that answers as each case says.

use super::filter::DENIED;
use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

fn filter(change: Value) -> Arc<dyn Filter> {
    let mut config =
        json!({"token_endpoint": "http://id.test/token", "client_id": "c", "client_secret": "s"});
    for (field, value) in change.as_object().expect("a map") {
        config[field] = value.clone();
    }
    build(&AuthzKeycloak::default(), &config).expect("valid")
}

/// A call; gives what Keycloak was asked: the first line and the last.
fn run(
    filter: &Arc<dyn Filter>,
    call: &mut Exchange,
    answers: &[Option<(u16, &str)>],
) -> (String, Vec<(String, String)>) {
    let mut asked = Vec::new();
    loop {
        match filter.on_request(call) {
            Outcome::Subrequest(sent) => {
                let answer = answers[asked.len()];
                let text = String::from_utf8(sent.message).expect("text");
                let first = text.lines().next().unwrap_or_default().to_owned();
                asked.push((first, text.lines().last().unwrap_or_default().to_owned()));
                call.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
                    status,
                    body: body.as_bytes().to_vec(),
                    ..SubrequestResponse::default()
                }));
            }
            Outcome::Refuse(refusal) => {
                return (
                    format!("{} {}", refusal.status, refusal.message.unwrap_or_default()),
                    asked,
                );
            }
            Outcome::Reply(reply) => {
                return (
                    format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)),
                    asked,
                );
            }
            outcome => return (word(&outcome), asked),
        }
    }
}

const YES: Option<(u16, &str)> = Some((200, r#"{"result": true}"#));

fn call(line: &str) -> Exchange {
    let mut call = exchange();
    prepare(&mut call, line, &[("Authorization", "bearer t")]);
    call
}

#[test]
fn keycloak_decides_by_permissions() {
    let uma =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Auma-ticket&audience=c&response_mode=decision";
    for (change, asked) in [
        (
            json!({"permissions": ["a", "b#view"]}),
            "&permission=a&permission=b%23view",
        ),
        (
            json!({"permissions": ["a", "b#view"], "method_as_scope": true}),
            "&permission=a%23GET&permission=b%23view%2C%20GET",
        ),
        (json!({"enforcing": false}), ""),
    ] {
        let (found, sent) = run(&filter(change.clone()), &mut call("GET /x"), &[YES]);
        assert_eq!(found, "continue", "{change}");
        assert_eq!(
            sent,
            [("POST /token HTTP/1.1".to_owned(), format!("{uma}{asked}"))],
            "{change}"
        );
    }
}

#[test]
fn resources_are_found_by_path_with_one_token_for_all_calls() {
    let filter = filter(json!({
        "by_path": true, "token_endpoint": null, "discovery": "http://id.test/discovery",
    }));
    let document = r#"{"token_endpoint": "http://id.test/token", "resource_registration_endpoint": "http://id.test/set"}"#;
    let answers = [
        Some((200, document)),
        Some((200, r#"{"access_token": "own", "expires_in": 60}"#)),
        Some((200, r#"["r1"]"#)),
        YES,
    ];
    let (found, sent) = run(&filter, &mut call("GET /x"), &answers);
    let lines: Vec<&str> = sent.iter().map(|(first, _)| first.as_str()).collect();
    assert_eq!(found, "continue");
    assert_eq!(
        lines,
        [
            "GET /discovery HTTP/1.1",
            "POST /token HTTP/1.1",
            "GET /set?uri=%2Fx&matchingUri=true HTTP/1.1",
            "POST /token HTTP/1.1",
        ]
    );
    assert_eq!(
        sent[1].1,
        "grant_type=client_credentials&client_id=c&client_secret=s"
    );
    assert!(sent[3].1.ends_with("&permission=r1"));
    let (found, sent) = run(&filter, &mut call("GET /x"), &[Some((200, "[]"))]);
    assert_eq!((found, sent.len()), (format!("403 {DENIED}"), 1));
    let (found, _) = run(&filter, &mut call("GET /x"), &[None]);
    assert_eq!(found, "503 Accessing resource registration endpoint URL failed.");
}

/// The defect: an instance took the document that another one had got without checking certificates.
#[test]
fn documents_are_shared_by_instances_that_trust_them_alike() {
    let plugin = AuthzKeycloak::default();
    let document = Some((200, r#"{"token_endpoint": "http://id.test/token"}"#));
    for (http, cache_seconds, answers) in [
        (json!({"verify_tls": false}), 60, vec![document, YES]),
        (json!({}), 60, vec![document, YES]),
        (json!({"proxy": "http://one:3128"}), 60, vec![document, YES]),
        (json!({}), 5, vec![document, YES]),
        (json!({}), 60, vec![YES]),
    ] {
        let config = json!({
            "client_id": "c", "permissions": ["a"], "discovery": "http://id.test/shared", "http": http,
            "cache_seconds": cache_seconds,
        });
        let filter = build(&plugin, &config).expect("valid");
        let (found, sent) = run(&filter, &mut call("GET /x"), &answers);
        assert_eq!(
            (found.as_str(), sent.len()),
            ("continue", answers.len()),
            "{config}"
        );
    }
}

#[test]
fn two_tokens_are_none() {
    let mut call = exchange();
    let two = [("Authorization", "bearer t"), ("Authorization", "bearer u")];
    prepare(&mut call, "GET /x", &two);
    let found = run(&filter(json!({"permissions": ["a"]})), &mut call, &[]);
    assert_eq!(found, ("401 Missing JWT token in request".to_owned(), vec![]));
}

#[test]
fn what_is_not_allowed_is_refused() {
    let permissions = json!({"permissions": ["a"]});
    let with = |field: &str, value: Value| {
        let mut all = permissions.clone();
        all[field] = value;
        all
    };
    for (change, answers, expected) in [
        (json!({}), vec![], format!("403 {DENIED}")),
        (
            json!({"denied_redirect": "https://a.test/no"}),
            vec![],
            "307 ".to_owned(),
        ),
        (permissions.clone(), vec![Some((403, "no"))], "403 no".to_owned()),
        (
            with("denied_redirect", json!("https://a.test/no")),
            vec![Some((403, "no"))],
            "307 ".to_owned(),
        ),
        (
            permissions.clone(),
            vec![Some((401, "bad"))],
            "401 bad".to_owned(),
        ),
        (permissions.clone(), vec![None], "503 ".to_owned()),
        (
            permissions.clone(),
            vec![Some((200, "rubbish"))],
            "503 ".to_owned(),
        ),
        (
            permissions.clone(),
            vec![Some((200, r#"{"result": false}"#))],
            "503 ".to_owned(),
        ),
        (permissions.clone(), vec![Some((302, ""))], "503 ".to_owned()),
        (
            json!({"permissions": ["a"], "token_endpoint": null, "discovery": "http://id.test/d"}),
            vec![None],
            "503 Accessing discovery URL failed.".to_owned(),
        ),
    ] {
        let (found, sent) = run(&filter(change.clone()), &mut call("GET /x"), &answers);
        assert_eq!((found, sent.len()), (expected, answers.len()), "{change}");
    }
    let mut bare = exchange();
    let found = run(&filter(permissions), &mut bare, &[]).0;
    assert_eq!(found, "401 Missing JWT token in request");
}

#[test]
fn a_form_is_exchanged_for_tokens() {
    let filter = filter(json!({"password_path": "/login"}));
    for (body, answers, expected) in [
        ("password=b", vec![], "422 username is missing."),
        ("username=a", vec![], "422 password is missing."),
        (
            "username=a&password=b+c",
            vec![Some((200, "{tokens}"))],
            "200 {tokens}",
        ),
        (
            "username=a&password=b",
            vec![Some((400, "x"))],
            "401 Accessing token endpoint URL failed.",
        ),
        (
            "username=a&password=b",
            vec![None],
            "401 Accessing token endpoint URL failed.",
        ),
    ] {
        let mut call = exchange();
        prepare(
            &mut call,
            "POST /login",
            &[("Content-Type", "application/x-www-form-urlencoded")],
        );
        call.request.body = Some(body.as_bytes().to_vec());
        let (found, sent) = run(&filter, &mut call, &answers);
        assert_eq!((found.as_str(), sent.len()), (expected, answers.len()), "{body}");
        if let Some((_, form)) = sent.first().filter(|_| body.ends_with('c')) {
            let expected = "grant_type=password&client_id=c&client_secret=s&username=a&password=b%20c";
            assert_eq!(form, expected);
        }
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, place) in [
        (json!({"client_id": "c"}), "token_endpoint"),
        (json!({"client_id": "c", "token_endpoint": "x"}), "token_endpoint"),
        (
            json!({"client_id": "c", "token_endpoint": "http://a", "by_path": true}),
            "resource_endpoint",
        ),
        (json!({"client_id": "c", "discovery": "x"}), "discovery"),
    ] {
        assert_eq!(
            refused_at(&AuthzKeycloak::default(), &config),
            [place],
            "{config}"
        );
    }
    assert!(build(&AuthzKeycloak::default(), &example(include_str!("mod.rs"))).is_ok());
}
