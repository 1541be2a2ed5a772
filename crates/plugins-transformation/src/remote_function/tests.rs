//! Requests to functions, and what becomes of their answers.

use super::*;
use serde_json::json;
use weir_plugin::SubrequestResponse;
use weir_plugins_testkit::*;

/// The request that a call causes: its first line, its headers in lines, and its body.
fn sent_request(
    config: &Value,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> (String, Vec<String>, String) {
    let filter = build(&RemoteFunction, config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    exchange.captures.push(("1".into(), b"a b/c".to_vec()));
    exchange.captures.push(("ext".into(), b"a b/c".to_vec()));
    exchange.route = Some(Arc::default());
    exchange.matched_len = 3;
    let outcome = with_body(&*filter, &mut exchange, body);
    let Outcome::Subrequest(subrequest) = outcome else {
        panic!("{outcome:?}");
    };
    let message = String::from_utf8_lossy(&subrequest.message).into_owned();
    let (head, body) = message.split_once("\r\n\r\n").expect("a message");
    let mut lines = head.split("\r\n").map(str::to_owned);
    (lines.next().unwrap_or_default(), lines.collect(), body.to_owned())
}

/// A status, headers and a body.
type ServerResponse<'a> = (u16, &'a [(&'a str, &'a str)], &'a str);

fn answered(config: &Value, answer: Option<ServerResponse<'_>>) -> Result<Reply, String> {
    let filter = build(&RemoteFunction, config).expect("valid");
    let mut exchange = exchange();
    exchange.subrequest_response = Some(answer.map(|(status, headers, body)| SubrequestResponse {
        status,
        headers: header_fields(headers),
        body: body.as_bytes().to_vec(),
    }));
    match filter.on_request(&mut exchange) {
        Outcome::Reply(reply) => Ok(*reply),
        outcome => Err(word(&outcome)),
    }
}

use weir_plugin::Reply;

#[test]
fn calls_are_forwarded_with_the_keys_of_the_configuration() {
    let config = json!({"url": "http://f.example:7071/api/f?x=1", "headers": {"X-Key": "k"}, "headers_yield_to": ["x-key"],
        "request": {"forward": {"append_rest": true}}, "pool_size": 0});
    let call = [
        ("Host", "api.example"),
        ("X-A", "1"),
        ("Content-Type", "text/plain"),
    ];
    let (line, headers, body) = sent_request(&config, "PUT /r/a b/c?y=2", &call, Some("hi"));
    assert_eq!(line, "PUT /api/f/a%20b/c?x=1&y=2 HTTP/1.1");
    let expected = [
        "Host: f.example:7071",
        "X-A: 1",
        "Content-Type: text/plain",
        "X-Key: k",
        "Content-Length: 2",
        "Connection: close",
    ];
    assert_eq!(headers, expected);
    assert_eq!(body, "hi");
    let (_, headers, _) = sent_request(&config, "GET /r", &[("x-key", "own")], None);
    assert!(
        headers.contains(&"x-key: own".to_owned()) && !headers.contains(&"X-Key: k".to_owned()),
        "{headers:?}"
    );
}

#[test]
fn requests_are_signed_where_they_have_no_key() {
    let sign = json!({"access_key": "A", "secret_key": "s", "region": "us-east-1", "service": "execute-api"});
    let config = json!({"url": "https://f.example/f", "sign": sign});
    let is_signed = |config: &Value, headers: &[(&str, &str)]| {
        let (_, lines, _) = sent_request(config, "GET /", headers, None);
        lines
            .iter()
            .any(|line| line.starts_with("Authorization: AWS4-HMAC-SHA256 Credential=A/20261120/us-east-1/"))
    };
    assert!(is_signed(&config, &[]));
    assert!(!is_signed(&config, &[("Authorization", "Bearer own")]));
    let with_key = json!({"url": "https://f.example/f", "sign": sign, "headers": {"x-api-key": "k"},
        "headers_yield_to": ["x-api-key"]});
    assert!(!is_signed(&with_key, &[]));
    assert!(is_signed(&with_key, &[("X-Api-Key", "own")]));
}

#[test]
fn invocations_describe_the_call() {
    let config = |payload: Value| json!({"url": "https://lambda.example/f", "request": {"invoke": payload}});
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let sent = |payload: Value, headers: &[(&str, &str)], body: Option<&str>| {
        let (line, _, body) = sent_request(&config(payload), "POST /p?a=1&a=2&b", headers, body);
        assert_eq!(line, "POST /f HTTP/1.1");
        serde_json::from_str::<Value>(&body).expect("JSON")
    };
    assert_eq!(
        sent(json!({}), &form, Some("c=3")),
        json!({"a": ["1", "2"], "b": true, "c": "3"})
    );
    let all = json!({"form": {"parts": {"method": true, "headers": true, "uri": true, "body": true}}, "base64_body": true});
    assert_eq!(
        sent(all.clone(), &form, Some("c=3")),
        json!({"request_method": "POST", "request_headers": {"content-type": form[0].1},
            "request_uri": "/p?a=1&a=2&b", "request_uri_args": {"a": ["1", "2"], "b": true},
            "request_body": "c=3", "request_body_args": {"c": "3"}})
    );
    let binary = sent(all, &[("Content-Type", "image/png")], Some("png"));
    assert_eq!(
        (&binary["request_body"], &binary["request_body_base64"]),
        (&json!("cG5n"), &json!(true))
    );
    let gateway = sent(
        json!({"form": "api_gateway", "base64_body": true}),
        &[("X-A", "1"), ("X-A", "2")],
        Some("hi"),
    );
    for (field, expected) in [
        ("/httpMethod", json!("POST")),
        ("/path", json!("/p")),
        ("/resource", json!("/p")),
        ("/requestContext/requestTime", json!("20/Nov/2026:15:31:00 +0000")),
        ("/headers/x-a", json!("1")),
        ("/multiValueHeaders/x-a", json!(["1", "2"])),
        ("/queryStringParameters/a", json!("1")),
        ("/multiValueQueryStringParameters/a", json!(["1", "2"])),
        ("/body", json!("aGk=")),
        ("/isBase64Encoded", json!(true)),
        ("/pathParameters/ext", json!("a b/c")),
        ("/requestContext/identity/sourceIp", json!("10.0.0.1")),
        ("/requestContext/domainPrefix", json!("api")),
    ] {
        assert_eq!(gateway.pointer(field), Some(&expected), "{field}");
    }
    assert_eq!(
        gateway.pointer("/pathParameters/1"),
        None,
        "parts without a name are left out"
    );
}

#[test]
fn answers_become_responses() {
    let with = |answer: Value| json!({"url": "http://f.example/", "answer": answer});
    let lambda = |more: Value| {
        let mut options = json!({"proxy": false});
        if let (Value::Object(options), Value::Object(more)) = (&mut options, more) {
            options.extend(more);
        }
        with(json!({ "lambda": options }))
    };
    let json_type = ("Content-Type", "application/json");
    for (config, answer, expected) in [
        (
            with(json!("as_is")),
            Some((201, &[("X-A", "1")][..], "hi")),
            Ok((201, "X-A=1", "hi")),
        ),
        (with(json!("as_is")), None, Err("plugin_failed 503")),
        (
            with(json!("described")),
            Some((
                200,
                &[],
                r#"{"statusCode": 202, "headers": {"X-A": 1, "Content-Length": 9}, "body": {"a": 1}}"#,
            )),
            Ok((202, "X-A=1", r#"{"a":1}"#)),
        ),
        (
            with(json!("described")),
            Some((200, &[], r#"{"other": 1}"#)),
            Ok((200, "", r#"{"other": 1}"#)),
        ),
        (
            with(json!("described")),
            Some((200, &[], "no")),
            Err("plugin_failed 503"),
        ),
        (
            lambda(json!({})),
            Some((404, &[], "{}")),
            Err("plugin_failed 503"),
        ),
        (
            lambda(json!({})),
            Some((200, &[json_type], r#"{"a":[]}"#)),
            Ok((200, "", r#"{"a":[]}"#)),
        ),
        (
            lambda(json!({"empty_lists_as_objects": true})),
            Some((200, &[json_type], r#"{"a":[]}"#)),
            Ok((200, "", r#"{"a":{}}"#)),
        ),
        (
            lambda(json!({"unhandled_status": 412})),
            Some((200, &[("X-Amz-Function-Error", "Unhandled")], "x")),
            Ok((412, "X-Amz-Function-Error=Unhandled", "x")),
        ),
        (
            lambda(json!({"proxy": true})),
            Some((
                200,
                &[("X-A", "0")],
                r#"{"statusCode": "201", "headers": {"x-a": "1"}, "multiValueHeaders": {"X-B": ["2", "3"]}, "body": "aGk=", "isBase64Encoded": true}"#,
            )),
            Ok((201, "x-a=1,X-B=2,X-B=3", "hi")),
        ),
        (
            lambda(json!({"proxy": true})),
            Some((200, &[], "no")),
            Ok((
                502,
                "",
                r#"{"message":"Bad Gateway","error":"could not JSON decode Lambda function response: expected ident at line 1 column 2"}"#,
            )),
        ),
        (
            lambda(json!({"proxy": true})),
            Some((200, &[], r#"{"statusCode": 999}"#)),
            Ok((
                502,
                "",
                r#"{"message":"Bad Gateway","error":"could not JSON decode Lambda function response: statusCode validation failed"}"#,
            )),
        ),
    ] {
        let found = answered(&config, answer).map(|reply| {
            let headers: Vec<String> = (reply.headers.iter())
                .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value)))
                .collect();
            (
                reply.status,
                headers.join(","),
                String::from_utf8_lossy(&reply.body).into_owned(),
            )
        });
        let expected = expected.map(|(status, headers, body)| (status, headers.to_owned(), body.to_owned()));
        assert_eq!(found, expected.map_err(str::to_owned), "{config} {answer:?}");
    }
}

#[test]
fn the_gateway_is_named_after_the_hops_of_an_answer() {
    let config = json!({"url": "http://f.example/", "via": "1.1 weir"});
    for (headers, expected) in [
        (&[("X-A", "1")][..], ("Via", "1.1 weir")),
        (&[("via", "2 cdn")], ("via", "2 cdn, 1.1 weir")),
    ] {
        let reply = answered(&config, Some((200, headers, "hi"))).expect("a reply");
        let (name, value) = reply.headers.last().expect("headers");
        assert_eq!((name.as_str(), &value[..]), (expected.0, expected.1.as_bytes()));
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({"url": "f.example"}), vec!["url"]),
        (
            json!({"url": "http://f.example", "headers": {"a b": "c"}, "timeout_ms": 0, "failure_status": 1, "via": "a\nb"}),
            vec!["headers[0]", "via", "failure_status", "timeout_ms"],
        ),
    ] {
        assert_eq!(refused_at(&RemoteFunction, &config), places, "{config}");
    }
    assert!(build(&RemoteFunction, &example(include_str!("mod.rs"))).is_ok());
}
