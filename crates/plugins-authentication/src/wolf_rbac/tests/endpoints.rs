//! `wolf-rbac`: its endpoints, as their callers see them.

use super::super::*;
use serde_json::json;
use weir_plugin::SubrequestResponse;
use weir_plugins_testkit::*;

/// A plugin that answers with all endpoints and lets other calls pass.
struct EndpointsPlugin;

impl Plugin for EndpointsPlugin {
    fn name(&self) -> &'static str {
        "wolf-rbac"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        Ok(Arc::new(EndpointsFilter(Endpoints::build(
            parse_config(config)?,
            context,
        ))))
    }
}

struct EndpointsFilter(Endpoints);

impl Filter for EndpointsFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        self.0.answer(exchange).unwrap_or(Outcome::Continue)
    }
}

fn endpoints() -> Value {
    json!([
        {"serves": "login", "path": "/login"},
        {"serves": "user-info", "path": "/user"},
        {"serves": "change-password", "path": "/password"},
    ])
}

fn served(apps: &[&str]) -> Arc<dyn Filter> {
    let credential = |app: &&str| json!({"app_id": app, "server": "http://wolf.test:12180"});
    let credentials: Vec<_> = apps
        .iter()
        .map(|app| ("alice", Some("c1"), credential(app)))
        .collect();
    build_with(&EndpointsPlugin, &endpoints(), &credentials).expect("valid")
}

/// What happens to a call, and what the server was sent.
fn call(
    filter: &Arc<dyn Filter>,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
    answer: Option<(u16, &str)>,
) -> (String, Option<String>) {
    let mut call = exchange();
    prepare(&mut call, line, headers);
    call.request.has_body = !body.is_empty();
    let mut sent = None;
    loop {
        let outcome = match filter.on_request(&mut call) {
            Outcome::NeedBody { .. } => {
                call.request.body = Some(body.as_bytes().to_vec());
                continue;
            }
            Outcome::Subrequest(asked) => {
                sent = Some(String::from_utf8(asked.message).expect("text"));
                call.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
                    status,
                    body: body.as_bytes().to_vec(),
                    ..SubrequestResponse::default()
                }));
                continue;
            }
            Outcome::Reply(reply) => {
                let body = String::from_utf8(reply.body).expect("text");
                format!("{} {}", reply.status, body.trim_end())
            }
            Outcome::Refuse(refusal) => {
                format!("{} {}", refusal.status, refusal.message.unwrap_or_default())
            }
            other => word(&other),
        };
        return (outcome, sent);
    }
}

const JSON: (&str, &str) = ("Content-Type", "application/json; charset=utf-8");
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const HELD: (&str, &str) = ("Authorization", "V1#shop#t0");

#[test]
fn users_log_in_ask_who_they_are_and_change_their_passwords() {
    let filter = served(&["shop"]);
    let user = r#"{"ok": true, "data": {"token": "t1", "userInfo": {"id": 7}}}"#;
    for (line, headers, body, sent, expected) in [
        (
            "POST /login",
            vec![JSON],
            r#"{"appid": "shop", "username": "ada", "password": "x"}"#,
            (
                "POST /wolf/rbac/login.rest ",
                r#"{"appid":"shop","password":"x","username":"ada"}"#,
            ),
            r##"200 {"rbac_token":"V1#shop#t1","user_info":{"id":7}}"##,
        ),
        (
            "POST /login",
            vec![FORM],
            "appid=shop&username=a%20b&role=1&role=2&x",
            (
                "POST /wolf/rbac/login.rest ",
                r#"{"appid":"shop","role":["1","2"],"username":"a b","x":true}"#,
            ),
            r##"200 {"rbac_token":"V1#shop#t1","user_info":{"id":7}}"##,
        ),
        (
            "GET /user",
            vec![HELD],
            "",
            ("GET /wolf/rbac/user_info ", ""),
            r#"200 {"user_info":{"id":7}}"#,
        ),
        (
            "PUT /password",
            vec![HELD, FORM],
            "oldPassword=a&newPassword=b",
            (
                "POST /wolf/rbac/change_pwd ",
                r#"{"newPassword":"b","oldPassword":"a"}"#,
            ),
            r#"200 {"message":"success to change password"}"#,
        ),
    ] {
        let (found, asked) = call(&filter, line, &headers, body, Some((200, user)));
        assert_eq!(found, expected, "{line}");
        let asked = asked.expect("the server is asked");
        let (head, sent_body) = asked.split_once("\r\n\r\n").expect("a message");
        assert!(head.starts_with(sent.0), "{line}: {head}");
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        assert_eq!(json(sent_body), json(sent.1), "{line}");
        assert_eq!(
            head.contains("\r\nx-rbac-token: t0"),
            headers.contains(&HELD),
            "{line}"
        );
    }
}

#[test]
fn what_cannot_be_served_is_refused() {
    let filter = served(&["shop"]);
    let login = r#"{"appid": "shop"}"#;
    for (line, headers, body, answer, expected) in [
        (
            "POST /login",
            vec![FORM],
            "username=a",
            None,
            "400 appid is missing",
        ),
        (
            "POST /login",
            vec![JSON],
            r#"{"appid": 1}"#,
            None,
            "400 appid is missing",
        ),
        ("POST /login", vec![JSON], "{", None, "400 invalid request"),
        ("POST /login", vec![JSON], "[]", None, "400 invalid request"),
        (
            "POST /login",
            vec![FORM],
            "appid=other",
            None,
            "400 appid not found",
        ),
        ("GET /user", vec![], "", None, "401 Missing rbac token in request"),
        (
            "GET /user?rbac_token=x",
            vec![],
            "",
            None,
            "401 invalid rbac token: parse failed",
        ),
        (
            "GET /user?rbac_token=V1%23other%23t",
            vec![],
            "",
            None,
            "400 appid not found",
        ),
        ("GET /login", vec![], "", None, "continue"),
        ("POST /other", vec![FORM], "appid=shop", None, "continue"),
    ] {
        let (found, asked) = call(&filter, line, &headers, body, answer);
        assert_eq!(
            (found.as_str(), asked.is_some()),
            (expected, false),
            "{line} {body}"
        );
    }
    let failed = "500 request to wolf-server failed!";
    for (answer, expected) in [
        (None, failed),
        (Some((500, r#"{"ok": true}"#)), failed),
        (Some((200, "rubbish")), failed),
        (Some((200, r#"{"ok": true, "data": {}}"#)), failed),
        (
            Some((200, r#"{"ok": false, "reason": "ERR_PASSWORD_ERROR"}"#)),
            r#"200 {"message":"request to wolf-server failed!"}"#,
        ),
    ] {
        let (found, asked) = call(&filter, "POST /login", &[JSON], login, answer);
        assert_eq!((found.as_str(), asked.is_some()), (expected, true), "{answer:?}");
    }
    let (found, _) = call(&served(&[]), "POST /login", &[JSON], login, None);
    assert_eq!(found, "500 ");
}
