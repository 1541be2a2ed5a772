//! `wolf-rbac` as its users see it.

mod endpoints;

use super::*;
use serde_json::json;
use weir_plugin::SubrequestResponse;
use weir_plugins_testkit::*;

fn filter() -> Arc<dyn Filter> {
    let credential = json!({"app_id": "shop", "server": "http://wolf.test:12180"});
    build_with(&WolfRbac, &json!({}), &[("alice", Some("c1"), credential)]).expect("valid")
}

/// A call; gives what the server was asked.
fn run(call: &mut Exchange, answers: &[Option<(u16, &str)>]) -> (String, Vec<String>) {
    let filter = filter();
    let mut asked = Vec::new();
    loop {
        match filter.on_request(call) {
            Outcome::Subrequest(sent) => {
                let answer = answers[asked.len()];
                asked.push(String::from_utf8(sent.message).expect("text"));
                call.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
                    status,
                    body: body.as_bytes().to_vec(),
                    ..SubrequestResponse::default()
                }));
            }
            Outcome::Suspend(_) => {}
            Outcome::Refuse(refusal) => {
                return (
                    format!("{} {}", refusal.status, refusal.message.unwrap_or_default()),
                    asked,
                );
            }
            outcome => return (word(&outcome), asked),
        }
    }
}

const GOOD: &str = r#"{"ok": true, "data": {"userInfo": {"id": 7, "username": "ada", "nickname": "Ä"}}}"#;

#[test]
fn the_server_decides_and_its_user_is_forwarded() {
    let forged = [
        ("X-UserId", "1"),
        ("x_username", "root"),
        ("Authorization", "V1#shop#t"),
    ];
    let mut call = exchange();
    prepare(&mut call, "GET /a", &forged);
    let (found, asked) = run(&mut call, &[Some((200, GOOD))]);
    assert_eq!(found, "continue");
    assert!(
        asked[0].starts_with(
            "GET /wolf/rbac/access_check?appID=shop&resName=%2Fa&action=GET&clientIP=10.0.0.1 HTTP/1.1\r\n"
        ),
        "{}",
        asked[0]
    );
    assert!(asked[0].contains("\r\nx-rbac-token: t\r\n"));
    let headers = lines(&call.request.headers);
    for line in [
        "X-UserId: 7",
        "X-Username: ada",
        "X-Nickname: %C3%84",
        "X-Consumer-Username: ALICE",
    ] {
        assert!(headers.iter().any(|it| it == line), "{headers:?}");
    }
    assert!(!headers.iter().any(|it| it.contains("root")), "{headers:?}");
    assert_eq!(call.response_headers.get(b"x-userid"), Some(&b"7"[..]));
}

/// A call that is not checked, as another plugin knows its caller or as it is a preflight, carries no headers of the client's
/// about a user. Apps may have prefixes of their own.
#[test]
fn forged_headers_never_pass() {
    let credential = json!({"app_id": "shop", "server": "http://wolf.test", "header_prefix": "Shop-"});
    for (config, line) in [
        (json!({"skip_authenticated": true}), "GET /"),
        (json!({"on_preflight": false}), "OPTIONS /"),
    ] {
        let config = json!({ "identity": config });
        let credentials = [("alice", Some("c1"), credential.clone())];
        let filter = build_with(&WolfRbac, &config, &credentials).expect("valid");
        let mut call = exchange();
        let forged = [("X-UserId", "1"), ("shop_username", "root"), ("X-Other", "1")];
        prepare(&mut call, line, &forged);
        call.identity = Some(identity("bob", Some("c2")));
        user_headers::set_header(&mut call, "X-Nickname", b"bob");
        assert_eq!(word(&filter.on_request(&mut call)), "continue", "{config}");
        assert_eq!(
            lines(&call.request.headers),
            ["X-Other: 1", "X-Nickname: bob"],
            "{config}"
        );
    }
}

/// All users of an app have its consumer: a cache must know more.
#[test]
fn users_of_an_app_are_told_apart() {
    let marks = ["t1", "t2"].map(|token| {
        let mut call = exchange();
        let token = format!("V1#shop#{token}");
        prepare(&mut call, "GET /a", &[("x-rbac-token", &token)]);
        assert_eq!(run(&mut call, &[Some((200, GOOD))]).0, "continue");
        call.identity_fingerprint
    });
    assert!(marks[0] != marks[1] && !marks[0].is_empty(), "{marks:?}");
}

#[test]
fn what_is_not_allowed_is_refused() {
    let failed = Some((500, "x"));
    for (target, answers, expected) in [
        ("/a", vec![], "401 Missing rbac token in request"),
        ("/a?rbac_token=x", vec![], "401 invalid rbac token: parse failed"),
        (
            "/a?rbac_token=V2%23shop%23t",
            vec![],
            "401 invalid rbac token: parse failed",
        ),
        (
            "/a?rbac_token=V1%23other%23t",
            vec![],
            "401 Invalid appid in rbac token",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![None],
            "500 request to wolf-server failed",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![failed, failed, failed],
            "500 request to wolf-server failed, status:500",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![Some((401, r#"{"reason": "ERR_TOKEN_INVALID"}"#))],
            "401 ERR_TOKEN_INVALID",
        ),
        ("/a?rbac_token=V1%23shop%23t", vec![Some((302, "{}"))], "403 "),
        ("/a?rbac_token=V1%23shop%23t", vec![Some((200, "{}"))], "403 "),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![Some((200, r#"{"data": {}}"#))],
            "403 ",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![Some((200, r#"{"ok": false, "reason": "ERR_ACCESS_DENIED"}"#))],
            "403 ERR_ACCESS_DENIED",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![Some((200, r#"{"ok": true}"#))],
            "continue",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![Some((200, r#"{"data": {"userInfo": {}}}"#))],
            "continue",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![Some((200, "rubbish"))],
            "500 check permission failed! parse response json failed!",
        ),
        (
            "/a?rbac_token=V1%23shop%23t",
            vec![failed, Some((200, GOOD))],
            "continue",
        ),
    ] {
        let mut call = exchange();
        prepare(&mut call, &format!("GET {target}"), &[("X-UserId", "1")]);
        let (found, asked) = run(&mut call, &answers);
        assert_eq!(
            (found.as_str(), asked.len()),
            (expected, answers.len()),
            "{target}"
        );
        if expected != "continue" {
            assert!(call.identity.is_none(), "{target}");
        }
    }
}

#[test]
fn bad_credentials_are_refused_at_their_place() {
    for (credential, place) in [
        (json!({"app_id": "a", "server": "x"}), "server"),
        (
            json!({"app_id": "a", "server": "http://a", "header_prefix": "a b"}),
            "header_prefix",
        ),
    ] {
        let found = check(&credential).expect_err("refused");
        assert_eq!(found[0].path.to_string(), place, "{credential}");
    }
    assert_eq!(
        refused_at(&WolfRbac, &json!({"http": {"timeout_ms": 0}})),
        ["http.timeout_ms"]
    );
}
