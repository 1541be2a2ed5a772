//! What callouts ask, what becomes of answers, and what upstreams get.

use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

/// Runs a call with the answers to its callouts, one after the other (`None`: no answer). Returns the requests that
/// were sent, and the outcome.
fn run(
    filter: &dyn Filter,
    exchange: &mut Exchange,
    answers: &[Option<(u16, &str)>],
) -> (Vec<String>, String) {
    let (mut asked, mut answers) = (Vec::new(), answers.iter());
    loop {
        match filter.on_request(exchange) {
            Outcome::Subrequest(subrequest) => {
                asked.push(String::from_utf8(subrequest.message.clone()).expect("text"));
                let answer = answers
                    .next()
                    .unwrap_or_else(|| panic!("no answer for {asked:?}"));
                exchange.subrequest_response = Some(answer.map(|(status, body)| SubrequestResponse {
                    status,
                    headers: header_fields(&[("X-Kind", "good")]),
                    body: body.as_bytes().to_vec(),
                }));
            }
            other => {
                assert_eq!(answers.next(), None, "all is asked");
                return (asked, word(&other));
            }
        }
    }
}

fn call(line: &str, body: Option<&str>) -> Exchange {
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        line,
        &[
            ("X-User", "a/b"),
            ("Authorization", "Bearer t"),
            ("Content-Type", "application/json"),
        ],
    );
    exchange.request.body = body.map(|body| body.as_bytes().to_vec());
    exchange.request.has_body = body.is_some();
    exchange
}

#[test]
fn callouts_come_in_their_order_and_know_the_answers_before() {
    let config = json!({
        "callouts": [
            {
                "name": "rights", "after": ["user"], "method": "POST", "decode": true,
                "url": "https://rights.example/check?all=1&u=$(callouts.user.response.body.id)",
                "send": {
                    "headers": {"X-Kind": "$(callouts.user.response.headers['x-kind'])"},
                    "query": {"q": "$(query_params.q)"}, "forward_query": true,
                    "body": {"user": "$(callouts.user.response.body.id)", "n": "7"}, "forward_body": true,
                },
            },
            {"name": "user", "decode": true, "url": "http://users.example:81/by/$(headers.x_user)"},
        ],
        "upstream": {
            "headers": {"X-Plan": "$(callouts.rights.response.body.plans[1]) $(callouts.user.response.status)"},
            "query": {"plan": "$(callouts.rights.response.body.plans[1])"},
            "forward_headers": false,
        },
    });
    let filter = build(&CalloutPlugin::default(), &config).expect("valid");
    let mut exchange = call("POST /x?q=1&r=2", Some("{\"a\":1,\"n\":2}"));
    let answers = [
        Some((200, "{\"id\":\"u&1\"}")),
        Some((200, "{\"plans\":[\"gold\"]}")),
    ];
    let (asked, outcome) = run(&*filter, &mut exchange, &answers);
    assert_eq!(outcome, "continue");
    assert_eq!(
        asked,
        [
            "GET /by/a%2Fb HTTP/1.1\r\nHost: users.example:81\r\n\r\n",
            "POST /check?all=1&u=u%261&r=2&q=1 HTTP/1.1\r\nHost: rights.example\r\n\
             Content-Type: application/json\r\nX-Kind: good\r\nContent-Length: 28\r\n\r\n\
             {\"a\":1,\"n\":\"7\",\"user\":\"u&1\"}",
        ]
    );
    let request = &exchange.request;
    let mut headers = lines(&request.headers);
    headers.sort();
    assert_eq!(headers, ["Content-Type: application/json", "X-Plan: gold 200"]);
    assert_eq!(
        exchange.upstream_query.as_deref(),
        Some(&b"q=1&r=2&plan=gold"[..])
    );
    assert_eq!(request.body.as_deref(), Some(&b"{\"a\":1,\"n\":2}"[..]));
}

#[test]
fn errors_refuse_the_call_unless_it_may_go_on() {
    let with = |more: Value| {
        let mut callout =
            json!({"name": "c", "url": "http://a/", "status": 418, "message": "no", "retries": 1});
        for (field, value) in more.as_object().expect("an object") {
            callout[field] = value.clone();
        }
        json!({"callouts": [callout], "upstream": {"headers": {"X": "[$(callouts.c.response.status)]"}}})
    };
    for (more, answers, expected, sent) in [
        (json!({}), vec![Some((200, ""))], "continue", Some("[200]")),
        (json!({}), vec![Some((404, ""))], "reply 418", None),
        (json!({}), vec![None], "reply 418", None),
        (json!({}), vec![Some((304, ""))], "reply 418", None),
        (
            json!({"error_statuses": [500]}),
            vec![Some((304, ""))],
            "continue",
            Some("[304]"),
        ),
        (
            json!({"decode": true}),
            vec![Some((200, "no JSON"))],
            "reply 418",
            None,
        ),
        (
            json!({"decode": true}),
            vec![Some((200, ""))],
            "continue",
            Some("[200]"),
        ),
        (
            json!({"error_statuses": [201]}),
            vec![Some((404, ""))],
            "continue",
            Some("[404]"),
        ),
        (
            json!({"error_statuses": [201]}),
            vec![Some((201, ""))],
            "reply 418",
            None,
        ),
        (
            json!({"on_error": "continue"}),
            vec![None],
            "continue",
            Some("[]"),
        ),
        (
            json!({"on_error": "continue"}),
            vec![Some((500, ""))],
            "continue",
            Some("[500]"),
        ),
        (
            json!({"on_error": "retry"}),
            vec![None, Some((200, ""))],
            "continue",
            Some("[200]"),
        ),
        (
            json!({"on_error": "retry"}),
            vec![None, Some((503, ""))],
            "reply 418",
            None,
        ),
        // What the request cannot be made of is an error, too.
        (
            json!({"url": "http://a/$(callouts.b.c)"}),
            vec![],
            "reply 418",
            None,
        ),
        (
            json!({"url": "http://a/$(query_params.up)"}),
            vec![],
            "reply 418",
            None,
        ),
        (
            json!({"send": {"headers": {"X": "$(query_params.line)"}}}),
            vec![],
            "reply 418",
            None,
        ),
    ] {
        let filter = build(&CalloutPlugin::default(), &with(more.clone())).expect("valid");
        let mut exchange = call("GET /?up=..&line=a%0D%0Ab", None);
        let (_, outcome) = run(&*filter, &mut exchange, &answers);
        let found = exchange.request.headers.get(b"X").map(String::from_utf8_lossy);
        assert_eq!((outcome.as_str(), found.as_deref()), (expected, sent), "{more}");
    }
}

#[test]
fn answers_are_shared_by_calls_that_ask_the_same() {
    let config = json!({
        "callouts": [{"name": "c", "url": "http://a/", "send": {"forward_headers": true}}],
        "cache_seconds": 9,
        "upstream": {"headers": {"X": "$(callouts.c.response.body)"}},
    });
    let plugin = CalloutPlugin::default();
    let filter = build(&plugin, &config).expect("valid");
    for (user, answer, expected) in [
        ("alice", Some("one"), "one"),
        ("alice", None, "one"),
        // Another caller has another answer.
        ("bob", Some("two"), "two"),
        ("alice", None, "one"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[("Authorization", user)]);
        let answers: Vec<_> = answer.into_iter().map(|body| Some((200, body))).collect();
        let (_, outcome) = run(&*filter, &mut exchange, &answers);
        assert_eq!(outcome, "continue", "{user}");
        assert_eq!(
            exchange.request.headers.get(b"X"),
            Some(expected.as_bytes()),
            "{user}"
        );
        // A cache behind it keeps callers apart by that.
        let mark = exchange.identity_fingerprint.clone();
        assert!(
            mark.ends_with(format!("X: {expected}\n\n\n").as_bytes()),
            "{mark:?}"
        );
    }
    // While one call asks, others wait; what failed is not kept.
    let (mut first, mut second) = (call("GET /", None), call("GET /", None));
    assert_eq!(word(&filter.on_request(&mut first)), "ask");
    assert_eq!(word(&filter.on_request(&mut second)), "wait");
    first.subrequest_response = Some(None);
    assert_eq!(word(&filter.on_request(&mut first)), "reply 400");
    assert_eq!(word(&filter.on_request(&mut second)), "ask");
}

#[test]
fn values_lead_to_no_other_folder() {
    for (url, expected) in [
        ("http://a/x/$(query_params.dot)", None),
        ("http://a/x/$(query_params.dot)$(query_params.dot)/y", None),
        ("http://a/x/.$(query_params.dot)", None),
        ("http://a/x/$(query_params.dot).?a", None),
        ("http://a/x/%2E$(query_params.dot)", None),
        ("http://a/x/$(query_params.none)", None),
        ("http://a/x/v$(query_params.none)/y", None),
        (
            "http://a/x/.$(query_params.dot)$(query_params.dot)",
            Some("/x/..."),
        ),
        ("http://a/x/../y/$(query_params.dot)a", Some("/x/../y/.a")),
        ("http://a/$(query_params.dot)a/..", Some("/.a/..")),
        (
            "http://a/x?d=/$(query_params.dot)$(query_params.dot)&n=$(query_params.none)",
            Some("/x?d=/..&n="),
        ),
    ] {
        let config = json!({"callouts": [{"name": "c", "url": url}]});
        let filter = build(&CalloutPlugin::default(), &config).expect("valid");
        let answers = [Some((200, ""))];
        let answers = if expected.is_some() { &answers[..] } else { &[] };
        let (asked, outcome) = run(&*filter, &mut call("GET /?dot=.", None), answers);
        let found = asked.first().and_then(|it| it.split(' ').nth(1));
        assert_eq!(found, expected, "{url}");
        let word = if expected.is_some() {
            "continue"
        } else {
            "reply 400"
        };
        assert_eq!(outcome, word, "{url}");
    }
}

#[test]
fn conditions_of_the_caller_are_not_sent_on() {
    let config = json!({"callouts": [{"name": "c", "url": "http://a/", "send": {"forward_headers": true}}]});
    let filter = build(&CalloutPlugin::default(), &config).expect("valid");
    let mut exchange = exchange();
    let headers = [
        ("If-None-Match", "\"a\""),
        ("if-modified-since", "Fri, 20 Nov 2026 15:31:00 GMT"),
        ("IF-RANGE", "\"a\""),
        ("Range", "bytes=0-1"),
        ("If", "kept"),
        ("X-If-Match", "kept"),
    ];
    prepare(&mut exchange, "GET /", &headers);
    let (asked, _) = run(&*filter, &mut exchange, &[Some((200, ""))]);
    assert_eq!(
        asked,
        ["GET / HTTP/1.1\r\nHost: a\r\nIf: kept\r\nX-If-Match: kept\r\n\r\n"]
    );
}

#[test]
fn answers_count_as_what_they_take_in_memory() {
    let config = json!({"callouts": [{"name": "c", "url": "http://a/", "decode": true}], "cache_seconds": 9});
    for (numbers, questions) in [(1_000, 1), (300_000, 2)] {
        let body = format!("[0{}]", ",0".repeat(numbers));
        let plugin = CalloutPlugin::default();
        let filter = build(&plugin, &config).expect("valid");
        let first = run(&*filter, &mut call("GET /", None), &[Some((200, &body))]);
        assert_eq!((first.0.len(), first.1.as_str()), (1, "continue"));
        let answers = [Some((200, body.as_str()))];
        let second = run(&*filter, &mut call("GET /", None), &answers[..questions - 1]);
        assert_eq!(second.1, "continue");
        assert_eq!(plugin.0.bytes() > numbers * 32, questions == 1, "{numbers}");
    }
}

#[test]
fn answers_that_are_kept_are_not_copied() {
    let config = json!({
        "callouts": [
            {"name": "a", "url": "http://a/", "decode": true},
            {"name": "b", "after": ["a"], "cache": false, "url": "http://b/$(callouts.a.response.body.id)"},
        ],
        "cache_seconds": 9,
    });
    let plugin = CalloutPlugin::default();
    let filter = build(&plugin, &config).expect("valid");
    let mut calls = [call("GET /", None), call("GET /", None)];
    let Outcome::Subrequest(subrequest) = filter.on_request(&mut calls[0]) else {
        panic!("it does not ask");
    };
    calls[0].subrequest_response = Some(Some(SubrequestResponse {
        status: 200,
        body: b"{\"id\":7}".to_vec(),
        ..SubrequestResponse::default()
    }));
    for call in &mut calls {
        let Outcome::Subrequest(second) = filter.on_request(call) else {
            panic!("it does not ask");
        };
        assert!(second.message.starts_with(b"GET /7 HTTP/1.1\r\n"));
    }
    let key = run::digest("instance\na", &subrequest);
    let kept = plugin.0.get(&key, NOW_MS).expect("kept");
    // The map's, that of each call, and this one.
    assert_eq!(Arc::strong_count(&kept), 4);
}

#[test]
fn configurations_are_checked() {
    assert!(build(&CalloutPlugin::default(), &example(include_str!("mod.rs"))).is_ok());
    let one = |more: Value| {
        let mut callout = json!({"name": "c", "url": "http://a/"});
        for (field, value) in more.as_object().expect("an object") {
            callout[field] = value.clone();
        }
        json!({"callouts": [callout]})
    };
    let two = |first: &[&str], second: &[&str]| {
        json!({"callouts": [
            {"name": "a", "url": "http://a/", "after": first}, {"name": "b", "url": "http://a/", "after": second},
        ]})
    };
    for (config, places) in [
        (json!({"callouts": []}), vec!["callouts"]),
        (one(json!({"name": "a b"})), vec!["callouts[0].name"]),
        (one(json!({"url": "ftp://a"})), vec!["callouts[0].url"]),
        (
            one(json!({"url": "http://$(headers.host)/"})),
            vec!["callouts[0].url"],
        ),
        (
            one(json!({"url": "http://a/$(headers.host"})),
            vec!["callouts[0].url"],
        ),
        (one(json!({"url": "http://a/b c"})), vec!["callouts[0].url"]),
        (
            one(json!({"send": {"headers": {"Content-Length": "9"}}})),
            vec!["callouts[0].send"],
        ),
        (one(json!({"method": "get it"})), vec!["callouts[0].method"]),
        (one(json!({"status": 99})), vec!["callouts[0].status"]),
        (one(json!({"timeout_ms": 0})), vec!["callouts[0].timeout_ms"]),
        (one(json!({"retries": 11})), vec!["callouts[0].retries"]),
        (one(json!({"proxy": "https://p"})), vec!["callouts[0].proxy"]),
        (
            one(json!({"send": {"headers": {"a b": "c"}}})),
            vec!["callouts[0].send"],
        ),
        (
            one(json!({"send": {"body": {"a": "$(1 +)"}}})),
            vec!["callouts[0].send"],
        ),
        (two(&["b"], &["a"]), vec!["callouts[0].after"]),
        (two(&["c"], &[]), vec!["callouts[0].after"]),
        (two(&["b"], &[]), vec![]),
        (
            json!({"callouts": [{"name": "a", "url": "http://a/"}], "upstream": {"headers": {"X": "a\nb"}}}),
            vec!["upstream"],
        ),
    ] {
        assert_eq!(refused_at(&CalloutPlugin::default(), &config), places, "{config}");
    }
}
