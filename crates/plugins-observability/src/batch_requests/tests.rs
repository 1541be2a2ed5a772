//! Batches: what is asked, what is answered, and what is refused in which words.

use super::*;
use weir_plugins_testkit::*;

fn filter(config: &Value) -> Arc<dyn Filter> {
    build(&BatchRequests, config).expect("valid")
}

fn posted(body: &str) -> Exchange {
    let mut exchange = exchange();
    let headers = [
        ("Host", "api.example"),
        ("Authorization", "Bearer t"),
        ("Content-Type", "application/json"),
        ("Connection", "close"),
    ];
    prepare(&mut exchange, "POST /batch", &headers);
    exchange.request.has_body = true;
    exchange.request.body = Some(body.as_bytes().to_vec());
    exchange
}

fn answer(status: u16, body: &str) -> SubrequestResponse {
    SubrequestResponse {
        status,
        headers: header_fields(&[("X-A", "1"), ("Set-Cookie", "a"), ("Set-Cookie", "b")]),
        body: body.as_bytes().to_vec(),
    }
}

/// Plays a batch to its end. Gives what was asked, and the answer.
fn play(
    filter: &dyn Filter,
    body: &str,
    answers: Vec<Option<SubrequestResponse>>,
) -> (Vec<String>, u16, Value) {
    let mut exchange = posted(body);
    let (mut asked, mut answers) = (Vec::new(), answers.into_iter());
    loop {
        match filter.on_request(&mut exchange) {
            Outcome::Subrequest(request) => {
                assert_eq!((request.host.as_str(), request.port), ("10.0.0.2", 8000));
                asked.push(String::from_utf8(request.message).expect("text"));
                exchange.subrequest_response = Some(answers.next().expect("an answer"));
            }
            Outcome::Reply(reply) => {
                let body = serde_json::from_slice(&reply.body).expect("JSON");
                return (asked, reply.status, body);
            }
            other => panic!("{}", word(&other)),
        }
    }
}

#[test]
fn calls_are_made_one_after_the_other() {
    let body = r#"{"query": {"a": "1", "b": "2"}, "headers": {"X-All": "y", "X-One": "n"}, "timeout": 50, "pipeline": [
        {"path": "/one?c=3", "query": {"a": "x y"}, "headers": {"x-one": 1, "Content-Type": "text/plain"}},
        {"method": "POST", "path": "/two", "body": "hello"}
    ]}"#;
    let filter = filter(&json!({}));
    let (asked, status, results) = play(
        &*filter,
        body,
        vec![Some(answer(200, "ok")), Some(answer(404, ""))],
    );
    assert_eq!(status, 200);
    let lines: Vec<&str> = asked[0].split("\r\n").collect();
    assert_eq!(lines[0], "GET /one?c=3&a=x%20y&b=2 HTTP/1.1");
    let mut fields = lines[1..].to_vec();
    fields.sort_unstable();
    fields.retain(|line| !line.is_empty());
    let mark = fields.remove(0);
    let number = mark.strip_prefix("Weir-Batch: ").expect("a mark");
    let wanted = [
        "authorization: Bearer t",
        "content-type: text/plain",
        "host: api.example",
        "x-all: y",
        "x-one: 1",
        "x-real-ip: 10.0.0.1",
    ];
    assert_eq!(fields, wanted);
    assert!(
        asked[1].starts_with("POST /two?a=1&b=2 HTTP/1.1\r\n"),
        "{}",
        asked[1]
    );
    assert!(
        asked[1].ends_with(&format!("Content-Length: 5\r\n{mark}\r\n\r\nhello")),
        "{}",
        asked[1]
    );
    // Only such a call is one of a batch, which a batch cannot contain.
    let number = u128::from_str_radix(number, 16).expect("a number");
    for (count, wanted) in [(number, "reply 400"), (1, "ask"), (0, "ask")] {
        let mut nested = posted(body);
        nested.request.own_call = count;
        assert_eq!(word(&filter.on_request(&mut nested)), wanted, "{count}");
    }
    let headers = json!({"X-A": "1", "Set-Cookie": ["a", "b"]});
    let wanted = json!([
        {"status": 200, "reason": "OK", "headers": headers, "body": "ok"},
        {"status": 404, "reason": "Not Found", "headers": headers},
    ]);
    assert_eq!(results, wanted);
}

#[test]
fn calls_without_an_answer_are_reported() {
    let filter = filter(&json!({}));
    let body = r#"{"pipeline": [{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]}"#;
    let (asked, status, text) = play(&*filter, body, vec![Some(answer(200, "")), None]);
    assert_eq!((asked.len(), status), (2, 200));
    assert_eq!(text[1], json!({"status": 504, "reason": "upstream timeout"}));
    assert_eq!(text[2], text[1]);
    // What cannot be a path is not sent.
    let body = "{\"pipeline\": [{\"path\": \"/a b\"}, {\"path\": \"/a\\r\\nX: y\"}, {\"path\": \"a\"}, {\"path\": \"/\\u007f\"}]}";
    let (asked, status, text) = play(&*filter, body, Vec::new());
    assert_eq!((asked.len(), status), (0, 200));
    assert_eq!(text[3], json!({"status": 400, "reason": "Bad Request"}));
}

#[test]
fn what_is_no_batch_is_refused_in_the_originals_words() {
    let filter = filter(&json!({"max_items": 2, "max_body_bytes": 300}));
    let item = |item: &str| {
        format!(
            "bad request body: property \"pipeline\" validation failed: failed to validate item 1: {item}"
        )
    };
    for (body, message) in [
        ("x", "invalid request body: x, err: Expected value but found invalid token at character 1".to_owned()),
        ("{}", "bad request body: object matches none of the required: [\"pipeline\"]".to_owned()),
        (
            "{\"pipeline\": []}",
            "bad request body: property \"pipeline\" validation failed: expect array to have at least 1 items".to_owned(),
        ),
        (
            "{\"timeout\": \"200\", \"pipeline\": []}",
            "bad request body: property \"timeout\" validation failed: wrong type: expected integer, got string".to_owned(),
        ),
        (
            "{\"pipeline\": [{\"path\": \"\"}]}",
            item("property \"path\" validation failed: string too short, expected at least 1, got 0"),
        ),
        (
            "{\"pipeline\": [{\"path\": \"/\", \"method\": \"PAT\"}]}",
            item("property \"method\" validation failed: matches none of the enum values"),
        ),
        (
            "{\"pipeline\": [{\"path\": \"/\", \"version\": 1.2}]}",
            item("property \"version\" validation failed: matches none of the enum values"),
        ),
        (
            "{\"pipeline\": [{\"path\": \"/\", \"ssl_verify\": 1.2}]}",
            item("property \"ssl_verify\" validation failed: wrong type: expected boolean, got number"),
        ),
        (
            "{\"pipeline\": [{\"path\": \"/\"}, {\"path\": \"/\"}, {\"path\": \"/\"}]}",
            "too many pipeline requests, 3 exceeds the maximum of 2".to_owned(),
        ),
    ] {
        let (_, status, text) = play(&*filter, body, Vec::new());
        assert_eq!((status, text["error_msg"].as_str()), (400, Some(message.as_str())), "{body}");
    }
}

#[test]
fn bodies_and_nesting_are_bounded() {
    let filter = filter(&json!({"path": "/batch", "max_body_bytes": 300}));
    let mut exchange = posted("");
    exchange.request.body = None;
    exchange.request.content_length = Some(4096);
    let Outcome::Reply(reply) = filter.on_request(&mut exchange) else {
        panic!("it is refused");
    };
    let message = "{\"error_msg\":\"request size 4096 is greater than the maximum size 300 allowed\"}\n";
    assert_eq!((reply.status, reply.body), (413, message.as_bytes().to_vec()));
    exchange.request.content_length = None;
    assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    let Outcome::Reply(reply) = filter.on_request(&mut exchange) else {
        panic!("it is refused");
    };
    let message = "{\"error_msg\":\"request size 301 is greater than the maximum size 300 allowed\"}\n";
    assert_eq!((reply.status, reply.body), (413, message.as_bytes().to_vec()));
    exchange.request.has_body = false;
    assert_eq!(word(&filter.on_request(&mut exchange)), "reply 400");
    prepare(&mut exchange, "POST /other", &[]);
    assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
    prepare(&mut exchange, "GET /batch", &[]);
    assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
}

#[test]
fn configurations_are_checked() {
    assert!(build(&BatchRequests, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({}), vec![]),
        (
            json!({"max_items": 0, "client_header": "a b"}),
            vec!["client_header", "max_items"],
        ),
        (json!({"max_body_bytes": 33_554_433}), vec!["max_body_bytes"]),
    ] {
        assert_eq!(refused_at(&BatchRequests, &config), places, "{config}");
    }
}
