//! `body-transform` on requests and responses.

use super::*;
use weir_plugins_testkit::*;

/// The body that the service gets, or the answer.
fn transformed(config: &Value, call: &str, content_type: &str, body: &str) -> String {
    let filter = build(&BodyTransform, config).expect("valid");
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        call,
        &[("Content-Type", content_type), ("X-A", "h/v")],
    );
    exchange.request.has_body = true;
    exchange.request.body = Some(body.as_bytes().to_vec());
    match filter.on_request(&mut exchange) {
        Outcome::Continue => String::from_utf8(exchange.request.body.expect("a body")).expect("text"),
        Outcome::Reply(reply) => format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)),
        other => word(&other),
    }
}

fn of(input: Option<&str>, template: &str) -> Value {
    match input {
        Some(input) => json!({"request": {"input": input, "template": template}}),
        None => json!({"request": {"template": template}}),
    }
}

#[test]
fn requests_get_new_bodies() {
    let json = "application/json";
    for (config, call, content_type, body, expected) in [
        (
            of(Some("xml"), r#"{"c":"{{root.city}}"}"#),
            "POST /",
            "text/xml",
            "<root><city>Rome</city></root>",
            r#"{"c":"Rome"}"#,
        ),
        (
            of(None, "{{a}}|{*a*}"),
            "POST /",
            json,
            r#"{"a":"<x>/"}"#,
            "&lt;x&gt;&#47;|<x>/",
        ),
        (
            of(Some("encoded"), r#"{"k":"{{k}}"}"#),
            "POST /",
            "x",
            "k=v&z=1",
            r#"{"k":"v"}"#,
        ),
        (
            of(Some("json"), r#"{"q":{*_escape_json(name)*}}"#),
            "POST /",
            json,
            r#"{"name":"a\"b"}"#,
            r#"{"q":"a\"b"}"#,
        ),
        (of(Some("plain"), "[{{_body}}]"), "POST /", "x", "hi", "[hi]"),
        (
            of(Some("json"), "{{n}} {{a}}-{{ctx}}"),
            "GET /?a=1&n=2",
            json,
            "",
            "2 1-",
        ),
        (
            of(None, "{*_ctx.var.http_x_a*} {{_ctx.var.uri}}"),
            "POST /p",
            json,
            "{}",
            "h/v &#47;p",
        ),
        (
            of(None, r#"{"a": [1, {"b": 2}]}"#),
            "POST /",
            json,
            "{}",
            r#"{"a": [1, {"b": 2}]}"#,
        ),
        (
            of(Some("multipart"), "{{f}}"),
            "POST /",
            "multipart/form-data; boundary=B",
            "--B\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nv\r\n--B--\r\n",
            "v",
        ),
    ] {
        assert_eq!(
            transformed(&config, call, content_type, body),
            expected,
            "{config}"
        );
    }
}

#[test]
fn templates_decide_and_repeat() {
    for (config, body, expected) in [
        (
            of(
                None,
                "{% for i, v in ipairs(list) do %}\n{{i}}={{v.x}},{% end %}{% for k in pairs(map) do %}{{k}};{% end %}",
            ),
            r#"{"list":[{"x":1},{"x":"b"}],"map":{"m":1}}"#,
            "1=1,2=b,m;",
        ),
        (
            of(
                None,
                "{% if n > 5 then %}big{% elseif n == 5 then %}five{% else %}small{% end %}{# no #}",
            ),
            r#"{"n":5}"#,
            "five",
        ),
        (
            of(
                None,
                "{% local x = a .. '!' %}{{x:upper()}}{% for i = 1, 3 do %}{{i}}{% end %}",
            ),
            r#"{"a":"b"}"#,
            "B!123",
        ),
        (
            of(
                None,
                "{% for _, v in ipairs(list or {}) do %}{{v}}{% end %}|{% for _, v in ipairs({1, a}) do %}{{v}}{% end %}",
            ),
            r#"{"a":"b"}"#,
            "|1b",
        ),
        (
            of(None, "{{string.format('%05.1f %s', n, a)}} {{('%d'):format(n)}}"),
            r#"{"a":"b","n":2.25}"#,
            "002.2 b 2",
        ),
        (
            of(None, "{-raw-}{{a}} {% if %}{-raw-}{{a}}{-x-}"),
            r#"{"a":"b"}"#,
            "{{a}} {% if %}b{-x-}",
        ),
        (
            of(None, "{{context.a}}{{string.lower(a)}}{{#a}}"),
            r#"{"a":"Ab"}"#,
            "Abab2",
        ),
    ] {
        assert_eq!(
            transformed(&config, "POST /", "application/json", body),
            expected,
            "{config}"
        );
    }
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let json = |template: &str| json!({"request": {"input": "json", "template": template}});
    for (template, body, expected) in [
        ("{{a}}", "no", "400 {\"message\":\"request body decode: expected"),
        (
            "{{a.b.c}}",
            "{}",
            "503 {\"message\":\"request template rendering: a member of nothing is asked for\"}",
        ),
        (
            "{% for i = 1, 1000000000 do %}x{% end %}",
            "{}",
            "503 {\"message\":\"request template rendering: there is too much to do\"}",
        ),
    ] {
        let found = transformed(&json(template), "POST /", "", body);
        assert!(found.starts_with(expected), "{template}: {found}");
    }
}

/// A search has a step for each byte of its text, but once for the call: a loop of searches ends with the call's budget.
#[test]
fn searches_in_a_loop_end_with_the_budget_of_the_call() {
    let long = "a".repeat(10_000);
    let body = json!({"s": long}).to_string();
    for search in [
        "s:gsub('b', '')",
        "s:gsub('a-b', 'c')",
        "s:match('a*b')",
        "s:find('b')",
        "s:find('b', 1, true)",
    ] {
        let template = format!("{{% for i = 1, 1000000 do %}}{{* {search} or '' *}}{{% end %}}");
        let config = json!({"request": {"input": "json", "template": template}});
        let filter = build(&BodyTransform, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "POST /", &[]);
        exchange.request.has_body = true;
        exchange.request.body = Some(body.clone().into_bytes());
        let Outcome::Reply(reply) = filter.on_request(&mut exchange) else {
            panic!("{search}: it is rendered");
        };
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(text.contains("there is too much to do"), "{search}: {text}");
        // The last step may be one of many at once.
        let most = weir_plugin::WORK_STEPS as usize + 4 * body.len();
        let done = exchange.request.work.done() as usize;
        assert!(done <= most, "{search}: {done}");
    }
}

/// What happens to a response in JSON: status, body, and its coding.
fn response(config: &Value, coding: &str, body: &[u8]) -> (u16, String, String) {
    let filter = build(&BodyTransform, config).expect("valid");
    let mut exchange = exchange();
    exchange.response.status = 200;
    let json = ("Content-Type", "application/json");
    exchange.response.headers = match coding {
        "" => header_fields(&[json]),
        coding => header_fields(&[json, ("Content-Encoding", coding)]),
    };
    filter.on_response(&mut exchange);
    let response = &mut exchange.response;
    let body = response.filter_whole(body.to_vec());
    let coding = response.headers.get(b"content-encoding").unwrap_or_default();
    let [body, coding] = [&body[..], coding].map(|text| String::from_utf8_lossy(text).into_owned());
    (response.status, body, coding)
}

fn of_status(status: u16, body: &[u8], coding: &str) -> (u16, String, String) {
    (
        status,
        String::from_utf8_lossy(body).into_owned(),
        coding.to_owned(),
    )
}

#[test]
fn responses_get_new_bodies() {
    let packed = gzip(br#"{"a":"v1"}"#);
    let config = json!({"response": {"input": "json", "template": "<r>{{a}}</r>"}});
    for (coding, body) in [("", &br#"{"a":"v1"}"#[..]), ("gzip", &packed)] {
        let made = response(&config, coding, body);
        assert_eq!(made, of_status(200, b"<r>v1</r>", ""), "{coding}");
    }
}

#[test]
fn responses_that_cannot_be_changed_do_not_pass() {
    let packed = gzip(br#"{"a":"v1"}"#);
    let config = |most: usize| json!({"response": {"template": "[{{a.b}}]"}, "max_response_bytes": most});
    // The results in the cases that the original lets through.
    for (config, coding, body, lenient) in [
        (config(1000), "", &b"no"[..], &b"no"[..]),
        (config(1000), "", b"{}", b"{}"),
        (config(5), "", br#"{"a":"v1"}"#, br#"{"a":"#),
        (config(9), "gzip", &packed, &packed),
        (config(1000), "zstd", b"no", b"no"),
    ] {
        assert_eq!(
            response(&config, coding, body),
            of_status(502, b"", ""),
            "{config}"
        );
        let mut cut = config.clone();
        cut["excess"] = json!("cut");
        assert_eq!(
            response(&cut, coding, body),
            of_status(200, lenient, coding),
            "{cut}"
        );
    }
}

/// A refusal of the gateway's own is heard, whatever a filter makes of its words.
#[test]
fn refusals_pass() {
    let config = json!({"response": {"input": "xml", "template": "{{a}}"}});
    let filter = build(&BodyTransform, &config).expect("valid");
    let mut exchange = exchange();
    exchange.response.status = 401;
    exchange.response.is_gateway = true;
    filter.on_response(&mut exchange);
    assert_eq!(exchange.response.filter_whole(b"no key".to_vec()), b"no key");
    assert_eq!(exchange.response.status, 401);
}

#[test]
fn configurations_are_checked() {
    assert!(build(&BodyTransform, &example(include_str!("mod.rs"))).is_ok());
    for template in [
        "{{",
        "{{ a b }}",
        "{% if a %}{% end %}",
        "{% if a then %}",
        "{% end %}",
        "{% for x in y do %}{% end %}",
        "{% while true do %}{% end %}",
        "{(other.html)}",
        "{% local 1 = 2 %}",
        "{% if a then %}{% else %}{% else %}{% end %}",
    ] {
        let places = refused_at(&BodyTransform, &json!({"request": {"template": template}}));
        let is_text = template == "{{";
        assert_eq!(places.is_empty(), is_text, "{template}");
    }
    assert_eq!(refused_at(&BodyTransform, &json!({})), [""]);
    assert_eq!(
        refused_at(
            &BodyTransform,
            &json!({"request": {"template": ""}, "max_request_bytes": 1 << 30})
        ),
        ["max_request_bytes"]
    );
}
